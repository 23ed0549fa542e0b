//! kube-proxy: turns Services and EndpointSlices into the rules of its node. Packets never pass through it.
//! <https://kubernetes.io/docs/reference/networking/virtual-ips/>

use crate::api::Name;
use crate::watch::WatchEvent;
use crate::world::World;

/// What wakes a kube-proxy, beside its watches.
#[derive(Clone, Debug)]
pub enum Wake {
    Sync,
}

#[derive(Clone, Debug)]
pub struct Proxy {
    pub node: Name,
}

impl Proxy {
    pub fn new(node: Name) -> Proxy {
        Proxy { node }
    }

    pub fn start(&mut self, _world: &mut World) {}

    /// The process ends; its rules stay in the kernel and go stale.
    pub fn stop(&mut self, _world: &mut World) {}

    pub fn observe(&mut self, _events: &[WatchEvent], _world: &mut World) {}

    pub fn wake(&mut self, _wake: Wake, _world: &mut World) {}
}
