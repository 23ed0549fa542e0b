//! The wiring and the one step loop. This is the only file that knows every part, and it decides nothing for them.

mod bootstrap;
mod configuration;
mod connections;
pub mod containers;
pub mod exec;
mod faults;
mod metrics_server;
mod mirror;
mod proxy;
mod traffic;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::{Request, Response};
use crate::api::status::Status;
use crate::api::user::User;
use crate::api::{Key, Name};
use crate::apiserver::access::tokens::{self, SharedSigner};
use crate::apiserver::access::{self, Attributes};
use crate::apiserver::watching::OpenWatch;
use crate::apiserver::{ApiServer, record_unchanged};
use crate::clock::{Class, Time};
use crate::controllers;
use crate::controllers::controller::Controller;
use crate::controllers::runner::Runner;
use crate::kubelet::{self, Kubelet};
use crate::network::policy_agent::PolicyAgent;
use crate::network::proxy::Proxy;
use crate::registry;
use crate::runtime::Runtime;
use crate::runtime::host::{self, Host};
use crate::scheduler::Scheduler;
use crate::trace::{Actor, Causes, Sequence, Trace, What};
use crate::watch::{EventType, WatchEvent, Watcher};
use crate::world::{Event, Settings, Subscriber, World};

/// etcd history older than this is compacted, as kube-apiserver asks for (`--etcd-compaction-interval`).
const COMPACTION: Duration = Duration::from_secs(300);
/// A run of the step loop asks so often whether to go on: a step of a large cluster can take milliseconds.
const STEPS_UNASKED: usize = 16;

/// How a cluster is made.
#[derive(Clone, Debug)]
pub struct Config {
    pub seed: u64,
    pub nodes: usize,
    pub settings: Settings,
    /// The moment at which it begins: a live one begins now.
    pub start: Time,
    /// Components that are not started: `kube-scheduler`, `kube-controller-manager`, `kubelet`, `kube-proxy`,
    /// `kube-network-policies`.
    pub without: Vec<String>,
    /// A Node that a client creates gets a machine whose kubelet runs the pods that are bound to it, and leaves
    /// everything that is said about the node to the client.
    pub hollow_nodes: bool,
    /// It serves the kind Image, whose objects say what containers do ([`crate::registry`]).
    pub images: bool,
    /// Signs the tokens of ServiceAccounts; without it none are issued.
    pub signer: Option<SharedSigner>,
    /// Signs certificates; without it none are issued.
    pub authority: Option<SharedSigner>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            seed: 1,
            nodes: 3,
            settings: Settings::default(),
            start: Time::ZERO,
            without: Vec::new(),
            hollow_nodes: false,
            images: false,
            signer: None,
            authority: None,
        }
    }
}

/// A machine of the cluster, with what runs on it.
#[derive(Clone)]
pub struct Machine {
    pub powered: bool,
    pub kubelet: Kubelet,
    pub runtime: Runtime,
    pub proxy: Proxy,
    pub policies: PolicyAgent,
}

impl Machine {
    fn new(name: &Name, kubelet: Kubelet) -> Machine {
        Machine {
            powered: true,
            kubelet,
            runtime: Runtime::new(name.clone()),
            proxy: Proxy::new(name.clone()),
            policies: PolicyAgent::new(name.clone()),
        }
    }
}

/// A whole cluster. Cloning it makes a fork in microseconds: everything large is shared.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) world: World,
    manager: Runner,
    clients: imbl::OrdMap<Name, Runner>,
    scheduler: Scheduler,
    machines: imbl::OrdMap<Name, Machine>,
    /// What kubelets are started with.
    kubelet_configuration: Arc<kubelet::configuration::Configuration>,
    host: Host,
    metrics: metrics_server::MetricsServer,
    traffic: traffic::Traffic,
}

/// Why a run of the step loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Nothing but periodic work is left.
    Settled,
    /// The time that was given has passed.
    TimeUp,
    /// The caller asked for it.
    Interrupted,
}

