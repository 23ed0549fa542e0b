//! Warnings that come beside a granted write: what is written but will not do what its writer may think.
//! <https://kubernetes.io/blog/2020/09/03/warnings/>

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, PodSpec, PodTemplateSpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::serde::Serialize;

use super::validation::field::Path;
use super::validation::{names, pod_spec as specs, text};
use crate::api::object::Object;
use crate::api::quantity;

/// Labels of nodes that have another name now.
const DEPRECATED_LABELS: [(&str, &str); 5] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
];

const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

const DEPRECATED_VOLUMES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Of volumes and claims.
const DEPRECATED_STORAGE_ANNOTATIONS: [(&str, &str); 2] = [
    ("volume.beta.kubernetes.io/storage-class", "deprecated since v1.8; use \"storageClassName\" attribute instead"),
    ("volume.beta.kubernetes.io/mount-options", "deprecated since v1.31; use \"mountOptions\" attribute instead"),
];

const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// A name that becomes part of a hostname.
pub fn hostname(name: &str, what: &str) -> Vec<String> {
    let problems = names::dns_label(name);
    if problems.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in {what}, which can result in surprising behavior; a DNS label is recommended: [{}]",
        problems.join(" ")
    )]
}

/// What a workload is warned of: its name once, its template each time that the spec has changed.
pub fn workload(old: Option<&Object>, new: &Object, template: impl FnOnce() -> Vec<String>) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() {
        warnings.extend(hostname(&new.key.name, "Pod names and hostnames"));
    }
    if old.is_none_or(|old| old.metadata().generation != new.metadata().generation) {
        warnings.extend(template());
    }
    warnings
}

/// A template at `path`.
pub fn pod_template(path: &str, template: &PodTemplateSpec) -> Vec<String> {
    let metadata = template.metadata.clone().unwrap_or_default();
    match &template.spec {
        Some(spec) => pod_spec(path, spec, &metadata),
        None => Vec::new(),
    }
}

/// A Job or the template of one; `path` leads to its spec.
pub fn job(path: &str, spec: &JobSpec) -> Vec<String> {
    let mut warnings = Vec::new();
    let (completions, parallelism) = (spec.completions.unwrap_or(0), spec.parallelism.unwrap_or(0));
    if spec.completion_mode.as_deref() == Some("Indexed") && completions > 100_000 && parallelism > 10_000 {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    warnings.extend(pod_template(&format!("{path}.template"), &spec.template));
    warnings
}

/// The spec of a pod; `path` is empty for a Pod and leads to the template otherwise.
pub fn pod_spec(path: &str, spec: &PodSpec, metadata: &ObjectMeta) -> Vec<String> {
    let root = Path::new(path);
    let (spec_path, annotations_path) = (root.child("spec"), root.child("metadata.annotations"));
    let mut warnings = Vec::new();
    nodes(&mut warnings, &spec_path, spec);
    for (key, message) in DEPRECATED_ANNOTATIONS {
        if metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(key)) {
            warnings.push(format!("{}: {message}", annotations_path.key(key)));
        }
    }
    volumes(&mut warnings, &spec_path, spec);
    lists(&mut warnings, &spec_path, spec);
    seccomp(&mut warnings, &annotations_path, spec, metadata);
    specs::each_container(spec, &spec_path, |container, path| {
        fractions(&mut warnings, path, container);
        hidden_variables(&mut warnings, path, container);
    });
    ports(&mut warnings, &spec_path, spec);
    if spec.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0) {
        let place = spec_path.child("terminationGracePeriodSeconds");
        warnings.push(format!("{place}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    pods(&mut warnings, &spec_path, spec);
    warnings
}

/// A PersistentVolume.
pub fn volume(volume: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    storage_annotations(&mut warnings, volume, &DEPRECATED_STORAGE_ANNOTATIONS);
    let (path, spec) = (Path::new("spec"), volume.spec::<PersistentVolume>());
    if spec.persistent_volume_reclaim_policy.as_deref() == Some("Recycle") {
        warnings.push(format!(
            "{}: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
             provisioning.",
            path.child("persistentVolumeReclaimPolicy")
        ));
    }
    let required = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    for (index, term) in required.into_iter().flat_map(|required| &required.node_selector_terms).enumerate() {
        node_term(&mut warnings, &path.child("nodeAffinity.required.nodeSelectorTerms").index(index), term);
    }
    deprecated_sources(&mut warnings, &path, spec);
    warnings
}

/// A PersistentVolumeClaim.
pub fn claim(claim: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    storage_annotations(&mut warnings, claim, &DEPRECATED_STORAGE_ANNOTATIONS[..1]);
    let Some(resources) = &claim.spec::<PersistentVolumeClaim>().resources else { return warnings };
    for (field, amounts) in [("requests", &resources.requests), ("limits", &resources.limits)] {
        fraction(&mut warnings, &Path::new("spec.resources").child(field), amounts.as_ref(), "storage");
    }
    warnings
}

fn storage_annotations(warnings: &mut Vec<String>, object: &Object, deprecated: &[(&str, &str)]) {
    for (key, message) in deprecated.iter().filter(|(key, _)| object.annotation(key).is_some()) {
        warnings.push(format!("{}: {message}", Path::new("metadata.annotations").key(key)));
    }
}

fn deprecated_label(key: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(label, _)| *label == key).map(|(_, message)| *message)
}

fn nodes(warnings: &mut Vec<String>, path: &Path, spec: &PodSpec) {
    for key in spec.node_selector.iter().flatten().map(|(key, _)| key) {
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {message}", path.child("nodeSelector").key(key)));
        }
    }
    if let Some(nodes) = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref()) {
        let path = path.child("affinity.nodeAffinity");
        let required = nodes.required_during_scheduling_ignored_during_execution.as_ref();
        for (index, term) in required.into_iter().flat_map(|required| &required.node_selector_terms).enumerate() {
            let place = path.child("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms").index(index);
            node_term(warnings, &place, term);
        }
        let preferred = nodes.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        for (index, term) in preferred.enumerate() {
            let place = path.child("preferredDuringSchedulingIgnoredDuringExecution").index(index).child("preference");
            node_term(warnings, &place, &term.preference);
        }
    }
    for (index, constraint) in spec.topology_spread_constraints.iter().flatten().enumerate() {
        let place = path.child("topologySpreadConstraints").index(index);
        let key = &constraint.topology_key;
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {key} is {message}", place.child("topologyKey")));
        }
        no_selector(warnings, &place, constraint.label_selector.as_ref());
    }
}

