//! The container runtime of a machine: sandboxes, images, containers, and the programs in them. It knows no API objects.
//! <https://kubernetes.io/docs/concepts/architecture/cri/>

mod agnhost;
pub mod container;
pub mod files;
pub mod host;
pub mod http;
mod image_table;
pub mod images;
mod pressure;
pub mod programs;
mod reviews;
pub mod shell;
pub mod tar;
mod udp;
pub mod usage;
pub mod volumes;

use std::sync::Arc;
use std::time::Duration;

use crate::api::{Key, Name};
use crate::clock::{Class, Time};
use crate::network::addresses;
use crate::network::question::Answer;
use crate::trace::{Actor, Causes, ContainerPhase, Sequence, What};
use crate::world::{Event, World};
use container::{Config, Container, Handle, Identity, Sandbox, State};
use files::Node;
use images::Image;
use programs::{OnTerm, Process, Program, Turn};
use shell::Surroundings;
use shell::exec::{EXEC_MAX, Exec, Ran, Running};
use shell::input::{Input, Output, Stream};
use volumes::{Mount, VolumeId, Volumes};

/// What comes due in a runtime, with the boot of the machine that asked for it.
#[derive(Clone, Debug)]
pub struct Wake {
    boot: u64,
    task: Task,
}

#[derive(Clone, Debug)]
enum Task {
    SandboxReady(Name, Causes),
    PullDone(Name),
    Started(Handle, Causes),
    /// A program has slept enough.
    Resume(Handle),
    /// A program ends by itself.
    Exit(Handle, i32, Causes),
    /// The grace period is over.
    Kill(Handle, Causes),
    /// A program takes more memory than it may.
    Exhausted(Handle),
}

/// What a runtime tells whoever uses it. Pods are named by their uid, `sequence` is the entry of the trace.
#[derive(Clone, Debug)]
pub enum RuntimeEvent {
    SandboxReady { pod_uid: Name, sequence: Sequence },
    PullDone { identity: Identity, outcome: Result<Pulled, Name>, sequence: Sequence },
    Started { pod_uid: Name, container: Handle, sequence: Sequence },
    Exited { pod_uid: Name, container: Handle, sequence: Sequence },
}

/// An image that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Pulled {
    pub took: Duration,
    pub waited: Duration,
    pub size_bytes: u64,
}

#[derive(Clone, Debug)]
struct Pull {
    since: Time,
    waiting: Vec<(Identity, Time, Causes)>,
}

#[derive(Clone, Debug)]
pub struct Runtime {
    pub machine: Name,
    /// Who gives the orders, as the trace names it.
    client: Actor,
    /// The runtime itself, as the trace names it.
    actor: Actor,
    boot: u64,
    sandboxes: imbl::OrdMap<Name, Arc<Sandbox>>,
    containers: imbl::OrdMap<Handle, Arc<Container>>,
    images: imbl::OrdMap<Name, Image>,
    pulls: imbl::OrdMap<Name, Pull>,
    volumes: Volumes,
    /// What processes beside the containers take.
    load: pressure::Load,
    next_handle: Handle,
    last_host_number: u8,
}

impl Runtime {
    /// The runtime of a node, which takes orders from its kubelet.
    pub fn new(machine: Name) -> Runtime {
        let (client, actor) = (format!("kubelet/{machine}").into(), format!("containerd/{machine}").into());
        Runtime::of(machine, client, actor)
    }

    pub(crate) fn of(machine: Name, client: Actor, actor: Actor) -> Runtime {
        Runtime {
            machine,
            client,
            actor,
            boot: 0,
            sandboxes: imbl::OrdMap::new(),
            containers: imbl::OrdMap::new(),
            images: imbl::OrdMap::new(),
            pulls: imbl::OrdMap::new(),
            volumes: Volumes::unit(VolumeId::disk(), volumes::new_disk()),
            load: pressure::Load::default(),
            next_handle: 1,
            last_host_number: 1,
        }
    }

