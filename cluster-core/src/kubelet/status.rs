//! What the kubelet tells the apiserver about a pod.
//! <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions>

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container as ContainerSpec, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus, VolumeMountStatus,
};

use super::worker::{Role, Slot, Stage, Step, Worker};
use super::{Task, Turn};
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::{Request, Verb};
use crate::clock::{Class, Time};
use crate::network::addresses;
use crate::runtime::container::{Container, Handle, State};
use crate::runtime::{Runtime, images};
use crate::trace::Sequence;

/// How much is kept of what a container says about its end, and of its log if it says nothing.
const MESSAGE_BYTES_MAX: usize = 4096;
const LOG_BYTES_MAX: usize = 2048;
const LOG_LINES_MAX: usize = 80;

/// How long a status waits that could not be sent, or that somebody else has overwritten: the kubelet compares what the API
/// has with what it knows at this interval.
const RESEND: Duration = Duration::from_secs(10);

impl Worker {
    /// There is something to tell; what happens until it is sent is told with it.
    pub(super) fn status_changed(&mut self, cause: Sequence, turn: &mut Turn<'_>) {
        self.causes.add(cause);
        if !self.status_due && !self.gone {
            self.status_due = true;
            let delay = turn.world.api_latency();
            turn.after(delay, Class::Work, Task::SendStatus(self.uid.clone()));
        }
    }

    /// Writes the status if it differs from the one that the API has, and confirms the end of a pod that was to go.
    pub fn send_status(&mut self, turn: &mut Turn<'_>) {
        self.status_due = false;
        if self.gone || self.stage == Stage::Over {
            return;
        }
        let get = Request::new(turn.actor, Verb::Get, KindRef::of::<Pod>(), self.pod.key.clone());
        let known = match turn.world.request(get) {
            Ok(answer) => answer.object().filter(|pod| self.is_static() || pod.uid() == &*self.uid),
            Err(status) if status.is_not_found() => None,
            Err(_) => return self.send_later(turn),
        };
        let known = if self.is_static() { self.mirror(known, turn) } else { known };
        let Some(mut pod) = known else {
            // The watch will tell that it is gone; a mirror is tried again.
            if self.is_static() {
                self.send_later(turn);
            }
            return;
        };
        let status = self.build(&pod, turn);
        let is_terminating = pod.is_terminating();
        let is_let_go = turn.hollow && is_terminating;
        if status != *pod.status::<Pod>() && !is_let_go {
            pod.set_status_part(Arc::new(status));
            let request = Request::update_status(turn.actor, pod).because("reports on the pod");
            match turn.world.request(request.caused_by(self.causes.clone())) {
                Ok(answer) => self.told = answer.object().map(|pod| pod.status_part().clone()),
                Err(_) => return self.send_later(turn),
            }
        } else {
            self.told = Some(pod.status_part().clone());
        }
        if self.stage == Stage::Stopped && is_terminating {
            self.confirm(turn);
        }
    }

    fn send_later(&mut self, turn: &mut Turn<'_>) {
        self.send_again(Class::Background, turn);
    }

    /// Sends the status once more after a while; what changes before is told at once all the same.
    pub(super) fn send_again(&mut self, class: Class, turn: &mut Turn<'_>) {
        if !self.resend_due {
            self.resend_due = true;
            turn.after(RESEND, class, Task::ResendStatus(self.uid.clone()));
        }
    }

    pub fn resend_status(&mut self, turn: &mut Turn<'_>) {
        self.resend_due = false;
        self.send_status(turn);
    }

    /// Deletes the object of a pod whose containers have ended.
    fn confirm(&mut self, turn: &mut Turn<'_>) {
        let mut request = Request::delete(turn.actor, KindRef::of::<Pod>(), self.pod.key.clone());
        request.options.grace_period_seconds = Some(0);
        request.options.precondition_uid = Some(self.uid.to_string());
        match turn.world.request(request.because("all containers have ended").caused_by(self.causes.clone())) {
            Ok(_) => self.clean_up(turn),
            Err(status) if status.is_not_found() => self.clean_up(turn),
            Err(_) => self.send_later(turn),
        }
    }

