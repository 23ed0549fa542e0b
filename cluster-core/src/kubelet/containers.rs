//! One container of a pod: image, configuration, create, start, and what follows when it ends.
//! <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-states>

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, ContainerPort, ContainerRestartRule, Secret};

use super::environment::{self, Variables};
use super::resize::{cpu_limit, memory_limit};
use super::worker::{Role, Stage, Step, Worker};
use super::{Task, Turn, furnish, script};
use crate::api::Name;
use crate::api::request::Request;
use crate::clock::Class;
use crate::runtime::container::{Config, Handle, Identity};
use crate::runtime::shell::User;
use crate::runtime::{Pulled, Runtime, images};
use crate::trace::{Causes, ContainerPhase, Sequence, What};

/// How long after a failed pull the worker looks at the pod again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a worker waits when a ConfigMap or a Secret is not there that a variable is made of.
const RETRY: Duration = Duration::from_secs(10);

impl Worker {
    pub(super) fn identity(&self, index: usize) -> Identity {
        let slot = &self.slots[index];
        Identity {
            pod: self.pod.key.clone(),
            pod_uid: self.uid.clone(),
            name: slot.name.clone(),
            image: slot.image.clone(),
        }
    }

    /// `web_default(uid)`: how the kubelet's messages name a pod.
    pub(super) fn full_name(&self) -> String {
        format!("{}_{}({})", self.pod.key.name, self.pod.key.namespace, self.uid)
    }

    /// Takes the next step with a container, if one is due.
    pub(super) fn advance(&mut self, index: usize, turn: &mut Turn<'_>) {
        let now = turn.world.now;
        match &self.slots[index].step {
            Step::Idle => self.ensure_image(index, turn),
            Step::Pulling | Step::Starting | Step::Running | Step::Stopping => {}
            Step::Exited => {
                if self.should_restart(index, turn.runtime) {
                    self.restart(index, turn);
                }
            }
            Step::Blocked { reason: "CrashLoopBackOff" | "PostStartHookError", until, .. } if now >= *until => {
                self.restart(index, turn);
            }
            Step::Blocked { until, .. } if now >= *until => self.ensure_image(index, turn),
            Step::Blocked { reason: "ErrImagePull", .. } => self.back_off_pull(index, turn),
            Step::Blocked { .. } => {}
        }
    }

    /// What its restart policy says about a container that has ended.
    /// <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy>
    pub(super) fn should_restart(&self, index: usize, runtime: &Runtime) -> bool {
        let slot = &self.slots[index];
        let spec = slot.spec(self.spec());
        let code = self.exit_code(index, runtime);
        if let (Some(rules), Some(code)) = (spec.and_then(|spec| spec.restart_policy_rules.as_ref()), code)
            && rules.iter().any(|rule| applies(rule, code))
        {
            return true;
        }
        let own = spec.and_then(|spec| spec.restart_policy.as_deref());
        let policy = own.or(self.spec().restart_policy.as_deref()).unwrap_or("Always");
        let succeeded = code == Some(0);
        match (slot.role, policy) {
            (Role::Ephemeral, _) => false,
            (Role::Sidecar, _) => true,
            (_, "Never") => false,
            (Role::Init, _) | (_, "OnFailure") => !succeeded,
            _ => true,
        }
    }

    /// Starts a container again that has ended, now or after its back-off.
    fn restart(&mut self, index: usize, turn: &mut Turn<'_>) {
        let now = turn.world.now;
        let finished_at =
            self.slots[index].current.and_then(|handle| turn.runtime.container(handle)).map_or(now, |c| c.finished_at);
        let slot = &mut self.slots[index];
        let delay = slot.crashes.wait(finished_at);
        let due = finished_at + delay;
        if now >= due {
            slot.crashes.advance(finished_at, now);
            return self.ensure_image(index, turn);
        }
        let seconds = delay.as_secs();
        let name = slot.name.clone();
        let pod = self.full_name();
        let waits = if seconds >= 60 && seconds.is_multiple_of(60) {
            format!("{}m0s", seconds / 60)
        } else if seconds > 60 {
            format!("{}m{}s", seconds / 60, seconds % 60)
        } else {
            format!("{seconds}s")
        };
        let message = format!("back-off {waits} restarting failed container={name} pod={pod}");
        self.slots[index].step = Step::Blocked { reason: "CrashLoopBackOff", message, until: due };
        let phase = ContainerPhase::BackingOff { seconds };
        let entry = self.identity(index).entry(&turn.runtime.machine, phase);
        let causes = self.causes.clone();
        let sequence = turn.world.record(turn.actor, causes, What::Container(Box::new(entry)));
        let told = format!("Back-off restarting failed container {name} in pod {pod}");
        turn.event(&self.pod, true, "BackOff", told, &sequence.into());
        turn.after(due.since(now), Class::Background, Task::Sync(self.uid.clone()));
        self.status_changed(sequence, turn);
    }

