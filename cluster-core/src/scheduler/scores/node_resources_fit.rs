//! `LeastAllocated`: the more is left of CPU and memory, the better; a container without requests counts as a small one.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/resource-bin-packing/>

use super::{POINTS_MAX, Score};
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
        let milli_cpu = (node.milli_cpu_assumed + cycle.ask.milli_cpu_assumed, node.allocatable.milli_cpu);
        let memory = (node.memory_assumed + cycle.ask.memory_assumed, node.allocatable.memory);
        let left = [milli_cpu, memory].into_iter().filter(|(_, all)| *all > 0).map(|(taken, all)| {
            if taken > all { 0 } else { (i128::from(all - taken) * i128::from(POINTS_MAX) / i128::from(all)) as i64 }
        });
        let (sum, count) = left.fold((0, 0), |(sum, count), points| (sum + points, count + 1));
        if count == 0 { 0 } else { sum / count }
    }
}
