//! What every component is handed when its turn comes: the moment, the apiserver, the timeline, the trace.

use std::time::Duration;

use crate::HashMap;
use crate::api::request::{Request, Response};
use crate::api::status::Status;
use crate::api::{Key, Name};
use crate::apiserver::{ApiServer, Moment};
use crate::clock::{Class, Time, Timeline};
use crate::controllers::runner;
use crate::events::EventNote;
use crate::events::Recorder;
use crate::faults::{Effect, Faults};
use crate::listeners::Listeners;
use crate::random::Random;
use crate::trace::{Actor, Causes, Sequence, Trace, What};
use crate::watch::{WatchEvent, Watcher};

/// Who listens to a watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subscriber {
    /// kube-controller-manager.
    Manager,
    /// A controller that joined from outside, by name.
    Client(Name),
    Scheduler,
    /// The kubelet of a node.
    Kubelet(Name),
    /// The kube-proxy of a node.
    Proxy(Name),
    /// Who keeps the pods of a node to NetworkPolicies.
    PolicyAgent(Name),
    /// Whoever brings a machine for each Node.
    Machines,
    /// The registry from which the machines pull.
    Registry,
}

impl Subscriber {
    /// The component's name: `kube-controller-manager`, `kubelet/node-1`.
    pub fn component(&self) -> Name {
        match self {
            Subscriber::Manager => "kube-controller-manager".into(),
            Subscriber::Client(name) => name.clone(),
            Subscriber::Scheduler => "kube-scheduler".into(),
            Subscriber::Kubelet(node) => format!("kubelet/{node}").into(),
            Subscriber::Proxy(node) => format!("kube-proxy/{node}").into(),
            Subscriber::PolicyAgent(node) => format!("kube-network-policies/{node}").into(),
            Subscriber::Machines => "machines".into(),
            Subscriber::Registry => "registry".into(),
        }
    }
}

/// What can come due.
#[derive(Clone, Debug)]
pub enum Event {
    /// A watch delivers what it has.
    Deliver(u64),
    /// A runner of controllers, with the incarnation that asked for it.
    Runner(Subscriber, u64, runner::Wake),
    Scheduler(crate::scheduler::Wake),
    Kubelet(Name, crate::kubelet::Wake),
    Runtime(Name, crate::runtime::Wake),
    /// The program of a container asks the network.
    Ask(Name, crate::runtime::container::Handle, Box<crate::network::question::Question>, Class),
    /// A command that a kubelet runs in a container goes on.
    Exec(Name, Box<crate::kubelet::Ordered>),
    Proxy(Name, crate::network::proxy::Wake),
    PolicyAgent(Name, crate::network::policy_agent::Wake),
    /// metrics-server asks the kubelets, with the incarnation that wants to.
    Scrape(u64),
    /// Requests that come all the time are dealt out anew.
    Traffic,
    /// The plain container host.
    Host(crate::runtime::host::Wake),
    /// etcd forgets old history.
    Compact,
}

/// Latencies, each drawn evenly between two bounds, and sizes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A request and its answer.
    pub api: (Duration, Duration),
    /// From a commit to a watcher.
    pub watch: (Duration, Duration),
    /// From a key's arrival in an empty queue to its reconcile.
    pub reconcile: (Duration, Duration),
    pub sandbox: (Duration, Duration),
    pub image_pull: (Duration, Duration),
    pub container_start: (Duration, Duration),
    /// A node posts its heartbeat this often (`nodeLeaseDurationSeconds` / 4).
    pub lease_renew: Duration,
    /// From one machine or pod to another and back.
    pub round_trip: (Duration, Duration),
    /// How kube-proxies program their nodes from their next start on.
    pub proxy_mode: crate::network::rules::Mode,
}

impl Default for Settings {
    fn default() -> Settings {
        let ms = |low, high| (Duration::from_millis(low), Duration::from_millis(high));
        Settings {
            api: ms(1, 3),
            watch: ms(1, 4),
            reconcile: ms(1, 2),
            sandbox: ms(100, 300),
            image_pull: ms(600, 1800),
            container_start: ms(50, 150),
            lease_renew: Duration::from_secs(10),
            round_trip: (Duration::from_micros(200), Duration::from_micros(900)),
            proxy_mode: Default::default(),
        }
    }
}