impl Cluster {
    pub fn new(config: Config) -> Cluster {
        let mut world = World::new(config.seed, config.settings);
        world.advance_to(config.start);
        let runs = |component: &str| !config.without.iter().any(|without| without == component);
        world.apiserver.signer = config.signer;
        world.apiserver.authority = config.authority;
        bootstrap::fill(&mut world, config.seed);
        // What every cluster has from its first second on is older than any watch cache.
        let revision = world.apiserver.store.revision();
        world.apiserver.store.compact(revision);
        let mut cluster = Cluster {
            manager: Runner::new(Subscriber::Manager, controllers::all()),
            clients: imbl::OrdMap::new(),
            scheduler: Scheduler::default(),
            machines: imbl::OrdMap::new(),
            kubelet_configuration: Arc::default(),
            host: Host::default(),
            metrics: Default::default(),
            traffic: Default::default(),
            world,
        };
        if runs("kube-controller-manager") {
            cluster.manager.start(&mut cluster.world);
        } else {
            cluster.world.faults.set_stopped("kube-controller-manager", true);
        }
        if runs("kube-scheduler") {
            cluster.scheduler.start(&mut cluster.world);
        } else {
            cluster.world.faults.set_stopped("kube-scheduler", true);
        }
        for number in 1..=config.nodes {
            cluster.add_machine(&format!("node-{number}"), &runs);
        }
        if config.hollow_nodes && runs("kubelet") {
            let nodes = Watcher::new(Node::kind(), cluster.revision());
            cluster.world.subscribe(Subscriber::Machines, nodes);
        }
        if config.images {
            cluster.world.apiserver.serve_own(&registry::definition());
            registry::follow(&mut cluster.world);
        }
        cluster.world.after(COMPACTION, Class::Background, Event::Compact);
        cluster
    }

    fn add_machine(&mut self, name: &str, runs: &dyn Fn(&str) -> bool) {
        let name = Name::from(name);
        let mut machine = Machine::new(&name, Kubelet::new(name.clone()));
        machine.kubelet.configure(self.kubelet_configuration.clone());
        if runs("kubelet") {
            machine.kubelet.start(&mut machine.runtime, &mut self.world);
        } else {
            self.world.faults.set_stopped(&format!("kubelet/{name}"), true);
        }
        if runs("kube-proxy") {
            machine.proxy.start(&mut self.world);
        } else {
            self.world.faults.set_stopped(&format!("kube-proxy/{name}"), true);
        }
        if runs("kube-network-policies") {
            machine.policies.start(&mut self.world);
        } else {
            self.world.faults.set_stopped(&format!("kube-network-policies/{name}"), true);
        }
        self.machines.insert(name, machine);
    }

    /// Brings a machine for a Node that has none.
    fn add_hollow_machine(&mut self, node: &Name) {
        if self.machines.contains_key(node) {
            return;
        }
        let mut machine = Machine::new(node, Kubelet::hollow(node.clone()));
        machine.kubelet.start(&mut machine.runtime, &mut self.world);
        for component in ["kube-proxy", "kube-network-policies"] {
            self.world.faults.set_stopped(&format!("{component}/{node}"), true);
        }
        self.machines.insert(node.clone(), machine);
    }

    /// Adds a machine whose kubelet registers itself.
    pub fn add_node(&mut self, name: &str) {
        self.add_machine(name, &|_| true);
    }

    pub fn now(&self) -> Time {
        self.world.now
    }

    /// The moment at which something happens next.
    pub fn next_due(&self) -> Option<Time> {
        self.world.timeline().next_at()
    }

    /// The moment of the next thing that is not periodic; none if the cluster has settled.
    pub fn next_work_due(&self) -> Option<Time> {
        self.world.timeline().next_work_at()
    }

    /// Connects the cluster to the programs that its webhooks name.
    pub fn set_webhooks(&mut self, webhooks: Arc<dyn crate::apiserver::callouts::Webhooks>) {
        self.world.apiserver.webhooks = webhooks;
    }

    /// Opens a watch for a client from outside.
    pub fn open_watch(&self, request: &Request) -> Result<OpenWatch, Status> {
        self.world.apiserver.open_watch(request)
    }

