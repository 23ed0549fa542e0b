//! Runs controllers over one set of shared caches: delivers events to queues, calls reconcile, and sends the writes of
//! a plan one at a time, so that others can act in between.

mod requests;

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::cache::{Caches, View};
use super::controller::{Controller, Enqueue, Plan, Step};
use super::queue::{Backoffs, Queue};
use crate::HashMap;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::{Key, Name};
use crate::clock::{Class, Time};
use crate::store::Change;
use crate::trace::{Actor, Causes, Sequence, What};
use crate::watch::{EventType, WatchEvent};
use crate::world::{Event, Subscriber, World};

/// kube-controller-manager's default number of workers for most of its controllers (`--concurrent-*-syncs`).
const WORKERS: usize = 5;
/// How often informers list everything anew, so that an event that was lost is not lost for ever.
const RELIST: Duration = Duration::from_secs(600);
/// How long an informer waits before it tries again to reach the apiserver.
const RECONNECT: Duration = Duration::from_secs(1);

/// What wakes a runner, beside its watches.
#[derive(Clone, Debug)]
pub enum Wake {
    /// A worker of a controller looks into the queue.
    Work(usize),
    /// The next write of a running plan reaches the apiserver.
    Step(usize, Key),
    /// A key comes back: its plan asked for it, or failed.
    Due(usize, Key, Causes),
    /// All keys of a controller are looked at again.
    Resync(usize),
    /// The informers connect, after the apiserver could not be reached.
    Connect,
    /// The informers list everything anew.
    Relist,
}

/// A component that runs controllers: kube-controller-manager, or a learner's own.
#[derive(Clone)]
pub struct Runner {
    subscriber: Subscriber,
    /// Counts restarts, so that what was under way before one is not taken for the present.
    incarnation: u64,
    pub caches: Caches,
    loops: Vec<Loop>,
    /// By slot of a kind: which watches (of which loop, at which place in its list) want to hear of its changes.
    listeners: HashMap<usize, Vec<(usize, usize)>>,
}

#[derive(Clone)]
struct Loop {
    controller: Arc<dyn Controller>,
    actor: Actor,
    watches: Arc<[super::controller::Watch]>,
    enabled: bool,
    queue: Queue,
    running: HashMap<Key, Run>,
    /// What the cache must have seen before a key is looked at again: the loop's own writes.
    unseen: HashMap<Key, Vec<(usize, u64)>>,
    /// When a key comes back by itself: the earliest moment that a plan asked for.
    due: HashMap<Key, (Time, Class)>,
    backoffs: Backoffs,
    /// What plans wanted remembered of their keys.
    memories: HashMap<Key, Arc<dyn Any + Send + Sync>>,
    /// A worker has been told to look into the queue.
    woken: bool,
}

/// A plan being carried out.
#[derive(Clone)]
struct Run {
    plan: Arc<Plan>,
    next: usize,
    sequence: Sequence,
    /// A write was refused; what is left only tells of it.
    refused: bool,
}

impl Runner {
    pub fn new(subscriber: Subscriber, controllers: Vec<Arc<dyn Controller>>) -> Runner {
        let loops = controllers.into_iter().map(Loop::new).collect();
        Runner { subscriber, incarnation: 0, caches: Caches::default(), loops, listeners: HashMap::default() }
    }

    /// Lists and watches every kind that its controllers watch, once each, and looks at all keys.
    pub fn start(&mut self, world: &mut World) {
        self.incarnation += 1;
        self.caches = Caches::default();
        self.listeners = HashMap::default();
        for entry in &mut self.loops {
            *entry = Loop { enabled: entry.enabled, ..Loop::new(entry.controller.clone()) };
        }
        self.sync_watches(world);
        for index in 0..self.loops.len() {
            if let Some(period) = self.loops[index].controller.resync() {
                let event = self.event(Wake::Resync(index));
                world.after(period, Class::Background, event);
            }
        }
        world.after(RELIST, Class::Background, self.event(Wake::Relist));
    }

    pub fn stop(&mut self, world: &mut World) {
        self.incarnation += 1;
        world.unsubscribe(&self.subscriber);
    }