    fn build(&self, known: &Object, turn: &Turn<'_>) -> PodStatus {
        let old = known.status::<Pod>();
        if self.rejected {
            return self.rejection(known, turn);
        }
        let spec = known.spec::<Pod>();
        let runtime = &*turn.runtime;
        let statuses = |of: fn(Role) -> bool| -> Vec<ContainerStatus> {
            let slots = self.slots.iter().filter(|slot| of(slot.role));
            let mut statuses: Vec<_> = slots.map(|slot| self.container_status(slot, old, runtime)).collect();
            // A status is large, and each version of it is kept for the trace.
            statuses.shrink_to_fit();
            statuses
        };
        let (init, main) = (statuses(Role::is_init), statuses(|role| role == Role::Main));
        let ephemeral = statuses(|role| role == Role::Ephemeral);
        let phase = self.phase(old, &init, &main, runtime);
        let sandbox = runtime.sandbox(&self.uid).filter(|sandbox| sandbox.ready);
        let ip = sandbox.map(|sandbox| sandbox.ip.to_string()).or_else(|| old.pod_ip.clone());
        let host_ip = addresses::machine(turn.node).to_string();
        // A stand-in does not say which generation it speaks of, as kwok doesn't.
        let generation = known.metadata().generation.filter(|_| !turn.hollow);
        let conditions = Conditions { old, generation, now: turn.world.now };
        let (granted, actual) = self.specs_of_resources();
        let verdict = self.verdict.as_ref().filter(|_| self.stage == Stage::Stopped);
        let (reason, message) = match verdict {
            Some((reason, message)) => (Some((*reason).to_owned()), Some(message.clone())),
            None => (old.reason.clone(), old.message.clone()),
        };
        PodStatus {
            conditions: Some(conditions.all(self, &init, &main, phase, sandbox.is_some() || old.pod_ip.is_some())),
            container_statuses: Some(main),
            init_container_statuses: (!init.is_empty()).then_some(init),
            ephemeral_container_statuses: (!ephemeral.is_empty()).then_some(ephemeral),
            host_ips: Some(vec![HostIP { ip: host_ip.clone() }]),
            host_ip: Some(host_ip),
            pod_ips: ip.clone().map(|ip| vec![PodIP { ip }]),
            pod_ip: ip,
            phase: Some(phase.to_owned()),
            allocated_resources: granted.resources.as_ref().and_then(|resources| resources.requests.clone()),
            resources: actual.resources.clone(),
            qos_class: old.qos_class.clone(),
            start_time: Some(self.start_time.to_meta()),
            observed_generation: generation,
            nominated_node_name: spec.node_name.is_none().then(|| old.nominated_node_name.clone()).flatten(),
            reason,
            message,
            ..PodStatus::default()
        }
    }

    /// All that is said of a pod that was not let in.
    fn rejection(&self, known: &Object, turn: &Turn<'_>) -> PodStatus {
        let old = known.status::<Pod>();
        let foreign = old.conditions.iter().flatten().filter(|known| !OWN.contains(&known.type_.as_str()));
        let foreign: Vec<PodCondition> = foreign.cloned().collect();
        let (reason, message) = self.verdict.clone().unwrap_or_default();
        PodStatus {
            phase: Some("Failed".into()),
            reason: Some(reason.to_owned()),
            message: Some(format!("Pod was rejected: {message}")),
            qos_class: old.qos_class.clone(),
            start_time: Some(old.start_time.clone().unwrap_or_else(|| turn.world.now.to_meta())),
            observed_generation: known.metadata().generation,
            conditions: (!foreign.is_empty()).then_some(foreign),
            ..PodStatus::default()
        }
    }