    /// Everything on the machine ends at once; images stay on its disk.
    pub fn power_off(&mut self) {
        self.boot += 1;
        self.pulls = imbl::OrdMap::new();
        self.sandboxes = imbl::OrdMap::new();
        let running: Vec<Handle> = self.containers().filter(|(_, c)| c.exit_code().is_none()).map(|(h, _)| h).collect();
        for handle in running {
            if let Some(container) = self.container_mut(handle) {
                container.finished_at = container.started_at;
                container.state = State::Exited { code: 255, reason: "Unknown" };
            }
        }
    }

    pub fn sandbox(&self, pod_uid: &Name) -> Option<&Sandbox> {
        self.sandboxes.get(pod_uid).map(|sandbox| &**sandbox)
    }

    pub fn sandboxes(&self) -> impl Iterator<Item = &Sandbox> {
        self.sandboxes.values().map(|sandbox| &**sandbox)
    }

    pub fn container(&self, handle: Handle) -> Option<&Container> {
        self.containers.get(&handle).map(|container| &**container)
    }

    /// All containers that the machine knows, oldest first.
    pub fn containers(&self) -> impl DoubleEndedIterator<Item = (Handle, &Container)> {
        self.containers.iter().map(|(handle, container)| (*handle, &**container))
    }

    /// The newest container of a pod's container name; an empty name means any.
    pub fn find(&self, pod: &Key, container: &str) -> Option<(Handle, &Container)> {
        let named = |c: &Container| container.is_empty() || *c.identity.name == *container;
        self.containers().rev().find(|(_, c)| c.identity.pod == *pod && named(c))
    }

    pub fn images(&self) -> impl Iterator<Item = (&Name, &Image)> {
        self.images.iter()
    }

    pub fn has_image(&self, image: &Name) -> bool {
        self.images.contains_key(image)
    }

    pub(super) fn container_mut(&mut self, handle: Handle) -> Option<&mut Container> {
        self.containers.get_mut(&handle).map(Arc::make_mut)
    }

    fn after(&self, delay: Duration, class: Class, task: Task, world: &mut World) {
        let event = Event::Runtime(self.machine.clone(), Wake { boot: self.boot, task });
        world.after(delay, class, event);
    }

    fn record(
        &self,
        actor: &Actor,
        causes: Causes,
        of: &Identity,
        phase: ContainerPhase,
        world: &mut World,
    ) -> Sequence {
        world.record(actor, causes, What::Container(Box::new(of.entry(&self.machine, phase))))
    }

    /// Makes the surroundings of a pod; [`RuntimeEvent::SandboxReady`] tells when they are there.
    pub fn run_sandbox(&mut self, pod: Key, pod_uid: Name, host_network: bool, causes: Causes, world: &mut World) {
        let host_number = if host_network { 0 } else { self.free_host_number() };
        let ip = match host_number {
            0 => addresses::machine(&self.machine),
            number => addresses::pod(&self.machine, number),
        };
        let sandbox = Sandbox {
            id: container_id(world),
            pod,
            pod_uid: pod_uid.clone(),
            ip,
            host_number,
            ready: false,
            created_at: world.now,
        };
        self.sandboxes.insert(pod_uid.clone(), Arc::new(sandbox));
        let delay = world.random.between(world.settings.sandbox.0, world.settings.sandbox.1);
        self.after(delay, Class::Work, Task::SandboxReady(pod_uid, causes), world);
    }

    /// The next address that no sandbox has, as the host-local plugin hands them out.
    fn free_host_number(&mut self) -> u8 {
        let next = |number: u8| if number >= 254 { 2 } else { number + 1 };
        let mut number = next(self.last_host_number);
        for _ in 0..252 {
            if !self.sandboxes.values().any(|sandbox| sandbox.host_number == number) {
                break;
            }
            number = next(number);
        }
        self.last_host_number = number;
        number
    }

