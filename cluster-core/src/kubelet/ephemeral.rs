//! Ephemeral containers: added to a pod that runs, to look into it; started once, never again.
//! <https://kubernetes.io/docs/concepts/workloads/pods/ephemeral-containers/>

use k8s_openapi::api::core::v1::{Container as ContainerSpec, EphemeralContainer, PodSpec};

use super::Turn;
use super::worker::{Role, Slot, Step, Worker};

/// Slots for the ephemeral containers of a pod behind those that are known.
pub fn slots(spec: &PodSpec, known: usize) -> impl Iterator<Item = Slot> + '_ {
    let all = spec.ephemeral_containers.iter().flatten().enumerate().skip(known);
    all.map(|(index, container)| Slot::ephemeral(as_container(container), index))
}

fn as_container(from: &EphemeralContainer) -> ContainerSpec {
    let from = from.clone();
    ContainerSpec {
        name: from.name,
        image: from.image,
        image_pull_policy: from.image_pull_policy,
        command: from.command,
        args: from.args,
        env: from.env,
        env_from: from.env_from,
        working_dir: from.working_dir,
        volume_mounts: from.volume_mounts,
        security_context: from.security_context,
        stdin: from.stdin,
        stdin_once: from.stdin_once,
        tty: from.tty,
        termination_message_path: from.termination_message_path,
        termination_message_policy: from.termination_message_policy,
        ..ContainerSpec::default()
    }
}

impl Worker {
    /// Takes up ephemeral containers that the pod did not have before.
    pub(super) fn add_ephemeral(&mut self, turn: &mut Turn<'_>) {
        let known = self.slots.iter().filter(|slot| slot.role == Role::Ephemeral).count();
        let new: Vec<Slot> = slots(self.spec(), known).collect();
        if !new.is_empty() {
            self.slots.extend(new);
            self.sync(turn);
        }
    }

    /// Starts those that have not been started. They wait for no other container.
    pub(super) fn advance_ephemeral(&mut self, turn: &mut Turn<'_>) {
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            if slot.role == Role::Ephemeral && matches!(slot.step, Step::Idle | Step::Blocked { .. }) {
                self.advance(index, turn);
            }
        }
    }
}
