//! The terms in which a pod says where it wants to be: about nodes, about other pods, about spread, about taints.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/>

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::core::v1::{Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use super::pod::Ask;
use crate::api::Name;
use crate::api::object::Object;
use crate::api::selector::{Labels, Selector};

/// One term of a node affinity: all its requirements must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTerm {
    labels: Selector,
    /// Lists of node names, and whether the node must be among them.
    names: Vec<(bool, Vec<String>)>,
    is_empty: bool,
}

impl NodeTerm {
    pub fn read(term: &core::NodeSelectorTerm) -> NodeTerm {
        let expressions: Vec<_> = term.match_expressions.iter().flatten().map(label_requirement).collect();
        let fields = term.match_fields.iter().flatten().filter(|field| field.key == "metadata.name");
        NodeTerm {
            is_empty: expressions.is_empty() && term.match_fields.as_ref().is_none_or(Vec::is_empty),
            labels: Selector::of(&meta::LabelSelector { match_expressions: Some(expressions), match_labels: None }),
            names: fields.map(|field| (field.operator == "In", field.values.clone().unwrap_or_default())).collect(),
        }
    }

    /// A term without requirements matches no node.
    pub fn matches(&self, name: &str, labels: Option<&Labels>) -> bool {
        !self.is_empty
            && self.names.iter().all(|(among, names)| names.iter().any(|known| known == name) == *among)
            && self.labels.matches(labels)
    }

    /// The only nodes by name that the term could match; `None` if it doesn't say.
    pub fn pinned(&self) -> Option<Vec<&str>> {
        let mut lists = self.names.iter().filter(|(among, _)| *among).map(|(_, names)| names);
        let first = lists.next()?.iter().map(String::as_str);
        let others: Vec<_> = lists.collect();
        Some(first.filter(|name| others.iter().all(|names| names.iter().any(|other| other == name))).collect())
    }
}

fn label_requirement(requirement: &core::NodeSelectorRequirement) -> meta::LabelSelectorRequirement {
    meta::LabelSelectorRequirement {
        key: requirement.key.clone(),
        operator: requirement.operator.clone(),
        values: requirement.values.clone(),
    }
}

/// One term of an affinity to other pods.
#[derive(Clone, Debug, PartialEq)]
pub struct PodTerm {
    pub topology_key: String,
    /// Without a selector it matches no pod.
    selector: Option<Selector>,
    namespaces: Vec<String>,
    namespace_selector: Option<Selector>,
}

/// The labels of namespaces.
pub type Namespaces = imbl::OrdMap<Name, Object>;

impl PodTerm {
    pub fn read(term: &core::PodAffinityTerm, own_namespace: &str) -> PodTerm {
        let mut namespaces = term.namespaces.clone().unwrap_or_default();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(own_namespace.to_owned());
        }
        PodTerm {
            topology_key: term.topology_key.clone(),
            selector: term.label_selector.as_ref().map(Selector::of),
            namespaces,
            namespace_selector: term.namespace_selector.as_ref().map(Selector::of),
        }
    }

    pub fn matches(&self, pod: &Ask, namespaces: &Namespaces) -> bool {
        let in_namespace = self.namespaces.iter().any(|name| **name == *pod.namespace)
            || self.namespace_selector.as_ref().is_some_and(|selector| {
                let labels = namespaces.get(&pod.namespace).and_then(|found| found.metadata().labels.as_ref());
                selector.matches(labels)
            });
        in_namespace && self.selector.as_ref().is_some_and(|selector| selector.matches(Some(&pod.labels)))
    }
}

/// One topology spread constraint.
/// <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/>
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    pub topology_key: String,
    pub max_skew: i64,
    pub min_domains: i64,
    /// `DoNotSchedule`; otherwise it is a wish.
    pub is_required: bool,
    /// Pods that are counted match all of these; none are if it is empty.
    pub selectors: Vec<Selector>,
    pub honors_affinity: bool,
    pub honors_taints: bool,
}

impl Spread {
    pub fn read(constraint: &core::TopologySpreadConstraint, labels: &Labels) -> Spread {
        let mut selectors: Vec<Selector> = constraint.label_selector.iter().map(Selector::of).collect();
        let own = |key: &String| Some((key.clone(), labels.get(key)?.clone()));
        let keys: Labels = constraint.match_label_keys.iter().flatten().filter_map(own).collect();
        if !selectors.is_empty() && !keys.is_empty() {
            selectors.push(Selector::of_labels(&keys));
        }
        Spread {
            topology_key: constraint.topology_key.clone(),
            max_skew: i64::from(constraint.max_skew),
            min_domains: i64::from(constraint.min_domains.unwrap_or(1)),
            is_required: constraint.when_unsatisfiable == "DoNotSchedule",
            selectors,
            honors_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honors_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        }
    }

    pub fn matches(&self, pod: &Ask) -> bool {
        !self.selectors.is_empty() && self.selectors.iter().all(|selector| selector.matches(Some(&pod.labels)))
    }
}

/// <https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let named = |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned);
    let same_effect = named(&toleration.effect).is_none_or(|effect| effect == taint.effect);
    let same_key = named(&toleration.key).is_none_or(|key| key == taint.key);
    let value = |text: &Option<String>| text.clone().unwrap_or_default();
    let same_value = match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => value(&toleration.value) == value(&taint.value),
        Some(_) => false,
    };
    same_effect && same_key && same_value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tolerations() {
        let taint =
            Taint { key: "team".into(), value: Some("red".into()), effect: "NoSchedule".into(), time_added: None };
        for (toleration, tolerated) in [
            (json!({"operator": "Exists"}), true),
            (json!({"key": "team", "operator": "Exists"}), true),
            (json!({"key": "team", "value": "red"}), true),
            (json!({"key": "team", "value": "blue"}), false),
            (json!({"key": "team", "value": "red", "effect": "NoExecute"}), false),
            (json!({"key": "other", "operator": "Exists"}), false),
        ] {
            assert_eq!(
                tolerates(&serde_json::from_value(toleration.clone()).unwrap(), &taint),
                tolerated,
                "{toleration}"
            );
        }
    }
}
