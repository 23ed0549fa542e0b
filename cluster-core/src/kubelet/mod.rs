//! kubelet: makes the containers of the pods that are bound to its node, and reports on them and on the node.
//! <https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/>
//!
//! The way of a pod: it comes from the API or from [`static_pods`] and passes [`admission`]. Its [`worker`] has [`volumes`]
//! mounted and makes a sandbox, then [`containers`] in order, each with its [`environment`] and its [`hooks`]; [`probes`] say
//! which are ready; [`status`] tells the apiserver. It can be [`resize`]d and may fall to [`eviction`]; [`termination`] ends
//! it. [`node`] speaks for the machine.

mod admission;
mod backoff;
pub mod configuration;
mod containers;
mod environment;
mod ephemeral;
mod eviction;
mod fields;
mod furnish;
mod hooks;
pub mod metrics;
mod node;
mod ordered;
mod payload;
mod probes;
mod resize;
mod script;
pub mod static_pods;
mod status;
mod termination;
mod volumes;
mod worker;

pub use ordered::{Order, Ordered};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::api::selector::FieldSelector;
use crate::api::{Key, Name};
use crate::clock::{Class, Time};
use crate::events::EventNote;
use crate::runtime::container::{Container, Handle};
use crate::runtime::{Runtime, RuntimeEvent};
use crate::trace::{Actor, Causes};
use crate::watch::{EventType, WatchEvent, Watcher};
use crate::world::{Event, Subscriber, World};
use configuration::Configuration;
use eviction::Pressures;
use fields::Capacity;
use probes::ProbeKind;
use worker::Worker;

/// What wakes a kubelet, beside its watches and its runtime; of an earlier run of the process, it comes to nothing.
#[derive(Clone, Debug)]
pub struct Wake {
    incarnation: u64,
    task: Task,
}

#[derive(Clone, Debug)]
enum Task {
    RenewLease,
    PostNodeStatus,
    /// Nobody answered when the pods were asked for.
    ListPods,
    /// A pod's worker looks again; pods are named by their uid.
    Sync(Name),
    /// Volumes that are made of API objects are compared with them.
    Resync(Name),
    SendStatus(Name),
    ResendStatus(Name),
    Probe(Name, usize, Handle, ProbeKind),
    /// The postStart hook of a container is over, with what went wrong.
    PostStartDone(Name, Handle, Option<Name>),
    /// The preStop hook of a container is over.
    PreStopDone(Name, Handle, Duration),
    /// A pod has run for as long as it may.
    Deadline(Name),
    /// Containers have the resources that they were granted.
    Resized(Name),
    /// The machine may be short of something.
    LookAtPressure,
    ReadManifests,
}

/// How long a kubelet waits before it asks an apiserver again that did not answer.
const RETRY: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct Kubelet {
    pub node: Name,
    actor: Actor,
    running: bool,
    incarnation: u64,
    workers: imbl::OrdMap<Name, Arc<Worker>>,
    registered: bool,
    /// What the node has for pods.
    machine: Arc<Capacity>,
    pressures: Pressures,
    /// Since when each threshold of its configuration is met.
    met_since: Vec<Option<Time>>,
    configuration: Arc<Configuration>,
    watches_pressure: bool,
    /// A pod waits for room to be resized.
    defers_resizes: bool,
    /// It only stands in for one, as kwok does: somebody else speaks for the node, pods run and go, and nothing is told
    /// of what happens on the way. <https://kwok.sigs.k8s.io/docs/user/kwok-manage-nodes-and-pods/>
    hollow: bool,
}

/// What a worker is handed when its turn comes.
struct Turn<'a> {
    node: &'a Name,
    actor: &'a Actor,
    incarnation: u64,
    hollow: bool,
    machine: &'a Capacity,
    runtime: &'a mut Runtime,
    world: &'a mut World,
}

impl Turn<'_> {
    fn after(&mut self, delay: Duration, class: Class, task: Task) {
        let wake = Wake { incarnation: self.incarnation, task };
        self.world.after(delay, class, Event::Kubelet(self.node.clone(), wake));
    }

    fn event(&mut self, pod: &Object, warning: bool, reason: &'static str, message: String, causes: &Causes) {
        if !self.hollow {
            let note = EventNote { warning, ..EventNote::normal(pod, reason, message) };
            self.world.event(self.actor, &note, causes);
        }
    }
}

impl Kubelet {
    pub fn new(node: Name) -> Kubelet {
        let actor = format!("kubelet/{node}").into();
        Kubelet {
            node,
            actor,
            running: false,
            incarnation: 0,
            workers: imbl::OrdMap::new(),
            registered: false,
            machine: Arc::new(Capacity::new(&node::resources())),
            pressures: Pressures::default(),
            met_since: Vec::new(),
            configuration: Arc::default(),
            watches_pressure: false,
            defers_resizes: false,
            hollow: false,
        }
    }

    /// For a Node that a client has created and looks after.
    pub fn hollow(node: Name) -> Kubelet {
        Kubelet { hollow: true, ..Kubelet::new(node) }
    }

