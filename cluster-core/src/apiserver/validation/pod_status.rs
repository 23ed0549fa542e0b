//! What a kubelet, or whoever plays one, can say about a pod.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodSpec, PodStatus};

use super::field::{Causes, Path};
use super::{names, pod_spec, pod_update, text};
use crate::api::object::Object;

/// Conditions of the API itself, whose names need no check.
const CONDITIONS: [&str; 3] = ["PodScheduled", "Ready", "Initialized"];

pub fn update(causes: &mut Causes, old: &Object, new: &Object) {
    if !std::ptr::eq(old.metadata(), new.metadata()) {
        pod_update::annotations(causes, old.metadata(), new.metadata());
    }
    let path = Path::new("status");
    let (before, after, spec) = (old.status::<Pod>(), new.status::<Pod>(), new.spec::<Pod>());
    for (index, condition) in after.conditions.iter().flatten().enumerate() {
        let place = path.child("conditions").index(index);
        if condition.observed_generation.is_some_and(|generation| generation < 0) {
            let generation = condition.observed_generation.unwrap_or_default();
            causes.invalid(&place.child("observedGeneration"), generation, "must be a non-negative integer");
        }
        if !CONDITIONS.contains(&condition.type_.as_str()) {
            causes.invalid_each(&place.child("Type"), &condition.type_, names::qualified_name(&condition.type_));
        }
    }
    let nominated = text(&after.nominated_node_name);
    if !nominated.is_empty() && nominated != text(&before.nominated_node_name) {
        let place = path.child("nominatedNodeName");
        causes.invalid_each(&place, nominated, names::dns_subdomain(nominated));
        if !text(&old.spec::<Pod>().node_name).is_empty() {
            causes.forbidden(&place, "may not be set on pods that are already bound to a node");
        }
    }
    if let Some(generation) = after.observed_generation.filter(|generation| *generation < 0) {
        causes.invalid(&path.child("observedGeneration"), generation, "must be a non-negative integer");
    }
    if before.qos_class != after.qos_class {
        causes.invalid(&path.child("qosClass"), text(&after.qos_class), "field is immutable");
    }
    transitions(causes, &path, spec, before, after);
    addresses(causes, &path, after);
}

/// A container that has ended and will not be started again has ended for good.
fn transitions(causes: &mut Causes, path: &Path, spec: &PodSpec, before: &PodStatus, after: &PodStatus) {
    let lists = [
        ("containerStatuses", &before.container_statuses, &after.container_statuses),
        ("initContainerStatuses", &before.init_container_statuses, &after.init_container_statuses),
    ];
    for (field, old, new) in lists {
        for (index, status) in old.iter().flatten().enumerate() {
            let Some(ended) = status.state.as_ref().and_then(|state| state.terminated.as_ref()) else { continue };
            let same = |new: &&ContainerStatus| new.name == status.name;
            let runs_again = new
                .iter()
                .flatten()
                .find(same)
                .is_some_and(|new| new.state.as_ref().is_none_or(|state| state.terminated.is_none()));
            if runs_again && !may_restart(spec, &status.name, ended.exit_code) {
                let place = path.child(field).index(index).child("state");
                causes.forbidden(&place, "may not be transitioned to non-terminated state");
            }
        }
    }
}

fn may_restart(spec: &PodSpec, name: &str, exit_code: i32) -> bool {
    let mut all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let Some(container) = all.find(|container| container.name == name) else { return false };
    let rules = container.restart_policy_rules.iter().flatten();
    for rule in rules {
        let Some(codes) = &rule.exit_codes else { continue };
        let listed = codes.values.iter().flatten().any(|code| *code == exit_code);
        if listed == (codes.operator == "In") {
            return true;
        }
    }
    match container.restart_policy.as_deref().or(spec.restart_policy.as_deref()) {
        Some("Never") => false,
        Some("OnFailure") => exit_code != 0,
        _ => true,
    }
}

fn addresses(causes: &mut Causes, path: &Path, status: &PodStatus) {
    let pod_ips: Vec<&str> = status.pod_ips.iter().flatten().map(|ip| ip.ip.as_str()).collect();
    let host_ips: Vec<&str> = status.host_ips.iter().flatten().map(|ip| ip.ip.as_str()).collect();
    for (field, ips) in [("podIPs", &pod_ips), ("hostIPs", &host_ips)] {
        let path = path.child(field);
        if field == "hostIPs"
            && let Some(first) = ips.first().filter(|first| **first != text(&status.host_ip))
        {
            causes.invalid(&path.index(0).child("ip"), *first, "must be equal to `hostIP`");
        }
        for (index, ip) in ips.iter().enumerate() {
            pod_spec::ip(causes, &path.index(index), ip);
        }
        let version_6 = ips.iter().filter(|ip| ip.contains(':')).count();
        if ips.len() > 2 || ips.len() == 2 && version_6 != 1 {
            let shown: Vec<_> = ips.iter().map(|ip| serde_json::json!({"IP": ip})).collect();
            causes.invalid(&path, shown, "may specify no more than one IP for each IP family");
        }
    }
}
