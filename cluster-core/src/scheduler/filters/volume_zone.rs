//! A volume with a zone or a region among its labels is reached from there only.
//! <https://kubernetes.io/docs/reference/labels-annotations-taints/#topologykubernetesiozone>

use super::{Change, Filter, Rejection};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct VolumeZone;

/// Labels of topology, the newest name of each first.
pub const TOPOLOGY: [&str; 4] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

impl Filter for VolumeZone {
    fn name(&self) -> &'static str {
        "VolumeZone"
    }

    fn looks_at_node_alone(&self) -> bool {
        false
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        let has_topology = TOPOLOGY.iter().any(|label| node.label(label).is_some());
        if cycle.ask.claims.is_empty() || !has_topology || cycle.cache.volumes.are_in_zone(cycle.ask, node) {
            return Ok(());
        }
        Err(Rejection::unresolvable(self.name(), "node(s) had no available volume zone"))
    }

    fn cured_by(&self, cycle: &Cycle<'_>, change: &Change<'_>) -> bool {
        match change {
            Change::NodePut(node) => self.check(cycle, node).is_ok(),
            Change::Volumes => true,
            _ => false,
        }
    }
}