    /// <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase>
    fn phase(
        &self,
        old: &PodStatus,
        init: &[ContainerStatus],
        main: &[ContainerStatus],
        runtime: &Runtime,
    ) -> &'static str {
        match old.phase.as_deref() {
            Some("Succeeded") => return "Succeeded",
            Some("Failed") => return "Failed",
            _ if self.verdict.is_some() && self.stage == Stage::Stopped => return "Failed",
            _ => {}
        }
        let ended = |status: &ContainerStatus| status.state.as_ref()?.terminated.as_ref().map(|end| end.exit_code);
        let never = self.spec().restart_policy.as_deref() == Some("Never");
        let (mut waiting, mut running, mut stopped, mut succeeded) = (0, 0, 0, 0);
        for status in main {
            let state = status.state.as_ref();
            let crashed = status.last_state.as_ref().is_some_and(|state| state.terminated.is_some());
            match ended(status) {
                Some(code) => (stopped, succeeded) = (stopped + 1, succeeded + i32::from(code == 0)),
                None if state.is_some_and(|state| state.running.is_some()) => running += 1,
                None if crashed => stopped += 1,
                None => waiting += 1,
            }
        }
        let uninitialized = self.slots.iter().zip(init).filter(|(slot, _)| slot.role == Role::Init);
        let mut uninitialized =
            uninitialized.map(|(_, status)| ended(status)).filter(|code| *code != Some(0)).peekable();
        if running == 0 && stopped == 0 && uninitialized.peek().is_some() {
            let failed = never && uninitialized.any(|code| code.is_some());
            return if failed { "Failed" } else { "Pending" };
        }
        let for_good = self.stage == Stage::Stopped;
        match () {
            () if waiting > 0 && !for_good => "Pending",
            () if running > 0 => "Running",
            () if stopped == 0 && !for_good => "Pending",
            () if !for_good && self.has_own_restarts(runtime) => "Running",
            () if succeeded == stopped && (for_good || !self.restarts_always()) => "Succeeded",
            () if never || for_good => "Failed",
            () => "Running",
        }
    }

    /// A container will start again because of what it says itself, not the pod.
    fn has_own_restarts(&self, runtime: &Runtime) -> bool {
        let mut main = self.slots.iter().enumerate().filter(|(_, slot)| slot.role == Role::Main);
        main.any(|(index, slot)| {
            let says = |spec: &ContainerSpec| spec.restart_policy.is_some() || spec.restart_policy_rules.is_some();
            slot.spec(self.spec()).is_some_and(says) && slot.current.is_some() && self.should_restart(index, runtime)
        })
    }

    fn restarts_always(&self) -> bool {
        !matches!(self.spec().restart_policy.as_deref(), Some("Never" | "OnFailure"))
    }

    fn container_status(&self, slot: &Slot, old: &PodStatus, runtime: &Runtime) -> ContainerStatus {
        let find = |handle: Option<Handle>| handle.and_then(|handle| runtime.container(handle));
        let (current, previous) = (find(slot.current), find(slot.previous));
        let old = match slot.role {
            Role::Main => &old.container_statuses,
            Role::Init | Role::Sidecar => &old.init_container_statuses,
            Role::Ephemeral => &old.ephemeral_container_statuses,
        };
        let old = old.iter().flatten().find(|status| status.name == *slot.name);
        let (state, last) = match (&slot.step, current) {
            (Step::Blocked { reason, message, .. }, current) => (waiting(reason, Some(message)), current),
            // It was made, and is about to start: the one before is still the news.
            (Step::Starting, Some(_)) if previous.is_none() => (waiting(self.waiting_reason(slot), None), None),
            (step, Some(container)) if container.state != State::Created && *step != Step::Starting => {
                (state_of(container, slot.spec(self.spec())), previous)
            }
            (_, Some(_)) if previous.is_some() => (waiting(self.waiting_reason(slot), None), previous),
            // A container that this kubelet has not seen: what was said about it still holds.
            (_, None) if old.is_some_and(|old| old.container_id.is_some()) => return old.cloned().unwrap_or_default(),
            _ => (waiting(self.waiting_reason(slot), None), previous),
        };
        let spec = slot.spec(self.spec());
        let shown = current.filter(|container| container.state != State::Created).or(previous);
        let ready = match slot.role {
            Role::Init => current.and_then(Container::exit_code) == Some(0),
            Role::Sidecar | Role::Main => slot.is_ready(),
            Role::Ephemeral => false,
        };
        // Only what the runtime knows of has resources.
        let (granted, actual) = self.specs_of_resources();
        let resources_in = |spec| slot.spec(spec).filter(|_| shown.is_some()).and_then(|spec| spec.resources.as_ref());
        let resources = resources_in(actual).cloned();
        let mounts = spec.and_then(|spec| spec.volume_mounts.as_ref()).filter(|mounts| !mounts.is_empty());
        let mounts = mounts.map(|mounts| {
            let mount = mounts.iter().map(|mount| VolumeMountStatus {
                name: mount.name.clone(),
                mount_path: mount.mount_path.clone(),
                read_only: mount.read_only,
                recursive_read_only: mount.read_only.filter(|only| *only).map(|_| "Disabled".into()),
                ..VolumeMountStatus::default()
            });
            mount.collect()
        });
        ContainerStatus {
            name: slot.name.to_string(),
            image: match shown {
                Some(container) => images::reference(&container.identity.image).to_string(),
                None => slot.image.to_string(),
            },
            image_id: shown.map(|container| container.image_id.to_string()).unwrap_or_default(),
            container_id: shown.map(|container| format!("containerd://{}", container.id)),
            ready,
            started: (slot.role != Role::Ephemeral).then(|| slot.has_started()),
            restart_count: slot.restarts as i32,
            state: Some(state),
            last_state: Some(match last.filter(|container| container.exit_code().is_some()) {
                Some(container) => state_of(container, spec),
                None => ContainerState::default(),
            }),
            allocated_resources: resources_in(granted).and_then(|resources| resources.requests.clone()),
            resources,
            volume_mounts: mounts,
            ..ContainerStatus::default()
        }
    }

    fn waiting_reason(&self, slot: &Slot) -> &'static str {
        if slot.role != Role::Ephemeral && self.slots.iter().any(|slot| slot.role.is_init()) {
            "PodInitializing"
        } else {
            "ContainerCreating"
        }
    }
}

