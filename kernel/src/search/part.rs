//! One controller under test: its informers, its queue, its timers, and the reconcile under way.
//!
//! A reconcile that has sent some of its writes is its view and the number of answers so far. It is replayed for each
//! next write: a controller that then plans otherwise depends on something that it does not see.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Body;
use cluster_core::api::{Key, Name};
use cluster_core::clock::Time;
use cluster_core::controllers::cache::Caches;
use cluster_core::controllers::controller::{Controller, Enqueue, Plan, Step, Watch, Write};
use cluster_core::store::Change;
use cluster_core::trace::{Causes, Trace, causes};
use cluster_core::watch::{EventType, WatchEvent, Watcher};

use super::canon::{Names, digest_of};

/// A controller as it is handed to a search.
#[derive(Clone)]
pub struct Subject {
    pub controller: Arc<dyn Controller>,
    pub watches: Arc<[Watch]>,
    pub on_refusal: OnRefusal,
}

/// What the loop around a reconcile does when a write is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefusal {
    /// Gives the plan up, and reconciles again after a backoff.
    LookAgain,
    /// Sends the same again, and again. As a controller does that retries inside of its reconcile.
    SendAgain,
    /// Goes on as if nothing had been. As a controller does that drops the error.
    Ignore,
}

impl Subject {
    pub fn new(controller: Arc<dyn Controller>) -> Subject {
        Subject { watches: controller.watches().into(), controller, on_refusal: OnRefusal::LookAgain }
    }

    /// The very same controller.
    pub fn is(&self, other: &Subject) -> bool {
        Arc::ptr_eq(&self.controller, &other.controller)
    }

    /// The kind whose objects are its keys.
    pub fn main(&self) -> Option<&KindRef> {
        self.watches.first().map(|watch| &watch.kind)
    }

    /// What its informers watch, each kind once.
    pub fn kinds(&self) -> impl Iterator<Item = &KindRef> {
        let is_first = move |(index, watch): &(usize, &Watch)| {
            self.watches[..*index].iter().all(|known| known.kind.slot != watch.kind.slot)
        };
        self.watches.iter().enumerate().filter(is_first).map(|(_, watch)| &watch.kind)
    }

    pub fn plan(&self, key: &Key, view: &Caches, now: Time) -> Plan {
        self.controller.reconcile(key, &view.view(now))
    }
}

/// The state of a controller under test.
#[derive(Clone, Default)]
pub struct Part {
    pub is_up: bool,
    pub caches: Caches,
    /// By slot of a kind: what is on its way.
    pub inboxes: BTreeMap<usize, Inbox>,
    pub queue: VecDeque<Key>,
    pub run: Option<Run>,
    /// By the moment at which they are due.
    pub timers: Vec<Timer>,
    pub failures: BTreeMap<Key, u32>,
    /// What woke a key since it was last looked at.
    pub causes: BTreeMap<Key, Causes>,
    /// How often each key was looked at since `paced_from`, or since something came from outside.
    pub pace: BTreeMap<Key, u32>,
    pub paced_from: Time,
    /// An event was lost since the last list.
    pub lacks: bool,
    /// What the caches hold, by digest.
    known: BTreeMap<(usize, Key), u64>,
}

/// The events of one watch that have not been heard yet.
#[derive(Clone)]
pub struct Inbox {
    pub kind: KindRef,
    pub watcher: Watcher,
    pub events: VecDeque<Heard>,
}

/// An event and the digest of its object.
#[derive(Clone)]
pub struct Heard {
    pub event: WatchEvent,
    pub digest: u64,
}

#[derive(Clone)]
pub struct Run {
    pub key: Key,
    pub view: Caches,
    pub view_digest: u64,
    pub began: Time,
    /// The revision of the store when it began.
    pub revision: u64,
    pub causes: Causes,
    pub plan: Arc<Plan>,
    pub next: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Timer {
    pub at: Time,
    pub key: Key,
    /// The plan asked for it; otherwise it is a backoff.
    pub is_asked: bool,
}

impl Run {
    /// The write that is to be sent next.
    pub fn write(&self) -> Option<&Write> {
        self.plan.steps[self.next..].iter().find_map(|step| match step {
            Step::Write(write) => Some(&**write),
            Step::Absence(_) | Step::Event(_) => None,
        })
    }