    /// Pulls the image, if the policy asks for it, and goes on when it is there.
    /// <https://kubernetes.io/docs/concepts/containers/images/#image-pull-policy>
    fn ensure_image(&mut self, index: usize, turn: &mut Turn<'_>) {
        let slot = &self.slots[index];
        let image = slot.image.clone();
        let policy = slot.spec(self.spec()).and_then(|spec| spec.image_pull_policy.as_deref()).unwrap_or("Always");
        if policy != "Always" && turn.runtime.has_image(&images::reference(&image)) {
            let message =
                format!("Container image \"{image}\" already present on machine and can be accessed by the pod");
            turn.event(&self.pod, false, "Pulled", message, &self.causes);
            return self.create(index, turn);
        }
        if let Some(message) = images::is_invalid(&image) {
            turn.event(&self.pod, true, "InspectFailed", message.clone(), &self.causes);
            turn.event(&self.pod, true, "Failed", "Error: InvalidImageName".into(), &self.causes);
            return self.block(index, "InvalidImageName", message, RETRY, turn);
        }
        if policy == "Never" {
            let message = format!("Container image \"{image}\" is not present with pull policy of Never");
            turn.event(&self.pod, true, "ErrImageNeverPull", message.clone(), &self.causes);
            turn.event(&self.pod, true, "Failed", "Error: ErrImageNeverPull".into(), &self.causes);
            return self.block(index, "ErrImageNeverPull", message, RETRY, turn);
        }
        if self.spec().image_pull_secrets.is_some() {
            self.look_for_pull_secrets(turn);
        }
        self.slots[index].step = Step::Pulling;
        let identity = self.identity(index);
        let sequence = turn.runtime.pull(&identity, self.causes.clone(), turn.world);
        turn.event(&self.pod, false, "Pulling", format!("Pulling image \"{image}\""), &sequence.into());
    }

    /// What is said of a container that must not run as root and would.
    fn runs_as_root_against_its_will(&self, spec: &ContainerSpec) -> Option<String> {
        let (own, of_pod) = (spec.security_context.as_ref(), self.spec().security_context.as_ref());
        let must_not = own.and_then(|own| own.run_as_non_root).or_else(|| of_pod?.run_as_non_root);
        if must_not != Some(true) {
            return None;
        }
        let whose = format!("(pod: \"{}\", container: {})", self.full_name(), spec.name);
        match own.and_then(|own| own.run_as_user).or_else(|| of_pod?.run_as_user) {
            Some(0) => Some(format!("container's runAsUser breaks non-root policy {whose}")),
            Some(_) => None,
            None if images::runs_as_root(spec.image.as_deref().unwrap_or_default()) => {
                Some(format!("container has runAsNonRoot and image will run as root {whose}"))
            }
            None => None,
        }
    }

    /// Tells of secrets for registries that are not there; the pull is tried all the same.
    fn look_for_pull_secrets(&self, turn: &mut Turn<'_>) {
        let names = self.spec().image_pull_secrets.iter().flatten().map(|reference| reference.name.as_str());
        let namespace = &self.pod.key.namespace;
        let mut lacks = |name: &str| turn.world.request(Request::get::<Secret>(turn.actor, namespace, name)).is_err();
        let missing: Vec<&str> = names.filter(|name| lacks(name)).collect();
        if !missing.is_empty() {
            let message = format!(
                "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
                missing.join(", ")
            );
            turn.event(&self.pod, true, "FailedToRetrieveImagePullSecret", message, &self.causes);
        }
    }

    /// Waits with a reason, and looks again later.
    pub(super) fn block(
        &mut self,
        index: usize,
        reason: &'static str,
        message: String,
        time: Duration,
        turn: &mut Turn<'_>,
    ) {
        self.slots[index].step = Step::Blocked { reason, message, until: turn.world.now + time };
        turn.after(time, Class::Background, Task::Sync(self.uid.clone()));
        self.status_changed(0, turn);
    }