fn waiting(reason: &str, message: Option<&String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message: message.cloned() };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn state_of(container: &Container, spec: Option<&ContainerSpec>) -> ContainerState {
    match container.state {
        State::Exited { code, reason } => {
            let terminated = ContainerStateTerminated {
                container_id: Some(format!("containerd://{}", container.id)),
                exit_code: code,
                reason: Some(reason.to_owned()),
                started_at: Some(container.started_at.to_meta()),
                finished_at: Some(container.finished_at.to_meta()),
                message: spec.and_then(|spec| last_words(container, code, spec)),
                ..ContainerStateTerminated::default()
            };
            ContainerState { terminated: Some(terminated), ..ContainerState::default() }
        }
        State::Created | State::Running => {
            let running = ContainerStateRunning { started_at: Some(container.started_at.to_meta()) };
            ContainerState { running: Some(running), ..ContainerState::default() }
        }
    }
}

/// What a container has left behind about its end.
/// <https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/>
fn last_words(container: &Container, code: i32, spec: &ContainerSpec) -> Option<String> {
    let path = spec.termination_message_path.as_deref().unwrap_or("/dev/termination-log");
    if let Some(text) = container.files().read(path).filter(|text| !text.is_empty()) {
        return Some(text[..text.floor_char_boundary(MESSAGE_BYTES_MAX)].to_owned());
    }
    if code == 0 || spec.termination_message_policy.as_deref() != Some("FallbackToLogsOnError") {
        return None;
    }
    let lines: Vec<_> = container.logs().collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES_MAX)..];
    let text: String = last.iter().map(|line| line.shown()).collect();
    let from = text.ceil_char_boundary(text.len().saturating_sub(LOG_BYTES_MAX));
    (!text.is_empty()).then(|| text[from..].to_owned())
}

/// What conditions are made of: those that the pod had, and the moment.
struct Conditions<'a> {
    old: &'a PodStatus,
    generation: Option<i64>,
    now: Time,
}

/// The conditions that the kubelet owns, in its order.
const OWN: [&str; 7] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "PodResizePending",
    "PodResizeInProgress",
];

