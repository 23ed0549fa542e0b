//! The container runtime of a machine: sandboxes, images, containers, and the programs in them. It knows no API objects.
//! <https://kubernetes.io/docs/concepts/architecture/cri/>

use crate::api::Name;
use crate::world::World;

/// What comes due in a runtime.
#[derive(Clone, Debug)]
pub enum Wake {
    Tick,
}

/// What a runtime tells whoever uses it.
#[derive(Clone, Debug)]
pub enum RuntimeEvent {
    Tick,
}

#[derive(Clone, Debug)]
pub struct Runtime {
    pub machine: Name,
}

impl Runtime {
    pub fn new(machine: Name) -> Runtime {
        Runtime { machine }
    }

    /// Everything on the machine ends at once.
    pub fn power_off(&mut self) {}

    pub fn wake(&mut self, _wake: Wake, _world: &mut World) -> Vec<RuntimeEvent> {
        Vec::new()
    }
}
