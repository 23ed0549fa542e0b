//! The terms in which a pod says where it wants to be: about nodes, about other pods, about spread, about taints.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/>

use k8s_openapi::api::core::v1 as core;

use super::pod::Ask;
use crate::api::Name;
use crate::api::object::Object;
use crate::api::selector::{Labels, Selector};
pub use crate::node_selection::{NodeTerm, tolerates};

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
