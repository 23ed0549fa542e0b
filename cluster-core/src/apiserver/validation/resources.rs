//! Requests and limits, and the names of resources.
//! <https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/>

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodSpec, ResourceClaim, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::field::{Causes, Path};
use super::names;
use crate::api::quantity;

type Amounts = BTreeMap<String, Quantity>;

const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Countable objects of a quota.
const INTEGER_RESOURCES: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

const OTHER_RESOURCES: [&str; 8] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "storage",
];

/// Whose resources these are, which decides what names there are.
#[derive(Clone, Copy, PartialEq)]
pub enum Holder {
    Container,
    Pod,
}

pub fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// A resource of a device plugin: `example.com/gpu`.
pub fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}

fn is_standard(name: &str) -> bool {
    CONTAINER_RESOURCES.contains(&name)
        || INTEGER_RESOURCES.contains(&name)
        || OTHER_RESOURCES.contains(&name)
        || is_huge_page(name)
        || name.starts_with("requests.hugepages-")
}

/// A native resource that may be promised more often than it is there.
fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// A name of a resource, in whatever place.
pub fn resource_name(causes: &mut Causes, path: &Path, name: &str) {
    let details = names::qualified_name(name);
    if details.is_empty() && !name.contains('/') && !is_standard(name) {
        causes.invalid(path, name, "must be a standard resource type or fully qualified");
    }
    causes.invalid_each(path, name, details);
}

