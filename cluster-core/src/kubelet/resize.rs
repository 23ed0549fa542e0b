//! Resize in place: a pod that runs gets more or less CPU and memory, if the machine has it; containers that can't take
//! that while they run are started again.
//! <https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/>

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container as ContainerSpec, Pod, PodSpec, ResourceRequirements};
use serde_json::json;

use super::admission::{Amounts, not_enough};
use super::worker::{Role, Slot, Stage, Step, Worker};
use super::{Kubelet, Task, Turn};
use crate::api::Name;
use crate::api::object::Object;
use crate::api::quantity;
use crate::clock::Class;
use crate::runtime::Runtime;
use crate::runtime::usage::CORE_NANOS;
use crate::world::World;

/// From a resize that was granted to containers that have it.
const LATENCY: Duration = Duration::from_millis(100);

/// A resize that is not over.
#[derive(Clone, Debug)]
pub enum Resize {
    /// It can't be done: now, or ever. Reason and message of the condition.
    Pending { from: Object, reason: &'static str, message: String },
    /// It has been granted, and containers are about to have it; `Some` says why they can't.
    InProgress { from: Object, error: Option<String> },
}

impl Resize {
    fn from(&self) -> &Object {
        match self {
            Resize::Pending { from, .. } | Resize::InProgress { from, .. } => from,
        }
    }

    /// Type, reason and message of its condition.
    pub fn condition(&self) -> (&'static str, Option<&'static str>, Option<String>) {
        match self {
            Resize::Pending { reason, message, .. } => ("PodResizePending", Some(reason), Some(message.clone())),
            Resize::InProgress { error: Some(error), .. } => {
                ("PodResizeInProgress", Some("Error"), Some(error.clone()))
            }
            Resize::InProgress { error: None, .. } => ("PodResizeInProgress", None, None),
        }
    }
}

fn resources(container: &ContainerSpec) -> Option<&ResourceRequirements> {
    container.resources.as_ref()
}

/// True if containers of one spec have other resources in the other.
fn differs(one: &PodSpec, other: &PodSpec) -> bool {
    let all = |spec: &PodSpec| -> Vec<Option<ResourceRequirements>> {
        let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
        containers.map(|container| container.resources.clone()).collect()
    };
    one.resources != other.resources || all(one) != all(other)
}

impl Kubelet {
    /// A pod has another spec: if it asks for other resources, they are granted or not.
    pub(super) fn resize(&mut self, uid: &Name, before: &Object, runtime: &mut Runtime, world: &mut World) {
        let Some(worker) = self.workers.get(uid).filter(|worker| worker.stage == Stage::Running) else { return };
        if self.hollow || worker.pod.same_spec(before) || !differs(before.spec::<Pod>(), worker.spec()) {
            return;
        }
        let from = worker.resize.as_ref().map_or_else(|| before.clone(), |resize| resize.from().clone());
        self.try_resize(uid, from, runtime, world);
        self.retry_resizes(runtime, world);
    }

    fn try_resize(&mut self, uid: &Name, from: Object, runtime: &mut Runtime, world: &mut World) {
        let Some(worker) = self.workers.get(uid) else { return };
        let wanted = Amounts::of(worker.spec());
        let (used, _) = self.used(uid);
        let refused = if worker.is_static() {
            Some(("Infeasible", "In-place resize of static-pods is not supported".to_owned()))
        } else if let Some((reason, [asked, _, there])) = wanted.lacks(Amounts::default(), &self.machine) {
            let name = reason.trim_start_matches("OutOf");
            Some((
                "Infeasible",
                format!("Node didn't have enough capacity: {name}, requested: {asked}, capacity: {there}"),
            ))
        } else {
            let lacks = wanted.lacks(used, &self.machine);
            lacks.map(|(reason, amounts)| ("Deferred", not_enough(reason, amounts)))
        };
        self.with_worker(uid, runtime, world, |worker, turn| match refused {
            Some((reason, message)) => worker.hold_resize(from, reason, message, turn),
            None => worker.begin_resize(from, wanted, turn),
        });
        self.defers_resizes = self.workers.values().any(|worker| worker.is_deferred());
    }

    /// A pod has gone or takes less: resizes that waited for it are tried again.
    pub(super) fn retry_resizes(&mut self, runtime: &mut Runtime, world: &mut World) {
        if !self.defers_resizes {
            return;
        }
        let waiting: Vec<(Name, Object)> = self
            .workers
            .iter()
            .filter(|(_, worker)| worker.is_deferred())
            .filter_map(|(uid, worker)| Some((uid.clone(), worker.resize.as_ref()?.from().clone())))
            .collect();
        for (uid, from) in waiting {
            self.try_resize(&uid, from, runtime, world);
        }
    }
}

impl Worker {
    fn is_deferred(&self) -> bool {
        matches!(self.resize.as_deref(), Some(Resize::Pending { reason: "Deferred", .. })) && self.counts()
    }

