//! Fewer `PreferNoSchedule` taints that the pod does not tolerate.

use super::pod_topology_spread::Wishes;
use super::{Candidate, Score, normalize};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct TaintToleration;

impl Score for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }

    fn weight(&self) -> i64 {
        3
    }

    fn look(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let soft = node.taints.iter().filter(|taint| taint.effect == "PreferNoSchedule");
        soft.filter(|taint| !cycle.ask.tolerates(taint)).count() as i64
    }

    fn finish(&self, _: &Cycle<'_>, _: &Wishes, _: &[Candidate<'_>], values: &mut [i64]) {
        normalize(values, true);
    }
}
