//! Preferred node affinity: the sum of the weights of the terms that match.

use super::pod_topology_spread::Wishes;
use super::{Candidate, Score, normalize};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct NodeAffinity;

impl Score for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn weight(&self) -> i64 {
        2
    }

    fn look(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let terms = cycle.ask.preferred_nodes.iter().chain(&cycle.profile.added_node_preferences);
        terms.filter(|(_, term)| term.matches(&node.name, node.labels())).map(|(weight, _)| weight).sum()
    }

    fn finish(&self, _: &Cycle<'_>, _: &Wishes, _: &[Candidate<'_>], values: &mut [i64]) {
        normalize(values, false);
    }
}