impl Settings {
    /// The same, but sandboxes, images and containers take this share of their time.
    pub fn with_start_latency(self, share: f64) -> Settings {
        let scaled = |(low, high): (Duration, Duration)| (low.mul_f64(share), high.mul_f64(share));
        Settings {
            sandbox: scaled(self.sandbox),
            image_pull: scaled(self.image_pull),
            container_start: scaled(self.container_start),
            ..self
        }
    }
}

#[derive(Clone, Debug)]
struct Subscription {
    subscriber: Subscriber,
    component: Name,
    watcher: Watcher,
    /// A delivery is on the timeline.
    scheduled: bool,
}

#[derive(Clone)]
pub struct World {
    pub now: Time,
    pub random: Random,
    pub settings: Settings,
    pub apiserver: ApiServer,
    pub trace: Trace,
    pub faults: Faults,
    pub registry: crate::runtime::images::Registry,
    pub(crate) tables: crate::network::informer::Tables,
    timeline: Timeline<Event>,
    recorder: Recorder,
    subscriptions: imbl::OrdMap<u64, Subscription>,
    /// Subscriptions by slot and by the index value that they pin down (empty for none).
    interested: HashMap<(usize, Name), imbl::Vector<u64>>,
    next_subscription: u64,
}

impl World {
    pub fn new(seed: u64, settings: Settings) -> World {
        World {
            now: Time::ZERO,
            random: Random::new(seed),
            settings,
            apiserver: ApiServer::new(),
            trace: Trace::default(),
            faults: Faults::default(),
            registry: Default::default(),
            tables: Default::default(),
            timeline: Timeline::default(),
            recorder: Recorder::default(),
            subscriptions: imbl::OrdMap::new(),
            interested: HashMap::default(),
            next_subscription: 0,
        }
    }

    /// A fork in which nobody watches, no fault is in force and nothing is due.
    pub fn at_rest(&self) -> World {
        World {
            faults: Faults::default(),
            tables: Default::default(),
            timeline: Timeline::default(),
            subscriptions: imbl::OrdMap::new(),
            interested: HashMap::default(),
            ..self.clone()
        }
    }

    pub fn after(&mut self, delay: Duration, class: Class, event: Event) {
        self.timeline.push(self.now + delay, class, event);
    }

    pub fn at(&mut self, at: Time, class: Class, event: Event) {
        self.timeline.push(at.max(self.now), class, event);
    }

    pub fn timeline(&self) -> &Timeline<Event> {
        &self.timeline
    }

    /// Takes what is due next and moves the clock there.
    pub fn pop(&mut self) -> Option<Event> {
        let (at, event) = self.timeline.pop()?;
        self.now = self.now.max(at);
        Some(event)
    }

    /// Lets time pass up to a moment at which nothing is due before.
    pub fn advance_to(&mut self, at: Time) {
        debug_assert!(self.timeline.next_at().is_none_or(|next| next >= at));
        self.now = self.now.max(at);
    }

    pub fn api_latency(&mut self) -> Duration {
        self.random.between(self.settings.api.0, self.settings.api.1)
    }

    /// Sends a request to the apiserver, through whatever faults are in force.
    pub fn request(&mut self, request: Request) -> Result<Response, Status> {
        if let Some(status) = self.faults.unreachable(&request.actor) {
            self.note_refusal(&request, &status);
            return Err(status);
        }
        let effect = self.faults.on_request(&request.actor, &request.kind, &request.key.name, self.now);
        if matches!(effect, Some(Effect::Drop)) {
            let status = Status::timeout("the server was unable to return a response in the time allotted");
            self.note_refusal(&request, &status);
            return Err(status);
        }
        let mut moment = Moment { now: self.now, random: &mut self.random, trace: &mut self.trace };
        let answer = self.apiserver.handle(request, &mut moment);
        self.notify();
        match effect {
            Some(Effect::LoseAnswer) => Err(Status::timeout("context deadline exceeded")),
            _ => answer,
        }
    }

    fn note_refusal(&mut self, request: &Request, status: &Status) {
        crate::apiserver::record_refusal(&mut self.trace, self.now, request, status);
    }

    /// The programs in containers that the apiserver can ask.
    pub fn listeners(&mut self) -> &mut Listeners {
        &mut self.apiserver.listeners
    }

    /// Records an Event about an object, through the apiserver.
    pub fn event(&mut self, actor: &Actor, note: &EventNote, causes: &Causes) {
        let request = self.recorder.request(actor, note, self.now);
        if let Some(request) = request {
            // An Event that can't be written is lost, as client-go's recorder loses it.
            let _ = self.request(request.caused_by(causes.clone()));
        }
    }

