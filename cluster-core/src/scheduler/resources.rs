//! Amounts of resources: what a pod needs, what a node offers.
//! <https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/>

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::api::object::Object;
use crate::api::quantity;

/// What a container without a request counts as when nodes are compared (not when they are filtered).
const MILLI_CPU_ASSUMED: i64 = 100;
const MEMORY_BYTES_ASSUMED: i64 = 200 << 20;

/// Amounts of resources; memory and storage in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    pub milli_cpu: i64,
    pub memory: i64,
    pub ephemeral_storage: i64,
    /// Extended resources and huge pages.
    pub scalars: BTreeMap<String, i64>,
}

/// As API objects carry them.
type Quantities = BTreeMap<String, Quantity>;

impl Resources {
    /// What stands for the request that a container doesn't make when nodes are compared.
    pub fn assumed() -> Resources {
        Resources { milli_cpu: MILLI_CPU_ASSUMED, memory: MEMORY_BYTES_ASSUMED, ..Resources::default() }
    }

    pub fn read(quantities: Option<&Quantities>) -> Resources {
        let mut resources = Resources::default();
        for (name, quantity) in quantities.into_iter().flatten() {
            resources.set(name, quantity);
        }
        resources
    }

    fn set(&mut self, name: &str, quantity: &Quantity) {
        match name {
            "cpu" => self.milli_cpu = quantity::millis(quantity),
            "memory" => self.memory = quantity::units(quantity),
            "ephemeral-storage" => self.ephemeral_storage = quantity::units(quantity),
            "pods" => {}
            _ => {
                self.scalars.insert(name.to_owned(), quantity::units(quantity));
            }
        }
    }

    /// Thousandths of CPUs, bytes, or a number.
    pub fn amount(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.milli_cpu,
            "memory" => self.memory,
            "ephemeral-storage" => self.ephemeral_storage,
            name => self.scalars.get(name).copied().unwrap_or(0),
        }
    }

    pub fn add(&mut self, other: &Resources) {
        self.combine(other, |a, b| a.saturating_add(b));
    }

    pub fn subtract(&mut self, other: &Resources) {
        self.combine(other, |a, b| a.saturating_sub(b));
    }

    fn raise_to(&mut self, other: &Resources) {
        self.combine(other, Ord::max);
    }

    fn combine(&mut self, other: &Resources, with: fn(i64, i64) -> i64) {
        self.milli_cpu = with(self.milli_cpu, other.milli_cpu);
        self.memory = with(self.memory, other.memory);
        self.ephemeral_storage = with(self.ephemeral_storage, other.ephemeral_storage);
        for (name, amount) in &other.scalars {
            let known = self.scalars.entry(name.clone()).or_default();
            *known = with(*known, *amount);
        }
    }
}

/// What a pod needs at once: all its containers, or at its start the largest of its init containers beside the
/// sidecars that run by then; requests of the pod as a whole take precedence; overhead comes on top.
/// <https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers>
pub fn requests(spec: &PodSpec, assumed: &Resources) -> Resources {
    let of = |container: &Container| {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let mut all = assumed.clone();
        for (name, quantity) in requests.into_iter().flatten() {
            all.set(name, quantity);
        }
        all
    };
    let mut running = Resources::default();
    spec.containers.iter().for_each(|container| running.add(&of(container)));
    let (mut sidecars, mut starting) = (Resources::default(), Resources::default());
    for container in spec.init_containers.iter().flatten() {
        let mut now = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            running.add(&now);
            sidecars.add(&now);
            now = sidecars.clone();
        } else {
            now.add(&sidecars);
        }
        starting.raise_to(&now);
    }
    running.raise_to(&starting);
    let whole = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    for (name, quantity) in whole.into_iter().flatten() {
        running.set(name, quantity);
    }
    running.add(&Resources::read(spec.overhead.as_ref()));
    running
}

/// What a node offers to pods: its resources, and how many pods.
pub fn allocatable(node: &Object) -> (Resources, i64) {
    let status = node.status::<Node>();
    let quantities = status.allocatable.as_ref().or(status.capacity.as_ref());
    let pods = quantities.and_then(|all| all.get("pods")).map_or(0, quantity::units);
    (Resources::read(quantities), pods)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::api::kind::KindRef;

    #[test]
    fn a_pod_needs_its_containers_or_its_largest_start() {
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
        let spec = json!({
            "initContainers": [
                {"name": "sidecar", "restartPolicy": "Always", "resources": cpu("200m")},
                {"name": "migrate", "resources": cpu("2")},
            ],
            "containers": [{"name": "a", "resources": cpu("500m")}, {"name": "b"}],
            "overhead": {"cpu": "50m"},
        });
        let pod = json!({"metadata": {"name": "p", "namespace": "default"}, "spec": spec});
        let pod = Object::from_json(KindRef::of::<Pod>(), pod).unwrap();
        let spec = pod.spec::<Pod>();
        assert_eq!(requests(spec, &Resources::default()).milli_cpu, 2250);
        assert_eq!(requests(spec, &Resources::assumed()).memory, 3 * MEMORY_BYTES_ASSUMED);
    }
}
