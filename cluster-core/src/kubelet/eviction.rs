//! What happens when a machine runs short of memory, disk or process numbers: its conditions say so, unused images go,
//! and pods are evicted, one at a time, those first that take more than they asked for.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/>

use std::cmp::Reverse;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, NodeSpec, Pod, PodSpec, Volume};

use super::configuration::{Configuration, Threshold};
use super::worker::{Stage, Worker};
use super::{Kubelet, Task, Turn, node};
use crate::api::object::Object;
use crate::api::quantity;
use crate::api::{Key, Name};
use crate::clock::{Class, Time};
use crate::events::EventNote;
use crate::runtime::Runtime;
use crate::runtime::volumes::VolumeId;
use crate::trace::Causes;
use crate::world::World;

/// The machine is looked at this often while there is something to look at.
const INTERVAL: Duration = Duration::from_secs(10);
/// What containers get to end in when the machine is short (for hard thresholds).
const GRACE: Duration = Duration::from_secs(1);
/// What they get at least when it is a soft threshold.
const SOFT_GRACE_MIN: Duration = Duration::from_secs(2);
/// Process numbers of a machine (`kernel.pid_max`).
pub const PIDS: u64 = 32768;
/// From this priority on, pods are the system's own.
const CRITICAL: i32 = 2_000_000_000;

/// One resource that can run short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Memory,
    Disk,
    Pids,
}

const SIGNALS: [Signal; 3] = [Signal::Memory, Signal::Disk, Signal::Pids];

impl Signal {
    fn condition(self) -> &'static str {
        match self {
            Signal::Memory => "MemoryPressure",
            Signal::Disk => "DiskPressure",
            Signal::Pids => "PIDPressure",
        }
    }

    /// The resource, as messages name it.
    fn resource(self) -> &'static str {
        match self {
            Signal::Memory => "memory",
            Signal::Disk => "ephemeral-storage",
            Signal::Pids => "pids",
        }
    }

    /// Reasons of the node's events when it begins and ends.
    fn reasons(self) -> [&'static str; 2] {
        match self {
            Signal::Memory => ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"],
            Signal::Disk => ["NodeHasDiskPressure", "NodeHasNoDiskPressure"],
            Signal::Pids => ["NodeHasInsufficientPID", "NodeHasSufficientPID"],
        }
    }
}

/// How a machine stands: for each signal, when it was last short, if that still counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressures([Option<Time>; 3]);

impl Pressures {
    pub fn has(&self, signal: Signal) -> bool {
        self.0[signal as usize].is_some()
    }

    fn any(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// The condition because of which a pod is not let in. Where only memory is short, pods that ask for some are.
    pub fn refuses(&self, worker: &Worker) -> Option<&'static str> {
        if !self.any() || worker.spec().priority.is_some_and(|priority| priority >= CRITICAL) {
            return None;
        }
        if !self.has(Signal::Disk) && !self.has(Signal::Pids) {
            let tolerates = worker.spec().tolerations.iter().flatten().any(|toleration| {
                let key = toleration.key.as_deref().unwrap_or_default();
                key == "node.kubernetes.io/memory-pressure"
                    || key.is_empty() && toleration.operator.as_deref() == Some("Exists")
            });
            let asks = worker.pod.status::<Pod>().qos_class.as_deref() != Some("BestEffort");
            return (!asks && !tolerates).then_some("MemoryPressure");
        }
        SIGNALS.into_iter().rev().find(|signal| self.has(*signal)).map(Signal::condition)
    }
}

/// What there is of a resource, what is left, and from where on it is short.
struct Observed {
    available: u64,
    threshold: u64,
}

/// `100Mi`: bytes with the largest suffix that leaves no fraction.
fn bytes(amount: u64) -> String {
    match amount % 1024 {
        0 => quantity::canonical(&format!("{}Ki", amount / 1024)).unwrap_or_default(),
        _ => amount.to_string(),
    }
}

impl Kubelet {
    /// Begins to look at the machine, if it is not looked at already. The first look is work that somebody waits for.
    pub fn watch_pressure(&mut self, runtime: &mut Runtime, world: &mut World) {
        if self.running && !self.hollow && !self.watches_pressure {
            self.watches_pressure = true;
            self.turn(runtime, world).after(INTERVAL, Class::Work, Task::LookAtPressure);
        }
    }

