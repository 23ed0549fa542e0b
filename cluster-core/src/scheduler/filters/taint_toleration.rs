//! Taints that a pod does not tolerate. <https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>

use super::{Filter, Rejection};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct TaintToleration;

impl Filter for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        let mut hard = node.taints.iter().filter(|taint| taint.effect != "PreferNoSchedule");
        if hard.all(|taint| cycle.ask.tolerates(taint)) {
            return Ok(());
        }
        Err(Rejection::unresolvable(self.name(), "node(s) had untolerated taint(s)"))
    }
}