fn holder_resource_name(causes: &mut Causes, path: &Path, name: &str, holder: Holder) {
    let before = causes.len();
    resource_name(causes, path, name);
    if holder == Holder::Pod {
        if causes.len() == before && !is_huge_page(name) && name != "cpu" && name != "memory" {
            causes.not_supported(path, name, &["cpu", "hugepages-", "memory"]);
        }
    } else if !name.contains('/') {
        if !CONTAINER_RESOURCES.contains(&name) && !is_huge_page(name) {
            causes.invalid(path, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        causes.invalid(path, name, "doesn't follow extended resource name standard");
    }
}

/// An amount of a resource: not negative, and whole for what can only be counted.
pub fn amount(causes: &mut Causes, path: &Path, name: &str, amount: &Quantity) {
    let millis = quantity::parse(&amount.0).unwrap_or(0);
    if millis < 0 {
        causes.invalid(path, amount.0.as_str(), "must be greater than or equal to 0");
    }
    if (INTEGER_RESOURCES.contains(&name) || is_extended(name)) && millis % 1000 != 0 {
        causes.invalid(path, amount.0.as_str(), "must be an integer");
    }
}

/// Huge pages come by the page.
fn whole_pages(causes: &mut Causes, path: &Path, name: &str, amount: &Quantity) {
    let page = name.strip_prefix("hugepages-").and_then(quantity::parse).filter(|page| *page > 0 && page % 1000 == 0);
    let divides = |page| quantity::parse(&amount.0).is_some_and(|amount| amount % page == 0);
    if !page.is_some_and(divides) {
        causes.invalid(path, amount.0.as_str(), format!("{} is not positive integer multiple of {name}", amount.0));
    }
}

/// Limits and requests that fit each other. `claims` are the names of the pod's resource claims.
pub fn requirements(
    causes: &mut Causes,
    path: &Path,
    requirements: &ResourceRequirements,
    holder: Holder,
    claims: &BTreeSet<&str>,
) {
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    let empty = Amounts::new();
    let limits = requirements.limits.as_ref().unwrap_or(&empty);
    let requests = requirements.requests.as_ref().unwrap_or(&empty);
    for (name, limit) in limits {
        let path = limits_path.key(name);
        holder_resource_name(causes, &path, name, holder);
        amount(causes, &path, name, limit);
        if is_huge_page(name) {
            whole_pages(causes, &path, name, limit);
        }
    }
    for (name, request) in requests {
        let path = requests_path.key(name);
        holder_resource_name(causes, &path, name, holder);
        amount(causes, &path, name, request);
        match limits.get(name) {
            Some(limit) => within_limit(causes, &requests_path, name, request, limit),
            None if !may_overcommit(name) => {
                causes.required(&limits_path, "Limit must be set for non overcommitable resources");
            }
            None => {}
        }
        if is_huge_page(name) {
            whole_pages(causes, &path, name, request);
        }
    }
    let has = |wanted: fn(&str) -> bool| limits.keys().chain(requests.keys()).any(|name| wanted(name));
    if has(is_huge_page) && !has(|name| matches!(name, "cpu" | "memory")) {
        causes.forbidden(path, "HugePages require cpu or memory");
    }
    claim_names(causes, &path.child("claims"), requirements.claims.as_deref().unwrap_or_default(), claims);
}

fn within_limit(causes: &mut Causes, path: &Path, name: &str, request: &Quantity, limit: &Quantity) {
    let (wanted, most) = (quantity::parse(&request.0), quantity::parse(&limit.0));
    let relation = match may_overcommit(name) {
        false if wanted != most => "equal to",
        true if wanted > most => "less than or equal to",
        _ => return,
    };
    causes.invalid(path, request.0.as_str(), format!("must be {relation} {name} limit of {}", limit.0));
}

fn claim_names(causes: &mut Causes, path: &Path, used: &[ResourceClaim], claims: &BTreeSet<&str>) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (index, claim) in used.iter().enumerate() {
        let (path, name) = (path.index(index), claim.name.as_str());
        if name.is_empty() {
            causes.required(&path, "");
            continue;
        }
        let request = claim.request.as_deref().filter(|request| !request.is_empty());
        if seen.contains(name) {
            causes.duplicate(&path, name);
        } else {
            let key = request.map_or_else(|| name.to_owned(), |request| format!("{name}/{request}"));
            if let Some(request) = request {
                causes.invalid_each(&path.child("request"), request, names::dns_label(request));
            }
            let part_of_it = |key: &String| key.split_once('/').is_some_and(|(whole, _)| whole == name);
            if seen.contains(&key) || request.is_none() && seen.iter().any(part_of_it) {
                causes.duplicate(&path, key.as_str());
            }
            seen.insert(key);
        }
        if !claims.contains(name) {
            let known: Vec<&str> = claims.iter().copied().collect();
            let tail = if known.is_empty() { " which is empty".into() } else { format!(": {}", known.join(", ")) };
            let mut cause = crate::api::status::Cause::not_found(&path, name);
            cause.message.push_str(&format!(": must be one of the names in pod.spec.resourceClaims{tail}"));
            causes.push(cause);
        }
    }
}

/// Resources of a pod as a whole, which bound those of its containers.
/// <https://kubernetes.io/docs/concepts/workloads/pods/#pod-level-resources>
pub fn pod_requirements(causes: &mut Causes, path: &Path, spec: &PodSpec, claims: &BTreeSet<&str>) {
    let Some(whole) = &spec.resources else { return };
    if whole.claims.is_some() {
        causes.forbidden(&path.child("claims"), "claims may not be set for Resources at pod-level");
    }
    requirements(causes, path, whole, Holder::Pod, claims);
    for (name, request) in whole.requests.iter().flatten() {
        let sum = quantity::sum(spec.containers.iter().filter_map(|container| {
            let resources = container.resources.as_ref()?;
            resources.requests.as_ref()?.get(name)
        }));
        if quantity::parse(&sum.0) > quantity::parse(&request.0) {
            let detail = format!("must be greater than or equal to aggregate container requests of {}", sum.0);
            causes.invalid(&path.child("requests").key(name), request.0.as_str(), detail);
        }
    }
    for (index, container) in spec.containers.iter().enumerate() {
        let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
        for (name, limit) in limits.into_iter().flatten() {
            let Some(most) = whole.limits.as_ref().and_then(|limits| limits.get(name)) else { continue };
            if quantity::parse(&limit.0) > quantity::parse(&most.0) {
                let path = path.child("containers").index(index).key(name).child("limits");
                causes.invalid(
                    &path,
                    limit.0.as_str(),
                    format!("must be less than or equal to pod limits of {}", most.0),
                );
            }
        }
    }
}
