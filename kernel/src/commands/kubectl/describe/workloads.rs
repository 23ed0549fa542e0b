//! Deployments, replica sets, replication controllers, daemon sets, stateful sets.

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use cluster_core::api::selector::Selector;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::super::failure::{Failure, Outcome};
use super::super::resources::Item;
use super::super::verb::Call;
use super::{
    Page, controlled_by, is_true, labels_and_annotations, labels_line, list, name, number, or, or_none, selector,
    short_conditions, shown, storage, template, text, time,
};

pub fn deployment(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let deployment = &item.value;
    name(item, page);
    page.field(0, "CreationTimestamp", time(text(deployment, "/metadata/creationTimestamp")));
    labels_and_annotations(item, page);
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
        let bound = |path: &str| shown(rolling, path, "<nil>");
        let line = format!("{} max unavailable, {} max surge", bound("/maxUnavailable"), bound("/maxSurge"));
        page.field(0, "RollingUpdateStrategy", line);
    }
    template::in_page(page, &deployment["spec"]["template"]);
    short_conditions(page, list(deployment, "/status/conditions"));
    let (old, new) = replica_sets(call, item)?;
    if old.is_empty() && new.is_none() {
        return Ok(());
    }
    let told = |set: &Value| {
        let (replicas, wanted) = (number(set, "/status/replicas"), number(set, "/spec/replicas"));
        format!("{} ({replicas}/{wanted} replicas created)", text(set, "/metadata/name"))
    };
    let old: Vec<String> = old.iter().map(told).collect();
    page.field(0, "OldReplicaSets", or_none(&old.join(", ")));
    page.field(0, "NewReplicaSet", new.as_ref().map_or("<none>".into(), told));
    Ok(())
}

/// The replica sets of older templates, and the one of the newest.
fn replica_sets(call: &mut Call<'_, '_>, item: &Item) -> Result<(Vec<Value>, Option<Value>), Failure> {
    let all = call.list(KindRef::of::<ReplicaSet>(), &item.namespace, Options::default())?;
    let uid = item.value.pointer("/metadata/uid");
    let (mut old, mut new) = (Vec::new(), None);
    for set in all.into_iter().filter(|set| controller_uid(set) == uid) {
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

fn controller_uid(value: &Value) -> Option<&Value> {
    let owners = list(value, "/metadata/ownerReferences");
    owners.iter().find(|owner| is_true(owner, "/controller")).and_then(|owner| owner.get("uid"))
}

/// How many pods of a selector are in which phase.
fn pods_status(call: &mut Call<'_, '_>, item: &Item) -> Result<String, Failure> {
    let wanted = item.value.pointer("/spec/selector").cloned().unwrap_or_default();
    let labels = match &*item.kind.kind {
        "ReplicationController" => serde_json::from_value(wanted).map(|labels| Selector::of_labels(&labels)),
        _ => serde_json::from_value(wanted).map(|wanted| Selector::of(&wanted)),
    };
    let labels = labels.unwrap_or_default();
    let pods = call.list(KindRef::of::<Pod>(), &item.namespace, Options { labels, ..Options::default() })?;
    let uid = item.value.pointer("/metadata/uid");
    let owned: Vec<&Value> = pods.iter().filter(|pod| controller_uid(pod) == uid).collect();
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
    name(item, page);
    page.field(0, "Selector", or_none(&selector(item.value.pointer("/spec/selector"))));
    labels_and_annotations(item, page);
    controlled_by(&item.value, page);
    replicas(call, item, page)
}

pub fn replication_controller(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name(item, page);
    page.field(0, "Selector", labels_line(item.value.pointer("/spec/selector")));
    labels_and_annotations(item, page);
    replicas(call, item, page)
}

/// How many pods of one template there are.
fn replicas(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let set = &item.value;
    let (current, desired) = (number(set, "/status/replicas"), number(set, "/spec/replicas"));
    page.field(0, "Replicas", format!("{current} current / {desired} desired"));
    let pods = pods_status(call, item)?;
    page.field(0, "Pods Status", pods);
    template::in_page(page, &set["spec"]["template"]);
    short_conditions(page, list(set, "/status/conditions"));
    Ok(())
}

pub fn daemon_set(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let set = &item.value;
    name(item, page);
    page.field(0, "Selector", selector(set.pointer("/spec/selector")));
    page.field(0, "Node-Selector", labels_line(set.pointer("/spec/template/spec/nodeSelector")));
    labels_and_annotations(item, page);
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
    name(item, page);
    page.field(0, "CreationTimestamp", time(text(set, "/metadata/creationTimestamp")));
    page.field(0, "Selector", selector(set.pointer("/spec/selector")));
    labels_and_annotations(item, page);
    page.field(
        0,
        "Replicas",
        format!("{} desired | {} total", number(set, "/spec/replicas"), number(set, "/status/replicas")),
    );
    page.field(0, "Update Strategy", text(set, "/spec/updateStrategy/type"));
    if set.pointer("/spec/updateStrategy/rollingUpdate/partition").is_some() {
        let rolling = &set["spec"]["updateStrategy"]["rollingUpdate"];
        page.field(1, "Partition", number(rolling, "/partition"));
        if rolling.get("maxUnavailable").is_some() {
            page.field(1, "MaxUnavailable", shown(rolling, "/maxUnavailable", ""));
        }
    }
    let pods = pods_status(call, item)?;
    page.field(0, "Pods Status", pods);
    template::in_page(page, &set["spec"]["template"]);
    match list(set, "/spec/volumeClaimTemplates") {
        [] => page.field(0, "Volume Claims", "<none>"),
        claims => {
            page.line(0, "Volume Claims:");
            claims.iter().for_each(|claim| volume_claim(page, claim));
        }
    }
    Ok(())
}

fn volume_claim(page: &mut Page, claim: &Value) {
    page.field(1, "Name", text(claim, "/metadata/name"));
    page.field(1, "StorageClass", storage::class(claim));
    page.labels(1, "Labels", claim.pointer("/metadata/labels"));
    page.labels(1, "Annotations", claim.pointer("/metadata/annotations"));
    page.field(1, "Capacity", or(text(claim, "/spec/resources/requests/storage"), "<default>"));
    page.field(1, "Access Modes", shown(claim, "/spec/accessModes", "[]"));
}
