//! taint-eviction-controller: deletes the pods of a node that do not tolerate its NoExecute taints, or no longer.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-based-evictions>

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, Taint};

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use super::pods;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::clock::Time;
use crate::node_selection::tolerates;
use crate::store::Change;

pub struct TaintEvictionController;

impl Controller for TaintEvictionController {
    fn name(&self) -> &str {
        "taint-eviction-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::with(Pod::kind(), pod_on_tainted_node), Watch::with(Node::kind(), pods_of_tainted_node)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(pod) = view.get::<Pod>(key).filter(|pod| !pod.is_terminating()) else { return plan };
        let Some(node) = pod.spec::<Pod>().node_name.as_deref() else { return plan };
        let Some(node) = view.get::<Node>(&Key::cluster(node)) else { return plan };
        match stays_until(pod, node, view) {
            None => {}
            Some(until) if until > view.now => plan.requeue_after(until.since(view.now)),
            Some(_) => evict(pod, view, &mut plan),
        }
        plan
    }
}

fn taints(node: &Object) -> impl Iterator<Item = &Taint> {
    node.spec::<Node>().taints.iter().flatten().filter(|taint| taint.effect == "NoExecute")
}

fn pod_on_tainted_node(view: &View<'_>, change: &Change) -> Vec<Key> {
    let Some(pod) = change.after.as_ref().filter(|_| !change.is_of_status()) else { return Vec::new() };
    let node = pod.spec::<Pod>().node_name.as_deref().and_then(|node| view.get::<Node>(&Key::cluster(node)));
    if node.is_some_and(|node| taints(node).next().is_some()) { vec![pod.key.clone()] } else { Vec::new() }
}

fn pods_of_tainted_node(view: &View<'_>, change: &Change) -> Vec<Key> {
    let Some(node) = &change.after else { return Vec::new() };
    let before = change.before.as_ref().map(|before| taints(before).collect::<Vec<_>>()).unwrap_or_default();
    if taints(node).eq(before) {
        return Vec::new();
    }
    view.pods_on(&node.key.name).map(|pod| pod.key.clone()).collect()
}

/// Until when a pod may stay on a node; `None` for as long as it likes.
fn stays_until(pod: &Object, node: &Object, view: &View<'_>) -> Option<Time> {
    let mut earliest: Option<Time> = None;
    for taint in taints(node) {
        let tolerations = pod.spec::<Pod>().tolerations.iter().flatten();
        let since = taint.time_added.as_ref().map(Time::from).or(view.node_seen_at(&node.key.name));
        let since = since.unwrap_or(view.now);
        let mut tolerated = false;
        for toleration in tolerations.filter(|toleration| tolerates(toleration, taint)) {
            tolerated = true;
            if let Some(seconds) = toleration.toleration_seconds {
                let until = since + Duration::from_secs(seconds.max(0) as u64);
                earliest = Some(earliest.map_or(until, |known| known.min(until)));
            }
        }
        if !tolerated {
            return Some(Time::ZERO);
        }
    }
    earliest
}

fn evict(pod: &Object, view: &View<'_>, plan: &mut Plan) {
    let text = format!("Marking for deletion Pod {}", pod.key);
    plan.event(EventNote::normal(pod, "TaintManagerEviction", text));
    let told =
        pods::disrupted(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", view.now);
    plan.update_status(told, "it will be evicted").tolerate(&["NotFound"]);
    plan.delete(pod, "it does not tolerate a taint of its node any longer");
}
