//! The worker of one pod: looks at what the pod has and takes the next step towards what it should have.
//! <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/>

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, Pod, PodSpec};

use super::admission::Amounts;
use super::backoff::Backoff;
use super::probes::Probes;
use super::resize::Resize;
use super::volumes::Mounting;
use super::{Task, Turn, ephemeral, eviction};
use crate::api::object::{Object, Part};
use crate::api::{Key, Name};
use crate::clock::{Class, Time};
use crate::runtime::Runtime;
use crate::runtime::container::{Handle, State};
use crate::trace::{Causes, Sequence};

#[derive(Clone, Debug)]
pub struct Worker {
    /// As it was last heard of.
    pub(super) pod: Object,
    pub(super) uid: Name,
    pub(super) stage: Stage,
    /// Init containers first, in the order of the spec; ephemeral ones last.
    pub(super) slots: Vec<Slot>,
    /// What the next status is about.
    pub(super) causes: Causes,
    pub(super) status_due: bool,
    pub(super) resend_due: bool,
    /// The status that the API had when this kubelet last wrote or read it.
    pub(super) told: Option<Part>,
    pub(super) start_time: Time,
    /// When this kubelet first saw it: its probes tick from then on.
    pub(super) seen_at: Time,
    /// The API has it no more.
    pub(super) gone: bool,
    /// Reason and message, if the kubelet itself has ended the pod.
    pub(super) verdict: Option<(&'static str, String)>,
    /// It was not let in: nothing of it has run.
    pub(super) rejected: bool,
    pub(super) mounting: Mounting,
    /// What it takes of the machine.
    pub(super) requests: Amounts,
    pub(super) resize: Option<Box<Resize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has no sandbox yet.
    Waiting,
    /// The sandbox is being made.
    Sandbox,
    /// Containers come and go.
    Running,
    /// All containers are being ended.
    Stopping,
    /// They have ended, and will not come back.
    Stopped,
    /// Nothing is left to do.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Init,
    /// An init container with `restartPolicy: Always`.
    Sidecar,
    Main,
    /// Somebody wants to look into the running pod.
    Ephemeral,
}

impl Role {
    /// Its spec is among the `initContainers`.
    pub fn is_init(self) -> bool {
        matches!(self, Role::Init | Role::Sidecar)
    }
}

/// One container of the spec.
#[derive(Clone, Debug)]
pub struct Slot {
    pub name: Name,
    pub image: Name,
    pub role: Role,
    /// Its place in `initContainers` or `containers`.
    pub index: usize,
    pub step: Step,
    pub current: Option<Handle>,
    pub previous: Option<Handle>,
    pub restarts: u32,
    pub crashes: Backoff,
    pub pulls: Backoff,
    pub probes: Probes,
    /// What its postStart hook said before the container was ended for it.
    pub hook_failure: Option<Name>,
    /// The spec of an ephemeral container, in the form that others have.
    ephemeral: Option<Arc<ContainerSpec>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Idle,
    Pulling,
    /// Its program starts, or its postStart hook goes on.
    Starting,
    Running,
    /// SIGTERM was sent, or waits for a preStop hook.
    Stopping,
    Exited,
    /// It can't go on before that time.
    Blocked {
        reason: &'static str,
        message: String,
        until: Time,
    },
}

impl Slot {
    fn new(spec: &ContainerSpec, role: Role, index: usize) -> Slot {
        Slot {
            name: Name::from(spec.name.as_str()),
            image: Name::from(spec.image.as_deref().unwrap_or_default()),
            role,
            index,
            step: Step::Idle,
            current: None,
            previous: None,
            restarts: 0,
            crashes: Backoff::default(),
            pulls: Backoff::default(),
            probes: Probes::new(spec),
            hook_failure: None,
            ephemeral: None,
        }
    }

    pub(super) fn ephemeral(spec: ContainerSpec, index: usize) -> Slot {
        Slot { ephemeral: Some(Arc::new(spec.clone())), ..Slot::new(&spec, Role::Ephemeral, index) }
    }

    pub fn spec<'a>(&'a self, pod: &'a PodSpec) -> Option<&'a ContainerSpec> {
        match self.role {
            Role::Ephemeral => self.ephemeral.as_deref(),
            Role::Main => pod.containers.get(self.index),
            Role::Init | Role::Sidecar => pod.init_containers.as_ref()?.get(self.index),
        }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.step, Step::Running | Step::Stopping)
    }

    /// It has passed its startup probe, and is up.
    pub fn has_started(&self) -> bool {
        self.is_running() && self.probes.started
    }

    pub fn is_ready(&self) -> bool {
        self.is_running() && self.probes.started && self.probes.ready
    }
}

