//! nodeSelector and required node affinity. <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/>

use super::{Filter, Rejection};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct NodeAffinity;

impl Filter for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn refuse(&self, cycle: &Cycle<'_>) -> Option<String> {
        let conflict = cycle.ask.pinned_nodes().is_some_and(|names| names.is_empty());
        conflict.then(|| "pod affinity terms conflict".to_owned())
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        let mut added = cycle.profile.added_node_terms.iter().flatten();
        if cycle.profile.added_node_terms.is_some() && !added.any(|term| term.matches(&node.name, node.labels())) {
            return Err(Rejection::unresolvable(self.name(), "node(s) didn't match scheduler-enforced node affinity"));
        }
        if cycle.ask.selects_node(&node.name, node.labels()) {
            return Ok(());
        }
        Err(Rejection::unresolvable(self.name(), "node(s) didn't match Pod's node affinity/selector"))
    }
}
