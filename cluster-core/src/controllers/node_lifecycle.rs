//! node-lifecycle-controller: notices when a node falls silent, and turns the conditions of nodes into taints.
//! <https://kubernetes.io/docs/concepts/architecture/nodes/#node-controller>

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod, Taint};

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use super::pods;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::clock::Time;

/// `--node-monitor-period`.
const PERIOD: Duration = Duration::from_secs(5);
/// `--node-monitor-grace-period`.
const GRACE: Duration = Duration::from_secs(50);
/// `--node-startup-grace-period`, for nodes that never reported.
const STARTUP_GRACE: Duration = Duration::from_secs(60);
/// `--unhealthy-zone-threshold`, in percent, and `--large-cluster-size-threshold`.
const UNHEALTHY_ZONE_PERCENT: usize = 55;
const LARGE_ZONE_NODES: usize = 50;

const EVENT_SOURCE: &str = "node-controller";
const ZONE: &str = "topology.kubernetes.io/zone";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that are bad when True, and the taints that they bring.
const PRESSURES: &[(&str, &str)] = &[
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

/// Labels of nodes, and the older names under which their values are kept as well.
const OLDER_LABELS: [(&str, &str); 2] =
    [("kubernetes.io/os", "beta.kubernetes.io/os"), ("kubernetes.io/arch", "beta.kubernetes.io/arch")];

pub struct NodeLifecycleController;

impl Controller for NodeLifecycleController {
    fn name(&self) -> &str {
        "node-lifecycle-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        // A renewed lease is no reason to look: silence is noticed by the clock.
        vec![Watch::itself(Node::kind()), Watch::with(Lease::kind(), |_, _| Vec::new())]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(node) = view.get::<Node>(key).filter(|node| !node.is_terminating()) else { return plan };
        let created = created_at(node);
        if view.now.since(created) < PERIOD {
            let text = format!("Node {0} event: Registered Node {0} in Controller", node.key.name);
            plan.event(EventNote::normal(node, "RegisteredNode", text).from(EVENT_SOURCE).once());
        }
        // A node that has reported is measured from the controller's own first look on, whatever happened before.
        let first_look = view.remembered::<Time>().copied().unwrap_or(view.now);
        plan.remember(first_look);
        let heard = match condition(node, "Ready") {
            Some(_) => last_heard(node, view).max(first_look),
            None => last_heard(node, view),
        };
        let grace = if condition(node, "Ready").is_some() { GRACE } else { STARTUP_GRACE };
        let deadline = heard + grace;
        if deadline < view.now {
            let changed = note_silence(node, view, &mut plan);
            mark_pods(node, view, &mut plan);
            if changed {
                return plan;
            }
            plan.requeue_after(PERIOD);
        } else {
            plan.requeue_after(next_look(deadline).since(view.now));
        }
        let taints = wanted_taints(node, view);
        let before = node.spec::<Node>().taints.clone().unwrap_or_default();
        if taints != before {
            let mut node = node.clone();
            node.spec_mut::<Node>().taints = (!taints.is_empty()).then_some(taints);
            plan.update(node, "its taints follow its conditions");
        } else if let Some(node) = with_older_labels(node) {
            plan.update(node, "labels are kept under their older names, too");
        }
        if ready_status(node) != "True" {
            // Whether it may be emptied depends on how its neighbours are.
            plan.requeue_after(PERIOD);
        }
        plan
    }
}

fn created_at(node: &Object) -> Time {
    node.metadata().creation_timestamp.as_ref().map_or(Time::ZERO, Time::from)
}

fn condition<'a>(node: &'a Object, condition_type: &str) -> Option<&'a NodeCondition> {
    node.status::<Node>().conditions.iter().flatten().find(|condition| condition.type_ == condition_type)
}

fn ready_status(node: &Object) -> &str {
    condition(node, "Ready").map_or("Unknown", |ready| &ready.status)
}

/// When the node last gave a sign: its lease, its status, or that it came.
fn last_heard(node: &Object, view: &View<'_>) -> Time {
    let lease = view.get::<Lease>(&Key::new("kube-node-lease", node.key.name.clone()));
    let renewed = lease.and_then(|lease| lease.spec::<Lease>().renew_time.as_ref()).map(Time::from);
    let posted = condition(node, "Ready").filter(|ready| ready.status != "Unknown");
    let posted = posted.and_then(|ready| ready.last_heartbeat_time.as_ref()).map(Time::from);
    [renewed, posted].into_iter().flatten().fold(created_at(node), Time::max)
}