impl Worker {
    pub fn new(pod: Object, uid: Name, causes: Causes, adopted: Option<&Runtime>, now: Time) -> Worker {
        let spec = pod.spec::<Pod>();
        let init = spec.init_containers.iter().flatten().enumerate().map(|(index, container)| {
            let always = container.restart_policy.as_deref() == Some("Always");
            Slot::new(container, if always { Role::Sidecar } else { Role::Init }, index)
        });
        let main = spec.containers.iter().enumerate().map(|(index, container)| Slot::new(container, Role::Main, index));
        let requests = Amounts::of(spec);
        let slots = init.chain(main).chain(ephemeral::slots(spec, 0)).collect();
        let status = pod.status::<Pod>();
        let ended = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let start_time = status.start_time.as_ref().map_or(now, Time::from);
        let stage = if ended { Stage::Stopped } else { Stage::Waiting };
        let mut worker = Worker {
            pod,
            uid,
            stage,
            slots,
            causes,
            status_due: false,
            resend_due: false,
            told: None,
            start_time,
            seen_at: now,
            gone: false,
            verdict: None,
            rejected: false,
            mounting: Mounting::default(),
            requests,
            resize: None,
        };
        if let Some(runtime) = adopted {
            worker.adopt(runtime);
        }
        worker
    }

    /// For containers of a pod that the API does not have.
    pub fn orphan(key: Key, uid: Name, runtime: &Runtime) -> Worker {
        let mut names: Vec<(Name, Name)> = Vec::new();
        for (_, container) in runtime.containers().filter(|(_, c)| c.identity.pod_uid == uid) {
            if !names.iter().any(|(name, _)| *name == container.identity.name) {
                names.push((container.identity.name.clone(), container.identity.image.clone()));
            }
        }
        let container = |(name, image): (Name, Name)| ContainerSpec {
            name: name.to_string(),
            image: Some(image.to_string()),
            ..ContainerSpec::default()
        };
        let spec = PodSpec { containers: names.into_iter().map(container).collect(), ..PodSpec::default() };
        let mut pod = Object::new::<Pod>(&key.namespace, &key.name, spec);
        pod.metadata_mut().uid = Some(uid.to_string());
        Worker::new(pod, uid, Causes::None, Some(runtime), Time::ZERO)
    }

    /// Takes over what runs already.
    fn adopt(&mut self, runtime: &Runtime) {
        if let Some(sandbox) = runtime.sandbox(&self.uid)
            && self.stage == Stage::Waiting
        {
            self.stage = if sandbox.ready { Stage::Running } else { Stage::Sandbox };
        }
        for (handle, container) in runtime.containers().filter(|(_, c)| c.identity.pod_uid == self.uid) {
            let Some(slot) = self.slots.iter_mut().find(|slot| slot.name == container.identity.name) else { continue };
            slot.previous = slot.current.replace(handle);
            slot.restarts = container.attempt;
            slot.step = match container.state {
                State::Created => Step::Starting,
                State::Running => Step::Running,
                State::Exited { .. } => Step::Exited,
            };
        }
    }

    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// It has only just come, and nothing of it is there.
    pub fn is_new(&self) -> bool {
        self.stage == Stage::Waiting && !self.pod.is_terminating()
    }

    /// Its containers can come to take more of the machine than others do.
    pub fn needs_watching(&self) -> bool {
        eviction::limits_storage(self.spec())
    }

    pub(super) fn spec(&self) -> &PodSpec {
        self.pod.spec::<Pod>()
    }

    /// The grace period of its spec.
    pub(super) fn grace(&self) -> Duration {
        Duration::from_secs(self.spec().termination_grace_period_seconds.unwrap_or(30).max(1) as u64)
    }