    /// One look at the machine.
    pub(super) fn look_at_pressure(&mut self, runtime: &mut Runtime, world: &mut World) {
        let before = self.pressures;
        let configuration = self.configuration.clone();
        self.met_since.resize(configuration.thresholds.len(), None);
        let (mut is_met, mut due) = ([false; 3], Vec::new());
        for (index, threshold) in configuration.thresholds.iter().enumerate() {
            let observed = self.look_at(threshold, runtime);
            if observed.available >= observed.threshold {
                self.met_since[index] = None;
                continue;
            }
            is_met[threshold.signal as usize] = true;
            let since = *self.met_since[index].get_or_insert(world.now);
            if world.now.since(since) >= threshold.grace.unwrap_or_default() {
                due.push(*threshold);
            }
        }
        for (last, is_met) in self.pressures.0.iter_mut().zip(is_met) {
            if is_met {
                *last = Some(world.now);
            } else if last.is_some_and(|last| world.now.since(last) >= configuration.transition) {
                *last = None;
            }
        }
        let short = SIGNALS.into_iter().find_map(|signal| due.iter().find(|threshold| threshold.signal == signal));
        let after = self.pressures;
        for signal in SIGNALS.into_iter().filter(|signal| before.has(*signal) != after.has(*signal)) {
            let reason = signal.reasons()[usize::from(before.has(signal))];
            let message = format!("Node {} status is now: {reason}", self.node);
            self.node_event(false, reason, message, world);
        }
        if SIGNALS.into_iter().any(|signal| before.has(signal) != after.has(signal)) {
            node::post_status(after, &mut self.turn(runtime, world));
        }
        let evicts = match short {
            Some(threshold) => self.reclaim(threshold, runtime, world),
            None => self.evict_over_limit(runtime, world),
        };
        if evicts || self.pressures.any() || self.has_something_to_watch(runtime) {
            let class = if evicts { Class::Work } else { Class::Background };
            self.turn(runtime, world).after(INTERVAL, class, Task::LookAtPressure);
        } else {
            self.watches_pressure = false;
        }
    }

    fn node_event(&self, warning: bool, reason: &'static str, message: String, world: &mut World) {
        let mut node = Object::new::<Node>("", &self.node, NodeSpec::default());
        // A kubelet names its node as the uid, for it knows no other.
        node.metadata_mut().uid = Some(self.node.to_string());
        let note = EventNote { warning, ..EventNote::normal(&node, reason, message) };
        world.event(&self.actor, &note, &Causes::None);
    }

    fn look_at(&self, threshold: &Threshold, runtime: &Runtime) -> Observed {
        let capacity = |name: &str| u64::try_from(self.machine.millis(name).div_euclid(1000)).unwrap_or(0);
        let (capacity, used) = match threshold.signal {
            Signal::Memory => (capacity("memory"), runtime.memory_bytes()),
            Signal::Disk => (capacity("ephemeral-storage"), runtime.disk_bytes()),
            Signal::Pids => (PIDS, runtime.processes()),
        };
        Observed { available: capacity.saturating_sub(used), threshold: threshold.at.of(capacity) }
    }

    fn has_something_to_watch(&self, runtime: &Runtime) -> bool {
        runtime.is_filled()
            || *self.configuration != Configuration::default()
            || self.workers.values().any(|worker| worker.counts() && limits_storage(worker.spec()))
    }

    /// Wins back what is short. True if a pod is evicted for it.
    fn reclaim(&mut self, met: &Threshold, runtime: &mut Runtime, world: &mut World) -> bool {
        let (signal, most) = (met.signal, self.configuration.pod_grace_max);
        let resource = signal.resource();
        self.node_event(true, "EvictionThresholdMet", format!("Attempting to reclaim {resource}"), world);
        if signal == Signal::Disk {
            runtime.remove_unused_images();
        }
        let Observed { available, threshold } = self.look_at(met, runtime);
        if available >= threshold || self.workers.values().any(|worker| worker.stage == Stage::Stopping) {
            return available < threshold;
        }
        let mut ranked: Vec<(Rank, Name)> = self
            .workers
            .iter()
            .filter(|(_, worker)| worker.counts() && worker.stage == Stage::Running && !worker.is_critical())
            .map(|(uid, worker)| (worker.rank(signal, runtime), uid.clone()))
            .collect();
        ranked.sort();
        let Some((_, uid)) = ranked.into_iter().next() else { return false };
        let show = |amount: u64| if signal == Signal::Pids { amount.to_string() } else { bytes(amount) };
        let told = format!(
            "The node was low on resource: {resource}. Threshold quantity: {}, available: {}. ",
            show(threshold),
            show(available)
        );
        self.with_worker(&uid, runtime, world, |worker, turn| {
            let message = told + &worker.consumption(signal, turn.runtime);
            let own = worker.spec().termination_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
            let soft = own.map_or(most, |own| most.min(Duration::from_secs(own))).max(SOFT_GRACE_MIN);
            worker.evict(message, if met.grace.is_some() { soft } else { GRACE }, turn);
        });
        true
    }

    /// Evicts pods that hold more than they may. <https://kubernetes.io/docs/concepts/storage/ephemeral-storage/>
    fn evict_over_limit(&mut self, runtime: &mut Runtime, world: &mut World) -> bool {
        let over =
            |worker: &Worker| (worker.stage == Stage::Running).then(|| worker.storage_over_limit(runtime)).flatten();
        let found: Vec<(Name, String)> =
            self.workers.iter().filter_map(|(uid, worker)| Some((uid.clone(), over(worker)?))).collect();
        for (uid, message) in &found {
            self.with_worker(uid, runtime, world, |worker, turn| worker.evict(message.clone(), GRACE, turn));
        }
        !found.is_empty()
    }
}

/// Who goes first: whoever takes more than was asked for, then the lower priority, then who takes most beyond it.
type Rank = (Reverse<bool>, i32, Reverse<i64>, Key);

