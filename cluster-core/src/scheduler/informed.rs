//! What the scheduler's watches tell, and which waiting pods that may help.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, Pod};

use super::Scheduler;
use super::cycle::Cycle;
use super::filters::{self, Change};
use super::queue::Entry;
use crate::api::object::Object;
use crate::api::{Key, Name};
use crate::clock::Time;
use crate::trace::Sequence;

impl Scheduler {
    pub(super) fn put(&mut self, object: &Object, sequence: Sequence, now: Time) {
        if object.is::<Pod>() {
            self.put_pod(object, sequence, now);
        } else if object.is::<Node>() {
            if self.cache.put_node(object)
                && let Some(node) = self.cache.node(&object.key.name).cloned()
            {
                self.changed(&Change::NodePut(&node), sequence, now);
            }
        } else if object.is::<Namespace>() {
            self.cache.namespaces.insert(object.key.name.clone(), object.clone());
        } else if self.cache.volumes.put(object) {
            self.changed(&Change::Volumes, sequence, now);
        } else if !self.cache.budgets.put(object) {
            self.cache.owners.put(object);
        }
    }

    pub(super) fn remove(&mut self, object: &Object, sequence: Sequence, now: Time) {
        if object.is::<Pod>() {
            self.remove_pod(&object.key, sequence, now);
        } else if object.is::<Node>() {
            self.cache.remove_node(&object.key.name);
            self.changed(&Change::NodeRemoved, sequence, now);
        } else if object.is::<Namespace>() {
            self.cache.namespaces.remove(&object.key.name);
        } else if self.cache.volumes.remove(object) {
            self.changed(&Change::Volumes, sequence, now);
        } else if !self.cache.budgets.remove(object) {
            self.cache.owners.remove(object);
        }
    }

    fn put_pod(&mut self, object: &Object, sequence: Sequence, now: Time) {
        let (spec, status) = (object.spec::<Pod>(), object.status::<Pod>());
        if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
            return self.remove_pod(&object.key, sequence, now);
        }
        if let Some(node) = &spec.node_name {
            self.queue.remove(&object.key);
            if self.cache.refresh(object, node) {
                return;
            }
            let pod = Arc::new(self.asks.pod(object));
            self.cache.place(pod.clone(), &Name::from(node.as_str()));
            self.changed(&Change::PodPlaced(&pod.ask), sequence, now);
        } else if object.is_terminating() {
            self.remove_pod(&object.key, sequence, now);
        } else if spec.scheduler_name.as_deref().is_some_and(|name| self.configuration.profile(name).is_some()) {
            let pod = self.asks.pod(object);
            match &status.nominated_node_name {
                Some(node) if self.cache.node_of(&object.key).is_none() => {
                    let nominated = (Name::from(node.as_str()), Arc::new(pod.clone()));
                    self.cache.nominated.insert(object.key.clone(), nominated);
                }
                _ => {
                    self.cache.nominated.remove(&object.key);
                }
            }
            self.queue.put(pod, sequence, now);
        }
    }

    fn remove_pod(&mut self, key: &Key, sequence: Sequence, now: Time) {
        self.queue.remove(key);
        self.binding.remove(key);
        self.cache.nominated.remove(key);
        if let Some(pod) = self.cache.take_away(key) {
            self.changed(&Change::PodRemoved(&pod.ask), sequence, now);
        }
    }

    /// Wakes the pods that a change may help.
    pub(super) fn changed(&mut self, change: &Change<'_>, sequence: Sequence, now: Time) {
        if !self.queue.has_unschedulable() {
            return;
        }
        let is_cured = |entry: &&Entry| {
            let cycle = Cycle::without_counts(&entry.pod, &self.cache);
            let mut refusing = filters::ALL.iter().filter(|filter| entry.refused_by.contains(&filter.name()));
            entry.refused_by.is_empty() || refusing.any(|filter| filter.cured_by(&cycle, change))
        };
        let cured: Vec<Key> =
            self.queue.unschedulable().filter(is_cured).map(|entry| entry.pod.key().clone()).collect();
        for key in cured {
            self.queue.wake(&key, sequence, now);
        }
    }
}
