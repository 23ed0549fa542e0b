//! Volumes, claims, and the classes that they are of.

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::super::failure::{Failure, Outcome};
use super::super::jsonpath::go_text;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{
    Page, capital, joined, labels_and_annotations, labels_line, list, name, number, or, phase, shown, text, time,
    volumes,
};

/// The class of a claim or a volume, which an old annotation may name, too.
pub fn class(value: &Value) -> &str {
    let annotated = text(value, "/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    or(annotated, text(value, "/spec/storageClassName"))
}

/// `RWO,ROX`
fn access_modes(value: &Value, path: &str) -> String {
    const MODES: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let known = list(value, path);
    let short = MODES.iter().filter(|(mode, _)| known.iter().any(|known| known == mode)).map(|(_, short)| *short);
    short.collect::<Vec<_>>().join(",")
}

pub fn persistent_volume(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let volume = &item.value;
    name(item, page);
    labels_and_annotations(item, page);
    page.field(0, "Finalizers", shown(volume, "/metadata/finalizers", "[]"));
    page.field(0, "StorageClass", class(volume));
    page.field(0, "Status", phase(call, volume));
    let claim = volume.pointer("/spec/claimRef");
    let claim = claim.map(|claim| format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")));
    page.field(0, "Claim", claim.unwrap_or_default());
    page.field(0, "Reclaim Policy", text(volume, "/spec/persistentVolumeReclaimPolicy"));
    page.field(0, "Access Modes", access_modes(volume, "/spec/accessModes"));
    if volume.pointer("/spec/volumeMode").is_some() {
        page.field(0, "VolumeMode", text(volume, "/spec/volumeMode"));
    }
    page.field(0, "Capacity", shown(volume, "/spec/capacity/storage", "0"));
    node_affinity(page, volume.pointer("/spec/nodeAffinity/required"));
    page.field(0, "Message", text(volume, "/status/message"));
    page.line(0, "Source:");
    volumes::content(page, &volume["spec"]);
    Ok(())
}

fn node_affinity(page: &mut Page, required: Option<&Value>) {
    let Some(required) = required else { return page.field(0, "Node Affinity", "<none>") };
    page.field(0, "Node Affinity", "");
    let terms = list(required, "/nodeSelectorTerms");
    page.field(1, "Required Terms", if terms.is_empty() { "<none>" } else { "" });
    for (place, term) in terms.iter().enumerate() {
        let line = |requirement: &Value| {
            let operator = text(requirement, "/operator").to_lowercase();
            requirement_line(requirement, &operator)
        };
        page.lines(2, &format!("Term {place}"), list(term, "/matchExpressions").iter().map(line));
    }
}

/// `kubernetes.io/hostname in [node-1, node-2]`
fn requirement_line(requirement: &Value, operator: &str) -> String {
    let values = match joined(requirement, "/values", ", ") {
        none if none.is_empty() => none,
        values => format!(" [{values}]"),
    };
    format!("{} {operator}{values}", text(requirement, "/key"))
}

pub fn persistent_volume_claim(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let claim = &item.value;
    name(item, page);
    page.field(0, "StorageClass", class(claim));
    page.field(0, "Status", phase(call, claim));
    page.field(0, "Volume", text(claim, "/spec/volumeName"));
    labels_and_annotations(item, page);
    page.field(0, "Finalizers", shown(claim, "/metadata/finalizers", "[]"));
    capacity(page, 0, claim);
    let users = pods_of(call, item)?;
    page.lines(0, "Used By", users);
    let conditions = list(claim, "/status/conditions");
    if !conditions.is_empty() {
        page.line(0, "Conditions:");
        page.line(1, "Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage");
        page.line(1, "----\t------\t-----------------\t------------------\t------\t-------");
    }
    for condition in conditions {
        let of = |field: &str| text(condition, field);
        let (probed, changed) = (time(of("/lastProbeTime")), time(of("/lastTransitionTime")));
        let cells = [of("/type"), of("/status"), &probed, &changed, of("/reason"), of("/message")];
        page.line(1, cells.join(" \t"));
    }
    Ok(())
}

/// The claim that a pod's own volume becomes.
pub fn claim_template(page: &mut Page, level: usize, template: &Value) {
    page.field(level, "StorageClass", class(template));
    page.field(level, "Volume", text(template, "/spec/volumeName"));
    page.labels(level, "Labels", template.pointer("/metadata/labels"));
    page.annotations(level, "Annotations", template.pointer("/metadata/annotations"));
    capacity(page, level, template);
}

/// What a claim has got: nothing before it is bound.
fn capacity(page: &mut Page, level: usize, claim: &Value) {
    let is_bound = !text(claim, "/spec/volumeName").is_empty();
    let capacity = if is_bound { shown(claim, "/status/capacity/storage", "0") } else { String::new() };
    page.field(level, "Capacity", capacity);
    let modes = if is_bound { access_modes(claim, "/status/accessModes") } else { String::new() };
    page.field(level, "Access Modes", modes);
    if claim.pointer("/spec/volumeMode").is_some() {
        page.field(level, "VolumeMode", text(claim, "/spec/volumeMode"));
    }
    if let Some(source) = claim.pointer("/spec/dataSource") {
        page.line(level, "DataSource:");
        if source.get("apiGroup").is_some() {
            page.field(level + 1, "APIGroup", text(source, "/apiGroup"));
        }
        page.field(level + 1, "Kind", text(source, "/kind"));
        page.field(level + 1, "Name", text(source, "/name"));
    }
}

/// The pods that mount a claim, and the one that it was made for.
fn pods_of(call: &mut Call<'_, '_>, item: &Item) -> Result<Vec<String>, Failure> {
    let pods = call.list(KindRef::of::<Pod>(), &item.namespace, Options::default())?;
    let owners = list(&item.value, "/metadata/ownerReferences");
    let uses = |pod: &&Value| {
        let mounts = |volume: &Value| text(volume, "/persistentVolumeClaim/claimName") == item.name;
        let owns = |owner: &Value| owner["kind"] == "Pod" && owner["uid"] == pod["metadata"]["uid"];
        list(pod, "/spec/volumes").iter().any(mounts) || owners.iter().any(owns)
    };
    let mut names: Vec<String> = pods.iter().filter(uses).map(|pod| text(pod, "/metadata/name").to_owned()).collect();
    names.sort();
    Ok(names)
}

pub fn storage_class(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let class = &item.value;
    name(item, page);
    let is_default = |annotation: &str| text(class, &format!("/metadata/annotations/{annotation}")) == "true";
    let is_default = is_default("storageclass.kubernetes.io~1is-default-class")
        || is_default("storageclass.beta.kubernetes.io~1is-default-class");
    page.field(0, "IsDefaultClass", if is_default { "Yes" } else { "No" });
    page.field(0, "Annotations", labels_line(class.pointer("/metadata/annotations")));
    page.field(0, "Provisioner", text(class, "/provisioner"));
    page.field(0, "Parameters", labels_line(class.get("parameters")));
    page.field(0, "AllowVolumeExpansion", capital(class, "/allowVolumeExpansion"));
    match list(class, "/mountOptions") {
        [] => page.field(0, "MountOptions", "<none>"),
        options => {
            page.line(0, "MountOptions:");
            options.iter().for_each(|option| page.line(1, go_text(option)));
        }
    }
    for (name, field) in [("ReclaimPolicy", "/reclaimPolicy"), ("VolumeBindingMode", "/volumeBindingMode")] {
        if class.pointer(field).is_some() {
            page.field(0, name, text(class, field));
        }
    }
    if class.get("allowedTopologies").is_some() {
        let terms = list(class, "/allowedTopologies");
        page.field(0, "AllowedTopologies", if terms.is_empty() { "<none>" } else { "" });
        for (place, term) in terms.iter().enumerate() {
            let requirements = list(term, "/matchLabelExpressions").iter();
            let lines = requirements.map(|requirement| requirement_line(requirement, "in"));
            page.lines(1, &format!("Term {place}"), lines);
        }
    }
    Ok(())
}

pub fn volume_attributes_class(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name(item, page);
    page.field(0, "Annotations", labels_line(item.value.pointer("/metadata/annotations")));
    page.field(0, "DriverName", text(&item.value, "/driverName"));
    page.field(0, "Parameters", labels_line(item.value.get("parameters")));
    Ok(())
}

pub fn csi_node(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name(item, page);
    labels_and_annotations(item, page);
    page.field(0, "CreationTimestamp", time(text(&item.value, "/metadata/creationTimestamp")));
    page.line(0, "Spec:");
    if item.value.pointer("/spec/drivers").is_some_and(|drivers| !drivers.is_null()) {
        page.line(1, "Drivers:");
    }
    for driver in list(&item.value, "/spec/drivers") {
        page.line(2, format!("{}:", text(driver, "/name")));
        page.field(3, "Node ID", text(driver, "/nodeID"));
        if driver.pointer("/allocatable/count").is_some() {
            page.line(3, "Allocatables:");
            page.field(4, "Count", number(driver, "/allocatable/count"));
        }
        if driver.get("topologyKeys").is_some_and(|keys| !keys.is_null()) {
            page.field(3, "Topology Keys", shown(driver, "/topologyKeys", "[]"));
        }
    }
    Ok(())
}
