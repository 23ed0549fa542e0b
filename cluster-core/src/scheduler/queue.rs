//! The pods that wait for a node: those to be tried next, those that back off, those that wait for a change.
//! <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-scheduling/scheduler_queues.md>

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::pod::PodInfo;
use crate::HashMap;
use crate::api::Key;
use crate::clock::Time;
use crate::trace::{Causes, Sequence};

/// How many seconds a pod backs off after its first attempt, and at most.
#[derive(Clone, Copy, Debug)]
pub struct Backoff(pub (u64, u64));

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff((1, 10))
    }
}

/// A pod that no change has woken is tried again after this time all the same.
pub const UNSCHEDULABLE_MAX: Duration = Duration::from_secs(300);

#[derive(Clone, Debug, Default)]
pub struct Queue {
    pub backoff: Backoff,
    entries: HashMap<Key, Entry>,
    active: imbl::OrdMap<Rank, Key>,
    /// By the second in which they have waited long enough, then as in the active queue.
    backing_off: imbl::OrdMap<(Time, Rank), Key>,
    unschedulable: imbl::OrdSet<(Time, Key)>,
    next: u64,
}

/// Priority, then the time in the queue, then the order in which they came.
type Rank = (Reverse<i32>, Time, u64);

#[derive(Clone, Debug)]
pub struct Entry {
    pub pod: Arc<PodInfo>,
    created: Sequence,
    /// What made the pod come, and what woke it since it was tried last.
    pub causes: Causes,
    /// The plugins that refused nodes when it was tried last.
    pub refused_by: Vec<&'static str>,
    attempts: u32,
    failures: u32,
    tried: Time,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// Scheduling gates hold it.
    Gated,
    Active(Rank),
    BackingOff(Time, Rank),
    Unschedulable(Time),
    /// It is being scheduled or bound.
    Taken,
}

impl Queue {
    /// Takes a new pod, or a new state of one that waits. A pod that asks for something else than before, or whose
    /// gates are gone, is tried again.
    pub fn put(&mut self, pod: PodInfo, sequence: Sequence, now: Time) {
        let key = pod.key().clone();
        let gated = pod.ask.gated;
        let Some(entry) = self.entries.get_mut(&key).filter(|known| known.pod.object.uid() == pod.object.uid()) else {
            self.remove(&key);
            let entry = Entry {
                pod: Arc::new(pod),
                created: sequence,
                causes: Causes::from(sequence),
                refused_by: Vec::new(),
                attempts: 0,
                failures: 0,
                tried: Time::ZERO,
                place: Place::Gated,
            };
            self.entries.insert(key.clone(), entry);
            if !gated {
                self.activate(&key, now);
            }
            return;
        };
        let asks_anew = entry.pod.ask != pod.ask;
        entry.pod = Arc::new(pod);
        match entry.place {
            Place::Gated if !gated => {
                entry.causes.add(sequence);
                self.activate(&key, now);
            }
            Place::Unschedulable(_) if asks_anew => self.wake(&key, sequence, now),
            _ => {}
        }
    }

    pub fn remove(&mut self, key: &Key) -> Option<Entry> {
        self.leave(key);
        self.entries.remove(key)
    }