/// The first look at nodes that comes after a moment.
fn next_look(after: Time) -> Time {
    let period = PERIOD.as_micros() as u64;
    Time::from_micros((after.as_micros() / period + 1) * period)
}

/// Makes what a silent node said Unknown. True if that changes anything.
fn note_silence(node: &Object, view: &View<'_>, plan: &mut Plan) -> bool {
    let now = view.now.to_meta();
    let mut silent = node.clone();
    for kind in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
        let known = condition(node, kind);
        if known.is_some_and(|known| known.status == "Unknown") {
            continue;
        }
        let unknown = |reason: &str, message: &str| NodeCondition {
            type_: kind.into(),
            status: "Unknown".into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_heartbeat_time: node.metadata().creation_timestamp.clone(),
            last_transition_time: Some(now.clone()),
        };
        let conditions = silent.status_mut::<Node>().conditions.get_or_insert_default();
        match conditions.iter_mut().find(|condition| condition.type_ == kind) {
            Some(known) => {
                let stopped = unknown("NodeStatusUnknown", "Kubelet stopped posting node status.");
                *known = NodeCondition { last_heartbeat_time: known.last_heartbeat_time.clone(), ..stopped };
            }
            None => conditions.push(unknown("NodeStatusNeverUpdated", "Kubelet never posted node status.")),
        }
    }
    if silent.same_status(node) {
        return false;
    }
    let write = plan.update_status(silent, "it has not been heard of for too long");
    if ready_status(node) == "True" {
        let text = format!("Node {} status is now: NodeNotReady", node.key.name);
        write.event(EventNote::normal(node, "NodeNotReady", text).from(EVENT_SOURCE));
    }
    true
}

/// Nobody knows how the pods of a silent node are.
fn mark_pods(node: &Object, view: &View<'_>, plan: &mut Plan) {
    for pod in view.pods_on(&node.key.name).filter(|pod| pods::is_ready(pod)) {
        let mut marked = pod.clone();
        for condition in marked.status_mut::<Pod>().conditions.iter_mut().flatten() {
            if condition.type_ == "Ready" {
                condition.status = "False".into();
                condition.last_transition_time = Some(view.now.to_meta());
            }
        }
        let note = EventNote::warning(pod, "NodeNotReady", "Node is not ready").from(EVENT_SOURCE);
        plan.update_status(marked, "its node is silent").event(note).tolerate(&["NotFound"]);
    }
}

/// The taints that a node should have: those that are not this controller's as they are, and one for each bad sign.
fn wanted_taints(node: &Object, view: &View<'_>) -> Vec<Taint> {
    let spec = node.spec::<Node>();
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    // A node that never reported is given time, and is left alone until it is called silent.
    let silent_or_sick = match condition(node, "Ready").map(|ready| &*ready.status) {
        None | Some("True") => None,
        Some("False") => Some(NOT_READY),
        Some(_) => Some(UNREACHABLE),
    };
    if let Some(key) = silent_or_sick {
        wanted.push((key, "NoSchedule"));
        let known = |taint: &Taint| taint.effect == "NoExecute" && [NOT_READY, UNREACHABLE].contains(&&*taint.key);
        let tainted = spec.taints.iter().flatten().any(known);
        match zone_state(node, view) {
            Zone::Fine => wanted.push((key, "NoExecute")),
            Zone::Partial if tainted => wanted.push((key, "NoExecute")),
            Zone::Partial | Zone::Dead => {}
        }
    }
    for (condition_type, key) in PRESSURES {
        if condition(node, condition_type).is_some_and(|condition| condition.status == "True") {
            wanted.push((key, "NoSchedule"));
        }
    }
    if spec.unschedulable == Some(true) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let is = |taint: &Taint, (key, effect): (&str, &str)| taint.key == key && taint.effect == effect;
    let owned = |taint: &Taint| match &*taint.effect {
        "NoSchedule" => {
            let pressure = PRESSURES.iter().any(|(_, key)| taint.key == *key);
            pressure || [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&&*taint.key)
        }
        "NoExecute" => [NOT_READY, UNREACHABLE].contains(&&*taint.key),
        _ => false,
    };
    let kept = |taint: &&Taint| !owned(taint) || wanted.iter().any(|one| is(taint, *one));
    let mut taints: Vec<Taint> = spec.taints.iter().flatten().filter(kept).cloned().collect();
    for one in wanted {
        if !taints.iter().any(|taint| is(taint, one)) {
            let time_added = Some(view.now.to_meta());
            taints.push(Taint { key: one.0.into(), effect: one.1.into(), value: None, time_added });
        }
    }
    taints
}

