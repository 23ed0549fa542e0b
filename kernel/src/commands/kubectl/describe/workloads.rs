//! Deployments, replica sets, daemon sets, stateful sets.

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use cluster_core::api::selector::Selector;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::super::failure::{Failure, Outcome};
use super::super::jsonpath::go_text;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, controlled_by, list, number, or_none, selector, template, text, time};

pub fn deployment(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let deployment = &item.value;
    page.field(0, "Name", &item.name);
    page.field(0, "Namespace", &item.namespace);
    page.field(0, "CreationTimestamp", time(text(deployment, "/metadata/creationTimestamp")));
    page.pairs(0, "Labels", deployment.pointer("/metadata/labels"), "=");
    page.pairs(0, "Annotations", deployment.pointer("/metadata/annotations"), ": ");
    page.field(0, "Selector", selector(deployment.pointer("/spec/selector")));
    let of = |field: &str| number(deployment, &format!("/status/{field}"));
    page.field(
        0,
        "Replicas",
        format!(
            "{} desired | {} updated | {} total | {} available | {} unavailable",
            number(deployment, "/spec/replicas"),
            of("updatedReplicas"),
            of("replicas"),
            of("availableReplicas"),
            of("unavailableReplicas")
        ),
    );
    page.field(0, "StrategyType", text(deployment, "/spec/strategy/type"));
    page.field(0, "MinReadySeconds", number(deployment, "/spec/minReadySeconds"));
    if let Some(rolling) = deployment.pointer("/spec/strategy/rollingUpdate") {
        let bound = |field: &str| rolling.get(field).map(go_text).unwrap_or_default();
        let line = format!("{} max unavailable, {} max surge", bound("maxUnavailable"), bound("maxSurge"));
        page.field(0, "RollingUpdateStrategy", line);
    }
    template::in_page(page, &deployment["spec"]["template"]);
    let conditions = list(deployment, "/status/conditions");
    if !conditions.is_empty() {
        page.line(0, "Conditions:");
        page.line(1, "Type\tStatus\tReason");
        page.line(1, "----\t------\t------");
        for condition in conditions {
            page.line(1, [text(condition, "/type"), text(condition, "/status"), text(condition, "/reason")].join("\t"));
        }
    }
    let (old, new) = replica_sets(call, item)?;
    let named = |set: &Value| {
        format!(
            "{} ({}/{} replicas created)",
            text(set, "/metadata/name"),
            number(set, "/status/replicas"),
            number(set, "/spec/replicas")
        )
    };
    let old: Vec<String> = old.iter().map(named).collect();
    page.field(0, "OldReplicaSets", or_none(&old.join(", ")));
    page.field(0, "NewReplicaSet", new.as_ref().map_or("<none>".into(), named));
    Ok(())
}

/// The replica sets of older templates, and the one of the newest.
fn replica_sets(call: &mut Call<'_, '_>, item: &Item) -> Result<(Vec<Value>, Option<Value>), Failure> {
    let all = call.list(KindRef::of::<ReplicaSet>(), &item.namespace, Options::default())?;
    let uid = item.value.pointer("/metadata/uid");
    let (mut old, mut new) = (Vec::new(), None);
    for set in all.into_iter().filter(|set| set.pointer("/metadata/ownerReferences/0/uid") == uid) {
        let mut its_template = set["spec"]["template"].clone();
        if let Some(labels) = its_template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
            labels.remove("pod-template-hash");
        }
        if new.is_none() && its_template == item.value["spec"]["template"] {
            new = Some(set);
        } else {
            old.push(set);
        }
    }
    Ok((old, new))
}

/// How many pods of a selector are in which phase.
fn pods_status(call: &mut Call<'_, '_>, item: &Item) -> Result<String, Failure> {
    let wanted = item.value.pointer("/spec/selector").cloned().unwrap_or_default();
    let labels = serde_json::from_value(wanted).map(|wanted| Selector::of(&wanted)).unwrap_or_default();
    let pods = call.list(KindRef::of::<Pod>(), &item.namespace, Options { labels, ..Options::default() })?;
    let uid = item.value.pointer("/metadata/uid");
    let owned: Vec<&Value> = pods.iter().filter(|pod| pod.pointer("/metadata/ownerReferences/0/uid") == uid).collect();
    let count = |phase: &str| owned.iter().filter(|pod| text(pod, "/status/phase") == phase).count();
    Ok(format!(
        "{} Running / {} Waiting / {} Succeeded / {} Failed",
        count("Running"),
        count("Pending"),
        count("Succeeded"),
        count("Failed")
    ))
}