fn node_term(warnings: &mut Vec<String>, path: &Path, term: &NodeSelectorTerm) {
    for (index, requirement) in term.match_expressions.iter().flatten().enumerate() {
        if let Some(message) = deprecated_label(&requirement.key) {
            let place = path.child("matchExpressions").index(index).child("key");
            warnings.push(format!("{place}: {} is {message}", requirement.key));
        }
    }
}

fn no_selector(warnings: &mut Vec<String>, path: &Path, selector: Option<&LabelSelector>) {
    if selector.is_none() {
        warnings.push(format!("{}: a null labelSelector results in matching no pod", path.child("labelSelector")));
    }
}

fn volumes(warnings: &mut Vec<String>, path: &Path, spec: &PodSpec) {
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        deprecated_sources(warnings, &path.child("volumes").index(index), volume);
    }
}

/// What has a field for each place that a volume can be in.
fn deprecated_sources(warnings: &mut Vec<String>, path: &Path, volume: &impl Serialize) {
    let fields = serde_json::to_value(volume).unwrap_or_default();
    for (field, message) in DEPRECATED_VOLUMES.iter().filter(|(field, _)| fields.get(*field).is_some()) {
        let shown = if *field == "storageos" { "storageOS" } else { field };
        warnings.push(format!("{}: {message}", path.child(shown)));
    }
}

/// Items that are there twice, in lists that are sets.
fn lists(warnings: &mut Vec<String>, path: &Path, spec: &PodSpec) {
    let mut seen = BTreeSet::new();
    for (index, alias) in spec.host_aliases.iter().flatten().enumerate() {
        if !seen.insert(&alias.ip) {
            let place = path.child("hostAliases").index(index).child("ip");
            warnings.push(format!("{place}: duplicate ip {:?}", alias.ip));
        }
    }
    let secrets = spec.image_pull_secrets.as_deref().unwrap_or_default();
    let place = |index| path.child("imagePullSecrets").index(index).child("name");
    let mut seen = BTreeSet::new();
    for (index, secret) in secrets.iter().enumerate() {
        if !seen.insert(&secret.name) {
            warnings.push(format!("{}: duplicate name {:?}", place(index), secret.name));
        }
    }
    for (index, _) in secrets.iter().enumerate().filter(|(_, secret)| secret.name.is_empty()) {
        warnings.push(format!("{}: invalid empty name \"\"", place(index)));
    }
}

fn seccomp(warnings: &mut Vec<String>, path: &Path, spec: &PodSpec, metadata: &ObjectMeta) {
    let Some(annotations) = &metadata.annotations else { return };
    let mut warn = |key: &str| {
        if annotations.contains_key(key) {
            let message = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
            warnings.push(format!("{}: {message}", path.key(key)));
        }
    };
    if spec.security_context.as_ref().is_none_or(|context| context.seccomp_profile.is_none()) {
        warn(SECCOMP_POD);
    }
    specs::each_container(spec, path, |container, _| {
        if container.security_context.as_ref().is_none_or(|context| context.seccomp_profile.is_none()) {
            warn(&format!("{SECCOMP_CONTAINER}{}", container.name));
        }
    });
}