    /// Takes a pod's sandbox away with all its containers, which must have ended.
    pub fn remove_sandbox(&mut self, pod_uid: &Name, causes: Causes, world: &mut World) -> Option<Sequence> {
        let sandbox = self.sandboxes.remove(pod_uid)?;
        let gone: Vec<Handle> =
            self.containers().filter(|(_, c)| c.identity.pod_uid == *pod_uid).map(|(handle, _)| handle).collect();
        for handle in gone {
            self.containers.remove(&handle);
        }
        self.remove_volumes(pod_uid);
        let of = sandbox_identity(&sandbox);
        Some(self.record(&self.client, causes, &of, ContainerPhase::SandboxRemoved, world))
    }

    /// Fetches an image; [`RuntimeEvent::PullDone`] tells how that went. Who asks for an image that is on its way
    /// already waits for the same transfer.
    pub fn pull(&mut self, identity: &Identity, causes: Causes, world: &mut World) -> Sequence {
        let image = images::reference(&identity.image);
        let sequence = self.record(&self.client, causes, identity, ContainerPhase::Pulling, world);
        let request = (identity.clone(), world.now, Causes::from(sequence));
        if let Some(pull) = self.pulls.get_mut(&image) {
            pull.waiting.push(request);
            return sequence;
        }
        let whole = world.random.between(world.settings.image_pull.0, world.settings.image_pull.1);
        // Only the manifest is fetched of an image that is here, or is nowhere.
        let short = self.images.contains_key(&image) || world.registry.lookup(&image).is_err();
        let takes = world.registry.declared(&image).and_then(|declared| declared.pull_takes);
        let delay = if short { whole / 4 } else { takes.unwrap_or(whole) };
        self.pulls.insert(image.clone(), Pull { since: world.now, waiting: vec![request] });
        self.after(delay, Class::Work, Task::PullDone(image), world);
        sequence
    }

    /// Makes a container from an image that is there.
    pub fn create(&mut self, config: Config, causes: Causes, world: &mut World) -> (Handle, Sequence) {
        let handle = self.next_handle;
        self.next_handle += 1;
        let image = self.images.get(&images::reference(&config.identity.image));
        let image_id = image.map_or_else(Name::default, |image| image.id.clone());
        let program = self.program(&config);
        let sequence = self.record(&self.client, causes, &config.identity, ContainerPhase::Created, world);
        let mut container = Container::new(container_id(world), image_id, config, &program, world.now);
        self.fill_volumes(&mut container);
        self.containers.insert(handle, Arc::new(container));
        (handle, sequence)
    }

    /// The program in the image of such a container.
    fn program(&self, config: &Config) -> Arc<Program> {
        let image = &config.identity.image;
        let known = self.images.get(&images::reference(image)).map(|image| image.program.clone());
        known.unwrap_or_else(|| image_table::of_image(images::short_name(image)))
    }

    /// Its program would be one of the shell's: it may look at any file and any variable.
    pub fn reads_files(&self, config: &Config) -> bool {
        Process::new(config, &self.program(config)).is_script()
    }

    /// Starts a container; [`RuntimeEvent::Started`] tells when its program runs.
    pub fn start(&mut self, handle: Handle, causes: Causes, world: &mut World) {
        let delay = world.random.between(world.settings.container_start.0, world.settings.container_start.1);
        self.after(delay, Class::Work, Task::Started(handle, causes), world);
    }

    /// Sends SIGTERM, and SIGKILL to what still runs when the grace period is over.
    pub fn stop(&mut self, handle: Handle, grace: Duration, causes: Causes, world: &mut World) -> Option<Sequence> {
        let container = self.container_mut(handle)?;
        let (identity, state) = (container.identity.clone(), container.state);
        if matches!(state, State::Exited { .. }) {
            return None;
        }
        let answer = container.process.on_term();
        let sequence = self.record(&self.client, causes, &identity, ContainerPhase::Signalled("SIGTERM"), world);
        let causes = Causes::from(sequence);
        match answer {
            // It has not begun: it never will.
            _ if state == State::Created => self.after(Duration::ZERO, Class::Work, Task::Kill(handle, causes), world),
            OnTerm::Exits { code, after } if after < grace => {
                self.after(after, Class::Work, Task::Exit(handle, code, causes), world);
            }
            OnTerm::Handles => {
                self.after(grace, Class::Work, Task::Kill(handle, causes.clone()), world);
                self.run(handle, causes, world);
            }
            _ => self.after(grace, Class::Work, Task::Kill(handle, causes), world),
        }
        Some(sequence)
    }

