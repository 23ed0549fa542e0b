//! The closer the used shares of CPU and memory are to each other, the better. Pods that request nothing are not scored.

use super::{POINTS_MAX, Score};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct NodeResourcesBalancedAllocation;

impl Score for NodeResourcesBalancedAllocation {
    fn name(&self) -> &'static str {
        "NodeResourcesBalancedAllocation"
    }

    fn weight(&self) -> i64 {
        1
    }

    fn look(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let (wanted, taken, all) = (&cycle.ask.requests, &node.requested, &node.allocatable);
        if wanted.milli_cpu == 0 && wanted.memory == 0 {
            return 0;
        }
        let share = |taken: i64, all: i64| (taken as f64 / all as f64).min(1.0);
        let deviation = if all.milli_cpu == 0 || all.memory == 0 {
            0.0
        } else {
            let cpu = share(taken.milli_cpu + wanted.milli_cpu, all.milli_cpu);
            let memory = share(taken.memory + wanted.memory, all.memory);
            ((cpu - memory) / 2.0).abs()
        };
        ((1.0 - deviation) * POINTS_MAX as f64) as i64
    }
}
