//! Scores: which of the nodes that passed the filters is best. One file a plugin.
//! <https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins>

mod image_locality;
mod inter_pod_affinity;
mod node_affinity;
mod node_resources_balanced_allocation;
mod node_resources_fit;
pub mod pod_topology_spread;
mod taint_toleration;

use super::cycle::Cycle;
use super::node::NodeInfo;
use pod_topology_spread::Wishes;

/// What a plugin can give at most, before its weight.
pub const POINTS_MAX: i64 = 100;

pub const COUNT: usize = 7;

/// kube-scheduler's default plugins with their default weights.
pub static ALL: [&dyn Score; COUNT] = [
    &taint_toleration::TaintToleration,
    &node_affinity::NodeAffinity,
    &node_resources_fit::NodeResourcesFit,
    &pod_topology_spread::PodTopologySpread,
    &inter_pod_affinity::InterPodAffinity,
    &node_resources_balanced_allocation::NodeResourcesBalancedAllocation,
    &image_locality::ImageLocality,
];

/// A node that passed the filters.
pub struct Candidate<'a> {
    pub position: usize,
    pub node: &'a NodeInfo,
}

pub trait Score: Sync {
    fn name(&self) -> &'static str;

    /// What its points are multiplied with, if a profile says nothing else.
    fn weight(&self) -> i64;

    /// What depends on nothing but the pod and the node.
    fn look(&self, _cycle: &Cycle<'_>, _node: &NodeInfo) -> i64 {
        0
    }

    /// Turns what was seen at each node that passed into points from 0 to [`POINTS_MAX`].
    fn finish(&self, _: &Cycle<'_>, _: &Wishes, _: &[Candidate<'_>], _values: &mut [i64]) {}
}

/// The largest value becomes all points; `reverse` makes it none.
fn normalize(values: &mut [i64], reverse: bool) {
    let most = values.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return values.fill(if reverse { POINTS_MAX } else { 0 });
    }
    for value in values {
        let points = POINTS_MAX * *value / most;
        *value = if reverse { POINTS_MAX - points } else { points };
    }
}
