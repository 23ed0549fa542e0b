//! May a pod run here? A pod that the machine has no place for, or that does not belong on it, is turned away for good.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/>

use k8s_openapi::api::core::v1::{Node, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::worker::{Stage, Worker};
use super::{Capacity, Kubelet};
use crate::api::Name;
use crate::api::quantity;
use crate::api::request::Request;
use crate::api::selector::Selector;
use crate::node_selection::{HostPort, NodeTerm, host_ports};
use crate::quota::pods::requests_without_overhead;
use crate::world::World;

/// What a pod asks of a machine: thousandths of CPUs, bytes of memory and of disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amounts {
    pub cpu_millis: i64,
    pub memory_bytes: i64,
    pub storage_bytes: i64,
}

/// Why a pod may not run here: the reason of its status and of the event, and the message.
pub type Rejection = (&'static str, String);

impl Amounts {
    pub fn of(spec: &PodSpec) -> Amounts {
        let states = |resources: &Option<ResourceRequirements>| {
            resources.as_ref().is_some_and(|resources| resources.requests.is_some() || resources.limits.is_some())
        };
        let mut containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
        if spec.overhead.is_none() && !states(&spec.resources) && !containers.any(|one| states(&one.resources)) {
            return Amounts::default();
        }
        let requests = requests_without_overhead(spec);
        let millis = |name: &str| {
            let overhead = spec.overhead.as_ref().and_then(|overhead| overhead.get(name)).map_or(0, quantity::millis);
            requests.get(name).map_or(0, quantity::millis).saturating_add(overhead)
        };
        let units = |name: &str| millis(name).div_euclid(1000);
        Amounts { cpu_millis: millis("cpu"), memory_bytes: units("memory"), storage_bytes: units("ephemeral-storage") }
    }

    fn add(self, other: Amounts) -> Amounts {
        Amounts {
            cpu_millis: self.cpu_millis.saturating_add(other.cpu_millis),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
            storage_bytes: self.storage_bytes.saturating_add(other.storage_bytes),
        }
    }

    /// The first resource of which there is not enough: its name with "OutOf" before it, what is asked, used, there.
    pub fn lacks(self, used: Amounts, machine: &Capacity) -> Option<(&'static str, [i64; 3])> {
        let units = |name: &str| machine.millis(name).div_euclid(1000);
        let all = [
            ("OutOfcpu", self.cpu_millis, used.cpu_millis, machine.millis("cpu")),
            ("OutOfmemory", self.memory_bytes, used.memory_bytes, units("memory")),
            ("OutOfephemeral-storage", self.storage_bytes, used.storage_bytes, units("ephemeral-storage")),
        ];
        let lacks = |(_, asked, used, there): &(&str, i64, i64, i64)| *asked > 0 && *asked > there - used;
        let (reason, asked, used, there) = all.into_iter().find(lacks)?;
        Some((reason, [asked, used, there]))
    }
}

/// As the kubelet says that a machine has not enough.
pub fn not_enough(reason: &str, [asked, used, there]: [i64; 3]) -> String {
    let name = reason.trim_start_matches("OutOf");
    format!("Node didn't have enough resource: {name}, requested: {asked}, used: {used}, capacity: {there}")
}

impl Kubelet {
    /// What the pods on this machine ask for, but for one, and how many they are. Those that have ended don't count.
    pub(super) fn used(&self, but: &Name) -> (Amounts, i64) {
        let counted = self.workers.iter().filter(|(uid, worker)| *uid != but && worker.counts());
        counted.fold((Amounts::default(), 0), |(sum, count), (_, worker)| (sum.add(worker.requests), count + 1))
    }

    /// Whether a pod that is new on this machine may run here.
    pub(super) fn admit(&self, worker: &Worker, world: &mut World) -> Result<(), Rejection> {
        let spec = worker.spec();
        if let Some(condition) = self.pressures.refuses(worker) {
            return Err(("Evicted", format!("The node had condition: [{condition}]. ")));
        }
        let (used, count) = self.used(&worker.uid);
        let places = self.machine.millis("pods").div_euclid(1000);
        if count + 1 > places {
            return Err(("OutOfpods", not_enough("OutOfpods", [1, count, places])));
        }
        if let Some((reason, amounts)) = worker.requests.lacks(used, &self.machine) {
            return Err((reason, not_enough(reason, amounts)));
        }
        let predicate = |name: &str, detail: &str| format!("Predicate {name} failed: {detail}");
        let required = spec.affinity.as_ref().and_then(|affinity| {
            affinity.node_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_ref()
        });
        if (spec.node_selector.is_some() || required.is_some())
            && let Ok(Some(node)) =
                world.request(Request::get::<Node>(&self.actor, "", &self.node)).map(|answer| answer.object())
        {
            let labels = node.metadata().labels.as_ref();
            let wanted = LabelSelector { match_labels: spec.node_selector.clone(), match_expressions: None };
            let terms = required.map(|required| required.node_selector_terms.iter().map(NodeTerm::read));
            let matches = Selector::of(&wanted).matches(labels)
                && terms.is_none_or(|mut terms| terms.any(|term| term.matches(&self.node, labels)));
            if !matches {
                let detail = "node(s) didn't match Pod's node affinity/selector";
                return Err(("NodeAffinity", predicate("NodeAffinity", detail)));
            }
        }
        let taken = host_ports(spec);
        let others = self.workers.iter().filter(|(uid, other)| **uid != worker.uid && other.counts());
        let conflicts = |port: &HostPort| taken.iter().any(|taken| taken.conflicts_with(port));
        if !taken.is_empty() && others.flat_map(|(_, other)| host_ports(other.spec())).any(|port| conflicts(&port)) {
            let detail = "node(s) didn't have free ports for the requested pod ports";
            return Err(("NodePorts", predicate("NodePorts", detail)));
        }
        Ok(())
    }
}

impl Worker {
    /// It takes a place on the machine.
    pub(super) fn counts(&self) -> bool {
        !matches!(self.stage, Stage::Stopped | Stage::Over)
    }

    /// Turns the pod away: nothing of it will run.
    pub(super) fn reject(&mut self, (reason, message): Rejection) {
        self.verdict = Some((reason, message));
        self.rejected = true;
        self.stage = Stage::Stopped;
    }
}