    /// Starts informers for kinds that are watched but not cached yet, those of CustomResourceDefinitions among them.
    pub fn sync_watches(&mut self, world: &mut World) {
        if world.faults.unreachable(&self.subscriber.component()).is_some() {
            return world.after(RECONNECT, Class::Background, self.event(Wake::Connect));
        }
        let custom: Vec<KindRef> = world.apiserver.custom_kinds().cloned().collect();
        for entry in &mut self.loops {
            let known = entry.watches.len();
            let mut watches = entry.controller.watches();
            watches.extend(custom.iter().filter_map(|kind| entry.controller.watch_custom(kind)));
            if watches.len() != known {
                entry.watches = watches.into();
            }
        }
        self.listeners = HashMap::default();
        for (index, entry) in self.loops.iter().enumerate() {
            for (place, watch) in entry.watches.iter().enumerate() {
                self.listeners.get_or_default(watch.kind.slot).push((index, place));
            }
        }
        let kinds: Vec<KindRef> =
            self.loops.iter().flat_map(|entry| entry.watches.iter()).map(|w| w.kind.clone()).collect();
        let mut listed = Vec::new();
        for kind in kinds {
            if self.caches.has(kind.slot) {
                continue;
            }
            let revision = world.apiserver.store.revision();
            let objects: Vec<_> = world.apiserver.store.list(&kind, "").cloned().collect();
            self.caches.replace(&kind, objects.iter().cloned(), revision, world.now);
            world.subscribe(self.subscriber.clone(), crate::watch::Watcher::new(&kind, revision));
            listed.extend(objects);
        }
        // All caches are filled before the first key is looked at.
        for object in listed {
            let change = Change { revision: object.revision, sequence: 0, before: None, after: Some(object) };
            self.enqueue(&change, &Causes::None, world);
        }
        self.wake_workers(world);
    }

    /// Lists everything anew and watches from there. What differs from the caches has happened unheard.
    fn relist(&mut self, world: &mut World) {
        world.after(RELIST, Class::Background, self.event(Wake::Relist));
        if world.faults.unreachable(&self.subscriber.component()).is_some() {
            return;
        }
        world.unsubscribe(&self.subscriber);
        let mut unheard = Vec::new();
        for kind in self.caches.view(world.now).kinds().to_vec() {
            let revision = world.apiserver.store.revision();
            let listed = world.apiserver.store.objects(&kind).clone();
            let view = self.caches.view(world.now);
            for object in listed.values() {
                let before = view.get_of(&kind, &object.key).cloned();
                if before.as_ref().is_none_or(|before| before.revision != object.revision) {
                    unheard.extend(changes(before, Some(object.clone()), object.revision, 0));
                }
            }
            for object in view.list_of(&kind, "").filter(|object| !listed.contains_key(&object.key)) {
                unheard.extend(changes(Some(object.clone()), None, revision, 0));
            }
            self.caches.replace(&kind, listed.values().cloned(), revision, world.now);
            world.subscribe(self.subscriber.clone(), crate::watch::Watcher::new(&kind, revision));
        }
        for change in unheard {
            self.enqueue(&change, &Causes::None, world);
        }
        self.wake_workers(world);
    }

    /// Adds a controller, or replaces the one of that name.
    pub fn add(&mut self, controller: Arc<dyn Controller>, world: &mut World) {
        let entry = Loop::new(controller);
        match self.loops.iter_mut().find(|known| known.actor == entry.actor) {
            Some(known) => *known = entry,
            None => self.loops.push(entry),
        }
        self.start(world);
    }

    /// Turns one loop off or on; false if there is none of that name. A loop that is off hears of nothing.
    pub fn set_enabled(&mut self, name: &str, enabled: bool, world: &mut World) -> bool {
        let Some(index) = self.loops.iter().position(|entry| *entry.actor == *name) else { return false };
        if self.loops[index].enabled != enabled {
            let entry = &mut self.loops[index];
            let watches = entry.watches.clone();
            *entry = Loop { enabled, watches, ..Loop::new(entry.controller.clone()) };
            if enabled {
                self.introduce(index, world);
                self.wake_workers(world);
            }
        }
        true
    }

    pub fn controllers(&self) -> impl Iterator<Item = (&Actor, bool)> {
        self.loops.iter().map(|entry| (&entry.actor, entry.enabled))
    }

    /// The controllers themselves.
    pub fn shared(&self) -> impl Iterator<Item = Arc<dyn Controller>> {
        self.loops.iter().map(|entry| entry.controller.clone())
    }

    /// The kinds that each controller watches.
    pub fn watched(&self) -> impl Iterator<Item = (&Actor, Vec<&KindRef>)> {
        self.loops.iter().map(|entry| (&entry.actor, entry.watches.iter().map(|watch| &watch.kind).collect()))
    }

