//! Shared informer caches: what a component has been told by its watches. It may lag behind the store.
//! <https://pkg.go.dev/k8s.io/client-go/tools/cache>

use std::any::Any;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};

use super::pods;
use super::queue::Backoffs;
use crate::HashMap;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::Response;
use crate::api::selector::{Labels, Selector};
use crate::api::status::Status;
use crate::api::{Key, Name};
use crate::clock::Time;
use crate::store::in_namespace;
use crate::watch::{EventType, WatchEvent};

/// The objects of one kind, with indexes by owner and, for pods, by node.
#[derive(Clone, Debug, Default)]
struct Cache {
    objects: imbl::OrdMap<Key, Object>,
    by_owner: Index,
    by_node: Index,
    /// For pods only: how many of each owner's there are, by their labels.
    tallies: HashMap<Name, Vec<(Labels, Tally)>>,
    /// For nodes only: when the spec of each was last seen to change, or the node to go.
    seen: HashMap<Key, Time>,
    /// The revision of the newest event that was delivered.
    revision: u64,
}

/// The keys of the objects that share a value.
#[derive(Clone, Debug, Default)]
struct Index(HashMap<Name, imbl::OrdSet<Key>>);

impl Index {
    fn add(&mut self, value: Name, key: &Key) {
        self.0.get_or_default(value).insert(key.clone());
    }

    fn remove(&mut self, value: &str, key: &Key) {
        if let Some(keys) = self.0.get_mut(value) {
            keys.remove(key);
            if keys.is_empty() {
                self.0.remove(value);
            }
        }
    }

    /// In the order of the keys.
    fn get<'a>(&'a self, value: &str) -> impl Iterator<Item = &'a Key> + use<'a> {
        self.0.get(value).into_iter().flatten()
    }

    /// Those of one namespace.
    fn in_namespace<'a>(&'a self, value: &str, namespace: &'a str) -> impl Iterator<Item = &'a Key> + use<'a> {
        let keys = self.0.get(value).into_iter();
        let keys = keys.flat_map(move |keys| keys.range(Key::new(namespace, "")..));
        keys.take_while(move |key| *key.namespace == *namespace)
    }
}

/// Pods with the same controller and labels, counted, so that nobody has to go through them all for a status.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    pub active: i32,
    /// Active and ready.
    pub ready: i32,
    /// On their way out and still there.
    pub leaving: i32,
}

impl Tally {
    fn of(pod: &Object) -> Tally {
        let active = pods::is_active(pod);
        Tally {
            active: i32::from(active),
            ready: i32::from(active && pods::is_ready(pod)),
            leaving: i32::from(pods::is_leaving(pod)),
        }
    }

    fn add(&mut self, other: Tally, sign: i32) {
        self.active += sign * other.active;
        self.ready += sign * other.ready;
        self.leaving += sign * other.leaving;
    }
}

impl Cache {
    /// Takes a new object or version, and answers with the version before.
    fn put(&mut self, object: &Object) -> Option<Object> {
        let before = match self.objects.get_mut(&object.key) {
            Some(known) => Some(std::mem::replace(known, object.clone())),
            None => self.objects.insert(object.key.clone(), object.clone()),
        };
        if object.is::<Pod>() {
            self.recount(before.as_ref(), Some(object));
        }
        match &before {
            None => self.index(object),
            Some(before) => {
                let same_owners = std::sync::Arc::ptr_eq(before.metadata_arc(), object.metadata_arc())
                    || before.metadata().owner_references == object.metadata().owner_references;
                if !same_owners || node_of(before) != node_of(object) {
                    self.unindex(before);
                    self.index(object);
                }
            }
        }
        before
    }

    fn remove(&mut self, key: &Key) -> Option<Object> {
        let object = self.objects.remove(key)?;
        self.unindex(&object);
        if object.is::<Pod>() {
            self.recount(Some(&object), None);
        }
        Some(object)
    }

    fn recount(&mut self, before: Option<&Object>, after: Option<&Object>) {
        if let (Some(before), Some(after)) = (before, after)
            && std::sync::Arc::ptr_eq(before.metadata_arc(), after.metadata_arc())
            && Tally::of(before) == Tally::of(after)
        {
            return;
        }
        for (pod, sign) in before.map(|pod| (pod, -1)).into_iter().chain(after.map(|pod| (pod, 1))) {
            let Some(owner) = pod.controller() else { continue };
            let owner = Name::from(owner.uid.as_str());
            let none = Labels::new();
            let labels = pod.metadata().labels.as_ref().unwrap_or(&none);
            let groups = self.tallies.get_or_default(owner.clone());
            let index = groups.iter().position(|(known, _)| known == labels).unwrap_or_else(|| {
                groups.push((labels.clone(), Tally::default()));
                groups.len() - 1
            });
            groups[index].1.add(Tally::of(pod), sign);
            if groups[index].1 == Tally::default() {
                groups.swap_remove(index);
                if groups.is_empty() {
                    self.tallies.remove(&owner);
                }
            }
        }
    }

