//! A work queue: a key waits in it once, however often it was added; failures come back later and later, and so does
//! what a loop says it does too often.
//! <https://pkg.go.dev/k8s.io/client-go/util/workqueue>

use std::time::Duration;

use crate::HashMap;
use crate::api::{Key, Name};
use crate::clock::Time;
use crate::trace::Causes;

/// client-go's default: 5 ms, doubling with each failure of a key.
const BACKOFF_MS_BASE: u64 = 5;
const BACKOFF_MS_MAX: u64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// In the order in which the keys came.
    ready: imbl::OrdMap<u64, Key>,
    waiting: HashMap<Key, Waiting>,
    failures: HashMap<Key, u32>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Waiting {
    position: u64,
    causes: Causes,
}

impl Queue {
    /// Adds a key, or a cause to one that waits already.
    pub fn add(&mut self, key: &Key, causes: &Causes) {
        if let Some(waiting) = self.waiting.get_mut(key) {
            waiting.causes.merge(causes);
            return;
        }
        let position = self.next;
        self.next += 1;
        self.ready.insert(position, key.clone());
        self.waiting.insert(key.clone(), Waiting { position, causes: causes.clone() });
    }

    /// Takes the first key for which `may_run` says yes.
    pub fn take(&mut self, may_run: impl Fn(&Key) -> bool) -> Option<(Key, Causes)> {
        let (position, key) = self.ready.iter().find(|(_, key)| may_run(key)).map(|(p, k)| (*p, k.clone()))?;
        self.ready.remove(&position);
        let waiting = self.waiting.remove(&key)?;
        debug_assert_eq!(waiting.position, position);
        Some((key, waiting.causes))
    }

    pub fn has_ready(&self, may_run: impl Fn(&Key) -> bool) -> bool {
        self.ready.values().any(may_run)
    }

    pub fn len(&self) -> usize {
        self.ready.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Counts a failure and says how long to wait before the key is tried again.
    pub fn backoff(&mut self, key: &Key) -> Duration {
        let failures = self.failures.get_or_default(key.clone());
        let wait = BACKOFF_MS_BASE.saturating_mul(1 << (*failures).min(30)).min(BACKOFF_MS_MAX);
        *failures += 1;
        Duration::from_millis(wait)
    }

    /// The key succeeded: its failures are forgotten.
    pub fn forget(&mut self, key: &Key) {
        self.failures.remove(key);
    }

    pub fn failures(&self, key: &Key) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }
}

/// What a loop does less and less often, by names that it gives.
/// <https://pkg.go.dev/k8s.io/client-go/util/flowcontrol#Backoff>
#[derive(Clone, Debug, Default)]
pub struct Backoffs(imbl::OrdMap<Name, (Time, Duration)>);

impl Backoffs {
    const FIRST: Duration = Duration::from_secs(1);
    const MAX: Duration = Duration::from_secs(15 * 60);

    /// It is done now: the next time is to come later. What rests for long enough starts anew.
    pub fn next(&mut self, id: &Name, now: Time) {
        let known = self.0.get(id).filter(|(last, _)| now.since(*last) <= 2 * Backoffs::MAX);
        let wait = known.map_or(Backoffs::FIRST, |(_, wait)| (*wait * 2).min(Backoffs::MAX));
        self.0.insert(id.clone(), (now, wait));
    }

    pub fn wait(&self, id: &str, now: Time) -> Duration {
        self.0.get(id).map_or(Duration::ZERO, |(last, wait)| (*last + *wait).since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_again_and_again_is_done_less_and_less_often() {
        let (mut backoffs, id, start) = (Backoffs::default(), Name::from("a"), Time::from_secs(100));
        assert_eq!(backoffs.wait(&id, start), Duration::ZERO);
        backoffs.next(&id, start);
        assert_eq!(backoffs.wait(&id, start).as_secs(), 1);
        backoffs.next(&id, start + Duration::from_secs(5));
        assert_eq!(backoffs.wait(&id, start + Duration::from_secs(6)).as_secs(), 1);
        backoffs.next(&id, start + Duration::from_secs(3600));
        assert_eq!(backoffs.wait(&id, start + Duration::from_secs(3600)).as_secs(), 1);
    }

    #[test]
    fn a_key_waits_once_with_all_its_causes() {
        let mut queue = Queue::default();
        let (a, b) = (Key::cluster("a"), Key::cluster("b"));
        queue.add(&a, &Causes::One(1));
        queue.add(&b, &Causes::One(2));
        queue.add(&a, &Causes::One(3));
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.take(|key| *key != a).unwrap().0, b);
        let (key, causes) = queue.take(|_| true).unwrap();
        assert_eq!((key, causes.as_slice()), (a, &[1, 3][..]));
        assert!(queue.take(|_| true).is_none());
    }

    #[test]
    fn failures_double_the_wait() {
        let (mut queue, key) = (Queue::default(), Key::cluster("a"));
        let waits: Vec<_> = (0..4).map(|_| queue.backoff(&key).as_millis()).collect();
        assert_eq!(waits, [5, 10, 20, 40]);
        queue.forget(&key);
        assert_eq!(queue.backoff(&key).as_millis(), 5);
    }
}
