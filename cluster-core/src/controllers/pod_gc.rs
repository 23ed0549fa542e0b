//! pod-garbage-collector-controller: deletes pods that no kubelet will ever confirm the end of: they have no node, or it
//! is gone, or out of service.
//! <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-garbage-collection>

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod};

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use super::pods;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::clock::Time;
use crate::store::Change;

/// How often it looks around.
const PERIOD: Duration = Duration::from_secs(20);
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
        let metadata = pod.metadata();
        let Some(name) = pod.spec::<Pod>().node_name.as_deref() else {
            // Only a finalizer can hold it.
            if let Some(deleted) = metadata.deletion_timestamp.as_ref().map(Time::from)
                && is_due(next_look(deleted), view, &mut plan)
            {
                collect(pod, pod.clone(), "it leaves and never had a node", &mut plan);
            }
            return plan;
        };
        let disrupted = |text| pods::disrupted(pod, "DeletionByPodGC", text, view.now);
        match view.get::<Node>(&Key::cluster(name)) {
            Some(node) if is_out_of_service(node) && pod.is_terminating() => {
                let told = disrupted("PodGC: node has out-of-service taint");
                collect(pod, told, "its node is out of service", &mut plan);
            }
            Some(_) => {}
            None => {
                let created = metadata.creation_timestamp.as_ref().map_or(Time::ZERO, Time::from);
                let missed = next_look(view.node_seen_at(name).unwrap_or(created));
                if is_due(next_look(missed + QUARANTINE), view, &mut plan) {
                    plan.unless_exists(Node::kind(), Key::cluster(name), "");
                    collect(pod, disrupted("PodGC: node no longer exists"), "its node is gone", &mut plan);
                }
            }
        }
        plan
    }
}

/// The first look around at or after a time.
fn next_look(at: Time) -> Time {
    Time::from_micros(at.as_micros().next_multiple_of(PERIOD.as_micros() as u64))
}

/// True if its time has come; else it comes again then.
fn is_due(due: Time, view: &View<'_>, plan: &mut Plan) -> bool {
    if due > view.now {
        plan.requeue_after(due.since(view.now));
    }
    due <= view.now
}

/// Deletes a pod for good, `told` of why, and ended: the others need not wait for its kubelet.
fn collect(pod: &Object, mut told: Object, reason: &'static str, plan: &mut Plan) {
    if !pods::is_finished(pod) {
        told.status_mut::<Pod>().phase = Some("Failed".into());
    }
    if !told.same_status(pod) {
        plan.update_status(told, reason).tolerate(&["NotFound"]);
    }
    plan.delete(pod, reason).request.options.grace_period_seconds = Some(0);
}

/// It carries the taint, and does not report as ready.
fn is_out_of_service(node: &Object) -> bool {
    let is_tainted = node.spec::<Node>().taints.iter().flatten().any(|taint| taint.key == OUT_OF_SERVICE);
    let is_ready = |condition: &NodeCondition| condition.type_ == "Ready" && condition.status == "True";
    is_tainted && !node.status::<Node>().conditions.iter().flatten().any(is_ready)
}

fn lost_pod(view: &View<'_>, change: &Change) -> Vec<Key> {
    let Some(pod) = change.after.as_ref().filter(|_| !change.is_of_status()) else { return Vec::new() };
    let Some(node) = pod.spec::<Pod>().node_name.as_deref() else {
        return if pod.is_terminating() { vec![pod.key.clone()] } else { Vec::new() };
    };
    let fine = view.get::<Node>(&Key::cluster(node)).is_some_and(|node| !is_out_of_service(node));
    if fine { Vec::new() } else { vec![pod.key.clone()] }
}

fn pods_of_lost_node(view: &View<'_>, change: &Change) -> Vec<Key> {
    if change.after.as_ref().is_some_and(|node| !is_out_of_service(node)) {
        return Vec::new();
    }
    view.pods_on(&change.key().name).map(|pod| pod.key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{control_plane, create, delete, node, settle};
    use super::*;
    use crate::Cluster;

    fn pod(cluster: &mut Cluster, node: Option<&str>) {
        let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "img:1"}]});
        create::<Pod>(cluster, json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}, "spec": spec}));
        settle(cluster);
    }

    fn phase(cluster: &Cluster) -> String {
        let pod = cluster.get::<Pod>("default", "held").expect("the finalizer holds it");
        pod.status::<Pod>().phase.clone().unwrap_or_default()
    }

    #[test]
    fn a_pod_that_leaves_before_it_has_a_node_has_failed_at_the_next_look() {
        let mut cluster = control_plane();
        cluster.advance(Duration::from_secs(5), |_| true);
        pod(&mut cluster, None);
        delete::<Pod>(&mut cluster, "held").unwrap();
        cluster.advance(Duration::from_secs(10), |_| true);
        assert_eq!(phase(&cluster), "Pending");
        cluster.advance(Duration::from_secs(10), |_| true);
        assert_eq!(phase(&cluster), "Failed");
    }

    #[test]
    fn the_pods_of_a_node_that_is_gone_are_told_of_and_deleted() {
        let mut cluster = control_plane();
        node(&mut cluster, "node-1");
        pod(&mut cluster, Some("node-1"));
        delete::<Node>(&mut cluster, "node-1").unwrap();
        cluster.advance(Duration::from_secs(30), |_| true);
        assert_eq!(phase(&cluster), "Pending");
        cluster.advance(Duration::from_secs(60), |_| true);
        assert_eq!(phase(&cluster), "Failed");
        let gone = cluster.get::<Pod>("default", "held").unwrap();
        let told = pods::condition(gone, "DisruptionTarget").unwrap();
        assert_eq!(told.message.as_deref(), Some("PodGC: node no longer exists"));
    }
}