    pub fn pull_done(&mut self, name: &Name, outcome: &Result<Pulled, Name>, sequence: Sequence, turn: &mut Turn<'_>) {
        let Some(index) = self.slots.iter().position(|slot| slot.name == *name) else { return };
        if self.stage != Stage::Running || self.slots[index].step != Step::Pulling {
            return;
        }
        let image = self.slots[index].image.clone();
        let causes = Causes::from(sequence);
        self.causes = causes.clone();
        match outcome {
            Ok(pulled) => {
                self.slots[index].pulls = Default::default();
                let message = format!(
                    "Successfully pulled image \"{image}\" in {} ({} including waiting). Image size: {} bytes.",
                    short(pulled.took),
                    short(pulled.waited),
                    pulled.size_bytes
                );
                turn.event(&self.pod, false, "Pulled", message, &causes);
                self.create(index, turn);
            }
            Err(message) => {
                turn.event(&self.pod, true, "Failed", format!("Failed to pull image \"{image}\": {message}"), &causes);
                turn.event(&self.pod, true, "Failed", "Error: ErrImagePull".into(), &causes);
                let now = turn.world.now;
                let slot = &mut self.slots[index];
                slot.pulls.advance(now, now);
                let delay = slot.pulls.wait(now);
                turn.after(LOOK_AGAIN, Class::Work, Task::Sync(self.uid.clone()));
                self.block(index, "ErrImagePull", message.to_string(), delay, turn);
            }
        }
    }

    /// The image could not be pulled, and it is too early to try again.
    fn back_off_pull(&mut self, index: usize, turn: &mut Turn<'_>) {
        let slot = &mut self.slots[index];
        let Step::Blocked { reason, message, .. } = &mut slot.step else { return };
        *reason = "ImagePullBackOff";
        let told = format!("Back-off pulling image \"{}\"", slot.image);
        *message = format!("{told}: ErrImagePull: {message}");
        turn.event(&self.pod, false, "BackOff", told, &self.causes);
        turn.event(&self.pod, true, "Failed", "Error: ImagePullBackOff".into(), &self.causes);
        self.status_changed(0, turn);
    }

    /// Who the processes of a container are.
    /// <https://kubernetes.io/docs/tasks/configure-pod-container/security-context/>
    fn user(&self, spec: &ContainerSpec) -> User {
        let (own, of_pod) = (spec.security_context.as_ref(), self.spec().security_context.as_ref());
        let uid = own.and_then(|own| own.run_as_user).or_else(|| of_pod?.run_as_user);
        let gid = own.and_then(|own| own.run_as_group).or_else(|| of_pod?.run_as_group);
        let more = of_pod.map(|of_pod| of_pod.fs_group.iter().chain(of_pod.supplemental_groups.iter().flatten()));
        User {
            uid: uid.unwrap_or(0),
            gid: gid.unwrap_or(0),
            groups: more.into_iter().flatten().copied().collect(),
            is_privileged: own.is_some_and(|own| own.privileged == Some(true)),
            no_new_privileges: own.is_some_and(|own| own.allow_privilege_escalation == Some(false)),
        }
    }

    fn create(&mut self, index: usize, turn: &mut Turn<'_>) {
        let slot = &self.slots[index];
        let Some(spec) = slot.spec(self.spec()) else { return };
        let attempt = slot.restarts + u32::from(slot.current.is_some());
        let (command, args) = (spec.command.clone().unwrap_or_default(), spec.args.clone().unwrap_or_default());
        let ports = |protocol: &str| {
            let of = |port: &&ContainerPort| port.protocol.as_deref().unwrap_or("TCP") == protocol;
            let ports = spec.ports.iter().flatten().filter(of);
            ports.filter_map(|port| port.container_port.try_into().ok()).collect()
        };
        let mut config = Config {
            working_folder: spec.working_dir.clone().unwrap_or_default(),
            read_only_root: spec.security_context.as_ref().is_some_and(|c| c.read_only_root_filesystem == Some(true)),
            command,
            args,
            ports: ports("TCP"),
            udp_ports: ports("UDP"),
            exit: script::exit_code(&self.pod).filter(|_| slot.role == Role::Main),
            attempt,
            stdin: spec.stdin == Some(true),
            user: self.user(spec),
            memory_bytes_max: memory_limit(spec),
            cpu_nanos_max: cpu_limit(spec),
            ..Config::new(self.identity(index))
        };
        if furnish::is_named_otherwise(&self.pod, self.spec()) {
            config.hostname = furnish::hostname(&self.pod, self.spec()).0.into();
        }
        let looks = turn.runtime.reads_files(&config);
        let known = if looks { environment::of_services(&self.pod, turn) } else { Variables::default() };
        let refused = self.runs_as_root_against_its_will(spec);
        let variables = refused.map_or_else(|| environment::of_container(spec, &self.pod, known, turn), Err);
        let had = variables.and_then(|variables| Ok((self.mounts(spec, &variables, looks, turn)?, variables)));
        let (mounts, variables) = match had {
            Ok(had) => had,
            Err(message) => {
                turn.event(&self.pod, true, "Failed", format!("Error: {message}"), &self.causes);
                return self.block(index, "CreateContainerConfigError", message, RETRY, turn);
            }
        };
        config.command.iter_mut().chain(&mut config.args).for_each(|word| *word = variables.expand(word));
        config.mounts = mounts;
        config.environment = variables.into_pairs();
        let probes = super::probes::Probes::new(spec);
        let (handle, sequence) = turn.runtime.create(config, self.causes.clone(), turn.world);
        let slot = &mut self.slots[index];
        slot.probes = probes;
        slot.step = Step::Starting;
        slot.restarts = attempt;
        if let Some(forgotten) = slot.previous.take() {
            turn.runtime.remove(forgotten);
        }
        slot.previous = slot.current.replace(handle);
        if looks {
            self.furnish(handle, turn);
        }
        let causes = Causes::from(sequence);
        turn.event(&self.pod, false, "Created", "Container created".into(), &causes);
        turn.runtime.start(handle, causes, turn.world);
    }