    fn index(&mut self, object: &Object) {
        for uid in owners_of(object) {
            self.by_owner.add(uid, &object.key);
        }
        if let Some(node) = node_of(object) {
            self.by_node.add(node.into(), &object.key);
        }
    }

    fn unindex(&mut self, object: &Object) {
        for uid in owners_of(object) {
            self.by_owner.remove(&uid, &object.key);
        }
        if let Some(node) = node_of(object) {
            self.by_node.remove(node, &object.key);
        }
    }

    fn indexed<'a>(&'a self, index: &'a Index, value: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        index.get(value).filter_map(|key| self.objects.get(key))
    }
}

/// The uids of its owners, and the empty one if nobody controls it.
fn owners_of(object: &Object) -> impl Iterator<Item = Name> {
    let owners = object.metadata().owner_references.iter().flatten().map(|owner| Name::from(owner.uid.as_str()));
    owners.chain(object.controller().is_none().then(|| Name::from("")))
}

fn node_of(object: &Object) -> Option<&str> {
    object.is::<Pod>().then(|| object.spec::<Pod>().node_name.as_deref()).flatten()
}

/// One cache a kind, shared by all controllers of a component.
#[derive(Clone, Debug, Default)]
pub struct Caches {
    by_slot: imbl::OrdMap<usize, Cache>,
    /// Where the object of a uid is.
    by_uid: HashMap<Name, (usize, Key)>,
    kinds: Vec<KindRef>,
}

impl Caches {
    /// Fills the cache of a kind from a list at a revision.
    pub fn replace(&mut self, kind: &KindRef, objects: impl Iterator<Item = Object>, revision: u64, now: Time) {
        let mut seen = HashMap::default();
        if let Some(old) = self.by_slot.remove(&kind.slot) {
            for object in old.objects.values() {
                self.by_uid.remove(object.uid());
            }
            seen = old.seen;
        }
        self.kinds.retain(|known| known.slot != kind.slot);
        self.kinds.push(kind.clone());
        self.by_slot.insert(kind.slot, Cache { revision, seen, ..Cache::default() });
        for object in objects {
            self.put(object, now);
        }
    }

    /// Takes what a watch tells. The answer is what was known of that name before.
    pub fn apply(&mut self, event: &WatchEvent, now: Time) -> Option<Object> {
        let slot = event.object.kind.slot;
        let known = match event.event_type {
            EventType::Added | EventType::Modified => {
                if event.event_type == EventType::Added && event.object.is::<Node>() {
                    self.by_slot.entry(slot).or_default().seen.remove(&event.object.key);
                }
                self.put(event.object.clone(), now)
            }
            EventType::Deleted => {
                self.by_uid.remove(event.object.uid());
                let cache = self.by_slot.entry(slot).or_default();
                let known = cache.remove(&event.object.key);
                if event.object.is::<Node>() {
                    cache.seen.insert(event.object.key.clone(), now);
                }
                known
            }
        };
        self.by_slot.entry(slot).or_default().revision = event.change.revision;
        known
    }

    /// The answer is what was known of that name before.
    fn put(&mut self, object: Object, now: Time) -> Option<Object> {
        let slot = object.kind.slot;
        let cache = self.by_slot.entry(slot).or_default();
        let known = cache.put(&object);
        if known.as_ref().is_none_or(|known| known.uid() != object.uid()) {
            if let Some(known) = &known {
                self.by_uid.remove(known.uid());
            }
            self.by_uid.insert(object.uid().into(), (slot, object.key.clone()));
        }
        let is_new = || match &known {
            Some(known) => !known.same_spec(&object),
            None => !cache.seen.contains_key(&object.key),
        };
        if object.is::<Node>() && is_new() {
            cache.seen.insert(object.key.clone(), now);
        }
        known
    }

    /// How far the cache of a kind has come.
    pub fn revision(&self, slot: usize) -> u64 {
        self.by_slot.get(&slot).map_or(0, |cache| cache.revision)
    }

    pub fn has(&self, slot: usize) -> bool {
        self.by_slot.contains_key(&slot)
    }

    /// How many kinds are cached: one LIST and one WATCH each, however many controllers share them.
    pub fn kinds(&self) -> usize {
        self.by_slot.len()
    }

    pub fn view(&self, now: Time) -> View<'_> {
        View { caches: self, backoffs: None, answers: &[], memory: None, now }
    }
}

/// What a reconcile sees: the caches and the moment.
#[derive(Clone, Copy)]
pub struct View<'a> {
    caches: &'a Caches,
    backoffs: Option<&'a Backoffs>,
    answers: &'a [Result<Response, Status>],
    memory: Option<&'a (dyn Any + Send + Sync)>,
    pub now: Time,
}