/// The node with the labels that it lacks, if there are any.
fn with_older_labels(node: &Object) -> Option<Object> {
    let stale = |(label, older): &&(&str, &str)| node.label(label).is_some() && node.label(older) != node.label(label);
    let missing: Vec<_> = OLDER_LABELS.iter().filter(stale).collect();
    let mut labelled = (!missing.is_empty()).then(|| node.clone())?;
    let labels = labelled.metadata_mut().labels.get_or_insert_default();
    for (label, older) in missing {
        let value = labels.get(*label).cloned().unwrap_or_default();
        labels.insert((*older).to_owned(), value);
    }
    Some(labelled)
}

enum Zone {
    Fine,
    /// So many nodes of a small zone are not ready that emptying them would only crowd the others.
    Partial,
    /// No node of the whole cluster is ready: the fault is likely the network's, and nothing is emptied.
    Dead,
}

fn zone_state(node: &Object, view: &View<'_>) -> Zone {
    let zone = node.label(ZONE);
    let (mut nodes, mut not_ready, mut any_ready) = (0, 0, false);
    for other in view.list::<Node>("") {
        let ready = ready_status(other) == "True";
        any_ready |= ready;
        if other.label(ZONE) == zone {
            nodes += 1;
            not_ready += usize::from(!ready);
        }
    }
    match () {
        () if !any_ready => Zone::Dead,
        // A zone without a ready node beside zones that have some is emptied as usual.
        () if not_ready == nodes => Zone::Fine,
        () if not_ready > 2 && not_ready * 100 >= UNHEALTHY_ZONE_PERCENT * nodes && nodes <= LARGE_ZONE_NODES => {
            Zone::Partial
        }
        () => Zone::Fine,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Cluster;
    use crate::controllers::testing::*;

    const READY: &str = "True";

    fn node_that_is(cluster: &mut Cluster, name: &str, ready: &str) {
        node(cluster, name);
        post_status(cluster, name, ready);
        settle(cluster);
    }

    /// Status and lease, as a kubelet posts them.
    fn post_status(cluster: &mut Cluster, name: &str, ready: &str) {
        let now = cluster.now();
        let mut node = cluster.get::<Node>("", name).unwrap().clone();
        node.revision = 0;
        let conditions = node.status_mut::<Node>().conditions.get_or_insert_default();
        conditions.retain(|condition| condition.type_ != "Ready");
        conditions.push(NodeCondition {
            type_: "Ready".into(),
            status: ready.into(),
            last_heartbeat_time: Some(now.to_meta()),
            ..NodeCondition::default()
        });
        cluster.request(crate::api::request::Request::update_status(&user(), node)).unwrap();
        let spec = json!({"renewTime": now.to_micro_time()});
        if cluster.get::<Lease>("kube-node-lease", name).is_none() {
            create::<Lease>(cluster, json!({"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec}));
        } else {
            renew(cluster, name);
        }
    }

    fn renew(cluster: &mut Cluster, name: &str) {
        let mut lease = cluster.get::<Lease>("kube-node-lease", name).unwrap().clone();
        lease.spec_mut::<Lease>().renew_time = Some(cluster.now().to_micro_time());
        cluster.request(crate::api::request::Request::update(&user(), lease)).unwrap();
    }

    fn pod_on(cluster: &mut Cluster, name: &str, node: &str, seconds: Option<i64>) {
        let tolerations: Vec<Value> = seconds
            .map(|seconds| json!({"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}))
            .into_iter()
            .collect();
        let spec = json!({"nodeName": node, "tolerations": tolerations, "containers": [{"name": "c", "image": "i"}]});
        let pod = create::<Pod>(cluster, json!({"metadata": {"name": name}, "spec": spec}));
        run_pod(cluster, &pod, true);
    }

    fn taints(cluster: &Cluster, name: &str) -> Vec<String> {
        let taints = cluster.get::<Node>("", name).unwrap().spec::<Node>().taints.clone().unwrap_or_default();
        let mut taints: Vec<_> = taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
        taints.sort();
        taints
    }

    /// Lets seconds pass in which the nodes named renew their leases.
    fn pass(cluster: &mut Cluster, seconds: u64, renewing: &[&str]) {
        for _ in 0..seconds / 10 {
            cluster.advance(Duration::from_secs(10), |_| true);
            renewing.iter().for_each(|name| renew(cluster, name));
        }
    }

    #[test]
    fn a_nodes_system_is_told_under_the_older_names_of_labels_as_well() {
        let mut cluster = control_plane();
        let labels = json!({"kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "kept"});
        create::<Node>(&mut cluster, json!({"metadata": {"name": "n", "labels": labels}}));
        settle(&mut cluster);
        let node = cluster.get::<Node>("", "n").unwrap();
        assert_eq!(node.label("beta.kubernetes.io/os"), Some("linux"));
        assert_eq!(node.label("beta.kubernetes.io/arch"), Some("kept"));
    }

    #[test]
    fn a_node_that_falls_silent_is_unknown_after_the_grace_and_empty_when_tolerations_end() {
        let mut cluster = control_plane();
        node_that_is(&mut cluster, "node-1", READY);
        node_that_is(&mut cluster, "node-2", READY);
        pod_on(&mut cluster, "p", "node-1", None);
        pod_on(&mut cluster, "brief", "node-1", Some(1));
        pass(&mut cluster, 40, &["node-2"]);
        assert_eq!(taints(&cluster, "node-1"), [""; 0]);
        pass(&mut cluster, 30, &["node-2"]);
        let node = cluster.get::<Node>("", "node-1").unwrap();
        let ready = condition(node, "Ready").unwrap();
        assert_eq!(ready.status, "Unknown");
        assert_eq!(ready.message.as_deref(), Some("Kubelet stopped posting node status."));
        assert_eq!(condition(node, "DiskPressure").unwrap().reason.as_deref(), Some("NodeStatusNeverUpdated"));
        assert_eq!(
            taints(&cluster, "node-1"),
            ["node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unreachable:NoSchedule"]
        );
        assert!(events(&cluster, "node-1").contains(&"NodeNotReady Node node-1 status is now: NodeNotReady".into()));
        assert_eq!(events(&cluster, "p"), ["NodeNotReady Node is not ready"]);
        assert!(
            events(&cluster, "brief").contains(&"TaintManagerEviction Marking for deletion Pod default/brief".into())
        );
        let brief = cluster.get::<Pod>("default", "brief").unwrap();
        assert_eq!(
            pods::condition(brief, "DisruptionTarget").unwrap().reason.as_deref(),
            Some("DeletionByTaintManager")
        );
        assert!(brief.is_terminating());
        assert!(!cluster.get::<Pod>("default", "p").unwrap().is_terminating());
        pass(&mut cluster, 270, &["node-2"]);
        assert!(!cluster.get::<Pod>("default", "p").unwrap().is_terminating());
        pass(&mut cluster, 30, &["node-2"]);
        assert!(cluster.get::<Pod>("default", "p").unwrap().is_terminating());

        post_status(&mut cluster, "node-1", READY);
        settle(&mut cluster);
        assert_eq!(taints(&cluster, "node-1"), [""; 0]);
    }

    #[test]
    fn bad_conditions_bring_their_taints_and_a_kubelet_that_speaks_leaves_its_pods_ready() {
        let mut cluster = control_plane();
        node_that_is(&mut cluster, "node-1", READY);
        node_that_is(&mut cluster, "node-2", READY);
        pod_on(&mut cluster, "p", "node-1", None);
        patch::<Node>(&mut cluster, "node-1", json!({"spec": {"unschedulable": true}})).unwrap();
        post_status(&mut cluster, "node-1", "False");
        settle(&mut cluster);
        assert_eq!(
            taints(&cluster, "node-1"),
            [
                "node.kubernetes.io/not-ready:NoExecute",
                "node.kubernetes.io/not-ready:NoSchedule",
                "node.kubernetes.io/unschedulable:NoSchedule"
            ]
        );
        assert!(pods::is_ready(cluster.get::<Pod>("default", "p").unwrap()));
        assert_eq!(
            events(&cluster, "node-1"),
            ["RegisteredNode Node node-1 event: Registered Node node-1 in Controller"]
        );
    }

    #[test]
    fn when_no_node_at_all_is_heard_of_nothing_is_evicted() {
        let mut cluster = control_plane();
        node_that_is(&mut cluster, "node-1", READY);
        pod_on(&mut cluster, "brief", "node-1", Some(1));
        cluster.advance(Duration::from_secs(600), |_| true);
        assert_eq!(taints(&cluster, "node-1"), ["node.kubernetes.io/unreachable:NoSchedule"]);
        assert!(!cluster.get::<Pod>("default", "brief").unwrap().is_terminating());
    }
}