    pub fn trace(&self) -> &Trace {
        &self.world.trace
    }

    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.world.settings
    }

    /// Sends a request to the apiserver, at this moment.
    pub fn request(&mut self, request: Request) -> Result<Response, Status> {
        self.world.request(request)
    }

    /// # Errors
    /// 403 if the user may not do this.
    pub fn require(&self, user: &User, attributes: &Attributes) -> Result<(), Status> {
        access::require(&self.world.apiserver, user, attributes)
    }

    /// Who bears a token of a ServiceAccount.
    ///
    /// # Errors
    /// 401 if it does not hold, or no longer.
    pub fn authenticate(&self, token: &str) -> Result<User, Status> {
        let bearer = tokens::authenticate(&self.world.apiserver, token, &[], self.now());
        bearer.map(|bearer| bearer.user).map_err(|_| Status::unauthorized())
    }

    /// The user that another one acts as, for what these attributes say.
    ///
    /// # Errors
    /// 400 for a user without a name, 403 if the other one may not.
    pub fn impersonate(&self, requestor: &User, wanted: User, attributes: &Attributes) -> Result<User, Status> {
        access::impersonation::impersonate(&self.world.apiserver, requestor, wanted, attributes)
    }

    /// The certificate of the authority that signs what CertificateSigningRequests ask for, in DER.
    pub fn certificate_authority(&self) -> Option<Vec<u8>> {
        self.world.apiserver.authority.as_deref().map(crate::certificates::authority)
    }

    /// An object as the store has it.
    pub fn get<K: Resource>(&self, namespace: &str, name: &str) -> Option<&Object> {
        self.world.apiserver.store.get(K::kind(), &Key::new(namespace, name))
    }

    /// Objects as the store has them, of one namespace or, if it is empty, of all.
    pub fn list<'a, K: Resource>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Object> {
        self.world.apiserver.store.list(K::kind(), namespace)
    }

    pub fn list_of<'a>(&'a self, kind: &KindRef, namespace: &'a str) -> impl Iterator<Item = &'a Object> {
        self.world.apiserver.store.list(kind, namespace)
    }

    pub fn revision(&self) -> u64 {
        self.world.apiserver.store.revision()
    }

    /// All kinds that are served now.
    pub fn kinds(&self) -> impl Iterator<Item = &KindRef> {
        self.world.apiserver.kinds()
    }

    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&KindRef> {
        self.world.apiserver.kind(api_version, kind)
    }

    /// The kind of a group, version and plural resource, as URLs name it.
    pub fn resource(&self, group: &str, version: &str, resource: &str) -> Option<&KindRef> {
        self.world.apiserver.resource(group, version, resource)
    }

    /// The apiserver, for what it says about itself.
    pub fn apiserver(&self) -> &ApiServer {
        &self.world.apiserver
    }

    /// Objects of one kind as rows, as the apiserver prints them at this moment.
    pub fn table(&self, kind: &KindRef, objects: &[Object]) -> crate::apiserver::table::Table {
        self.world.apiserver.table(kind, objects, self.now())
    }

    /// The store, for watches that are read from outside.
    pub fn store(&self) -> &crate::store::Store {
        &self.world.apiserver.store
    }

    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    pub fn machines(&self) -> impl Iterator<Item = (&Name, &Machine)> {
        self.machines.iter()
    }

    pub fn machine(&self, name: &str) -> Option<&Machine> {
        self.machines.get(name)
    }

    /// The plain container host that stands beside the cluster.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The same, to give it orders, which take the world's time.
    pub fn host_mut(&mut self) -> (&mut Host, &mut World) {
        (&mut self.host, &mut self.world)
    }

    /// A controller from outside joins, or replaces the one of its name; it has caches of its own.
    pub fn join(&mut self, controller: Arc<dyn Controller>) {
        let name = Name::from(controller.name());
        if let Some(mut old) = self.clients.remove(&name) {
            old.stop(&mut self.world);
        }
        let mut runner = Runner::new(Subscriber::Client(name.clone()), vec![controller]);
        runner.start(&mut self.world);
        self.clients.insert(name, runner);
    }

    /// The controllers that joined.
    pub fn joined(&self) -> impl Iterator<Item = Arc<dyn Controller>> {
        self.clients.values().flat_map(Runner::shared)
    }

    /// A fork in which nothing runs beside the apiserver but these loops of kube-controller-manager: no component, no
    /// machine, no watch is left, and nothing is due but what the loops bring.
    pub fn with_loops(&self, names: &[&str]) -> Cluster {
        let loops = controllers::all().into_iter().filter(|known| names.contains(&known.name())).collect();
        let mut cluster = Cluster {
            world: self.world.at_rest(),
            manager: Runner::new(Subscriber::Manager, loops),
            clients: imbl::OrdMap::new(),
            scheduler: Scheduler::default(),
            machines: imbl::OrdMap::new(),
            kubelet_configuration: Arc::default(),
            host: Host::default(),
            metrics: Default::default(),
            traffic: Default::default(),
        };
        cluster.manager.start(&mut cluster.world);
        cluster
    }

    pub fn leave(&mut self, name: &str) -> bool {
        let Some(mut runner) = self.clients.remove(&Name::from(name)) else { return false };
        runner.stop(&mut self.world);
        true
    }

    /// The controllers of kube-controller-manager and whether each is on, then those that joined.
    pub fn controllers(&self) -> impl Iterator<Item = (&Actor, bool)> {
        self.manager.controllers().chain(self.clients.values().flat_map(Runner::controllers))
    }

    /// The process whose informers hear for a component: all controllers of kube-controller-manager share its own.
    pub fn process_of<'a>(&self, component: &'a str) -> &'a str {
        let managed = self.manager.controllers().any(|(name, _)| **name == *component);
        if managed { "kube-controller-manager" } else { component }
    }

    /// The kinds that each controller of kube-controller-manager watches.
    pub fn watched(&self) -> impl Iterator<Item = (&Actor, Vec<&KindRef>)> {
        self.manager.watched()
    }

    /// LISTs and WATCHes of kube-controller-manager: with shared caches, and as many as there would be without.
    pub fn watch_counts(&self) -> (usize, usize) {
        self.manager.watch_counts()
    }

    /// Does the one thing that is due next. False if nothing ever will be.
    pub fn step(&mut self) -> bool {
        let Some(event) = self.world.pop() else { return false };
        let world = &mut self.world;
        match event {
            Event::Deliver(id) => {
                if let Some((subscriber, events)) = world.deliver(id)
                    && !events.is_empty()
                {
                    self.observe(subscriber, &events);
                }
            }
            Event::Runner(Subscriber::Manager, incarnation, wake) => self.manager.wake(incarnation, wake, world),
            Event::Runner(Subscriber::Client(name), incarnation, wake) => {
                if let Some(runner) = self.clients.get_mut(&name) {
                    runner.wake(incarnation, wake, world);
                }
            }
            Event::Runner(..) => {}
            Event::Scheduler(wake) => self.scheduler.wake(wake, world),
            Event::Kubelet(node, wake) => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    machine.kubelet.wake(wake, &mut machine.runtime, world);
                }
            }
            Event::Runtime(node, wake) => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    let events = machine.runtime.wake(wake, world);
                    if !events.is_empty() {
                        machine.kubelet.on_runtime(&events, &mut machine.runtime, world);
                    }
                } else if *node == *host::MACHINE {
                    let events = self.host.runtime.wake(wake, world);
                    self.host.on_runtime(&events, world);
                }
            }
            Event::Ask(node, handle, question, class) => self.answer_program(&node, handle, &question, class),
            Event::Exec(node, ordered) => self.go_on_for_kubelet(node, ordered),
            Event::Scrape(incarnation) => self.scrape(incarnation),
            Event::Traffic => self.deal_out_traffic(),
            Event::Host(wake) => self.host.wake(wake, world),
            Event::Proxy(node, wake) => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    machine.proxy.wake(wake, world);
                }
            }
            Event::PolicyAgent(node, wake) => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    machine.policies.wake(wake, world);
                }
            }
            Event::Compact => {
                let revision = world.apiserver.store.revision();
                world.apiserver.store.compact(revision.saturating_sub(1000));
                world.after(COMPACTION, Class::Background, Event::Compact);
            }
        }
        true
    }

    /// Does the next thing that is due by `deadline`; if there is none, lets the time pass and answers false.
    pub fn step_before(&mut self, deadline: Time) -> bool {
        if self.world.timeline().next_at().is_some_and(|at| at <= deadline) {
            return self.step();
        }
        self.world.advance_to(deadline);
        false
    }

    fn observe(&mut self, subscriber: Subscriber, events: &[WatchEvent]) {
        let world = &mut self.world;
        match subscriber {
            Subscriber::Manager => self.manager.observe(events, world),
            Subscriber::Client(name) => {
                if let Some(runner) = self.clients.get_mut(&name) {
                    runner.observe(events, world);
                }
            }
            Subscriber::Scheduler => self.scheduler.observe(events, world),
            Subscriber::Kubelet(node) => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    machine.kubelet.observe(events, &mut machine.runtime, world);
                }
            }
            Subscriber::Proxy(node) => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    machine.proxy.observe(events, world);
                }
            }
            Subscriber::PolicyAgent(node) => {
                if let Some(machine) = self.machines.get_mut(&node) {
                    machine.policies.observe(events, world);
                }
            }
            Subscriber::Machines => {
                for event in events.iter().filter(|event| event.event_type == EventType::Added) {
                    self.add_hollow_machine(&event.object.key.name);
                }
            }
            Subscriber::Registry => registry::observe(events, &mut world.registry),
        }
    }

    /// Runs until nothing but periodic work is due within `limit`, at most for `limit` of virtual time. `go_on` is
    /// asked now and then whether to.
    pub fn settle(&mut self, limit: Duration, mut go_on: impl FnMut(&Cluster) -> bool) -> Pause {
        let deadline = self.now() + limit;
        let mut steps = 0_usize;
        while let Some(at) = self.world.timeline().next_work_at() {
            if at > deadline {
                return if self.now() == deadline { Pause::TimeUp } else { Pause::Settled };
            }
            if steps.is_multiple_of(STEPS_UNASKED) && !go_on(self) {
                return Pause::Interrupted;
            }
            steps += 1;
            self.step();
        }
        Pause::Settled
    }

    /// Lets this much virtual time pass, whatever happens in it.
    pub fn advance(&mut self, by: Duration, go_on: impl FnMut(&Cluster) -> bool) -> Pause {
        self.run_until(self.now() + by, go_on)
    }

    /// Runs up to a moment.
    pub fn run_until(&mut self, until: Time, mut go_on: impl FnMut(&Cluster) -> bool) -> Pause {
        let mut steps = 0_usize;
        while self.world.timeline().next_at().is_some_and(|at| at <= until) {
            if steps.is_multiple_of(STEPS_UNASKED) && !go_on(self) {
                return Pause::Interrupted;
            }
            steps += 1;
            self.step();
        }
        self.world.advance_to(until);
        Pause::TimeUp
    }

    /// Notes in the trace that a cell is run, and makes that the cause of its requests.
    pub fn record_cell(&mut self, text: &str) -> Sequence {
        let what = What::Cell(text.into());
        self.world.record(&"learner".into(), Causes::None, what)
    }

    /// Notes a read that was granted, with its reason. Most reads are not worth an entry; one that a person spelt out is.
    pub fn record_read(&mut self, request: &Request) {
        let now = self.now();
        record_unchanged(&mut self.world.trace, now, request, 200, request.reason.clone());
    }

    /// Notes a fault, a repair, a component stopped or started.
    pub fn record_fault(&mut self, text: impl Into<Name>) -> Sequence {
        self.world.record(&"learner".into(), Causes::None, What::Fault(text.into()))
    }
}
