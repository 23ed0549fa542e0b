//! How much is left of resources, or taken, by the strategy of the pod's profile.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/resource-bin-packing/>

use super::Score;
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct NodeResourcesFit;

impl Score for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn weight(&self) -> i64 {
        1
    }

    fn look(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        cycle.profile.fit.points(cycle.ask, node)
    }
}