impl<'a> View<'a> {
    pub fn with_backoffs(self, backoffs: &'a Backoffs) -> View<'a> {
        View { backoffs: Some(backoffs), ..self }
    }

    pub fn with_answers(self, answers: &'a [Result<Response, Status>]) -> View<'a> {
        View { answers, ..self }
    }

    pub fn with_memory(self, memory: Option<&'a (dyn Any + Send + Sync)>) -> View<'a> {
        View { memory, ..self }
    }

    /// What the apiserver has answered to what the controller asked, in the same order.
    pub fn answers(&self) -> &'a [Result<Response, Status>] {
        self.answers
    }

    /// What the last plan for this key wanted remembered, since the loop has started.
    pub fn remembered<T: Any>(&self) -> Option<&'a T> {
        self.memory?.downcast_ref()
    }

    /// How long the loop should wait before it does what it has called `id` again.
    pub fn backoff(&self, id: &str) -> Duration {
        self.backoffs.map_or(Duration::ZERO, |backoffs| backoffs.wait(id, self.now))
    }

    pub fn get<K: Resource>(&self, key: &Key) -> Option<&'a Object> {
        self.get_of(K::kind(), key)
    }

    pub fn get_of(&self, kind: &KindRef, key: &Key) -> Option<&'a Object> {
        self.caches.by_slot.get(&kind.slot)?.objects.get(key)
    }

    /// The objects of one namespace, by name; of all namespaces if it is empty.
    pub fn list<K: Resource>(&self, namespace: &'a str) -> impl Iterator<Item = &'a Object> + use<'a, K> {
        self.list_of(K::kind(), namespace)
    }

    pub fn list_of(&self, kind: &KindRef, namespace: &'a str) -> impl Iterator<Item = &'a Object> + use<'a> {
        let cache = self.caches.by_slot.get(&kind.slot);
        cache.into_iter().flat_map(move |cache| in_namespace(&cache.objects, namespace))
    }

    pub fn select<K: Resource>(
        &self,
        namespace: &'a str,
        selector: &'a Selector,
    ) -> impl Iterator<Item = &'a Object> + use<'a, K> {
        self.list::<K>(namespace).filter(move |object| selector.matches(object.metadata().labels.as_ref()))
    }

    /// The objects of a kind that this owner controls.
    pub fn controlled<K: Resource>(&self, owner_uid: &'a str) -> impl Iterator<Item = &'a Object> + use<'a, K> {
        self.controlled_of(K::kind(), owner_uid)
    }

    pub fn controlled_of(&self, kind: &KindRef, owner_uid: &'a str) -> impl Iterator<Item = &'a Object> + use<'a> {
        let cache = self.caches.by_slot.get(&kind.slot);
        cache
            .into_iter()
            .flat_map(move |cache| cache.indexed(&cache.by_owner, owner_uid))
            .filter(move |object| object.controller().is_some_and(|owner| owner.uid == owner_uid))
    }

    /// The pods that this owner controls, counted by their labels; those that ended are left out.
    pub fn tallies(&self, owner_uid: &str) -> &'a [(Labels, Tally)] {
        let cache = self.caches.by_slot.get(&KindRef::of::<Pod>().slot);
        cache.and_then(|cache| cache.tallies.get(owner_uid)).map_or(&[], Vec::as_slice)
    }

    /// The objects of a kind that nobody controls.
    pub fn uncontrolled_of(&self, kind: &KindRef, namespace: &'a str) -> impl Iterator<Item = &'a Object> + use<'a> {
        let cache = self.caches.by_slot.get(&kind.slot);
        cache
            .into_iter()
            .flat_map(move |cache| cache.by_owner.in_namespace("", namespace).filter_map(|key| cache.objects.get(key)))
    }

    /// The objects of every kind that name this owner.
    pub fn dependents(&self, owner_uid: &'a str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.caches.by_slot.values().flat_map(move |cache| cache.indexed(&cache.by_owner, owner_uid))
    }

    /// The object of a uid, of whatever kind.
    pub fn by_uid(&self, uid: &str) -> Option<&'a Object> {
        let (slot, key) = self.caches.by_uid.get(uid)?;
        self.caches.by_slot.get(slot)?.objects.get(key)
    }

    /// The kinds that are cached.
    pub fn kinds(&self) -> &'a [KindRef] {
        &self.caches.kinds
    }

    /// When the spec of this node was last seen to change, or the node to go, since the cache was filled.
    pub fn node_seen_at(&self, node: &str) -> Option<Time> {
        self.caches.by_slot.get(&KindRef::of::<Node>().slot)?.seen.get(&Key::cluster(node)).copied()
    }

    pub fn pods_on(&self, node: &'a str) -> impl Iterator<Item = &'a Object> + use<'a> {
        let cache = self.caches.by_slot.get(&KindRef::of::<Pod>().slot);
        cache.into_iter().flat_map(move |cache| cache.indexed(&cache.by_node, node))
    }
}