impl Conditions<'_> {
    fn all(
        &self,
        worker: &Worker,
        init: &[ContainerStatus],
        main: &[ContainerStatus],
        phase: &str,
        has_sandbox: bool,
    ) -> Vec<PodCondition> {
        let names = |unready: Vec<&ContainerStatus>| {
            unready.iter().map(|status| status.name.as_str()).collect::<Vec<_>>().join(" ")
        };
        let roles = || worker.slots.iter().filter(|slot| slot.role.is_init()).zip(init);
        let incomplete: Vec<_> = roles()
            .filter(|(slot, status)| if slot.role == Role::Init { !status.ready } else { status.started != Some(true) })
            .map(|(_, status)| status)
            .collect();
        let begun = main.iter().any(|status| status.started == Some(true) || status.restart_count > 0)
            || main.iter().any(|status| status.state.as_ref().is_some_and(|state| state.waiting.is_none()));
        let unready: Vec<_> = roles()
            .filter(|(slot, _)| slot.role == Role::Sidecar)
            .map(|(_, status)| status)
            .chain(main)
            .filter(|status| !status.ready)
            .collect();
        let initialized = match phase {
            "Succeeded" => (true, Some("PodCompleted"), None),
            _ if begun || incomplete.is_empty() => (true, None, None),
            _ => {
                let message = format!("containers with incomplete status: [{}]", names(incomplete));
                (false, Some("ContainersNotInitialized"), Some(message))
            }
        };
        let containers_ready = match phase {
            "Succeeded" => (false, Some("PodCompleted"), None),
            "Failed" => (false, Some("PodFailed"), None),
            _ if unready.is_empty() => (true, None, None),
            _ => {
                let message = format!("containers with unready status: [{}]", names(unready));
                (false, Some("ContainersNotReady"), Some(message))
            }
        };
        let ready = if containers_ready.0 { self.gates(worker) } else { containers_ready.clone() };
        let verdicts = [(has_sandbox, None, None), initialized, ready, containers_ready, (true, None, None)];
        let own = OWN.into_iter().zip(verdicts).map(|(type_, verdict)| self.one(type_, verdict));
        let resize = worker.resize.as_ref().map(|resize| resize.condition());
        let resize = resize.map(|(type_, reason, message)| self.one(type_, (true, reason, message)));
        let evicted = worker
            .verdict
            .as_ref()
            .filter(|(reason, _)| *reason == "Evicted" && worker.stage == Stage::Stopped && !worker.rejected);
        let evicted = evicted.map(|(_, message)| {
            self.one("DisruptionTarget", (true, Some("TerminationByKubelet"), Some(message.clone())))
        });
        let is_foreign = |known: &&PodCondition| {
            !OWN.contains(&known.type_.as_str()) && (evicted.is_none() || known.type_ != "DisruptionTarget")
        };
        let foreign: Vec<_> = self.old.conditions.iter().flatten().filter(is_foreign).cloned().collect();
        let mut all: Vec<_> = resize.into_iter().chain(own).chain(foreign).chain(evicted).collect();
        all.shrink_to_fit();
        all
    }

    /// <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-readiness-gate>
    fn gates(&self, worker: &Worker) -> (bool, Option<&'static str>, Option<String>) {
        let mut messages = Vec::new();
        for gate in worker.spec().readiness_gates.iter().flatten() {
            let type_ = &gate.condition_type;
            match self.old.conditions.iter().flatten().find(|known| known.type_ == *type_) {
                None => {
                    messages.push(format!("corresponding condition of pod readiness gate \"{type_}\" does not exist."));
                }
                Some(known) if known.status != "True" => messages.push(format!(
                    "the status of pod readiness gate \"{type_}\" is not \"True\", but {}",
                    known.status
                )),
                Some(_) => {}
            }
        }
        if messages.is_empty() {
            return (true, None, None);
        }
        (false, Some("ReadinessGatesNotReady"), Some(messages.join(", ")))
    }

    fn one(&self, type_: &str, verdict: (bool, Option<&'static str>, Option<String>)) -> PodCondition {
        let (holds, reason, message) = verdict;
        let status = if holds { "True" } else { "False" };
        let known = self.old.conditions.iter().flatten().find(|known| known.type_ == type_ && known.status == status);
        let since = known.and_then(|known| known.last_transition_time.clone());
        PodCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.map(str::to_owned),
            message,
            last_transition_time: Some(since.unwrap_or_else(|| self.now.to_meta())),
            last_probe_time: None,
            observed_generation: self.generation,
        }
    }
}