    /// A process is killed from outside, or for want of memory.
    pub fn kill(&mut self, handle: Handle, reason: &'static str, world: &mut World) -> Vec<RuntimeEvent> {
        let Some(identity) = self.container(handle).filter(|c| c.is_running()).map(|c| c.identity.clone()) else {
            return Vec::new();
        };
        let actor = self.actor.clone();
        let sequence = self.record(&actor, Causes::None, &identity, ContainerPhase::Signalled("SIGKILL"), world);
        self.end(handle, 137, reason, sequence.into(), world)
    }

    /// The program of a container ends by itself, with this code.
    pub fn exit(&mut self, handle: Handle, code: i32, causes: Causes, world: &mut World) {
        self.after(programs::EXIT_LATENCY, Class::Work, Task::Exit(handle, code, causes), world);
    }

    /// Puts a container that has ended back to where it was before its start. False if it has not ended.
    pub(super) fn reset(&mut self, handle: Handle) -> bool {
        let Some(container) = self.container_mut(handle).filter(|container| container.exit_code().is_some()) else {
            return false;
        };
        container.reset();
        true
    }

    /// Forgets a container that has ended.
    pub fn remove(&mut self, handle: Handle) {
        self.containers.remove(&handle);
    }

    /// Begins a command in a running container that has such a program.
    pub fn begin(&self, handle: Handle, command: &[String], input: Input) -> Option<Running> {
        let container = self.container(handle).filter(|container| container.is_running())?;
        let mut script =
            shell::Script::new(command, &container.environment, container.home(), &container.working_folder);
        script.input = input;
        Some(Running { script, printed: Output::default() })
    }

    /// Lets such a command go on; nothing if its container runs no more.
    pub fn go_on(&mut self, handle: Handle, running: &mut Running, now: Time) -> Option<Turn> {
        let container = self.container_mut(handle).filter(|container| container.is_running())?;
        let before = container.files.clone();
        let mut printed = Output::default();
        let turn = running.script.run(&mut Surroundings::new(now, &mut container.files), &mut printed);
        let (log, shown) = printed.0.into_iter().partition(|(stream, _)| *stream == Stream::Log);
        container.log(now, Output(log));
        running.printed.0.extend::<Vec<_>>(shown);
        self.share_volumes(handle, &before);
        Some(turn)
    }

    /// Gives a program the answer that it waits for, and lets it go on when that has arrived.
    pub fn answer(&mut self, handle: Handle, answer: Answer, class: Class, world: &mut World) {
        let at = world.now + answer.took();
        let Some(container) = self.container_mut(handle).filter(|container| container.is_running()) else { return };
        let took = answer.took();
        container.process.answer(answer);
        container.wakes_at = Some(at);
        self.after(took, class, Task::Resume(handle), world);
    }

    /// Runs a command in a running container, to its end; the clock does not move.
    pub fn exec(&mut self, handle: Handle, command: &[String], now: Time) -> Option<Ran> {
        let container = self.container(handle).filter(|container| container.is_running())?;
        if !container.has_program(command) {
            // A program that is not known here is taken to ask whether the service is well.
            return Some(Ran::Ended(Exec { code: i32::from(!container.healthy), ..Exec::default() }));
        }
        let before = self.container(handle).cloned()?;
        let mut running = self.begin(handle, command, Input::closed(""))?;
        let mut took = Duration::ZERO;
        let code = loop {
            match self.go_on(handle, &mut running, now + took)? {
                Turn::Ends(code) => break code,
                Turn::Sleeps(time, _) if took < EXEC_MAX => took += time.max(Duration::from_millis(1)),
                Turn::Asks(..) => {
                    // It begins anew where it can be answered.
                    let now = self.container(handle)?.files.clone();
                    if let Some(container) = self.container_mut(handle) {
                        container.restore(&before);
                    }
                    self.share_volumes(handle, &now);
                    return Some(Ran::Asks);
                }
                Turn::Sleeps(..) | Turn::Serves | Turn::Becomes(_) => {
                    took = EXEC_MAX;
                    break 137;
                }
            }
        };
        Some(Ran::Ended(Exec { code, output: running.printed.take_text(), took, ..Exec::default() }))
    }