    pub fn get(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Takes the pod that is to be tried next. If none is active, one that backs off goes at once
    /// (<https://kep.k8s.io/5142>), but not one whose binding failed.
    pub fn pop(&mut self, now: Time) -> Option<Entry> {
        self.end_backoff(now);
        let key = match self.active.get_min() {
            Some((_, key)) => key.clone(),
            None => self.early()?.clone(),
        };
        self.leave(&key);
        let entry = self.entries.get_mut(&key)?;
        entry.attempts += 1;
        entry.tried = now;
        Some(entry.clone())
    }

    pub fn has_next(&self, now: Time) -> bool {
        !self.active.is_empty()
            || self.backing_off.get_min().is_some_and(|((until, _), _)| *until <= now)
            || self.early().is_some()
    }

    fn early(&self) -> Option<&Key> {
        self.backing_off.values().find(|key| self.entries.get(*key).is_some_and(|entry| entry.failures == 0))
    }

    /// When the next pod has backed off long enough.
    pub fn next_backoff_end(&self) -> Option<Time> {
        self.backing_off.get_min().map(|((until, _), _)| *until)
    }

    /// Pods that have backed off long enough are active again.
    pub fn end_backoff(&mut self, now: Time) {
        while let Some(((until, _), key)) = self.backing_off.get_min()
            && *until <= now
        {
            let key = key.clone();
            self.activate(&key, now);
        }
    }

    /// No node was found: the pod waits for a change.
    pub fn give_up(&mut self, key: &Key, refused_by: Vec<&'static str>, now: Time) {
        self.leave(key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.refused_by = refused_by;
        entry.failures = 0;
        entry.causes = Causes::from(entry.created);
        entry.place = Place::Unschedulable(now);
        self.unschedulable.insert((now, key.clone()));
    }

    /// Something went wrong that has nothing to do with the nodes: the pod is tried again after a while.
    pub fn retry(&mut self, key: &Key, sequence: Sequence, now: Time) {
        self.leave(key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.failures += 1;
        entry.causes = Causes::from(entry.created);
        entry.causes.add(sequence);
        self.back_off(key, now);
    }

    /// The pods that wait for a change.
    pub fn unschedulable(&self) -> impl Iterator<Item = &Entry> {
        self.unschedulable.iter().filter_map(|(_, key)| self.entries.get(key))
    }

    pub fn has_unschedulable(&self) -> bool {
        !self.unschedulable.is_empty()
    }

    /// A change may have cured the refusal: the pod is tried again, if it was tried just before, after its backoff.
    pub fn wake(&mut self, key: &Key, sequence: Sequence, now: Time) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if matches!(entry.place, Place::Unschedulable(_)) {
            entry.causes.add(sequence);
            self.back_off(key, now);
        }
    }

    /// When the pod that has waited longest for a change is tried all the same.
    pub fn next_flush(&self) -> Option<Time> {
        self.unschedulable.get_min().map(|(since, _)| *since + UNSCHEDULABLE_MAX)
    }

    pub fn flush(&mut self, now: Time) {
        while let Some((since, key)) = self.unschedulable.get_min()
            && *since + UNSCHEDULABLE_MAX <= now
        {
            let key = key.clone();
            self.activate(&key, now);
        }
    }

    fn back_off(&mut self, key: &Key, now: Time) {
        let Some(entry) = self.entries.get(key) else { return };
        let until = entry.tried + entry.backoff(self.backoff);
        if until <= now {
            return self.activate(key, now);
        }
        let rank = self.rank(key, now);
        self.move_to(key, Place::BackingOff(until, rank));
    }

    fn activate(&mut self, key: &Key, now: Time) {
        let rank = self.rank(key, now);
        self.move_to(key, Place::Active(rank));
    }

    fn rank(&mut self, key: &Key, now: Time) -> Rank {
        self.next += 1;
        let priority = self.entries.get(key).map_or(0, |entry| entry.pod.ask.priority);
        (Reverse(priority), now, self.next)
    }

    fn move_to(&mut self, key: &Key, place: Place) {
        self.leave(key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.place = place;
        match place {
            Place::Active(rank) => {
                self.active.insert(rank, key.clone());
            }
            Place::BackingOff(until, rank) => {
                self.backing_off.insert((until, rank), key.clone());
            }
            Place::Unschedulable(since) => {
                self.unschedulable.insert((since, key.clone()));
            }
            Place::Gated | Place::Taken => {}
        }
    }

    fn leave(&mut self, key: &Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match std::mem::replace(&mut entry.place, Place::Taken) {
            Place::Active(rank) => {
                self.active.remove(&rank);
            }
            Place::BackingOff(until, rank) => {
                self.backing_off.remove(&(until, rank));
            }
            Place::Unschedulable(since) => {
                self.unschedulable.remove(&(since, key.clone()));
            }
            Place::Gated | Place::Taken => {}
        }
    }
}

impl Entry {
    /// The first time after the first attempt, then doubling.
    fn backoff(&self, Backoff((first, most)): Backoff) -> Duration {
        let doubled = first.saturating_mul(1 << self.attempts.saturating_sub(1).min(10));
        Duration::from_secs(doubled.min(most))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, PodSpec};

    use super::super::pod::Asks;
    use super::*;
    use crate::api::object::Object;

    fn pod(name: &str, priority: i32) -> PodInfo {
        let spec = PodSpec { priority: Some(priority), ..PodSpec::default() };
        Asks::default().pod(&Object::new::<Pod>("default", name, spec))
    }

    fn names(queue: &mut Queue, now: Time) -> Vec<String> {
        std::iter::from_fn(|| queue.pop(now)).map(|entry| entry.pod.key().name.to_string()).collect()
    }

    #[test]
    fn higher_priority_first_then_the_one_that_came_first() {
        let mut queue = Queue::default();
        for (name, priority) in [("a", 0), ("b", 5), ("c", 0)] {
            queue.put(pod(name, priority), 1, Time::ZERO);
        }
        assert_eq!(names(&mut queue, Time::ZERO), ["b", "a", "c"]);
    }

    #[test]
    fn a_failed_binding_backs_off_longer_each_time() {
        let mut queue = Queue::default();
        queue.put(pod("a", 0), 1, Time::ZERO);
        let mut now = Time::ZERO;
        for seconds in [1, 2, 4, 8, 10, 10] {
            assert!(queue.pop(now).is_some());
            queue.retry(&Key::new("default", "a"), 2, now);
            now += Duration::from_secs(seconds);
            assert_eq!(queue.next_backoff_end(), Some(now));
        }
    }

    #[test]
    fn a_pod_without_a_node_waits_for_a_change_or_five_minutes() {
        let mut queue = Queue::default();
        let key = Key::new("default", "a");
        queue.put(pod("a", 0), 1, Time::ZERO);
        queue.pop(Time::ZERO);
        queue.give_up(&key, vec!["NodeResourcesFit"], Time::ZERO);
        assert!(!queue.has_next(Time::from_secs(60)));
        queue.wake(&key, 7, Time::from_secs(60));
        let woken = queue.pop(Time::from_secs(60)).unwrap();
        assert_eq!(woken.causes.as_slice(), [1, 7]);
        queue.give_up(&key, vec!["NodeResourcesFit"], Time::from_secs(60));
        queue.flush(Time::from_secs(359));
        assert!(!queue.has_next(Time::from_secs(359)));
        queue.flush(Time::from_secs(360));
        assert!(queue.has_next(Time::from_secs(360)));
    }
}
