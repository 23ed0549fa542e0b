//! Host ports that another pod of the node has taken.

use super::{Change, Filter, Rejection};
use crate::node_selection::HostPort;
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct NodePorts;

impl Filter for NodePorts {
    fn name(&self) -> &'static str {
        "NodePorts"
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        if !conflict(&cycle.ask.host_ports, &node.ports) {
            return Ok(());
        }
        Err(Rejection::new(self.name(), "node(s) didn't have free ports for the requested pod ports"))
    }

    fn cured_by(&self, cycle: &Cycle<'_>, change: &Change<'_>) -> bool {
        match change {
            Change::NodePut(node) => self.check(cycle, node).is_ok(),
            Change::PodRemoved(pod) => conflict(&cycle.ask.host_ports, &pod.host_ports),
            _ => false,
        }
    }
}

fn conflict(wanted: &[HostPort], taken: &[HostPort]) -> bool {
    wanted.iter().any(|wanted| taken.iter().any(|taken| wanted.conflicts_with(taken)))
}