    /// Lets somebody work among the files of a container that runs, beginning in its working folder.
    pub fn with_files<T>(&mut self, handle: Handle, work: impl FnOnce(&str, &mut files::Files) -> T) -> Option<T> {
        let container = self.container_mut(handle).filter(|container| container.is_running())?;
        let before = container.files.clone();
        let done = work(&container.working_folder, &mut container.files);
        self.share_volumes(handle, &before);
        Some(done)
    }

    /// Gives a container the files that every one is given, variables before those that it has, one more mount.
    pub fn furnish(
        &mut self,
        handle: Handle,
        files: Vec<(String, Node)>,
        variables: Vec<(String, String)>,
        mount: Option<Mount>,
    ) {
        let Some(mut container) = self.container(handle).cloned() else { return };
        container.is_furnished = true;
        for (path, node) in files {
            if !container.files.exists(&path) {
                container.files.set(path, node);
            }
        }
        if !variables.is_empty() {
            container.environment.splice(0..0, variables);
        }
        if let Some(mount) = mount {
            container.mounts = container.mounts.iter().cloned().chain([mount]).collect();
            self.fill_volumes(&mut container);
        }
        self.containers.insert(handle, Arc::new(container));
    }

    pub fn set_healthy(&mut self, handle: Handle, healthy: bool) -> bool {
        self.container_mut(handle).map(|container| container.healthy = healthy).is_some()
    }

    pub fn wake(&mut self, wake: Wake, world: &mut World) -> Vec<RuntimeEvent> {
        if wake.boot != self.boot {
            return Vec::new();
        }
        match wake.task {
            Task::SandboxReady(pod_uid, causes) => self.sandbox_ready(pod_uid, causes, world),
            Task::PullDone(image) => self.pull_done(&image, world),
            Task::Started(handle, causes) => self.started(handle, causes, world),
            Task::Resume(handle) => {
                // It may have been given another turn since, and sleep for longer or be waiting for something else.
                let is_due = |container: &Container| container.wakes_at.is_some_and(|at| at <= world.now);
                if self.container(handle).is_some_and(is_due) {
                    self.run(handle, Causes::None, world);
                }
                Vec::new()
            }
            Task::Exit(handle, code, causes) => {
                let reason = if code == 0 { "Completed" } else { "Error" };
                self.end(handle, code, reason, causes, world)
            }
            Task::Exhausted(handle) => self.kill(handle, "OOMKilled", world),
            Task::Kill(handle, causes) => {
                let Some(container) = self.container(handle).filter(|c| c.exit_code().is_none()) else {
                    return Vec::new();
                };
                let identity = container.identity.clone();
                let phase = ContainerPhase::Signalled("SIGKILL");
                let sequence = self.record(&self.client, causes, &identity, phase, world);
                self.end(handle, 137, "Error", sequence.into(), world)
            }
        }
    }

    fn sandbox_ready(&mut self, pod_uid: Name, causes: Causes, world: &mut World) -> Vec<RuntimeEvent> {
        let Some(sandbox) = self.sandboxes.get_mut(&pod_uid).map(Arc::make_mut) else { return Vec::new() };
        sandbox.ready = true;
        let of = sandbox_identity(sandbox);
        let sequence = self.record(&self.client, causes, &of, ContainerPhase::SandboxCreated, world);
        vec![RuntimeEvent::SandboxReady { pod_uid, sequence }]
    }

