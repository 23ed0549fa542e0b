//! ttl-controller: tells each node how long its kubelet may keep Secrets and ConfigMaps, by the size of the cluster.
//! <https://kubernetes.io/docs/reference/labels-annotations-taints/#node-alpha-kubernetes-io-ttl>

use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::PatchType;
use crate::store::Change;

const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// Sizes of a cluster, and the seconds that belong to them. The ranges overlap, so that one node more or less does not
/// change all again and again.
const STEPS: [(usize, usize, u32); 5] =
    [(0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, usize::MAX, 300)];

pub struct TtlController;

impl Controller for TtlController {
    fn name(&self) -> &str {
        "ttl-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::with(Node::kind(), untold)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(node) = view.get::<Node>(key) else { return plan };
        let told = told(node);
        let seconds = seconds(view.list::<Node>("").count(), told);
        if told != Some(seconds) {
            let patch = json!({"metadata": {"annotations": {ANNOTATION: seconds.to_string()}}});
            plan.patch(node, PatchType::StrategicMerge, patch, "the size of the cluster").tolerate(&["NotFound"]);
        }
        plan
    }
}

fn told(node: &Object) -> Option<u32> {
    node.annotation(ANNOTATION)?.parse().ok()
}

/// From what a node was told before, as many steps up or down as the size asks for.
fn seconds(nodes: usize, told: Option<u32>) -> u32 {
    let known = STEPS.iter().position(|(_, _, seconds)| told == Some(*seconds)).unwrap_or(0);
    let (mut step, mut moves) = (known, STEPS.len());
    while moves > 0 {
        let (least, most, _) = STEPS[step];
        step = if nodes > most {
            step + 1
        } else if nodes < least {
            step - 1
        } else {
            break;
        };
        moves -= 1;
    }
    STEPS[step].2
}

/// A node that is told nothing, or something that a cluster of this size may not say any more.
fn untold(view: &View<'_>, change: &Change) -> Vec<Key> {
    let resized = change.before.is_none() || change.after.is_none();
    if !resized {
        let node = change.object();
        return if told(node).is_none() { vec![node.key.clone()] } else { Vec::new() };
    }
    let nodes = view.list::<Node>("").count();
    let wrong = |node: &&Object| told(node).is_none_or(|told| seconds(nodes, Some(told)) != told);
    let crosses = STEPS.iter().any(|(least, most, _)| nodes + 1 == *least || most.checked_add(1) == Some(nodes));
    if crosses {
        return view.list::<Node>("").filter(wrong).map(|node| node.key.clone()).collect();
    }
    change.after.iter().filter(wrong).map(|node| node.key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::testing::*;

    #[test]
    fn the_size_of_the_cluster_moves_it_with_some_play() {
        assert_eq!(seconds(1, None), 0);
        assert_eq!((seconds(95, Some(0)), seconds(95, Some(15))), (0, 15));
        assert_eq!((seconds(101, Some(0)), seconds(89, Some(15))), (15, 0));
        assert_eq!((seconds(5000, None), seconds(3, Some(300))), (300, 0));
    }

    #[test]
    fn each_node_is_told() {
        let mut cluster = control_plane();
        node(&mut cluster, "node-9");
        settle(&mut cluster);
        assert_eq!(cluster.get::<Node>("", "node-9").unwrap().annotation(ANNOTATION), Some("0"));
    }
}
