//! pod-garbage-collector-controller: deletes pods that no kubelet will ever confirm the end of: their node is gone, or
//! out of service.
//! <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-garbage-collection>

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use super::pods;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::clock::Time;
use crate::store::Change;

/// How long a node must be gone before its pods are.
const QUARANTINE: Duration = Duration::from_secs(40);
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

pub struct PodGarbageCollector;

impl Controller for PodGarbageCollector {
    fn name(&self) -> &str {
        "pod-garbage-collector-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::with(Pod::kind(), lost_pod), Watch::with(Node::kind(), pods_of_lost_node)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(pod) = view.get::<Pod>(key) else { return plan };
        let Some(name) = pod.spec::<Pod>().node_name.as_deref() else { return plan };
        match view.get::<Node>(&Key::cluster(name)) {
            Some(node) if is_out_of_service(node) && pod.is_terminating() => {
                let text = "PodGC: node has out-of-service taint";
                collect(pod, text, "its node is out of service", view, &mut plan);
            }
            Some(_) => {}
            None => {
                let created = pod.metadata().creation_timestamp.as_ref().map_or(Time::ZERO, Time::from);
                let due = view.node_seen_at(name).unwrap_or(created) + QUARANTINE;
                if due > view.now {
                    plan.requeue_after(due.since(view.now));
                } else {
                    plan.unless_exists(Node::kind(), Key::cluster(name), "");
                    collect(pod, "PodGC: node no longer exists", "its node is gone", view, &mut plan);
                }
            }
        }
        plan
    }
}

fn collect(pod: &Object, text: &str, reason: &'static str, view: &View<'_>, plan: &mut Plan) {
    let mut told = pods::disrupted(pod, "DeletionByPodGC", text, view.now);
    if !pods::is_finished(pod) {
        told.status_mut::<Pod>().phase = Some("Failed".into());
    }
    if !told.same_status(pod) {
        plan.update_status(told, reason).tolerate(&["NotFound"]);
    }
    plan.delete(pod, reason).request.options.grace_period_seconds = Some(0);
}

fn is_out_of_service(node: &Object) -> bool {
    node.spec::<Node>().taints.iter().flatten().any(|taint| taint.key == OUT_OF_SERVICE)
}

fn lost_pod(view: &View<'_>, change: &Change) -> Vec<Key> {
    let Some(pod) = change.after.as_ref().filter(|_| !change.is_of_status()) else { return Vec::new() };
    let Some(node) = pod.spec::<Pod>().node_name.as_deref() else { return Vec::new() };
    let fine = view.get::<Node>(&Key::cluster(node)).is_some_and(|node| !is_out_of_service(node));
    if fine { Vec::new() } else { vec![pod.key.clone()] }
}

fn pods_of_lost_node(view: &View<'_>, change: &Change) -> Vec<Key> {
    if change.after.as_ref().is_some_and(|node| !is_out_of_service(node)) {
        return Vec::new();
    }
    view.pods_on(&change.key().name).map(|pod| pod.key.clone()).collect()
}