    /// What it is started with the next time.
    pub fn configure(&mut self, configuration: Arc<Configuration>) {
        self.met_since.clear();
        self.configuration = configuration;
    }

    /// Registers the node, lists and watches its pods, takes over the containers that run already.
    pub fn start(&mut self, runtime: &mut Runtime, world: &mut World) {
        self.running = true;
        self.incarnation += 1;
        self.workers = imbl::OrdMap::new();
        self.watches_pressure = false;
        if self.hollow {
            return self.list_pods(runtime, world);
        }
        self.registered = self.register(world);
        let lease = world.settings.lease_renew;
        self.read_manifests(runtime, world);
        self.list_pods(runtime, world);
        let pressures = self.pressures;
        let mut turn = self.turn(runtime, world);
        node::renew_lease(pressures, &mut turn);
        turn.after(lease, Class::Background, Task::RenewLease);
        turn.after(node::STATUS_PERIOD, Class::Background, Task::PostNodeStatus);
        let has_own_thresholds = *self.configuration != Configuration::default();
        if self.pressures != Pressures::default() || runtime.is_filled() || has_own_thresholds {
            self.watch_pressure(runtime, world);
        }
    }

    fn register(&mut self, world: &mut World) -> bool {
        let Some(status) = node::register(&self.node, &self.actor, self.pressures, world) else { return false };
        self.machine = Arc::new(Capacity::new(&status.allocatable.unwrap_or_default()));
        true
    }

    /// The process ends; containers live on.
    pub fn stop(&mut self, world: &mut World) {
        self.running = false;
        self.incarnation += 1;
        world.unsubscribe(&Subscriber::Kubelet(self.node.clone()));
    }