    /// How many LISTs and WATCHes its informers keep open, and how many there would be if no cache were shared.
    pub fn watch_counts(&self) -> (usize, usize) {
        let distinct = self.caches.kinds();
        let kinds = |entry: &Loop| entry.watches.iter().map(|w| w.kind.slot).collect::<BTreeSet<_>>().len();
        let separate = self.loops.iter().map(kinds).sum();
        (distinct, separate)
    }

    /// Takes events that its watches delivered.
    pub fn observe(&mut self, events: &[WatchEvent], world: &mut World) {
        let mut new_kinds = false;
        for event in events {
            let causes = Causes::from(event.change.sequence);
            let known = self.caches.apply(event, world.now);
            let version = |object: &Option<Object>| object.as_ref().map(|object| object.revision);
            if event.event_type == EventType::Deleted || version(&known) == version(&event.change.before) {
                self.enqueue(&event.change, &causes, world);
            } else {
                for change in changes(known, event.change.after.clone(), event.change.revision, event.change.sequence) {
                    self.enqueue(&change, &causes, world);
                }
            }
            new_kinds |= event.object.is::<CustomResourceDefinition>();
        }
        if new_kinds {
            self.sync_watches(world);
        }
        self.wake_workers(world);
    }

    pub fn wake(&mut self, incarnation: u64, wake: Wake, world: &mut World) {
        if incarnation != self.incarnation {
            return;
        }
        match wake {
            Wake::Work(index) => self.work(index, world),
            Wake::Step(index, key) => self.step(index, key, world),
            Wake::Due(index, key, causes) => {
                let Some(entry) = self.loops.get_mut(index).filter(|entry| entry.enabled) else { return };
                if entry.due.get(&key).is_some_and(|(at, _)| *at <= world.now) {
                    entry.due.remove(&key);
                    entry.queue.add(&key, &causes);
                    self.wake_workers(world);
                }
            }
            Wake::Connect => self.sync_watches(world),
            Wake::Relist => self.relist(world),
            Wake::Resync(index) => {
                self.enqueue_all(index);
                self.wake_workers(world);
                if let Some(period) = self.loops.get(index).and_then(|entry| entry.controller.resync()) {
                    let event = self.event(Wake::Resync(index));
                    world.after(period, Class::Background, event);
                }
            }
        }
    }

    fn event(&self, wake: Wake) -> Event {
        Event::Runner(self.subscriber.clone(), self.incarnation, wake)
    }

    fn enqueue(&mut self, change: &Change, causes: &Causes, world: &mut World) {
        let slot = change.object().kind.slot;
        let view = self.caches.view(world.now);
        let mut later = Vec::new();
        for &(index, place) in self.listeners.get(&slot).into_iter().flatten() {
            let waiting = self.loops[index].hear(place, change, causes, &view);
            later.extend(waiting.into_iter().map(|(key, at, class)| (index, key, at, class)));
        }
        for (index, key, at, class) in later {
            self.come_back(index, &key, at, class, causes, world);
        }
    }

    /// A loop that starts hears of all that is there.
    fn introduce(&mut self, index: usize, world: &mut World) {
        let view = self.caches.view(world.now);
        let entry = &mut self.loops[index];
        let mut later = Vec::new();
        for place in 0..entry.watches.len() {
            let kind = entry.watches[place].kind.clone();
            for object in view.list_of(&kind, "") {
                let after = Some(object.clone());
                let change = Change { revision: object.revision, sequence: 0, before: None, after };
                later.extend(entry.hear(place, &change, &Causes::None, &view));
            }
        }
        for (key, at, class) in later {
            self.come_back(index, &key, at, class, &Causes::None, world);
        }
    }

    fn enqueue_all(&mut self, index: usize) {
        let Some(entry) = self.loops.get_mut(index).filter(|entry| entry.enabled) else { return };
        let view = self.caches.view(Time::ZERO);
        for watch in entry.watches.iter().filter(|watch| matches!(watch.enqueue, Enqueue::Itself)) {
            for object in view.list_of(&watch.kind, "") {
                entry.queue.add(&object.key, &Causes::None);
            }
        }
    }

    fn wake_workers(&mut self, world: &mut World) {
        for index in 0..self.loops.len() {
            self.wake_worker(index, world);
        }
    }