    fn hold_resize(&mut self, from: Object, reason: &'static str, message: String, turn: &mut Turn<'_>) {
        if let Some(Resize::Pending { message: known, .. }) = self.resize.as_deref()
            && *known == message
        {
            return;
        }
        let event = if reason == "Infeasible" { "ResizeInfeasible" } else { "ResizeDeferred" };
        let told = format!("Pod resize pending: {}", self.told(Some(&message)));
        turn.event(&self.pod, true, event, told, &self.causes);
        self.resize = Some(Box::new(Resize::Pending { from, reason, message }));
        self.status_changed(0, turn);
    }

    /// What the events say: the containers as they are to be.
    fn told(&self, error: Option<&str>) -> String {
        let container = |container: &ContainerSpec| json!({"name": container.name, "resources": container.resources});
        let containers: Vec<_> = self.spec().containers.iter().map(container).collect();
        let mut told = json!({"containers": containers, "generation": self.pod.metadata().generation});
        if let Some(error) = error {
            told["error"] = error.into();
        }
        told.to_string()
    }

    fn begin_resize(&mut self, from: Object, requests: Amounts, turn: &mut Turn<'_>) {
        self.requests = requests;
        let told = format!("Pod resize started: {}", self.told(None));
        turn.event(&self.pod, false, "ResizeStarted", told, &self.causes);
        let over = self.slots.iter().find_map(|slot| {
            let limit = slot.spec(self.spec())?.resources.as_ref()?.limits.as_ref()?.get("memory")?;
            let used = turn.runtime.container(slot.current?)?.memory_bytes();
            let limit = quantity::units(limit);
            let over = i64::try_from(used).is_ok_and(|used| used > limit) && !self.restarts_for(slot, "memory");
            over.then(|| format!("attempting to set pod memory limit ({limit}) below current usage ({used})"))
        });
        self.resize = Some(Box::new(Resize::InProgress { from, error: over }));
        self.status_changed(0, turn);
        turn.after(LATENCY, Class::Work, Task::Resized(self.uid.clone()));
    }

    fn restarts_for(&self, slot: &Slot, resource: &str) -> bool {
        let policies = slot.spec(self.spec()).and_then(|spec| spec.resize_policy.as_ref()).into_iter().flatten();
        let mut of_resource = policies.filter(|policy| policy.resource_name == resource);
        of_resource.any(|policy| policy.restart_policy == "RestartContainer")
    }

    /// The containers have what was granted, or end to start with it.
    pub fn resized(&mut self, turn: &mut Turn<'_>) {
        let Some(Resize::InProgress { from, error: None }) = self.resize.as_deref() else { return };
        let from = from.clone();
        let changed = |slot: &Slot, resource: &str| {
            let of = |spec: &PodSpec| {
                let resources = resources(slot.spec(spec)?)?;
                let of =
                    |amounts: &Option<std::collections::BTreeMap<String, _>>| amounts.as_ref()?.get(resource).cloned();
                Some((of(&resources.requests), of(&resources.limits)))
            };
            of(from.spec::<Pod>()) != of(self.spec())
        };
        let restarted: Vec<usize> = (0..self.slots.len())
            .filter(|index| {
                let slot = &self.slots[*index];
                let must = |resource| changed(slot, resource) && self.restarts_for(slot, resource);
                slot.step == Step::Running && slot.role != Role::Ephemeral && (must("cpu") || must("memory"))
            })
            .collect();
        self.resize = None;
        for slot in &self.slots {
            let spec = slot.spec(self.spec());
            if let Some(handle) = slot.current {
                turn.runtime.limit_memory(handle, spec.and_then(memory_limit));
                turn.runtime.limit_cpu(handle, spec.and_then(cpu_limit), turn.world.now);
            }
        }
        for index in restarted {
            if let Some(handle) = self.slots[index].current {
                let message = format!("Container {} resize requires restart", self.slots[index].name);
                self.kill(index, handle, message, turn);
            }
        }
        let told = format!("Pod resize completed: {}", self.told(None));
        turn.event(&self.pod, false, "ResizeCompleted", told, &self.causes);
        self.status_changed(0, turn);
    }

    /// The spec that says what a container has been granted, and the one that says what it has.
    pub(super) fn specs_of_resources(&self) -> (&PodSpec, &PodSpec) {
        match self.resize.as_deref() {
            None => (self.spec(), self.spec()),
            Some(Resize::Pending { from, .. }) => (from.spec::<Pod>(), from.spec::<Pod>()),
            Some(Resize::InProgress { from, .. }) => (self.spec(), from.spec::<Pod>()),
        }
    }
}

/// Bytes that the container may take.
/// The CPU time a second that a container's processes may take.
pub fn cpu_limit(spec: &ContainerSpec) -> Option<u64> {
    let limit = resources(spec)?.limits.as_ref()?.get("cpu")?;
    u64::try_from(quantity::millis(limit))
        .ok()
        .filter(|limit| *limit > 0)
        .map(|millicores| millicores * CORE_NANOS / 1000)
}

pub fn memory_limit(spec: &ContainerSpec) -> Option<u64> {
    let limit = resources(spec)?.limits.as_ref()?.get("memory")?;
    u64::try_from(quantity::units(limit)).ok().filter(|limit| *limit > 0)
}