    fn turn<'a>(&'a self, runtime: &'a mut Runtime, world: &'a mut World) -> Turn<'a> {
        let Kubelet { node, actor, incarnation, hollow, machine, .. } = self;
        Turn { node, actor, incarnation: *incarnation, hollow: *hollow, machine, runtime, world }
    }

    fn list_pods(&mut self, runtime: &mut Runtime, world: &mut World) {
        let fields = FieldSelector::parse(&format!("spec.nodeName={}", self.node)).unwrap_or_default();
        let mut request = Request::list::<Pod>(&self.actor, "");
        request.options.fields = fields.clone();
        let Ok(crate::api::request::Response::List(list)) = world.request(request) else {
            self.turn(runtime, world).after(RETRY, Class::Background, Task::ListPods);
            return;
        };
        let watcher = Watcher { fields, ..Watcher::new(KindRef::of::<Pod>(), list.revision) };
        world.subscribe(Subscriber::Kubelet(self.node.clone()), watcher);
        for pod in list.items {
            self.pod_changed(pod, Causes::None, true, runtime, world);
        }
        // Whatever else runs here belongs to pods that went while nobody looked.
        let orphans: Vec<(Key, Name)> = runtime
            .sandboxes()
            .filter(|sandbox| !self.workers.contains_key(&sandbox.pod_uid))
            .map(|sandbox| (sandbox.pod.clone(), sandbox.pod_uid.clone()))
            .collect();
        for (key, uid) in orphans {
            let worker = Worker::orphan(key, uid.clone(), runtime);
            self.workers.insert(uid.clone(), Arc::new(worker));
            self.with_worker(&uid, runtime, world, |worker, turn| worker.pod_gone(Causes::None, turn));
        }
    }

    /// Runs one worker's turn, and forgets the worker when it has nothing left to do.
    fn with_worker(
        &mut self,
        uid: &Name,
        runtime: &mut Runtime,
        world: &mut World,
        act: impl FnOnce(&mut Worker, &mut Turn<'_>),
    ) {
        let Kubelet { node, actor, incarnation, hollow, workers, machine, .. } = self;
        let Some(worker) = workers.get_mut(uid) else { return };
        let worker = Arc::make_mut(worker);
        let counted = worker.counts();
        act(worker, &mut Turn { node, actor, incarnation: *incarnation, hollow: *hollow, machine, runtime, world });
        let (counts, is_static) = (worker.counts(), worker.is_static());
        if worker.is_over() {
            workers.remove(uid);
            if is_static {
                self.turn(runtime, world).after(Duration::ZERO, Class::Work, Task::ReadManifests);
            }
        }
        if counted && !counts {
            self.retry_resizes(runtime, world);
        }
    }

    fn pod_changed(&mut self, pod: Object, causes: Causes, adopts: bool, runtime: &mut Runtime, world: &mut World) {
        let uid = Name::from(pod.uid());
        if let Some(mirrored) = static_pods::mirrored(&pod) {
            return self.mirror_changed(&mirrored, &pod, runtime, world);
        }
        if let Some(worker) = self.workers.get(&uid) {
            let before = (worker.pod.metadata().generation != pod.metadata().generation).then(|| worker.pod.clone());
            self.with_worker(&uid, runtime, world, |worker, turn| worker.pod_changed(pod, causes, turn));
            if let Some(before) = before {
                self.resize(&uid, &before, runtime, world);
            }
        } else {
            let mut worker = Worker::new(pod, uid.clone(), causes, adopts.then_some(&*runtime), world.now);
            if worker.is_new() && !self.hollow {
                if let Err(rejection) = self.admit(&worker, world) {
                    worker.reject(rejection);
                } else if worker.needs_watching() {
                    self.watch_pressure(runtime, world);
                }
            }
            self.workers.insert(uid.clone(), Arc::new(worker));
            self.with_worker(&uid, runtime, world, |worker, turn| worker.begin(turn));
        }
    }

    pub fn observe(&mut self, events: &[WatchEvent], runtime: &mut Runtime, world: &mut World) {
        if !self.running {
            return;
        }
        for event in events {
            let causes = Causes::from(event.change.sequence);
            match event.event_type {
                EventType::Added | EventType::Modified => {
                    self.pod_changed(event.object.clone(), causes, false, runtime, world);
                }
                EventType::Deleted => {
                    if let Some(mirrored) = static_pods::mirrored(&event.object) {
                        self.with_worker(&mirrored, runtime, world, |worker, turn| worker.status_changed(0, turn));
                        continue;
                    }
                    let uid = Name::from(event.object.uid());
                    self.with_worker(&uid, runtime, world, |worker, turn| worker.pod_gone(causes, turn));
                }
            }
        }
    }

    /// Gives a container whatever a program may look for that somebody is about to run in it.
    pub fn furnish(&mut self, handle: Handle, runtime: &mut Runtime, world: &mut World) {
        let Some(uid) = runtime.container(handle).map(|container| container.identity.pod_uid.clone()) else { return };
        self.with_worker(&uid, runtime, world, |worker, turn| {
            worker.furnish(handle, turn);
            worker.refresh_token(turn);
        });
    }

    pub fn wake(&mut self, wake: Wake, runtime: &mut Runtime, world: &mut World) {
        if !self.running || wake.incarnation != self.incarnation {
            return;
        }
        match wake.task {
            Task::RenewLease => {
                if !self.registered {
                    self.registered = self.register(world);
                }
                let period = world.settings.lease_renew;
                let pressures = self.pressures;
                let mut turn = self.turn(runtime, world);
                node::renew_lease(pressures, &mut turn);
                turn.after(period, Class::Background, Task::RenewLease);
            }
            Task::PostNodeStatus => {
                let pressures = self.pressures;
                let mut turn = self.turn(runtime, world);
                node::post_status(pressures, &mut turn);
                turn.after(node::STATUS_PERIOD, Class::Background, Task::PostNodeStatus);
            }
            Task::ListPods => self.list_pods(runtime, world),
            Task::ReadManifests => self.read_manifests(runtime, world),
            Task::LookAtPressure => self.look_at_pressure(runtime, world),
            Task::Resized(uid) => self.with_worker(&uid, runtime, world, |worker, turn| worker.resized(turn)),
            Task::Sync(uid) => self.with_worker(&uid, runtime, world, |worker, turn| worker.sync(turn)),
            Task::Resync(uid) => self.with_worker(&uid, runtime, world, |worker, turn| worker.resync(turn)),
            Task::SendStatus(uid) => self.with_worker(&uid, runtime, world, |worker, turn| worker.send_status(turn)),
            Task::ResendStatus(uid) => {
                self.with_worker(&uid, runtime, world, |worker, turn| worker.resend_status(turn))
            }
            Task::Probe(uid, index, handle, kind) => {
                self.with_worker(&uid, runtime, world, |worker, turn| worker.probe(index, handle, kind, turn));
            }
            Task::PostStartDone(uid, handle, failure) => self.with_worker(&uid, runtime, world, |worker, turn| {
                worker.post_start_done(handle, failure.as_deref(), turn);
            }),
            Task::PreStopDone(uid, handle, grace) => {
                self.with_worker(&uid, runtime, world, |worker, turn| worker.signal(handle, grace, turn));
            }
            Task::Deadline(uid) => {
                self.with_worker(&uid, runtime, world, |worker, turn| worker.deadline_passed(turn));
            }
        }
    }

    /// Something happened in the runtime.
    pub fn on_runtime(&mut self, events: &[RuntimeEvent], runtime: &mut Runtime, world: &mut World) {
        if !self.running {
            return;
        }
        for event in events {
            match event {
                RuntimeEvent::SandboxReady { pod_uid, sequence } => {
                    self.with_worker(pod_uid, runtime, world, |worker, turn| worker.sandbox_ready(*sequence, turn));
                }
                RuntimeEvent::PullDone { identity, outcome, sequence } => {
                    self.with_worker(&identity.pod_uid, runtime, world, |worker, turn| {
                        worker.pull_done(&identity.name, outcome, *sequence, turn);
                    });
                }
                RuntimeEvent::Started { pod_uid, container, sequence } => {
                    self.with_worker(pod_uid, runtime, world, |worker, turn| {
                        worker.started(*container, *sequence, turn);
                    });
                    if runtime.container(*container).is_some_and(Container::takes_much_memory) {
                        self.watch_pressure(runtime, world);
                    }
                }
                RuntimeEvent::Exited { pod_uid, container, sequence } => {
                    self.with_worker(pod_uid, runtime, world, |worker, turn| {
                        worker.exited(*container, *sequence, turn);
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
