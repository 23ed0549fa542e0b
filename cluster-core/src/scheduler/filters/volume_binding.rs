//! Volumes that are out of a node's reach, and claims that can't be met there.
//! <https://kubernetes.io/docs/concepts/storage/persistent-volumes/#node-affinity>

use super::{Change, Filter, Rejection};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct VolumeBinding;

impl Filter for VolumeBinding {
    fn name(&self) -> &'static str {
        "VolumeBinding"
    }

    fn looks_at_node_alone(&self) -> bool {
        false
    }

    fn refuse(&self, cycle: &Cycle<'_>) -> Option<String> {
        cycle.cache.volumes.refusal(cycle.ask)
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        if cycle.ask.claims.is_empty() { Ok(()) } else { cycle.cache.volumes.check(cycle.ask, node) }
    }

    fn cured_by(&self, cycle: &Cycle<'_>, change: &Change<'_>) -> bool {
        match change {
            Change::NodePut(node) => self.check(cycle, node).is_ok(),
            Change::Volumes => self.refuse(cycle).is_none(),
            _ => false,
        }
    }
}
