//! Annotations by which a manifest says how the containers of its pod behave, whatever their images are. They may come
//! and go while the pod runs.

use super::Turn;
use super::worker::{Role, Stage, Step, Worker};
use crate::api::object::Object;

/// `"0"`, `"1"` …: all containers, but not init containers, end with this code.
const EXIT: &str = "sim/exit";
/// `never`: the containers run but are not ready.
const READY: &str = "sim/ready";

pub fn exit_code(pod: &Object) -> Option<i32> {
    pod.annotation(EXIT)?.parse().ok()
}

pub fn is_never_ready(pod: &Object) -> bool {
    pod.annotation(READY) == Some("never")
}

impl Worker {
    /// Plays what has changed since the pod was `before`.
    pub(super) fn follow_script(&mut self, before: &Object, turn: &mut Turn<'_>) {
        if exit_code(before) != exit_code(&self.pod) {
            (0..self.slots.len()).for_each(|index| self.play_exit(index, turn));
        }
        if is_never_ready(before) != is_never_ready(&self.pod) && self.stage == Stage::Running {
            (0..self.slots.len()).for_each(|index| self.play_readiness(index, turn));
        }
    }

    /// Ends a container that runs, if the pod says so.
    pub(super) fn play_exit(&mut self, index: usize, turn: &mut Turn<'_>) {
        let slot = &self.slots[index];
        if let (Some(code), Some(handle), Step::Running, Role::Main) =
            (exit_code(&self.pod), slot.current, &slot.step, slot.role)
        {
            turn.runtime.exit(handle, code, self.causes.clone(), turn.world);
        }
    }

    fn play_readiness(&mut self, index: usize, turn: &mut Turn<'_>) {
        let slot = &self.slots[index];
        let (Some(handle), true) = (slot.current, slot.has_started()) else { return };
        let was_ready = slot.is_ready();
        let has_probe = slot.spec(self.spec()).is_some_and(|spec| spec.readiness_probe.is_some());
        self.slots[index].probes.ready = !has_probe && !is_never_ready(&self.pod);
        if self.slots[index].is_ready() != was_ready {
            self.note_readiness(index, turn);
        }
        self.begin_readiness(index, handle, turn);
    }
}