    fn wake_worker(&mut self, index: usize, world: &mut World) {
        let entry = &mut self.loops[index];
        if entry.enabled && !entry.woken && !entry.queue.is_empty() && entry.can_run(&self.caches) {
            entry.woken = true;
            let delay = world.random.between(world.settings.reconcile.0, world.settings.reconcile.1);
            let event = self.event(Wake::Work(index));
            world.after(delay, Class::Work, event);
        }
    }

    fn work(&mut self, index: usize, world: &mut World) {
        let Some(entry) = self.loops.get_mut(index) else { return };
        entry.woken = false;
        let caches = &self.caches;
        let taken = {
            let (running, unseen) = (&entry.running, &entry.unseen);
            if running.len() >= WORKERS { None } else { entry.queue.take(|key| may_run(key, running, unseen, caches)) }
        };
        if let Some((key, causes)) = taken {
            entry.unseen.remove(&key);
            let memory = entry.memories.get(&key).cloned();
            let view = caches.view(world.now).with_backoffs(&entry.backoffs).with_memory(memory.as_deref());
            let answers = requests::ask(entry.controller.asks(&key, &view), &entry.actor, world);
            let plan = entry.controller.reconcile(&key, &view.with_answers(&answers));
            match &plan.memory {
                Some(memory) => drop(entry.memories.insert(key.clone(), memory.clone())),
                None if memory.is_some() => drop(entry.memories.remove(&key)),
                None => {}
            }
            plan.backoffs.iter().for_each(|id| entry.backoffs.next(id, world.now));
            let kind = entry.watches.first().map_or_else(|| Name::from(""), |watch| watch.kind.kind.clone());
            let note = Name::from(plan.error.as_deref().unwrap_or_default());
            let writes = plan.steps.iter().filter(|step| matches!(step, Step::Write(_))).count();
            let what = What::Reconcile { key: key.clone(), kind, writes, note };
            let sequence = world.trace.record(world.now, &entry.actor, causes, what);
            self.start_run(index, key, plan, sequence, world);
        }
        self.wake_worker(index, world);
    }

    fn start_run(&mut self, index: usize, key: Key, plan: Plan, sequence: Sequence, world: &mut World) {
        if plan.steps.is_empty() {
            self.finish(index, key, &plan, sequence, world);
        } else {
            let run = Run { plan: Arc::new(plan), next: 0, sequence, refused: false };
            self.loops[index].running.insert(key.clone(), run);
            self.schedule_step(index, key, world);
        }
    }

    fn schedule_step(&mut self, index: usize, key: Key, world: &mut World) {
        let delay = world.api_latency();
        let event = self.event(Wake::Step(index, key));
        world.after(delay, Class::Work, event);
    }

    fn step(&mut self, index: usize, key: Key, world: &mut World) {
        let Some(entry) = self.loops.get_mut(index) else { return };
        let Some(run) = entry.running.get(&key).cloned() else { return };
        let causes = Causes::from(run.sequence);
        let mut next = run.next;
        // Events cost a client no time: they are sent beside its writes.
        while let Some(Step::Event(note)) = run.plan.steps.get(next) {
            world.event(&entry.actor, note, &causes);
            next += 1;
        }
        if let Some(Step::Absence(absence)) = run.plan.steps.get(next) {
            next += 1;
            if !requests::is_absent(absence, &entry.actor, world) {
                entry.running.remove(&key);
                self.retry(index, key, run.sequence, world);
                return;
            }
        } else if let Some(Step::Write(write)) = run.plan.steps.get(next) {
            next += 1;
            match requests::send(write, &entry.actor, &causes, world) {
                Ok(seen) => {
                    if let Some((slot, revision)) = seen {
                        let unseen = entry.unseen.get_or_default(key.clone());
                        unseen.retain(|(known, _)| *known != slot);
                        unseen.push((slot, revision));
                    }
                }
                Err(Some(plan)) => {
                    let told = Run { plan: Arc::new(plan), next: 0, sequence: run.sequence, refused: true };
                    entry.running.insert(key.clone(), told);
                    self.schedule_step(index, key, world);
                    return;
                }
                Err(None) => {
                    entry.running.remove(&key);
                    self.retry(index, key, run.sequence, world);
                    return;
                }
            }
        }
        if next < run.plan.steps.len() {
            entry.running.insert(key.clone(), Run { next, ..run });
            self.schedule_step(index, key, world);
        } else {
            entry.running.remove(&key);
            if run.refused {
                self.retry(index, key, run.sequence, world);
            } else {
                self.finish(index, key, &run.plan, run.sequence, world);
            }
        }
    }

