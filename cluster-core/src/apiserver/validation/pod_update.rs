//! What may change in a pod that exists: images, a shorter deadline, more tolerations, fewer gates.
//! <https://kubernetes.io/docs/concepts/workloads/pods/#pod-update-and-replacement>

use k8s_openapi::api::core::v1::{Affinity, Container, NodeAffinity, NodeSelectorTerm, PodSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::field::{Causes, Path};
use super::{containers, internal_types, pod, scheduling, text};

const MUTABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
     `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
     tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub fn update(causes: &mut Causes, old: (&PodSpec, &ObjectMeta), new: (&PodSpec, &ObjectMeta)) {
    let path = Path::new("spec");
    annotations(causes, old.1, new.1);
    let (old, new) = (old.0, new.0);
    for (field, before, after) in [
        ("containers", Some(&old.containers), Some(&new.containers)),
        ("initContainers", old.init_containers.as_ref(), new.init_containers.as_ref()),
    ] {
        if !container_images(causes, &path.child(field), before, after) {
            return;
        }
    }
    if !deadline(causes, &path.child("activeDeadlineSeconds"), old, new) {
        return;
    }
    only_added_tolerations(causes, &path.child("tolerations"), old, new);
    only_removed_gates(causes, &path.child("schedulingGates"), old, new);
    if old == new {
        return;
    }
    let mut kept = with_mutable_parts_of(old, new);
    if old.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        gated(causes, &path, old, &mut kept);
    }
    if kept != *old {
        causes.forbidden(&path, &format!("{MUTABLE}\n{}", internal_types::pod_spec_diff(old, &kept)));
    }
}

/// Annotations by which others know what the pod is.
pub fn annotations(causes: &mut Causes, old: &ObjectMeta, new: &ObjectMeta) {
    let path = Path::new("metadata.annotations");
    let empty = Default::default();
    let (before, after) = (old.annotations.as_ref().unwrap_or(&empty), new.annotations.as_ref().unwrap_or(&empty));
    let changed = before.iter().filter(|(key, value)| after.get(*key) != Some(value)).map(|(key, _)| (key, true));
    let added = after.keys().filter(|key| !before.contains_key(*key)).map(|key| (key, false));
    for (key, was_there) in changed.chain(added) {
        let noun = match key.as_str() {
            pod::MIRROR => "mirror pod annotation",
            key if key.starts_with(pod::APP_ARMOR) => "AppArmor annotations",
            _ => continue,
        };
        let verb = if was_there { "remove or update" } else { "add" };
        causes.forbidden(&path.key(key), &format!("may not {verb} {noun}"));
    }
}

/// False if the lists have nothing to do with each other.
fn container_images(
    causes: &mut Causes,
    path: &Path,
    old: Option<&Vec<Container>>,
    new: Option<&Vec<Container>>,
) -> bool {
    if old.map_or(0, Vec::len) != new.map_or(0, Vec::len) {
        causes.forbidden(path, "pod updates may not add or remove containers");
        return false;
    }
    for (index, container) in new.into_iter().flatten().enumerate() {
        if text(&container.image).is_empty() {
            causes.required(&path.index(index).child("image"), "");
        }
        containers::trimmed_image(causes, &path.index(index), container);
    }
    true
}

/// A deadline can only come nearer. False if the rest need not be looked at.
fn deadline(causes: &mut Causes, path: &Path, old: &PodSpec, new: &PodSpec) -> bool {
    match (old.active_deadline_seconds, new.active_deadline_seconds) {
        (Some(_), None) => {
            let detail = "must not update from a positive integer to nil value";
            causes.invalid(path, serde_json::Value::Null, detail);
        }
        (_, Some(seconds)) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            causes.in_range(path, seconds, 0, i32::MAX.into());
            return false;
        }
        (Some(before), Some(after)) if before < after => {
            causes.invalid(path, after, "must be less than or equal to previous value");
            return false;
        }
        _ => {}
    }
    true
}

fn only_added_tolerations(causes: &mut Causes, path: &Path, old: &PodSpec, new: &PodSpec) {
    let tolerations = new.tolerations.as_deref().unwrap_or_default();
    let same = |one: &Toleration, other: &Toleration| {
        let timeless = |toleration: &Toleration| Toleration { toleration_seconds: None, ..toleration.clone() };
        timeless(one) == timeless(other)
    };
    let lost = |old: &Toleration| !tolerations.iter().any(|new| same(old, new));
    if old.tolerations.iter().flatten().any(lost) {
        causes.forbidden(path, "existing toleration can not be modified except its tolerationSeconds");
    } else {
        scheduling::tolerations(causes, path, tolerations);
    }
}

fn only_removed_gates(causes: &mut Causes, path: &Path, old: &PodSpec, new: &PodSpec) {
    for (index, gate) in new.scheduling_gates.iter().flatten().enumerate() {
        if !old.scheduling_gates.iter().flatten().any(|known| known.name == gate.name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.name);
            causes.forbidden(&path.index(index).child("name"), &detail);
        }
    }
}

/// The new spec, with everything that may change put back.
fn with_mutable_parts_of(old: &PodSpec, new: &PodSpec) -> PodSpec {
    let mut kept = new.clone();
    let images = |kept: &mut [Container], old: &[Container]| {
        kept.iter_mut().zip(old).for_each(|(container, before)| container.image = before.image.clone());
    };
    images(&mut kept.containers, &old.containers);
    if let (Some(kept), Some(old)) = (&mut kept.init_containers, &old.init_containers) {
        images(kept, old);
    }
    kept.active_deadline_seconds = old.active_deadline_seconds;
    kept.scheduling_gates = old.scheduling_gates.clone();
    kept.tolerations = old.tolerations.clone();
    if old.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0)
        && kept.termination_grace_period_seconds == Some(1)
    {
        kept.termination_grace_period_seconds = old.termination_grace_period_seconds;
    }
    kept
}

/// Until it is scheduled, the pod can be narrowed down to fewer nodes.
/// <https://kubernetes.io/docs/concepts/scheduling-eviction/pod-scheduling-readiness/#mutable-pod-scheduling-directives>
fn gated(causes: &mut Causes, path: &Path, old: &PodSpec, kept: &mut PodSpec) {
    if kept.node_selector != old.node_selector {
        let labels = kept.node_selector.take().unwrap_or_default();
        let narrower = old.node_selector.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
        if !narrower {
            // The message is about the whole selector, whatever key it is that changed.
            let detail = "field is immutable";
            causes.invalid(&path.child("nodeSelector"), serde_json::json!(labels), detail);
        }
        kept.node_selector = old.node_selector.clone();
    }
    let nodes = |affinity: &Option<Affinity>| affinity.as_ref().and_then(|affinity| affinity.node_affinity.clone());
    let (before, after) = (nodes(&old.affinity), nodes(&kept.affinity));
    if before == after {
        return;
    }
    node_affinity(causes, &path.child("affinity.nodeAffinity"), before.as_ref(), after.as_ref());
    let affinity = kept.affinity.get_or_insert_default();
    affinity.node_affinity = before;
    if *affinity == Affinity::default() && old.affinity.is_none() {
        kept.affinity = None;
    }
}

fn node_affinity(causes: &mut Causes, path: &Path, old: Option<&NodeAffinity>, new: Option<&NodeAffinity>) {
    let required = |affinity: Option<&NodeAffinity>| {
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.clone())
    };
    let path = path.child("requiredDuringSchedulingIgnoredDuringExecution");
    let Some(old) = required(old) else { return };
    let terms_path = path.child("nodeSelectorTerms");
    let new = required(new).unwrap_or_default();
    if old.node_selector_terms.len() != new.node_selector_terms.len() {
        return causes.invalid(&terms_path, serde_json::json!(new.node_selector_terms), "field is immutable");
    }
    for (index, (before, after)) in old.node_selector_terms.iter().zip(&new.node_selector_terms).enumerate() {
        if !narrows(before, after) {
            let detail = "only additions are allowed (no mutations or deletions)";
            causes.invalid(&terms_path.index(index), serde_json::json!(after), detail);
        }
    }
}

/// The new term says all that the old one said, in the same order, and perhaps more. An empty term matched nothing.
fn narrows(old: &NodeSelectorTerm, new: &NodeSelectorTerm) -> bool {
    let starts = |old: &Option<Vec<_>>, new: &Option<Vec<_>>| {
        new.as_deref().unwrap_or_default().starts_with(old.as_deref().unwrap_or_default())
    };
    let empty = *old == NodeSelectorTerm::default();
    if empty {
        old == new
    } else {
        starts(&old.match_expressions, &new.match_expressions) && starts(&old.match_fields, &new.match_fields)
    }
}
