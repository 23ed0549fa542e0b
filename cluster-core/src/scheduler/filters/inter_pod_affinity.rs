//! Required affinity and anti-affinity between pods, and what the pods that are there refuse.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#inter-pod-affinity-and-anti-affinity>

use std::collections::BTreeMap;

use super::{Change, Filter, Rejection};
use crate::scheduler::cache::Cache;
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;
use crate::scheduler::pod::Ask;
use crate::scheduler::terms::PodTerm;

pub struct InterPodAffinity;

/// Numbers by topology key and value.
type Counts = BTreeMap<(String, String), i64>;

/// What the pods of the cluster mean for one that comes.
#[derive(Default)]
pub struct Neighbours {
    /// Pods that match all terms of the coming pod's affinity.
    wanted: Counts,
    /// Pods that match a term of its anti-affinity.
    unwanted: Counts,
    /// Pods whose anti-affinity matches it.
    refusing: Counts,
    /// Weights of preferences, its own and those of the pods that are there.
    pub preferred: Counts,
}

impl Neighbours {
    pub fn count(ask: &Ask, cache: &Cache) -> Neighbours {
        let mut neighbours = Neighbours::default();
        if !ask.has_pod_affinity() && !cache.any_affinity() {
            return neighbours;
        }
        let profile = cache.profile(ask);
        let (mine, namespaces) = (ask.has_pod_affinity(), &cache.namespaces);
        for node in cache.nodes() {
            for pod in node.pods.iter().filter(|pod| mine || pod.ask.has_pod_affinity()) {
                let other = &*pod.ask;
                if !ask.affinity.is_empty() && ask.affinity.iter().all(|term| term.matches(other, namespaces)) {
                    ask.affinity.iter().for_each(|term| add(&mut neighbours.wanted, term, node, 1));
                }
                for term in ask.anti_affinity.iter().filter(|term| term.matches(other, namespaces)) {
                    add(&mut neighbours.unwanted, term, node, 1);
                }
                for term in other.anti_affinity.iter().filter(|term| term.matches(ask, namespaces)) {
                    add(&mut neighbours.refusing, term, node, 1);
                }
                for (weight, term) in ask.preferred_pods.iter().filter(|(_, term)| term.matches(other, namespaces)) {
                    add(&mut neighbours.preferred, term, node, *weight);
                }
                for (weight, term) in other.preferred_pods.iter().filter(|(_, term)| term.matches(ask, namespaces)) {
                    add(&mut neighbours.preferred, term, node, *weight);
                }
                for term in other.affinity.iter().filter(|term| term.matches(ask, namespaces)) {
                    add(&mut neighbours.preferred, term, node, profile.hard_pod_affinity_weight);
                }
            }
        }
        if profile.ignores_preferences_of_others && ask.preferred_pods.is_empty() {
            neighbours.preferred.clear();
        }
        neighbours
    }
}

fn add(counts: &mut Counts, term: &PodTerm, node: &NodeInfo, number: i64) {
    if let Some(value) = node.label(&term.topology_key) {
        *counts.entry((term.topology_key.clone(), value.to_owned())).or_default() += number;
    }
}

fn has(counts: &Counts, term: &PodTerm, node: &NodeInfo) -> bool {
    node.label(&term.topology_key)
        .is_some_and(|value| counts.get(&(term.topology_key.clone(), value.to_owned())).is_some_and(|count| *count > 0))
}

impl InterPodAffinity {
    /// The first of a group of pods that want each other's company may go anywhere where the topology exists.
    fn has_company(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> bool {
        let terms = &cycle.ask.affinity;
        if terms.iter().any(|term| node.label(&term.topology_key).is_none()) {
            return false;
        }
        terms.iter().all(|term| has(&cycle.neighbours.wanted, term, node))
            || (cycle.neighbours.wanted.is_empty()
                && terms.iter().all(|term| term.matches(cycle.ask, &cycle.cache.namespaces)))
    }
}

impl Filter for InterPodAffinity {
    fn name(&self) -> &'static str {
        "InterPodAffinity"
    }

    fn looks_at_node_alone(&self) -> bool {
        false
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        let neighbours = &cycle.neighbours;
        if !self.has_company(cycle, node) {
            return Err(Rejection::unresolvable(self.name(), "node(s) didn't match pod affinity rules"));
        }
        if cycle.ask.anti_affinity.iter().any(|term| has(&neighbours.unwanted, term, node)) {
            return Err(Rejection::new(self.name(), "node(s) didn't match pod anti-affinity rules"));
        }
        let refused = |((key, value), count): (&(String, String), &i64)| *count > 0 && node.label(key) == Some(value);
        if neighbours.refusing.iter().any(refused) {
            return Err(Rejection::new(self.name(), "node(s) didn't satisfy existing pods anti-affinity rules"));
        }
        Ok(())
    }

    fn cured_by(&self, cycle: &Cycle<'_>, change: &Change<'_>) -> bool {
        let (ask, namespaces) = (cycle.ask, &cycle.cache.namespaces);
        match change {
            Change::NodePut(node) => ask.affinity.iter().all(|term| node.label(&term.topology_key).is_some()),
            Change::NodeRemoved | Change::Volumes => false,
            Change::PodPlaced(pod) => ask.affinity.iter().any(|term| term.matches(pod, namespaces)),
            Change::PodRemoved(pod) => {
                ask.anti_affinity.iter().any(|term| term.matches(pod, namespaces))
                    || pod.anti_affinity.iter().any(|term| term.matches(ask, namespaces))
            }
        }
    }
}
