//! Filters: which nodes a pod can't go to, and why. One file a plugin.
//! <https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins>

pub mod inter_pod_affinity;
mod node_affinity;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_unschedulable;
mod node_volume_limits;
pub mod pod_topology_spread;
mod taint_toleration;
mod volume_binding;
mod volume_restrictions;
pub mod volume_zone;

use std::borrow::Cow;

use super::cycle::Cycle;
use super::node::NodeInfo;
use super::pod::Ask;

pub const COUNT: usize = 12;

/// In the order in which kube-scheduler runs them; the first that refuses a node is the one that is told. Those that
/// look at the node alone come before those that look around.
pub static ALL: [&dyn Filter; COUNT] = [
    &node_unschedulable::NodeUnschedulable,
    &node_name::NodeName,
    &taint_toleration::TaintToleration,
    &node_affinity::NodeAffinity,
    &node_ports::NodePorts,
    &node_resources_fit::NodeResourcesFit,
    &volume_restrictions::VolumeRestrictions,
    &node_volume_limits::NodeVolumeLimits,
    &volume_binding::VolumeBinding,
    &volume_zone::VolumeZone,
    &pod_topology_spread::PodTopologySpread,
    &inter_pod_affinity::InterPodAffinity,
];

pub trait Filter: Sync {
    fn name(&self) -> &'static str;

    /// Why the pod can go to no node at all, found before any node is looked at.
    fn refuse(&self, _cycle: &Cycle<'_>) -> Option<String> {
        None
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection>;

    /// The answer depends on nothing but the pod and the node, so that it holds until one of them changes.
    fn looks_at_node_alone(&self) -> bool {
        true
    }

    /// Whether a pod that was refused should be tried again after a change.
    /// <https://github.com/kubernetes/enhancements/tree/master/keps/sig-scheduling/4247-queueinghint>
    fn cured_by(&self, cycle: &Cycle<'_>, change: &Change<'_>) -> bool {
        matches!(change, Change::NodePut(node) if self.check(cycle, node).is_ok())
    }
}

/// Why a node was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    pub plugin: &'static str,
    pub reasons: Vec<Cow<'static, str>>,
    /// To take pods off the node would not help.
    pub is_unresolvable: bool,
}

impl Rejection {
    /// Other pods stand in the way.
    pub fn new(plugin: &'static str, reason: impl Into<Cow<'static, str>>) -> Rejection {
        Rejection { plugin, reasons: vec![reason.into()], is_unresolvable: false }
    }

    /// The node is not suitable, whatever runs there.
    pub fn unresolvable(plugin: &'static str, reason: impl Into<Cow<'static, str>>) -> Rejection {
        Rejection { is_unresolvable: true, ..Rejection::new(plugin, reason) }
    }
}

/// A change in the cluster that may cure a refusal.
pub enum Change<'a> {
    /// A node came, or offers something else than before.
    NodePut(&'a NodeInfo),
    NodeRemoved,
    PodPlaced(&'a Ask),
    PodRemoved(&'a Ask),
    /// Something about claims, volumes or storage classes.
    Volumes,
}