    pub fn record(&mut self, actor: &Actor, causes: Causes, what: What) -> Sequence {
        self.trace.record(self.now, actor, causes, what)
    }

    /// Notes a thing worth telling about an object in the trace.
    pub fn note(&mut self, actor: &Actor, causes: Causes, about: &Key, text: impl Into<Name>) -> Sequence {
        self.record(actor, causes, What::Note { about: about.clone(), text: text.into() })
    }

    pub fn subscribe(&mut self, subscriber: Subscriber, watcher: Watcher) {
        let id = self.next_subscription;
        self.next_subscription += 1;
        let interest = (watcher.kind.slot, Name::from(watcher.partition().unwrap_or_default()));
        self.interested.get_or_default(interest).push_back(id);
        let component = subscriber.component();
        self.subscriptions.insert(id, Subscription { subscriber, component, watcher, scheduled: false });
        self.schedule(id);
    }

    /// Closes all watches of a component.
    pub fn unsubscribe(&mut self, subscriber: &Subscriber) {
        let closed: Vec<u64> =
            self.subscriptions.iter().filter(|(_, s)| s.subscriber == *subscriber).map(|(id, _)| *id).collect();
        for id in closed {
            if let Some(subscription) = self.subscriptions.remove(&id) {
                let watcher = &subscription.watcher;
                let interest = (watcher.kind.slot, Name::from(watcher.partition().unwrap_or_default()));
                if let Some(ids) = self.interested.get_mut(&interest) {
                    ids.retain(|known| *known != id);
                }
            }
        }
    }

    pub fn watch_count(&self) -> usize {
        self.subscriptions.len()
    }

    /// Tells the watches of what was just committed that there is something for them.
    fn notify(&mut self) {
        for change in self.apiserver.take_committed() {
            let slot = change.object().kind.slot;
            let mut ids: Vec<u64> = Vec::new();
            if let Some(all) = self.interested.get(&(slot, Name::default())) {
                ids.extend(all.iter());
            }
            if let Some(value) = crate::apiserver::fields::index_value(change.object())
                && let Some(some) = self.interested.get(&(slot, value))
            {
                ids.extend(some.iter());
            }
            for id in ids {
                self.schedule(id);
            }
        }
    }

    fn schedule(&mut self, id: u64) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else { return };
        if subscription.scheduled || !subscription.watcher.is_behind(&self.apiserver.store) {
            return;
        }
        subscription.scheduled = true;
        let delay = self.random.between(self.settings.watch.0, self.settings.watch.1);
        self.after(delay, Class::Work, Event::Deliver(id));
    }

    /// Looks at every watch again, after a fault that held deliveries back is over.
    pub fn resume_watches(&mut self) {
        let ids: Vec<u64> = self.subscriptions.keys().copied().collect();
        for id in ids {
            self.schedule(id);
        }
    }

    /// What a watch has for its subscriber now.
    pub fn deliver(&mut self, id: u64) -> Option<(Subscriber, Vec<WatchEvent>)> {
        let subscription = self.subscriptions.get_mut(&id)?;
        subscription.scheduled = false;
        let mut events = Vec::new();
        let mut retry_after = None;
        if self.faults.unreachable(&subscription.component).is_none() {
            loop {
                let before = subscription.watcher.revision;
                let event = match subscription.watcher.next(&self.apiserver.store) {
                    Ok(Some(event)) => event,
                    Ok(None) => break,
                    Err(_) => {
                        // Too old: an informer lists again; here it goes on from what is still known.
                        subscription.watcher.revision = self.apiserver.store.compacted();
                        continue;
                    }
                };
                let name = &event.object.key.name;
                match self.faults.on_delivery(&subscription.component, &event.object.kind, name, self.now) {
                    Some(Effect::Drop) => {}
                    Some(Effect::Delay(by)) => {
                        let written = self.trace.get(event.change.sequence).map_or(Time::ZERO, |entry| entry.at);
                        if written + by > self.now {
                            subscription.watcher.revision = before;
                            retry_after = Some((written + by).since(self.now));
                            break;
                        }
                        events.push(event);
                    }
                    Some(Effect::Duplicate) => {
                        events.push(event.clone());
                        events.push(event);
                    }
                    _ => events.push(event),
                }
            }
        }
        subscription.scheduled = retry_after.is_some();
        let subscriber = subscription.subscriber.clone();
        if let Some(by) = retry_after {
            self.after(by, Class::Work, Event::Deliver(id));
        }
        Some((subscriber, events))
    }
}
