//! kubelet: makes the containers of the pods that are bound to its node, and reports on them and on the node.
//! <https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/>

use crate::api::Name;
use crate::runtime::{Runtime, RuntimeEvent};
use crate::watch::WatchEvent;
use crate::world::World;

/// What wakes a kubelet, beside its watches and its runtime.
#[derive(Clone, Debug)]
pub enum Wake {
    Heartbeat,
}

#[derive(Clone, Debug)]
pub struct Kubelet {
    pub node: Name,
}

impl Kubelet {
    pub fn new(node: Name) -> Kubelet {
        Kubelet { node }
    }

    /// Registers the node, lists and watches its pods, takes over the containers that run already.
    pub fn start(&mut self, _runtime: &mut Runtime, _world: &mut World) {}

    /// The process ends; containers live on.
    pub fn stop(&mut self, _world: &mut World) {}

    pub fn observe(&mut self, _events: &[WatchEvent], _runtime: &mut Runtime, _world: &mut World) {}

    pub fn wake(&mut self, _wake: Wake, _runtime: &mut Runtime, _world: &mut World) {}

    /// Something happened in the runtime.
    pub fn on_runtime(&mut self, _events: &[RuntimeEvent], _runtime: &mut Runtime, _world: &mut World) {}
}
