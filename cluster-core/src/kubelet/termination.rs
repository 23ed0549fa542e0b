//! The end of a pod: preStop, SIGTERM, the grace period, SIGKILL, and the last word to the apiserver.
//! <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination>

use std::time::Duration;

use super::worker::{Role, Stage, Step, Worker};
use super::{Task, Turn};
use crate::clock::Class;
use crate::runtime::container::Handle;
use crate::trace::Causes;

/// What a container gets after its preStop hook has used up the grace period.
pub(super) const GRACE_AFTER_HOOK: Duration = Duration::from_secs(2);

impl Worker {
    /// Somebody asked for the pod's deletion.
    pub(super) fn terminate(&mut self, turn: &mut Turn<'_>) {
        match self.stage {
            Stage::Waiting | Stage::Sandbox | Stage::Running => {
                self.stage = Stage::Stopping;
                self.stop_slots(self.deletion_grace(), turn);
                self.check_stopped(turn);
            }
            // It had ended before.
            Stage::Stopped => self.status_changed(0, turn),
            Stage::Stopping | Stage::Over => {}
        }
    }

    fn deletion_grace(&self) -> Duration {
        let asked = self.pod.metadata().deletion_grace_period_seconds;
        asked.map_or(self.grace(), |seconds| Duration::from_secs(seconds.max(1) as u64))
    }

    /// The API has forgotten the pod: whatever runs of it is ended.
    pub fn pod_gone(&mut self, causes: Causes, turn: &mut Turn<'_>) {
        self.gone = true;
        self.causes.merge(&causes);
        if !matches!(self.stage, Stage::Stopping | Stage::Stopped | Stage::Over) {
            self.stage = Stage::Stopping;
            self.stop_slots(self.deletion_grace(), turn);
        }
        if self.stage == Stage::Stopped {
            return self.clean_up(turn);
        }
        self.check_stopped(turn);
    }

    /// A pod has run longer than `activeDeadlineSeconds`.
    pub fn deadline_passed(&mut self, turn: &mut Turn<'_>) {
        if matches!(self.stage, Stage::Stopping | Stage::Stopped | Stage::Over) {
            return;
        }
        let message = "Pod was active on the node longer than the specified deadline";
        turn.event(&self.pod, false, "DeadlineExceeded", message.into(), &Causes::None);
        self.verdict = Some(("DeadlineExceeded", message.into()));
        self.stage = Stage::Stopping;
        self.stop_slots(self.deletion_grace(), turn);
        self.check_stopped(turn);
        self.status_changed(0, turn);
    }

    /// Begins to end all containers; sidecars wait for the others.
    pub(super) fn stop_slots(&mut self, grace: Duration, turn: &mut Turn<'_>) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            match (&slot.step, slot.current) {
                (Step::Running | Step::Starting, Some(handle)) if slot.role != Role::Sidecar => {
                    let message = format!("Stopping container {}", slot.name);
                    self.kill_with(index, handle, message, grace, turn);
                }
                (Step::Pulling, _) => slot.step = Step::Idle,
                (Step::Blocked { .. }, current) => {
                    slot.step = if current.is_some() { Step::Exited } else { Step::Idle };
                }
                _ => {}
            }
        }
        self.stop_sidecars(turn);
    }

    /// When all other containers have ended, sidecars end in the reverse of their order.
    pub(super) fn stop_sidecars(&mut self, turn: &mut Turn<'_>) {
        let alive = |step: &Step| matches!(step, Step::Running | Step::Starting | Step::Stopping);
        if self.slots.iter().any(|slot| slot.role != Role::Sidecar && alive(&slot.step)) {
            return;
        }
        let Some(index) = self.slots.iter().rposition(|slot| slot.role == Role::Sidecar && alive(&slot.step)) else {
            return;
        };
        let slot = &self.slots[index];
        if let (Step::Running | Step::Starting, Some(handle)) = (&slot.step, slot.current) {
            let message = format!("Stopping container {}", slot.name);
            self.kill_with(index, handle, message, self.deletion_grace(), turn);
        }
    }

    /// Ends one container, for a reason that is told.
    pub(super) fn kill(&mut self, index: usize, handle: Handle, message: String, turn: &mut Turn<'_>) {
        self.kill_with(index, handle, message, self.grace(), turn);
    }

    fn kill_with(&mut self, index: usize, handle: Handle, message: String, grace: Duration, turn: &mut Turn<'_>) {
        turn.event(&self.pod, false, "Killing", message, &self.causes);
        let slot = &mut self.slots[index];
        let running = slot.step == Step::Running;
        slot.step = Step::Stopping;
        let hook_time = if running { self.pre_stop(index, handle, grace, turn) } else { Some(Duration::ZERO) };
        let Some(hook_time) = hook_time else { return };
        if hook_time.is_zero() {
            return self.signal(handle, grace, turn);
        }
        let left = grace.saturating_sub(hook_time).max(GRACE_AFTER_HOOK);
        let task = Task::PreStopDone(self.uid.clone(), handle, left);
        turn.after(hook_time.min(grace), Class::Work, task);
    }

    /// Sends SIGTERM, and SIGKILL when the grace period is over.
    pub fn signal(&mut self, handle: Handle, grace: Duration, turn: &mut Turn<'_>) {
        turn.runtime.stop(handle, grace, self.causes.clone(), turn.world);
    }

    /// Goes on when the last container has ended.
    pub(super) fn check_stopped(&mut self, turn: &mut Turn<'_>) {
        let alive = |step: &Step| matches!(step, Step::Running | Step::Starting | Step::Stopping);
        if self.stage != Stage::Stopping || self.slots.iter().any(|slot| alive(&slot.step)) {
            return;
        }
        self.stage = Stage::Stopped;
        self.discard_files(turn);
        if self.gone {
            return self.clean_up(turn);
        }
        self.status_changed(0, turn);
    }

    /// Takes away what is left of a pod that the API does not have any more.
    pub(super) fn clean_up(&mut self, turn: &mut Turn<'_>) {
        turn.runtime.remove_sandbox(&self.uid, self.causes.clone(), turn.world);
        if self.is_static() {
            self.delete_mirror(turn);
        }
        self.stage = Stage::Over;
    }
}
