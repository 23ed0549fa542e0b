//! What a pod uses: itself, and what its containers request and are limited to.
//! <https://kubernetes.io/docs/concepts/policy/resource-quotas/#compute-resource-quota>

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Container, Pod, PodAffinityTerm, PodSpec, ResourceRequirements, ScopedResourceSelectorRequirement,
};

use super::{Amounts, add, larger, one, selects};
use crate::api::object::Object;

/// Resources of containers, and the names under which a request and a limit of them count.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Where a quota counts one of these, every container has to state it.
const MUST_BE_STATED: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

pub fn counts(resource: &str) -> bool {
    let plain = resource.strip_prefix("requests.").or_else(|| resource.strip_prefix("limits.")).unwrap_or(resource);
    resource == "pods"
        || COMPUTE.contains(&plain)
        || resource.starts_with("hugepages-")
        || resource.starts_with("requests.hugepages-")
        || resource.strip_prefix("requests.").is_some_and(is_extended)
}

/// `example.com/gpu`: a resource that is not Kubernetes' own.
fn is_extended(resource: &str) -> bool {
    resource.split_once('/').is_some_and(|(domain, _)| !domain.ends_with("kubernetes.io"))
}

/// A pod that has ended uses nothing but its place in the list of pods.
pub fn usage(pod: &Object) -> Amounts {
    if matches!(pod.status::<Pod>().phase.as_deref(), Some("Failed" | "Succeeded")) {
        return Amounts::new();
    }
    let spec = pod.spec::<Pod>();
    let overhead = spec.overhead.clone().unwrap_or_default();
    let requests = add(&requests_without_overhead(spec), &overhead);
    let limits = limits_without_overhead(spec);
    // What a pod is not limited in has no overhead either.
    let limits = add(&limits, &super::mask(&overhead, &limits));
    let mut used = as_counted(&requests, &limits);
    used.insert("pods".into(), one());
    used
}

/// Requests and limits under the names that quotas have for them.
fn as_counted(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut counted = Amounts::new();
    for (name, amount) in requests {
        if COMPUTE.contains(&name.as_str()) || name.starts_with("hugepages-") {
            counted.insert(name.clone(), amount.clone());
            counted.insert(format!("requests.{name}"), amount.clone());
        } else if is_extended(name) {
            counted.insert(format!("requests.{name}"), amount.clone());
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| COMPUTE.contains(&name.as_str())) {
        counted.insert(format!("limits.{name}"), amount.clone());
    }
    counted
}

pub fn requests_without_overhead(spec: &PodSpec) -> Amounts {
    of_pod(spec, |resources| resources.requests.as_ref())
}

pub fn limits_without_overhead(spec: &PodSpec) -> Amounts {
    of_pod(spec, |resources| resources.limits.as_ref())
}

/// What all containers need at once, or at the pod's start the largest of its init containers beside the sidecars that
/// run by then; what is said of the pod as a whole takes precedence.
fn of_pod(spec: &PodSpec, pick: impl Fn(&ResourceRequirements) -> Option<&Amounts>) -> Amounts {
    let of = |container: &Container| container.resources.as_ref().and_then(&pick).cloned().unwrap_or_default();
    let mut running = spec.containers.iter().fold(Amounts::new(), |sum, container| add(&sum, &of(container)));
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in spec.init_containers.iter().flatten() {
        let mut now = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            running = add(&running, &now);
            sidecars = add(&sidecars, &now);
            now = sidecars.clone();
        } else {
            now = add(&now, &sidecars);
        }
        starting = larger(&starting, &now);
    }
    let mut all = larger(&running, &starting);
    all.extend(spec.resources.as_ref().and_then(&pick).cloned().unwrap_or_default());
    all
}

/// The containers that leave out a resource which a quota counts, by resource.
pub fn unstated<'a>(spec: &'a PodSpec, counted: &[&'a str]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let required: Vec<&str> = counted.iter().copied().filter(|name| MUST_BE_STATED.contains(name)).collect();
    let stated = |resources: Option<&ResourceRequirements>| {
        let resources = resources.cloned().unwrap_or_default();
        as_counted(&resources.requests.unwrap_or_default(), &resources.limits.unwrap_or_default())
    };
    let of_pod = stated(spec.resources.as_ref());
    let mut unstated: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
        let known = stated(container.resources.as_ref());
        for name in required.iter().filter(|name| !known.contains_key(**name) && !of_pod.contains_key(**name)) {
            unstated.entry(name).or_default().insert(&container.name);
        }
    }
    unstated
}

pub fn is_in_scope(scope: &ScopedResourceSelectorRequirement, pod: &Object) -> bool {
    let spec = pod.spec::<Pod>();
    let has_deadline = spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0);
    let is_best_effort = pod.status::<Pod>().qos_class.as_deref() == Some("BestEffort");
    match scope.scope_name.as_str() {
        "Terminating" => has_deadline,
        "NotTerminating" => !has_deadline,
        "BestEffort" => is_best_effort,
        "NotBestEffort" => !is_best_effort,
        "PriorityClass" => selects(scope, spec.priority_class_name.as_deref().filter(|name| !name.is_empty())),
        "CrossNamespacePodAffinity" => reaches_other_namespaces(spec),
        _ => false,
    }
}

fn reaches_other_namespaces(spec: &PodSpec) -> bool {
    let reaches = |term: &PodAffinityTerm| {
        term.namespace_selector.is_some() || term.namespaces.as_ref().is_some_and(|names| !names.is_empty())
    };
    let Some(affinity) = &spec.affinity else { return false };
    let (near, far) = (affinity.pod_affinity.as_ref(), affinity.pod_anti_affinity.as_ref());
    let required = [
        near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref()),
        far.and_then(|far| far.required_during_scheduling_ignored_during_execution.as_ref()),
    ];
    let preferred = [
        near.and_then(|near| near.preferred_during_scheduling_ignored_during_execution.as_ref()),
        far.and_then(|far| far.preferred_during_scheduling_ignored_during_execution.as_ref()),
    ];
    required.into_iter().flatten().flatten().any(reaches)
        || preferred.into_iter().flatten().flatten().any(|weighted| reaches(&weighted.pod_affinity_term))
}