    fn finish(&mut self, index: usize, key: Key, plan: &Plan, sequence: Sequence, world: &mut World) {
        if plan.error.is_some() {
            return self.retry(index, key, sequence, world);
        }
        self.loops[index].queue.forget(&key);
        let wishes = [(plan.continue_after, Class::Work), (plan.requeue_after, Class::Background)];
        for (after, class) in wishes {
            if let Some(after) = after {
                self.come_back(index, &key, world.now + after, class, &Causes::from(sequence), world);
            }
        }
        self.wake_worker(index, world);
    }

    /// Like client-go's delaying queue: of several moments for one key the earliest counts.
    fn come_back(&mut self, index: usize, key: &Key, at: Time, class: Class, causes: &Causes, world: &mut World) {
        let due = &mut self.loops[index].due;
        let known = due.get(key);
        if known.is_some_and(|(known, of)| *known <= at && (*of == Class::Work || class == Class::Background)) {
            return;
        }
        due.insert(key.clone(), (at, class));
        let event = self.event(Wake::Due(index, key.clone(), causes.clone()));
        world.at(at, class, event);
    }

    fn retry(&mut self, index: usize, key: Key, sequence: Sequence, world: &mut World) {
        let delay = self.loops[index].queue.backoff(&key);
        self.come_back(index, &key, world.now + delay, Class::Work, &Causes::from(sequence), world);
        self.wake_worker(index, world);
    }
}

fn may_run(key: &Key, running: &HashMap<Key, Run>, unseen: &HashMap<Key, Vec<(usize, u64)>>, caches: &Caches) -> bool {
    let seen = |&(slot, revision): &(usize, u64)| !caches.has(slot) || caches.revision(slot) >= revision;
    !running.contains_key(key) && unseen.get(key).is_none_or(|needed| needed.iter().all(seen))
}

impl Loop {
    fn new(controller: Arc<dyn Controller>) -> Loop {
        Loop {
            actor: controller.name().into(),
            watches: controller.watches().into(),
            controller,
            enabled: true,
            queue: Queue::default(),
            running: HashMap::default(),
            unseen: HashMap::default(),
            due: HashMap::default(),
            backoffs: Backoffs::default(),
            memories: HashMap::default(),
            woken: false,
        }
    }

    /// Enqueues the keys that must be looked at after a change of what it watches; those that wait come with their moment.
    fn hear(&mut self, place: usize, change: &Change, causes: &Causes, view: &View<'_>) -> Vec<(Key, Time, Class)> {
        let mut later = Vec::new();
        if !self.enabled {
            return later;
        }
        let watch = &self.watches[place];
        let (delay, class) = (watch.delay)(view, change);
        let queue = &mut self.queue;
        let mut add = |key: &Key| match delay.is_zero() {
            true => queue.add(key, causes),
            false => later.push((key.clone(), view.now + delay, class)),
        };
        match &watch.enqueue {
            Enqueue::Itself => add(change.key()),
            Enqueue::Owner(owner) => {
                for object in [&change.before, &change.after].into_iter().flatten() {
                    if let Some(reference) = object.controller().filter(|r| r.kind == *owner.kind) {
                        let namespace = if owner.namespaced { object.key.namespace.clone() } else { "".into() };
                        add(&Key::new(namespace, reference.name.as_str()));
                    }
                }
            }
            Enqueue::Each(kind) => {
                for object in view.list_of(kind, &change.key().namespace) {
                    add(&object.key);
                }
            }
            Enqueue::With(keys) => keys(view, change).iter().for_each(add),
        }
        later
    }

    fn can_run(&self, caches: &Caches) -> bool {
        self.running.len() < WORKERS && self.queue.has_ready(|key| may_run(key, &self.running, &self.unseen, caches))
    }
}

/// What has happened to an object, to who knew it as it was `before`: an end and a beginning, if another has its name now.
fn changes(
    before: Option<Object>,
    after: Option<Object>,
    revision: u64,
    sequence: Sequence,
) -> impl Iterator<Item = Change> {
    let is_another = matches!((&before, &after), (Some(before), Some(after)) if before.uid() != after.uid());
    let pairs = if is_another { [Some((before, None)), Some((None, after))] } else { [None, Some((before, after))] };
    pairs.into_iter().flatten().map(move |(before, after)| Change { revision, sequence, before, after })
}

#[cfg(test)]
mod tests;