fn fractions(warnings: &mut Vec<String>, path: &Path, container: &Container) {
    let Some(resources) = &container.resources else { return };
    for name in ["memory", "ephemeral-storage"] {
        for (field, amounts) in [("limits", &resources.limits), ("requests", &resources.requests)] {
            fraction(warnings, &path.child("resources").child(field), amounts.as_ref(), name);
        }
    }
}

fn fraction(warnings: &mut Vec<String>, path: &Path, amounts: Option<&BTreeMap<String, Quantity>>, name: &str) {
    let Some(Quantity(amount)) = amounts.and_then(|amounts| amounts.get(name)) else { return };
    if quantity::parse(amount).is_some_and(|millis| millis % 1000 != 0) {
        let place = path.key(name);
        warnings.push(format!("{place}: fractional byte value {amount:?} is invalid, must be an integer"));
    }
}

/// A second variable of a name counts, unless it builds on the first one.
fn hidden_variables(warnings: &mut Vec<String>, path: &Path, container: &Container) {
    let mut seen = BTreeSet::new();
    for (index, variable) in container.env.iter().flatten().enumerate() {
        if seen.insert(&variable.name) {
            continue;
        }
        let (value, reference) = (text(&variable.value), format!("$({})", variable.name));
        if variable.value_from.is_some() || value == reference || !value.contains(&reference) {
            warnings.push(format!(
                "{}: hides previous definition of {:?}, which may be dropped when using apply",
                path.child("env").index(index),
                variable.name
            ));
        }
    }
}

fn ports(warnings: &mut Vec<String>, path: &Path, spec: &PodSpec) {
    let mut by_port: BTreeMap<String, Vec<(Path, ContainerPort)>> = BTreeMap::new();
    let mut by_name: BTreeMap<String, Path> = BTreeMap::new();
    let mut named = Vec::new();
    specs::each_container(spec, path, |container, path| {
        for (index, port) in container.ports.iter().flatten().enumerate() {
            let place = path.child("ports").index(index);
            let others = by_port.entry(format!("{}/{}", port.container_port, text(&port.protocol))).or_default();
            for (other_place, other) in others.iter() {
                if let Some(relation) = relation(port, other) {
                    warnings.push(format!("{place}: {relation} port definition with {other_place}"));
                }
            }
            others.push((place.clone(), port.clone()));
            let name = text(&port.name);
            if name.is_empty() {
                continue;
            }
            match by_name.get(name) {
                Some(other) => named.push(format!(
                    "{place}: duplicate port name {name:?} with {other}, services and probes that select ports by name \
                     will use {other}"
                )),
                None => {
                    by_name.insert(name.to_owned(), place);
                }
            }
        }
    });
    warnings.extend(named);
}

fn relation(port: &ContainerPort, other: &ContainerPort) -> Option<&'static str> {
    let (ip, other_ip) = (text(&port.host_ip), text(&other.host_ip));
    let (number, other_number) = (port.host_port.unwrap_or(0), other.host_port.unwrap_or(0));
    if ip == other_ip && number == other_number {
        Some("duplicate")
    } else if number == 0 || other_number == 0 {
        Some("overlapping")
    } else if number == other_number && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

fn pods(warnings: &mut Vec<String>, path: &Path, spec: &PodSpec) {
    let Some(affinity) = &spec.affinity else { return };
    let pods = affinity.pod_affinity.as_ref().map(|pods| {
        (
            &pods.required_during_scheduling_ignored_during_execution,
            &pods.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let others = affinity.pod_anti_affinity.as_ref().map(|pods| {
        (
            &pods.required_during_scheduling_ignored_during_execution,
            &pods.preferred_during_scheduling_ignored_during_execution,
        )
    });
    for (field, terms) in [("podAffinity", pods), ("podAntiAffinity", others)] {
        let Some((required, preferred)) = terms else { continue };
        let path = path.child("affinity").child(field);
        for (index, term) in required.iter().flatten().enumerate() {
            let place = path.child("requiredDuringSchedulingIgnoredDuringExecution").index(index);
            no_selector(warnings, &place, term.label_selector.as_ref());
        }
        for (index, term) in preferred.iter().flatten().enumerate() {
            let place = path.child("preferredDuringSchedulingIgnoredDuringExecution").index(index);
            no_selector(warnings, &place.child("podAffinityTerm"), term.pod_affinity_term.label_selector.as_ref());
        }
    }
}