    /// Leaves the write behind that was sent.
    pub fn advance(&mut self) {
        let sent = self.plan.steps[self.next..].iter().position(|step| matches!(step, Step::Write(_)));
        self.next = sent.map_or(self.plan.steps.len(), |sent| self.next + sent + 1);
    }
}

impl Part {
    /// Lists its kinds as they were at a revision, each its own, looks at all keys, and watches from there.
    pub fn start(
        &mut self,
        subject: &Subject,
        cluster: &Cluster,
        names: &Names,
        revision_of: impl Fn(&KindRef) -> u64,
    ) {
        *self =
            Part { is_up: true, pace: std::mem::take(&mut self.pace), paced_from: self.paced_from, ..Part::default() };
        let mut listed = Vec::new();
        for kind in subject.kinds() {
            let revision = revision_of(kind);
            let objects = cluster.store().objects_at(kind, revision).unwrap_or_default();
            self.caches.replace(kind, objects.values().cloned(), revision, cluster.now());
            for object in objects.values() {
                self.known.insert((kind.slot, object.key.clone()), names.object(object));
                listed.push(Change { revision, sequence: 0, before: None, after: Some(object.clone()) });
            }
            let watcher = Watcher::new(kind, revision);
            self.inboxes.insert(kind.slot, Inbox { kind: kind.clone(), watcher, events: VecDeque::new() });
        }
        for change in listed {
            self.enqueue(subject, &change, cluster.now());
        }
        self.receive(cluster, names);
    }

    /// The keys of a first list are looked at because somebody wrote their objects once.
    pub fn trace_back(&mut self, subject: &Subject, trace: &Trace) {
        let Some(main) = subject.main() else { return };
        for key in &self.queue {
            if let Some((entry, _)) = causes::last_write(trace, main, key) {
                self.causes.entry(key.clone()).or_default().add(entry.sequence);
            }
        }
    }

    pub fn crash(&mut self) {
        *self = Part { pace: std::mem::take(&mut self.pace), paced_from: self.paced_from, ..Part::default() };
    }

    /// Lists everything anew: what differs from the caches has happened unheard. All keys are looked at again.
    pub fn relist(&mut self, subject: &Subject, cluster: &Cluster, names: &Names) {
        let (now, revision) = (cluster.now(), cluster.revision());
        let mut unheard = Vec::new();
        for inbox in self.inboxes.values_mut() {
            let kind = &inbox.kind;
            let (listed, view) = (cluster.store().objects(kind), self.caches.view(now));
            for object in listed.values() {
                let before = view.get_of(kind, &object.key).cloned();
                if before.as_ref().is_none_or(|before| before.revision != object.revision) {
                    let after = Some(object.clone());
                    unheard.push(Change { revision: object.revision, sequence: 0, before, after });
                }
            }
            for object in view.list_of(kind, "").filter(|object| !listed.contains_key(&object.key)) {
                unheard.push(Change { revision, sequence: 0, before: Some(object.clone()), after: None });
            }
            self.known.retain(|(slot, _), _| *slot != kind.slot);
            self.known.extend(listed.values().map(|object| ((kind.slot, object.key.clone()), names.object(object))));
            self.caches.replace(kind, listed.values().cloned(), revision, now);
            (inbox.watcher, inbox.events) = (Watcher::new(kind, revision), VecDeque::new());
        }
        self.lacks = false;
        for change in unheard {
            self.enqueue(subject, &change, now);
        }
        self.resync(subject);
    }

    /// Looks at all keys again.
    pub fn resync(&mut self, subject: &Subject) {
        let Some(main) = subject.main() else { return };
        let keys: Vec<Key> = self.caches.view(Time::ZERO).list_of(main, "").map(|object| object.key.clone()).collect();
        keys.iter().for_each(|key| self.add(key));
    }

    /// Takes what the watches have for it; it is heard later.
    pub fn receive(&mut self, cluster: &Cluster, names: &Names) {
        for inbox in self.inboxes.values_mut() {
            while let Ok(Some(event)) = inbox.watcher.next(cluster.store()) {
                let digest = names.object(&event.object);
                inbox.events.push_back(Heard { event, digest });
            }
        }
    }

    /// The informer of a kind hears of its next event.
    pub fn hear(&mut self, subject: &Subject, slot: usize, now: Time, keep: bool) {
        let Some(inbox) = self.inboxes.get_mut(&slot) else { return };
        let heard = if keep { inbox.events.front().cloned() } else { inbox.events.pop_front() };
        let Some(Heard { event, digest }) = heard else { return };
        self.caches.apply(&event, now);
        let place = (slot, event.object.key.clone());
        match event.event_type {
            EventType::Deleted => self.known.remove(&place),
            EventType::Added | EventType::Modified => self.known.insert(place, digest),
        };
        self.enqueue(subject, &event.change, now);
    }