/// A pod that may hold only so much on disk.
pub fn limits_storage(spec: &PodSpec) -> bool {
    let limited = |volume: &Volume| volume.empty_dir.as_ref().is_some_and(|source| source.size_limit.is_some());
    spec.volumes.iter().flatten().any(limited)
        || spec.containers.iter().any(|container| {
            let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
            limits.is_some_and(|limits| limits.contains_key("ephemeral-storage"))
        })
}

impl Worker {
    fn is_critical(&self) -> bool {
        self.is_static() || self.spec().priority.is_some_and(|priority| priority >= CRITICAL)
    }

    fn rank(&self, signal: Signal, runtime: &Runtime) -> Rank {
        let (used, asked) = match signal {
            Signal::Memory => (self.memory_bytes(runtime), self.requests.memory_bytes),
            Signal::Disk => (self.storage_bytes(runtime), self.requests.storage_bytes),
            Signal::Pids => (1, 0),
        };
        let beyond = i64::try_from(used).unwrap_or(i64::MAX).saturating_sub(asked);
        (Reverse(beyond > 0), self.spec().priority.unwrap_or(0), Reverse(beyond), self.pod.key.clone())
    }

    pub(super) fn memory_bytes(&self, runtime: &Runtime) -> u64 {
        let current = self.slots.iter().filter_map(|slot| runtime.container(slot.current?));
        current.map(|container| container.memory_bytes()).sum()
    }

    /// What its containers have written and its volumes of its own hold.
    fn storage_bytes(&self, runtime: &Runtime) -> u64 {
        let current = self.slots.iter().filter_map(|slot| runtime.container(slot.current?));
        let written: u64 = current.map(|container| container.written_bytes()).sum();
        let volumes = self.spec().volumes.iter().flatten().filter(|volume| volume.empty_dir.is_some());
        let held = volumes.filter_map(|volume| runtime.volume(&VolumeId::of_pod(&self.uid, &volume.name)));
        written + held.map(|files| files.size_bytes()).sum::<u64>()
    }

    /// The containers that take more than they asked for, as the message tells of them.
    fn consumption(&self, signal: Signal, runtime: &Runtime) -> String {
        let resource = signal.resource();
        let mut text = String::new();
        for slot in &self.slots {
            let Some(container) = slot.current.and_then(|handle| runtime.container(handle)) else { continue };
            let used = match signal {
                Signal::Memory => container.memory_bytes(),
                Signal::Disk => container.written_bytes(),
                Signal::Pids => continue,
            };
            let resources = slot.spec(self.spec()).and_then(|spec| spec.resources.as_ref());
            let asked = resources.and_then(|resources| resources.requests.as_ref()?.get(resource));
            if u64::try_from(asked.map_or(0, quantity::units)).is_ok_and(|asked| used > asked) {
                let (name, used) = (&slot.name, bytes(used));
                let asked = asked.map_or("0", |asked| &asked.0);
                text.push_str(&format!(
                    "Container {name} was using {used}, request is {asked}, has larger consumption of {resource}. "
                ));
            }
        }
        text
    }

    /// What is said of a pod that holds more than its limits allow.
    fn storage_over_limit(&self, runtime: &Runtime) -> Option<String> {
        if !limits_storage(self.spec()) {
            return None;
        }
        for volume in self.spec().volumes.iter().flatten() {
            let limit = volume.empty_dir.as_ref().and_then(|source| source.size_limit.as_ref());
            let held = runtime.volume(&VolumeId::of_pod(&self.uid, &volume.name)).map_or(0, |files| files.size_bytes());
            if let Some(limit) = limit
                && i64::try_from(held).is_ok_and(|held| held > quantity::units(limit))
            {
                let name = &volume.name;
                return Some(format!("Usage of EmptyDir volume \"{name}\" exceeds the limit \"{}\". ", limit.0));
            }
        }
        self.slots.iter().find_map(|slot| {
            let limits = slot.spec(self.spec())?.resources.as_ref()?.limits.as_ref()?;
            let limit = limits.get("ephemeral-storage")?;
            let written = runtime.container(slot.current?)?.written_bytes();
            let over = i64::try_from(written).is_ok_and(|written| written > quantity::units(limit));
            let name = &slot.name;
            over.then(|| format!("Container {name} exceeded its local ephemeral storage limit \"{}\". ", limit.0))
        })
    }

    /// Ends the pod for the machine's sake, for good.
    fn evict(&mut self, message: String, grace: Duration, turn: &mut Turn<'_>) {
        turn.event(&self.pod, true, "Evicted", message.clone(), &self.causes);
        self.verdict = Some(("Evicted", message));
        self.stage = Stage::Stopping;
        self.stop_slots(grace, turn);
        self.check_stopped(turn);
        self.status_changed(0, turn);
    }

    /// What an evicted pod had on the machine is taken away with it.
    pub(super) fn discard_files(&self, turn: &mut Turn<'_>) {
        if self.verdict.as_ref().is_some_and(|(reason, _)| *reason == "Evicted") {
            turn.runtime.discard_files(&self.uid);
        }
    }
}
