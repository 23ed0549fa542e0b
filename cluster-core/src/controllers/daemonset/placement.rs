//! Which nodes take a DaemonSet's pod, and what the pod for a node looks like.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#how-daemon-pods-are-scheduled>

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec,
    PodTemplateSpec, Toleration,
};

use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::controllers::pods;
use crate::node_selection::{NodeTerm, tolerates};

pub const HASH_LABEL: &str = "controller-revision-hash";
pub const GENERATION_LABEL: &str = "pod-template-generation";
const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";

/// What a node says to a DaemonSet's pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// It should have one.
    pub takes: bool,
    /// One that is there may stay.
    pub keeps: bool,
}

/// What a DaemonSet's pods ask of a node, read from the template once.
pub struct Eligibility {
    node: Option<String>,
    labels: Selector,
    /// Required: one of the terms must match.
    terms: Option<Vec<NodeTerm>>,
    tolerations: Vec<Toleration>,
}

impl Eligibility {
    pub fn of(set: &Object) -> Eligibility {
        let none = PodSpec::default();
        let spec = set.spec::<DaemonSet>().template.spec.as_ref().unwrap_or(&none);
        let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required =
            affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
        Eligibility {
            node: spec.node_name.clone().filter(|name| !name.is_empty()),
            labels: spec.node_selector.as_ref().map(Selector::of_labels).unwrap_or_default(),
            terms: required.map(|required| required.node_selector_terms.iter().map(NodeTerm::read).collect()),
            tolerations: tolerations(spec),
        }
    }

    pub fn of_node(&self, node: &Object) -> Place {
        let (name, labels) = (&*node.key.name, node.metadata().labels.as_ref());
        let is_named = self.node.as_deref().is_none_or(|wanted| wanted == name);
        let is_selected = self.labels.matches(labels)
            && self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(name, labels)));
        if !is_named || !is_selected {
            return Place { takes: false, keeps: false };
        }
        let taints = node.spec::<Node>().taints.iter().flatten();
        let refused = taints.filter(|taint| !self.tolerations.iter().any(|toleration| tolerates(toleration, taint)));
        let mut place = Place { takes: true, keeps: true };
        for taint in refused {
            place.takes &= taint.effect == "PreferNoSchedule";
            place.keeps &= taint.effect != "NoExecute";
        }
        place
    }
}

/// The template's tolerations, and those of what a daemon should outlive.
fn tolerations(spec: &PodSpec) -> Vec<Toleration> {
    let mut all = spec.tolerations.clone().unwrap_or_default();
    let mut added = vec![
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ];
    if spec.host_network == Some(true) {
        added.push(("network-unavailable", "NoSchedule"));
    }
    for (condition, effect) in added {
        let toleration = Toleration {
            key: Some(format!("node.kubernetes.io/{condition}")),
            operator: Some("Exists".into()),
            effect: Some(effect.into()),
            ..Toleration::default()
        };
        let same = |known: &&mut Toleration| {
            (&known.key, &known.operator, &known.effect) == (&toleration.key, &toleration.operator, &toleration.effect)
                && known.value.as_deref().unwrap_or_default().is_empty()
        };
        match all.iter_mut().find(same) {
            Some(known) => *known = toleration,
            None => all.push(toleration),
        }
    }
    all
}

/// Counts the templates that the DaemonSet has had.
pub fn generation(set: &Object) -> Option<&str> {
    set.annotation(GENERATION_ANNOTATION)
}

/// The template with what all pods of the DaemonSet have beyond it.
pub fn template(set: &Object, hash: &str) -> PodTemplateSpec {
    let mut template = set.spec::<DaemonSet>().template.clone();
    let spec = template.spec.get_or_insert_default();
    spec.tolerations = Some(tolerations(spec));
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    if let Some(generation) = generation(set) {
        labels.insert(GENERATION_LABEL.into(), generation.to_owned());
    }
    labels.insert(HASH_LABEL.into(), hash.to_owned());
    template
}

/// The pod for a node: it is the scheduler that brings it there, and it can go nowhere else.
pub fn pod(template: &PodTemplateSpec, set: &Object, node: &str) -> Object {
    let mut pod = pods::from_template(template, set, set.controller_reference());
    let affinity = pod.spec_mut::<Pod>().affinity.get_or_insert_with(Affinity::default);
    let node_affinity = affinity.node_affinity.get_or_insert_with(NodeAffinity::default);
    let requirement = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: "In".into(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_fields: Some(vec![requirement]), match_expressions: None };
    node_affinity.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
    pod
}

/// The node that a pod is on or is for.
pub fn target_node(pod: &Object) -> Option<&str> {
    let spec = pod.spec::<Pod>();
    if let Some(node) = spec.node_name.as_deref().filter(|name| !name.is_empty()) {
        return Some(node);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let mut fields = required.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
    let named = fields.find(|field| field.key == "metadata.name" && field.operator == "In")?;
    match named.values.as_deref() {
        Some([node]) => Some(node),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::kind::Resource;

    fn set(spec: Value) -> Object {
        let value = json!({"metadata": {"name": "agent", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {"spec": spec}}});
        Object::from_json(DaemonSet::kind(), value).unwrap()
    }

    fn place(spec: Value, taints: Value) -> (bool, bool) {
        let value = json!({"metadata": {"name": "n", "labels": {"pool": "a"}}, "spec": {"taints": taints}});
        let place = Eligibility::of(&set(spec)).of_node(&Object::from_json(Node::kind(), value).unwrap());
        (place.takes, place.keeps)
    }

    #[test]
    fn a_node_takes_what_selects_it_and_tolerates_it() {
        let containers = json!([]);
        for (spec, expected) in [
            (json!({"containers": containers}), (true, true)),
            (json!({"containers": containers, "nodeName": "m"}), (false, false)),
            (json!({"containers": containers, "nodeSelector": {"pool": "b"}}), (false, false)),
            (json!({"containers": containers, "nodeSelector": {"pool": "a"}}), (true, true)),
        ] {
            assert_eq!(place(spec.clone(), json!([])), expected, "{spec}");
        }
        let plain = json!({"containers": containers});
        for (taint, expected) in [
            (json!({"key": "only", "effect": "NoSchedule"}), (false, true)),
            (json!({"key": "only", "effect": "NoExecute"}), (false, false)),
            (json!({"key": "only", "effect": "PreferNoSchedule"}), (true, true)),
            (json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}), (true, true)),
            (json!({"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}), (false, true)),
        ] {
            assert_eq!(place(plain.clone(), json!([taint])), expected, "{taint}");
        }
    }

    #[test]
    fn a_pod_is_for_one_node_only() {
        let given = json!({"containers": [], "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]}}}});
        let set = set(given);
        let pod = pod(&template(&set, "abc"), &set, "node-1");
        assert_eq!(target_node(&pod), Some("node-1"));
        assert_eq!(pod.label(HASH_LABEL), Some("abc"));
        assert_eq!(pod.spec::<Pod>().tolerations.as_ref().map(Vec::len), Some(6));
    }
}