    /// A later event about the object of the next one is on its way, too.
    pub fn is_overwritten(&self, slot: usize) -> bool {
        let Some(inbox) = self.inboxes.get(&slot) else { return false };
        let mut events = inbox.events.iter().map(|heard| &heard.event.object.key);
        events.next().is_some_and(|first| events.any(|key| key == first))
    }

    pub fn add(&mut self, key: &Key) {
        if !self.queue.contains(key) {
            self.queue.push_back(key.clone());
        }
    }

    fn enqueue(&mut self, subject: &Subject, change: &Change, now: Time) {
        let slot = change.object().kind.slot;
        let mut keys = Vec::new();
        let view = self.caches.view(now);
        for watch in subject.watches.iter().filter(|watch| watch.kind.slot == slot) {
            match &watch.enqueue {
                Enqueue::Itself => keys.push(change.key().clone()),
                Enqueue::Owner(owner) => {
                    for object in [&change.before, &change.after].into_iter().flatten() {
                        if let Some(reference) = object.controller().filter(|reference| reference.kind == *owner.kind) {
                            let namespace =
                                if owner.namespaced { object.key.namespace.clone() } else { Name::default() };
                            keys.push(Key::new(namespace, reference.name.as_str()));
                        }
                    }
                }
                Enqueue::Each(kind) => {
                    keys.extend(view.list_of(kind, &change.key().namespace).map(|object| object.key.clone()));
                }
                Enqueue::With(with) => keys.extend(with(&view, change)),
            }
        }
        for key in keys {
            self.add(&key);
            self.causes.entry(key).or_default().add(change.sequence);
        }
    }

    /// Like client-go's delaying queue: of several moments for one key the earliest counts.
    pub fn come_back(&mut self, key: &Key, at: Time, is_asked: bool) {
        if self.timers.iter().any(|timer| timer.key == *key && timer.is_asked == is_asked && timer.at <= at) {
            return;
        }
        self.timers.retain(|timer| timer.key != *key || timer.is_asked != is_asked);
        self.timers.push(Timer { at, key: key.clone(), is_asked });
        self.timers.sort_by_key(|timer| timer.at);
    }

    /// How long a key waits that has failed once more: client-go's 5 ms, doubled each time.
    pub fn backoff(&mut self, key: &Key) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        *failures += 1;
        Duration::from_millis((5_u64 << (*failures - 1).min(30)).min(1_000_000))
    }

    /// Everything that decides what it will do.
    pub fn digest(&self, names: &Names) -> u64 {
        let view = self.view_digest();
        let inboxes: Vec<u64> = self
            .inboxes
            .values()
            .flat_map(|inbox| {
                [inbox.kind.slot as u64]
                    .into_iter()
                    .chain(inbox.events.iter().map(|heard| digest_of(&(heard.digest, heard.event.event_type as u8))))
            })
            .collect();
        let queue: Vec<u64> = self.queue.iter().map(|key| names.key(key)).collect();
        let run = self.run.as_ref().map(|run| (names.key(&run.key), run.view_digest, run.next));
        let timers: Vec<(u64, bool)> =
            self.timers.iter().map(|timer| (names.key(&timer.key), timer.is_asked)).collect();
        digest_of(&(self.is_up, view, inboxes, queue, run, timers, self.lacks))
    }

    pub fn view_digest(&self) -> u64 {
        self.known.values().fold(0, |sum, digest| sum.wrapping_add(*digest))
    }
}

/// Two plans ask for the same.
pub fn same(one: &Plan, other: &Plan) -> bool {
    fn writes(plan: &Plan) -> Vec<&Write> {
        let writes = plan.steps.iter().filter_map(|step| match step {
            Step::Write(write) => Some(&**write),
            Step::Absence(_) | Step::Event(_) => None,
        });
        writes.collect()
    }
    let (one_writes, other_writes) = (writes(one), writes(other));
    one.requeue_after == other.requeue_after
        && one.error == other.error
        && one_writes.len() == other_writes.len()
        && one_writes.iter().zip(&other_writes).all(|(one, other)| {
            let (one, other) = (&one.request, &other.request);
            one.verb == other.verb
                && one.kind.slot == other.kind.slot
                && one.key == other.key
                && one.subresource == other.subresource
                && one.options.precondition_uid == other.options.precondition_uid
                && match (&one.body, &other.body) {
                    (Body::Json(one), Body::Json(other)) => one == other,
                    (Body::Object(one), Body::Object(other)) => one.same(other),
                    (Body::None, Body::None) => true,
                    _ => false,
                }
        })
}
