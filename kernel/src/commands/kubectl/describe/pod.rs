//! Pods.

use cluster_core::apiserver::table::human_duration;
use cluster_core::clock::Time;
use serde_json::Value;

use super::super::failure::Outcome;
use super::super::resources::Item;
use super::super::verb::Call;
use super::container::containers;
use super::template::{tolerations, volumes};
use super::{Page, controlled_by, list, number, or_none, text, time};

pub fn pod(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let pod = &item.value;
    page.field(0, "Name", &item.name);
    page.field(0, "Namespace", &item.namespace);
    page.field(0, "Priority", number(pod, "/spec/priority"));
    if !text(pod, "/spec/priorityClassName").is_empty() {
        page.field(0, "Priority Class Name", text(pod, "/spec/priorityClassName"));
    }
    page.field(0, "Service Account", text(pod, "/spec/serviceAccountName"));
    match text(pod, "/spec/nodeName") {
        "" => page.field(0, "Node", "<none>"),
        node => page.field(0, "Node", format!("{node}/{}", text(pod, "/status/hostIP"))),
    }
    if !text(pod, "/status/startTime").is_empty() {
        page.field(0, "Start Time", time(text(pod, "/status/startTime")));
    }
    page.pairs(0, "Labels", pod.pointer("/metadata/labels"), "=");
    page.pairs(0, "Annotations", pod.pointer("/metadata/annotations"), ": ");
    if text(pod, "/metadata/deletionTimestamp").is_empty() {
        page.field(0, "Status", text(pod, "/status/phase"));
    } else {
        let asked = text(pod, "/metadata/deletionTimestamp").parse().map(Time::from_timestamp);
        let now = call.context.api.now();
        let lasts = asked.map_or_else(|_| "<unknown>".into(), |at| human_duration(now.since(at)));
        page.field(0, "Status", format!("Terminating (lasts {lasts})"));
        page.field(0, "Termination Grace Period", format!("{}s", number(pod, "/metadata/deletionGracePeriodSeconds")));
    }
    for (name, path) in [("Reason", "/status/reason"), ("Message", "/status/message")] {
        if !text(pod, path).is_empty() {
            page.field(0, name, text(pod, path));
        }
    }
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
    let (init, main) = (list(pod, "/spec/initContainers"), list(pod, "/spec/containers"));
    containers(page, 0, "Init Containers", init, list(pod, "/status/initContainerStatuses"), "  ");
    containers(page, 0, "Containers", main, list(pod, "/status/containerStatuses"), "  ");
    conditions(page, list(pod, "/status/conditions"));
    volumes(page, 0, "  ", list(pod, "/spec/volumes"));
    page.field(0, "QoS Class", or_none(text(pod, "/status/qosClass")));
    page.pairs(0, "Node-Selectors", pod.pointer("/spec/nodeSelector"), "=");
    tolerations(page, 0, list(pod, "/spec/tolerations"));
    Ok(())
}

fn conditions(page: &mut Page, conditions: &[Value]) {
    if conditions.is_empty() {
        return;
    }
    page.line(0, "Conditions:");
    page.line(1, "Type\tStatus");
    for condition in conditions {
        page.line(1, format!("{}\t{} ", text(condition, "/type"), text(condition, "/status")));
    }
}