    /// Somebody has said that it is over: what runs of it is ended, and the phase stays.
    fn has_last_phase(&self) -> bool {
        matches!(self.pod.status::<Pod>().phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    /// The first look at a pod.
    pub fn begin(&mut self, turn: &mut Turn<'_>) {
        if let Some((reason, message)) = self.verdict.clone().filter(|_| self.rejected) {
            turn.event(&self.pod, true, reason, message, &self.causes);
            return self.status_changed(0, turn);
        }
        if self.stage == Stage::Stopped {
            return;
        }
        if self.pod.is_terminating() {
            return self.terminate(turn);
        }
        self.expect_deadline(turn);
        if self.stage == Stage::Running {
            self.follow_volumes(turn);
        }
        for index in 0..self.slots.len() {
            if let (Step::Running, Some(handle)) = (&self.slots[index].step, self.slots[index].current) {
                self.begin_probes(index, handle, turn);
            }
        }
        self.status_changed(0, turn);
        self.sync(turn);
    }

    /// It may be brought forward, never put off.
    fn expect_deadline(&self, turn: &mut Turn<'_>) {
        if let Some(limit) = self.spec().active_deadline_seconds {
            let due = self.start_time + Duration::from_secs(limit.max(0) as u64);
            turn.after(due.since(turn.world.now), Class::Background, Task::Deadline(self.uid.clone()));
        }
    }

    /// The API has another version of the pod.
    pub fn pod_changed(&mut self, pod: Object, causes: Causes, turn: &mut Turn<'_>) {
        let before = std::mem::replace(&mut self.pod, pod);
        if self.has_last_phase() && !matches!(self.stage, Stage::Stopping | Stage::Stopped) {
            self.causes.merge(&causes);
            return self.terminate(turn);
        }
        let is_own = self.told.as_ref().is_none_or(|told| Arc::ptr_eq(told, self.pod.status_part()));
        // Somebody else wrote into the status: what is the kubelet's to say is said again.
        if !is_own && self.spec().readiness_gates.is_some() {
            self.causes.merge(&causes);
            self.status_changed(0, turn);
        } else if !is_own && !turn.hollow {
            self.causes.merge(&causes);
            self.send_again(Class::Work, turn);
        }
        if Arc::ptr_eq(before.metadata_arc(), self.pod.metadata_arc()) {
            return;
        }
        if self.pod.is_terminating() {
            self.causes.merge(&causes);
            return self.terminate(turn);
        }
        if matches!(self.stage, Stage::Stopping | Stage::Stopped) {
            return;
        }
        self.remount(turn);
        self.follow_script(&before, turn);
        if before.metadata().generation != self.pod.metadata().generation {
            self.causes.merge(&causes);
            if before.spec::<Pod>().active_deadline_seconds != self.spec().active_deadline_seconds {
                self.expect_deadline(turn);
            }
            self.restart_changed(turn);
            self.add_ephemeral(turn);
            self.status_changed(0, turn);
        }
    }

    /// Takes the next step.
    pub fn sync(&mut self, turn: &mut Turn<'_>) {
        match self.stage {
            Stage::Waiting => {
                if self.mount_volumes(turn) {
                    self.stage = Stage::Sandbox;
                    let host_network = self.spec().host_network == Some(true);
                    let (key, causes) = (self.pod.key.clone(), self.causes.clone());
                    turn.runtime.run_sandbox(key, self.uid.clone(), host_network, causes, turn.world);
                }
            }
            Stage::Running => self.sync_containers(turn),
            Stage::Sandbox | Stage::Stopping | Stage::Stopped | Stage::Over => {}
        }
    }

    pub fn sandbox_ready(&mut self, sequence: Sequence, turn: &mut Turn<'_>) {
        match self.stage {
            Stage::Sandbox => {
                self.stage = Stage::Running;
                self.causes.add(sequence);
                self.sync(turn);
            }
            Stage::Stopping => self.check_stopped(turn),
            _ => {}
        }
    }

    /// Starts what may be started: one container at a time, init containers before the others.
    fn sync_containers(&mut self, turn: &mut Turn<'_>) {
        let begun = self.slots.iter().any(|slot| slot.role == Role::Main && slot.current.is_some());
        self.advance_ephemeral(turn);
        for index in 0..self.slots.len() {
            if self.slots.iter().any(|slot| matches!(slot.step, Step::Pulling | Step::Starting)) {
                return;
            }
            let role = self.slots[index].role;
            if role == Role::Ephemeral {
                break;
            }
            if role == Role::Init && (begun || self.exit_code(index, turn.runtime) == Some(0)) {
                continue;
            }
            self.advance(index, turn);
            let slot = &self.slots[index];
            match role {
                Role::Init => return self.check_finished(turn),
                Role::Sidecar if !begun && !slot.has_started() => return,
                Role::Sidecar | Role::Main | Role::Ephemeral => {}
            }
        }
        self.check_finished(turn);
    }

    pub(super) fn exit_code(&self, index: usize, runtime: &Runtime) -> Option<i32> {
        runtime.container(self.slots[index].current?)?.exit_code()
    }

    /// All containers have ended for good: the sidecars follow, and the pod has a last phase.
    fn check_finished(&mut self, turn: &mut Turn<'_>) {
        let finally =
            |index: usize, slot: &Slot| slot.step == Step::Exited && !self.should_restart(index, turn.runtime);
        let (mut failed_init, mut all_ended) = (false, true);
        for (index, slot) in self.slots.iter().enumerate() {
            match slot.role {
                Role::Init => failed_init |= finally(index, slot) && self.exit_code(index, turn.runtime) != Some(0),
                Role::Main => all_ended &= finally(index, slot),
                Role::Sidecar | Role::Ephemeral => {}
            }
        }
        if !failed_init && !all_ended {
            return;
        }
        self.stage = Stage::Stopping;
        self.stop_slots(self.grace(), turn);
        self.check_stopped(turn);
    }
}
