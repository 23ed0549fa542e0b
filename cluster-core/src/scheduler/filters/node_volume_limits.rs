//! A driver attaches no more volumes to a node than its CSINode says.
//! <https://kubernetes.io/docs/concepts/storage/storage-limits/>

use super::{Change, Filter, Rejection};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct NodeVolumeLimits;

impl Filter for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        "NodeVolumeLimits"
    }

    fn looks_at_node_alone(&self) -> bool {
        false
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        match cycle.cache.volumes.are_within_limits(cycle.ask, node) {
            true => Ok(()),
            false => Err(Rejection::new(self.name(), "node(s) exceed max volume count")),
        }
    }

    fn cured_by(&self, _: &Cycle<'_>, change: &Change<'_>) -> bool {
        match change {
            Change::PodRemoved(pod) => !pod.claims.is_empty(),
            Change::Volumes => true,
            _ => false,
        }
    }
}
