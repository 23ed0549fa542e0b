//! What a pod says about nodes and about other pods: tolerations, affinity, gates.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/>

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, PodAffinityTerm, PodSchedulingGate, Toleration, WeightedPodAffinityTerm,
};

use super::field::{Causes, Path};
use super::{names, selectors, text, topology};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub fn tolerations(causes: &mut Causes, path: &Path, tolerations: &[Toleration]) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let path = path.index(index);
        let (key, operator) = (text(&toleration.key), text(&toleration.operator));
        let (value, effect) = (text(&toleration.value), text(&toleration.effect));
        let operator_path = path.child("operator");
        if !key.is_empty() {
            causes.invalid_each(&path.child("key"), key, names::qualified_name(key));
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.invalid(&operator_path, operator, detail);
        }
        if toleration.toleration_seconds.is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.invalid(&path.child("effect"), effect, detail);
        }
        match operator {
            "Equal" | "" => {
                let details = names::label_value(value);
                if !details.is_empty() {
                    causes.invalid(&operator_path, value, details.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                causes.invalid(&operator_path, value, "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            "Lt" | "Gt" => causes.not_supported(&operator_path, operator, &["Equal", "Exists", "Lt", "Gt"]),
            other => causes.not_supported(&operator_path, other, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            causes.one_of(&path.child("effect"), Some(effect), &EFFECTS);
        }
    }
}

pub fn affinity(causes: &mut Causes, path: &Path, affinity: &Affinity) {
    if let Some(nodes) = &affinity.node_affinity {
        node_affinity(causes, &path.child("nodeAffinity"), nodes);
    }
    let pods = [
        (
            "podAffinity",
            affinity.pod_affinity.as_ref().map(|pods| {
                let required = &pods.required_during_scheduling_ignored_during_execution;
                (required, &pods.preferred_during_scheduling_ignored_during_execution)
            }),
        ),
        (
            "podAntiAffinity",
            affinity.pod_anti_affinity.as_ref().map(|pods| {
                let required = &pods.required_during_scheduling_ignored_during_execution;
                (required, &pods.preferred_during_scheduling_ignored_during_execution)
            }),
        ),
    ];
    for (field, terms) in pods {
        let Some((required, preferred)) = terms else { continue };
        let path = path.child(field);
        for (index, term) in required.iter().flatten().enumerate() {
            pod_affinity_term(causes, &path.child(REQUIRED).index(index), term);
        }
        for (index, term) in preferred.iter().flatten().enumerate() {
            let WeightedPodAffinityTerm { weight, pod_affinity_term: term } = term;
            let path = path.child(PREFERRED).index(index);
            self::weight(causes, &path, *weight);
            pod_affinity_term(causes, &path.child("podAffinityTerm"), term);
        }
    }
}

fn node_affinity(causes: &mut Causes, path: &Path, affinity: &NodeAffinity) {
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        selectors::node_selector(causes, &path.child(REQUIRED), required);
    }
    let preferred = affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten();
    for (index, term) in preferred.enumerate() {
        let path = path.child(PREFERRED).index(index);
        weight(causes, &path, term.weight);
        selectors::node_selector_term(causes, &path.child("preference"), &term.preference, false);
    }
}

fn weight(causes: &mut Causes, path: &Path, weight: i32) {
    if !(1..=100).contains(&weight) {
        causes.invalid(&path.child("weight"), weight, "must be in the range 1-100");
    }
}

fn pod_affinity_term(causes: &mut Causes, path: &Path, term: &PodAffinityTerm) {
    selectors::label_selector(causes, &path.child("labelSelector"), term.label_selector.as_ref());
    selectors::label_selector(causes, &path.child("namespaceSelector"), term.namespace_selector.as_ref());
    for name in term.namespaces.iter().flatten() {
        causes.invalid_each(&path.child("namespace"), name, names::dns_label(name));
    }
    let matching = term.match_label_keys.as_deref().unwrap_or_default();
    let mismatching = term.mismatch_label_keys.as_deref().unwrap_or_default();
    topology::label_keys(causes, path, matching, mismatching, term.label_selector.as_ref());
    if term.topology_key.is_empty() {
        causes.required(&path.child("topologyKey"), "can not be empty");
    }
    causes.invalid_each(&path.child("topologyKey"), &term.topology_key, names::qualified_name(&term.topology_key));
}

pub fn scheduling_gates(causes: &mut Causes, path: &Path, gates: &[PodSchedulingGate]) {
    let mut seen = BTreeSet::new();
    for (index, gate) in gates.iter().enumerate() {
        causes.invalid_each(&path.index(index), &gate.name, names::qualified_name(&gate.name));
        if !seen.insert(gate.name.as_str()) {
            causes.duplicate(&path.index(index), gate.name.as_str());
        }
    }
}