    pub(super) fn slot_of(&self, handle: Handle) -> Option<usize> {
        self.slots.iter().position(|slot| slot.current == Some(handle))
    }

    pub fn started(&mut self, handle: Handle, sequence: Sequence, turn: &mut Turn<'_>) {
        let Some(index) = self.slot_of(handle) else { return };
        self.causes = sequence.into();
        turn.event(&self.pod, false, "Started", "Container started".into(), &sequence.into());
        if self.slots[index].step != Step::Starting || !self.post_start(index, handle, turn) {
            self.runs(index, handle, sequence, turn);
        }
    }

    /// A container counts as running.
    pub(super) fn runs(&mut self, index: usize, handle: Handle, sequence: Sequence, turn: &mut Turn<'_>) {
        if self.slots[index].step == Step::Starting {
            self.slots[index].step = Step::Running;
        }
        self.begin_probes(index, handle, turn);
        self.play_exit(index, turn);
        self.status_changed(sequence, turn);
        self.sync(turn);
    }

    pub fn exited(&mut self, handle: Handle, sequence: Sequence, turn: &mut Turn<'_>) {
        let Some(index) = self.slot_of(handle) else { return };
        self.slots[index].step = Step::Exited;
        self.causes.add(sequence);
        self.wait_after_hook(index, turn);
        if self.stage == Stage::Running {
            self.causes = sequence.into();
            self.sync(turn);
        }
        if self.stage == Stage::Stopping {
            self.stop_sidecars(turn);
            self.check_stopped(turn);
        }
        self.status_changed(sequence, turn);
    }

    /// Containers whose image was changed in the spec are ended, to be started with the new one.
    pub(super) fn restart_changed(&mut self, turn: &mut Turn<'_>) {
        for index in 0..self.slots.len() {
            let Some(image) = self.slots[index].spec(self.spec()).and_then(|spec| spec.image.clone()) else { continue };
            if *image == *self.slots[index].image {
                continue;
            }
            let slot = &mut self.slots[index];
            slot.image = image.into();
            slot.pulls = Default::default();
            match (&slot.step, slot.current) {
                (Step::Running, Some(handle)) => {
                    let message = format!("Container {} definition changed, will be restarted", slot.name);
                    self.kill(index, handle, message, turn);
                }
                (Step::Blocked { .. } | Step::Pulling, _) if self.stage == Stage::Running => {
                    self.slots[index].step = Step::Idle;
                    self.advance(index, turn);
                }
                _ => {}
            }
        }
    }
}

/// <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-restart-rules>
fn applies(rule: &ContainerRestartRule, code: i32) -> bool {
    rule.exit_codes.as_ref().is_some_and(|exit_codes| {
        let listed = exit_codes.values.iter().flatten().any(|value| *value == code);
        if exit_codes.operator == "NotIn" { !listed } else { listed }
    })
}

/// As Go prints a duration, cut to milliseconds: `1.2s`, `350ms`.
fn short(time: Duration) -> String {
    let ms = time.as_millis();
    if ms < 1000 {
        return format!("{ms}ms");
    }
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}