    fn pull_done(&mut self, image: &Name, world: &mut World) -> Vec<RuntimeEvent> {
        let Some(pull) = self.pulls.remove(image) else { return Vec::new() };
        let found = world.registry.lookup(image);
        if let Ok(found) = &found {
            self.images.insert(image.clone(), found.clone());
        }
        let mut events = Vec::with_capacity(pull.waiting.len());
        for (identity, asked_at, causes) in pull.waiting {
            let outcome = match &found {
                Ok(found) => Ok(Pulled {
                    took: world.now.since(pull.since),
                    waited: world.now.since(asked_at),
                    size_bytes: found.size_bytes,
                }),
                Err(message) => Err(message.clone()),
            };
            let phase = match &outcome {
                Ok(_) => ContainerPhase::Pulled,
                Err(message) => ContainerPhase::PullFailed { message: message.clone() },
            };
            let sequence = self.record(&self.client, causes, &identity, phase, world);
            events.push(RuntimeEvent::PullDone { identity, outcome, sequence });
        }
        events
    }

    fn started(&mut self, handle: Handle, causes: Causes, world: &mut World) -> Vec<RuntimeEvent> {
        let Some(container) = self.container_mut(handle).filter(|c| c.state == State::Created) else {
            return Vec::new();
        };
        container.state = State::Running;
        container.started_at = world.now;
        let identity = container.identity.clone();
        let sequence = self.record(&self.client, causes, &identity, ContainerPhase::Started, world);
        let events = vec![RuntimeEvent::Started { pod_uid: identity.pod_uid, container: handle, sequence }];
        self.run(handle, sequence.into(), world);
        self.open_to_reviews(handle, world);
        events
    }

    /// Lets a program go on until it waits or ends.
    fn run(&mut self, handle: Handle, causes: Causes, world: &mut World) {
        let now = world.now;
        let Some(container) = self.container_mut(handle).filter(|c| c.is_running()) else { return };
        let mut process = std::mem::take(&mut container.process);
        let mut files = std::mem::take(&mut container.files);
        let before = files.clone();
        let mut printed = Output::default();
        let turn = process.run(now, &mut files, &mut printed);
        container.log(now, printed);
        (container.process, container.files) = (process, files);
        container.wakes_at = match &turn {
            Turn::Sleeps(time, _) => Some(now + *time),
            _ => None,
        };
        container.meter(now);
        self.share_volumes(handle, &before);
        self.check_memory(handle, world);
        match turn {
            Turn::Serves | Turn::Becomes(_) => {}
            Turn::Sleeps(time, class) => self.after(time, class, Task::Resume(handle), world),
            Turn::Ends(code) => self.exit(handle, code, causes, world),
            Turn::Asks(question, class) => {
                let machine = self.machine.clone();
                world.after(Duration::ZERO, class, Event::Ask(machine, handle, question, class));
            }
        }
    }

    fn end(
        &mut self,
        handle: Handle,
        code: i32,
        reason: &'static str,
        causes: Causes,
        world: &mut World,
    ) -> Vec<RuntimeEvent> {
        let now = world.now;
        self.close_to_reviews(handle, world);
        let Some(container) = self.container_mut(handle).filter(|c| c.exit_code().is_none()) else {
            return Vec::new();
        };
        if container.state == State::Created {
            container.started_at = now;
        }
        container.state = State::Exited { code, reason };
        container.finished_at = now;
        container.meter(now);
        let identity = container.identity.clone();
        let actor = self.actor.clone();
        let sequence = self.record(&actor, causes, &identity, ContainerPhase::Exited { code, reason }, world);
        vec![RuntimeEvent::Exited { pod_uid: identity.pod_uid, container: handle, sequence }]
    }
}

fn sandbox_identity(sandbox: &Sandbox) -> Identity {
    let (pod, pod_uid) = (sandbox.pod.clone(), sandbox.pod_uid.clone());
    Identity { pod, pod_uid, name: Name::from(""), image: Name::from("") }
}

/// 64 hexadecimal digits, drawn from the seed.
fn container_id(world: &mut World) -> Name {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0_u8; 64];
    for chunk in text.chunks_exact_mut(16) {
        let mut bits = world.random.draw();
        for digit in chunk {
            *digit = DIGITS[(bits & 15) as usize];
            bits >>= 4;
        }
    }
    std::str::from_utf8(&text).map(Name::from).unwrap_or_default()
}
