//! Cordoned nodes. <https://kubernetes.io/docs/concepts/architecture/nodes/#manual-node-administration>

use k8s_openapi::api::core::v1::Taint;

use super::{Filter, Rejection};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct NodeUnschedulable;

impl Filter for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        let cordon = || Taint {
            key: "node.kubernetes.io/unschedulable".into(),
            effect: "NoSchedule".into(),
            ..Taint::default()
        };
        if !node.unschedulable || cycle.ask.tolerates(&cordon()) {
            return Ok(());
        }
        Err(Rejection::unresolvable(self.name(), "node(s) were unschedulable"))
    }
}
