//! A pod that names its node goes nowhere else. <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename>

use k8s_openapi::api::core::v1::Pod;

use super::{Filter, Rejection};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;

pub struct NodeName;

impl Filter for NodeName {
    fn name(&self) -> &'static str {
        "NodeName"
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        match &cycle.pod.object.spec::<Pod>().node_name {
            Some(name) if **name != *node.name => {
                Err(Rejection::unresolvable(self.name(), "node(s) didn't match the requested node name"))
            }
            _ => Ok(()),
        }
    }
}