pub fn replica_set(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let set = &item.value;
    page.field(0, "Name", &item.name);
    page.field(0, "Namespace", &item.namespace);
    page.field(0, "Selector", selector(set.pointer("/spec/selector")));
    page.pairs(0, "Labels", set.pointer("/metadata/labels"), "=");
    page.pairs(0, "Annotations", set.pointer("/metadata/annotations"), ": ");
    controlled_by(set, page);
    let (current, desired) = (number(set, "/status/replicas"), number(set, "/spec/replicas"));
    page.field(0, "Replicas", format!("{current} current / {desired} desired"));
    let pods = pods_status(call, item)?;
    page.field(0, "Pods Status", pods);
    template::in_page(page, &set["spec"]["template"]);
    let conditions = list(set, "/status/conditions");
    if !conditions.is_empty() {
        page.line(0, "Conditions:");
        page.line(1, "Type\tStatus\tReason");
        page.line(1, "----\t------\t------");
        for condition in conditions {
            page.line(1, [text(condition, "/type"), text(condition, "/status"), text(condition, "/reason")].join("\t"));
        }
    }
    Ok(())
}

pub fn daemon_set(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let set = &item.value;
    page.field(0, "Name", &item.name);
    page.field(0, "Namespace", &item.namespace);
    page.field(0, "Selector", selector(set.pointer("/spec/selector")));
    page.pairs(0, "Node-Selector", set.pointer("/spec/template/spec/nodeSelector"), "=");
    page.pairs(0, "Labels", set.pointer("/metadata/labels"), "=");
    page.pairs(0, "Annotations", set.pointer("/metadata/annotations"), ": ");
    for (name, field) in [
        ("Desired Number of Nodes Scheduled", "desiredNumberScheduled"),
        ("Current Number of Nodes Scheduled", "currentNumberScheduled"),
        ("Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled"),
        ("Number of Nodes Scheduled with Available Pods", "numberAvailable"),
        ("Number of Nodes Misscheduled", "numberMisscheduled"),
    ] {
        page.line(0, format!("{name}: {}", number(set, &format!("/status/{field}"))));
    }
    let pods = pods_status(call, item)?;
    page.field(0, "Pods Status", pods);
    template::in_page(page, &set["spec"]["template"]);
    Ok(())
}

pub fn stateful_set(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let set = &item.value;
    page.field(0, "Name", &item.name);
    page.field(0, "Namespace", &item.namespace);
    page.field(0, "CreationTimestamp", time(text(set, "/metadata/creationTimestamp")));
    page.field(0, "Selector", selector(set.pointer("/spec/selector")));
    page.pairs(0, "Labels", set.pointer("/metadata/labels"), "=");
    page.pairs(0, "Annotations", set.pointer("/metadata/annotations"), ": ");
    page.field(
        0,
        "Replicas",
        format!("{} desired | {} total", number(set, "/spec/replicas"), number(set, "/status/replicas")),
    );
    page.field(0, "Update Strategy", text(set, "/spec/updateStrategy/type"));
    if let Some(partition) = set.pointer("/spec/updateStrategy/rollingUpdate/partition") {
        page.field(1, "Partition", go_text(partition));
    }
    let pods = pods_status(call, item)?;
    page.field(0, "Pods Status", pods);
    template::in_page(page, &set["spec"]["template"]);
    match list(set, "/spec/volumeClaimTemplates") {
        [] => page.field(0, "Volume Claims", "<none>"),
        claims => {
            page.line(0, "Volume Claims:");
            for claim in claims {
                page.field(1, "Name", text(claim, "/metadata/name"));
                page.field(1, "StorageClass", text(claim, "/spec/storageClassName"));
                page.pairs(1, "Labels", claim.pointer("/metadata/labels"), "=");
                page.pairs(1, "Annotations", claim.pointer("/metadata/annotations"), ": ");
                page.field(1, "Capacity", text(claim, "/spec/resources/requests/storage"));
                let modes: Vec<String> = list(claim, "/spec/accessModes").iter().map(go_text).collect();
                page.field(1, "Access Modes", format!("[{}]", modes.join(" ")));
            }
        }
    }
    Ok(())
}
