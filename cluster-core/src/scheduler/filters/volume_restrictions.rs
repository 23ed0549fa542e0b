//! A claim with the access mode ReadWriteOncePod serves one pod at a time.
//! <https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes>

use super::{Change, Filter, Rejection};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct VolumeRestrictions;

impl Filter for VolumeRestrictions {
    fn name(&self) -> &'static str {
        "VolumeRestrictions"
    }

    fn looks_at_node_alone(&self) -> bool {
        false
    }

    fn check(&self, cycle: &Cycle<'_>, _: &NodeInfo) -> Result<(), Rejection> {
        let (ask, cache) = (cycle.ask, cycle.cache);
        let mut exclusive = ask.claims.iter().filter(|claim| cache.volumes.is_for_one_pod(ask, claim));
        if !exclusive.any(|claim| cache.is_claimed(&ask.namespace, claim)) {
            return Ok(());
        }
        let reason = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use \
                      by another pod";
        Err(Rejection::new(self.name(), reason))
    }

    fn cured_by(&self, cycle: &Cycle<'_>, change: &Change<'_>) -> bool {
        match change {
            Change::PodRemoved(pod) => {
                pod.namespace == cycle.ask.namespace && cycle.ask.claims.iter().any(|claim| pod.claims.contains(claim))
            }
            _ => false,
        }
    }
}
