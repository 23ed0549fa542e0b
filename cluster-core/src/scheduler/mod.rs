//! kube-scheduler: finds a node for each pod that has none, and binds it there. It starts nothing.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/kube-scheduler/>

use crate::watch::WatchEvent;
use crate::world::World;

/// What wakes the scheduler, beside its watches.
#[derive(Clone, Debug)]
pub enum Wake {
    Cycle,
}

#[derive(Clone, Debug, Default)]
pub struct Scheduler {}

impl Scheduler {
    /// Lists and watches pods and nodes.
    pub fn start(&mut self, _world: &mut World) {}

    pub fn stop(&mut self, _world: &mut World) {}

    pub fn observe(&mut self, _events: &[WatchEvent], _world: &mut World) {}

    pub fn wake(&mut self, _wake: Wake, _world: &mut World) {}
}
