//! Pods.

use serde_json::{Value, json};

use super::super::failure::Outcome;
use super::super::resources::Item;
use super::super::verb::Call;
use super::container::{Containers, resources, seccomp_profile};
use super::template::{scheduling_group, spread, tolerations};
use super::volumes::volumes;
use super::{Page, controlled_by, labels_and_annotations, list, name, number, or, phase, text, time};

pub fn pod(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let pod = &item.value;
    name(item, page);
    if pod.pointer("/spec/priority").is_some() {
        page.field(0, "Priority", number(pod, "/spec/priority"));
    }
    for (name, path) in [
        ("Priority Class Name", "/spec/priorityClassName"),
        ("Runtime Class Name", "/spec/runtimeClassName"),
        ("Service Account", "/spec/serviceAccountName"),
    ] {
        if !text(pod, path).is_empty() {
            page.field(0, name, text(pod, path));
        }
    }
    match text(pod, "/spec/nodeName") {
        "" => page.field(0, "Node", "<none>"),
        node => page.field(0, "Node", format!("{node}/{}", text(pod, "/status/hostIP"))),
    }
    if !text(pod, "/status/startTime").is_empty() {
        page.field(0, "Start Time", time(text(pod, "/status/startTime")));
    }
    labels_and_annotations(item, page);
    if matches!(text(pod, "/status/phase"), "Failed" | "Succeeded") {
        page.field(0, "Status", text(pod, "/status/phase"));
    } else {
        page.field(0, "Status", phase(call, pod));
        if !text(pod, "/metadata/deletionTimestamp").is_empty() {
            let seconds = number(pod, "/metadata/deletionGracePeriodSeconds");
            page.field(0, "Termination Grace Period", format!("{seconds}s"));
        }
    }
    for (name, path) in [("Reason", "/status/reason"), ("Message", "/status/message")] {
        if !text(pod, path).is_empty() {
            page.field(0, name, text(pod, path));
        }
    }
    seccomp_profile(page, 0, 0, &pod["spec"]);
    page.field(0, "IP", text(pod, "/status/podIP"));
    match list(pod, "/status/podIPs") {
        [] => page.field(0, "IPs", "<none>"),
        addresses => {
            page.line(0, "IPs:");
            addresses.iter().for_each(|address| page.field(1, "IP", text(address, "/ip")));
        }
    }
    controlled_by(pod, page);
    if !text(pod, "/status/nominatedNodeName").is_empty() {
        page.field(0, "NominatedNodeName", text(pod, "/status/nominatedNodeName"));
    }
    if let Some(of_pod) = pod.pointer("/spec/resources") {
        page.line(0, "Resources:");
        resources(page, 1, of_pod);
    }
    for (heading, specs, statuses) in [
        ("Init Containers", "/spec/initContainers", "/status/initContainerStatuses"),
        ("Containers", "/spec/containers", "/status/containerStatuses"),
        ("Ephemeral Containers", "/spec/ephemeralContainers", "/status/ephemeralContainerStatuses"),
    ] {
        let (specs, statuses) = (list(pod, specs), list(pod, statuses));
        if !specs.is_empty() {
            Containers { heading, specs, statuses, pod: Some(pod) }.print(page);
        }
    }
    gates(page, pod);
    conditions(page, "Conditions", list(pod, "/status/conditions"));
    volumes(page, false, list(pod, "/spec/volumes"));
    page.field(0, "QoS Class", or(text(pod, "/status/qosClass"), "BestEffort"));
    page.labels(0, "Node-Selectors", pod.pointer("/spec/nodeSelector"));
    tolerations(page, 0, list(pod, "/spec/tolerations"));
    spread(page, 0, list(pod, "/spec/topologySpreadConstraints"));
    scheduling_group(page, 0, pod);
    Ok(())
}

/// Conditions that others set, and whether they hold.
fn gates(page: &mut Page, pod: &Value) {
    let known = list(pod, "/status/conditions");
    let gates: Vec<Value> = list(pod, "/spec/readinessGates")
        .iter()
        .map(|gate| {
            let type_ = text(gate, "/conditionType");
            let status = known.iter().find(|condition| text(condition, "/type") == type_);
            json!({"type": type_, "status": status.map_or("<none>", |condition| text(condition, "/status"))})
        })
        .collect();
    conditions(page, "Readiness Gates", &gates);
}

fn conditions(page: &mut Page, heading: &str, conditions: &[Value]) {
    if conditions.is_empty() {
        return;
    }
    page.line(0, format!("{heading}:"));
    page.line(1, "Type\tStatus");
    for condition in conditions {
        page.line(1, format!("{} \t{} ", text(condition, "/type"), text(condition, "/status")));
    }
}
