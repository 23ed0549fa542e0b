//! kube-scheduler: finds a node for each pod that has none, and binds it there. It starts nothing.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/kube-scheduler/>
//!
//! The way of a pod: [`informed`] of it → [`queue`] → [`attempt`]: [`cycle`] ([`filters`], then [`scores`]) → assumed in
//! the [`cache`] → binding; if no node passes, [`preemption`], the condition, the Event, and the queue again.

mod attempt;
mod budgets;
mod cache;
pub mod configuration;
mod cycle;
mod filters;
mod informed;
mod node;
mod pod;
mod preemption;
mod profile;
mod queue;
mod report;
mod resources;
mod scores;
mod spreading;
mod terms;
mod verdict;
mod volumes;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};

use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::{Key, Name};
use crate::clock::{Class, Time};
use crate::trace::{Actor, Causes};
use crate::watch::{EventType, WatchEvent, Watcher};
use crate::world::{Event, Subscriber, World};
use cache::Cache;
use cycle::Classes;
use pod::{Asks, PodInfo};
pub use profile::Configuration;
use queue::{Backoff, Queue};
use verdict::History;
use volumes::Step;

pub use verdict::{NodeVerdict, Verdict};

/// What wakes the scheduler, beside its watches. The number is the incarnation that asked for it.
#[derive(Clone, Debug)]
pub enum Wake {
    /// The next pod's turn.
    Cycle(u64),
    /// A binding reaches the apiserver.
    Bind(u64, Key),
    /// A pod has backed off long enough.
    BackoffEnd(u64),
    /// A pod has waited for a change for so long that it is tried all the same.
    Flush(u64),
}

#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    /// Counts restarts, so that what was under way before one is not taken for the present.
    incarnation: u64,
    /// What it is started with.
    configuration: Arc<Configuration>,
    cache: Cache,
    queue: Queue,
    asks: Asks,
    classes: Classes,
    history: History,
    /// Where the next search for nodes begins.
    start: usize,
    binding: crate::HashMap<Key, Binding>,
    /// Those of them whose claims must be bound first.
    waiting_for_volumes: imbl::OrdSet<Key>,
    /// A cycle is on the timeline.
    is_due: bool,
    backoff_alarm: Option<Time>,
    flush_alarm: Option<Time>,
}

/// A pod that a node was found for, on its way to the apiserver.
#[derive(Clone, Debug)]
struct Binding {
    pod: Arc<PodInfo>,
    node: Name,
    causes: Causes,
    /// What is to be written for the pod's claims.
    volumes: Vec<Step>,
}

impl Scheduler {
    /// Lists and watches what it needs to know.
    pub fn start(&mut self, world: &mut World) {
        let (incarnation, configuration) = (self.incarnation + 1, self.configuration.clone());
        *self = Scheduler { incarnation, configuration, ..Scheduler::default() };
        self.cache.configuration = self.configuration.clone();
        self.queue.backoff = Backoff(self.configuration.backoff_seconds);
        let kinds = [
            Node::kind(),
            Namespace::kind(),
            Service::kind(),
            ReplicaSet::kind(),
            StatefulSet::kind(),
            ReplicationController::kind(),
            StorageClass::kind(),
            CSINode::kind(),
            PersistentVolume::kind(),
            PersistentVolumeClaim::kind(),
            PodDisruptionBudget::kind(),
            Pod::kind(),
        ];
        for kind in kinds {
            let revision = world.apiserver.store.revision();
            let objects: Vec<Object> = world.apiserver.store.list(kind, "").cloned().collect();
            for object in &objects {
                self.put(object, 0, world.now);
            }
            world.subscribe(Subscriber::Scheduler, Watcher::new(kind, revision));
        }
        self.look_again(world);
    }

    pub fn stop(&mut self, world: &mut World) {
        self.incarnation += 1;
        world.unsubscribe(&Subscriber::Scheduler);
    }

    /// What it is started with the next time.
    pub fn configure(&mut self, configuration: Configuration) {
        self.configuration = Arc::new(configuration);
    }

    /// What the last cycle of a pod said about each node; the last hundred pods are remembered.
    pub fn verdict(&self, pod: &Key) -> Option<Verdict> {
        self.history.verdict(pod)
    }

    pub fn observe(&mut self, events: &[WatchEvent], world: &mut World) {
        for event in events {
            match event.event_type {
                EventType::Added | EventType::Modified => self.put(&event.object, event.change.sequence, world.now),
                EventType::Deleted => self.remove(&event.object, event.change.sequence, world.now),
            }
        }
        self.look_again(world);
    }

    pub fn wake(&mut self, wake: Wake, world: &mut World) {
        let (Wake::Cycle(incarnation)
        | Wake::Bind(incarnation, _)
        | Wake::BackoffEnd(incarnation)
        | Wake::Flush(incarnation)) = &wake;
        if *incarnation != self.incarnation {
            return;
        }
        match wake {
            Wake::Cycle(_) => {
                self.is_due = false;
                if let Some(entry) = self.queue.pop(world.now) {
                    self.schedule(&entry, world);
                }
            }
            Wake::Bind(_, key) => self.bind(&key, world),
            Wake::BackoffEnd(_) => {
                self.backoff_alarm = None;
                self.queue.end_backoff(world.now);
            }
            Wake::Flush(_) => {
                self.flush_alarm = None;
                self.queue.flush(world.now);
            }
        }
        self.look_again(world);
    }

    /// Sets the timers for what is to come next.
    fn look_again(&mut self, world: &mut World) {
        for key in self.waiting_for_volumes.clone() {
            let binding = self.binding.get(&key);
            if binding.is_none_or(|binding| self.cache.volumes.are_bound(&binding.volumes)) {
                self.waiting_for_volumes.remove(&key);
                self.send_binding(key, world);
            }
        }
        if self.queue.has_next(world.now) && !self.is_due {
            self.is_due = true;
            let delay = world.random.between(world.settings.reconcile.0, world.settings.reconcile.1);
            world.after(delay, Class::Work, Event::Scheduler(Wake::Cycle(self.incarnation)));
        }
        if let Some(at) = self.queue.next_backoff_end().filter(|at| self.backoff_alarm.is_none_or(|set| *at < set)) {
            self.backoff_alarm = Some(at);
            world.at(at, Class::Work, Event::Scheduler(Wake::BackoffEnd(self.incarnation)));
        }
        if let Some(at) = self.queue.next_flush().filter(|at| self.flush_alarm.is_none_or(|set| *at < set)) {
            self.flush_alarm = Some(at);
            world.at(at, Class::Background, Event::Scheduler(Wake::Flush(self.incarnation)));
        }
    }
}

fn actor() -> Actor {
    static ACTOR: std::sync::LazyLock<Actor> = std::sync::LazyLock::new(|| "kube-scheduler".into());
    ACTOR.clone()
}

#[cfg(test)]
mod tests;
