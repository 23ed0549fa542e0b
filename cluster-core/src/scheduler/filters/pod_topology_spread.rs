//! Required topology spread constraints.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/>

use std::collections::BTreeMap;

use super::{Change, Filter, Rejection};
use crate::scheduler::cache::Cache;
use crate::scheduler::cycle::Cycle;
use crate::scheduler::node::NodeInfo;
use crate::scheduler::pod::Ask;
use crate::scheduler::terms::Spread;

pub struct PodTopologySpread;

/// A required constraint and how many pods of each domain it counts.
pub struct Domains {
    constraint: Spread,
    counts: BTreeMap<String, i64>,
}

impl Domains {
    /// Counts over all nodes, for each required constraint of the pod.
    pub fn count(ask: &Ask, cache: &Cache) -> Vec<Domains> {
        let is_own = !ask.spread.is_empty();
        let may_be_required = is_own || !cache.profile(ask).spread.is_system;
        let all = if may_be_required { cache.spread(ask) } else { Vec::new() };
        let required: Vec<Spread> = all.into_iter().filter(|constraint| constraint.is_required).collect();
        let domains = |constraint: &Spread| {
            let mut counts = BTreeMap::new();
            for node in cache.nodes() {
                let has_all = required.iter().all(|other| node.label(&other.topology_key).is_some());
                if let Some(value) = node.label(&constraint.topology_key)
                    && has_all
                    && includes(constraint, ask, node)
                {
                    *counts.entry(value.to_owned()).or_default() += matching_pods(constraint, ask, node);
                }
            }
            Domains { constraint: constraint.clone(), counts }
        };
        required.iter().map(domains).collect()
    }

    fn skew_with(&self, ask: &Ask, value: &str) -> i64 {
        let enough = self.counts.len() as i64 >= self.constraint.min_domains;
        let least = self.counts.values().min().copied().filter(|_| enough).unwrap_or(0);
        let itself = i64::from(self.constraint.matches(ask));
        self.counts.get(value).copied().unwrap_or(0) + itself - least
    }
}

/// Whether a constraint's node policies let a node take part.
pub fn includes(constraint: &Spread, ask: &Ask, node: &NodeInfo) -> bool {
    let tolerated = || {
        let mut hard = node.taints.iter().filter(|taint| taint.effect != "PreferNoSchedule");
        hard.all(|taint| ask.tolerates(taint))
    };
    (!constraint.honors_affinity || ask.selects_node(&node.name, node.labels()))
        && (!constraint.honors_taints || tolerated())
}

/// How many pods of the node a constraint counts.
pub fn matching_pods(constraint: &Spread, ask: &Ask, node: &NodeInfo) -> i64 {
    let counted = node.pods.iter().filter(|pod| {
        pod.ask.namespace == ask.namespace && !pod.object.is_terminating() && constraint.matches(&pod.ask)
    });
    counted.count() as i64
}

impl Filter for PodTopologySpread {
    fn name(&self) -> &'static str {
        "PodTopologySpread"
    }

    fn looks_at_node_alone(&self) -> bool {
        false
    }

    fn check(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Rejection> {
        for domains in &cycle.domains {
            let Some(value) = node.label(&domains.constraint.topology_key) else {
                let reason = "node(s) didn't match pod topology spread constraints (missing required label)";
                return Err(Rejection::unresolvable(self.name(), reason));
            };
            if domains.skew_with(cycle.ask, value) > domains.constraint.max_skew {
                return Err(Rejection::new(self.name(), "node(s) didn't match pod topology spread constraints"));
            }
        }
        Ok(())
    }

    fn cured_by(&self, cycle: &Cycle<'_>, change: &Change<'_>) -> bool {
        let mut required = cycle.ask.spread.iter().filter(|constraint| constraint.is_required);
        match change {
            Change::NodePut(node) => required.all(|constraint| node.label(&constraint.topology_key).is_some()),
            Change::NodeRemoved => true,
            Change::Volumes => false,
            Change::PodPlaced(pod) | Change::PodRemoved(pod) => {
                pod.namespace == cycle.ask.namespace && required.any(|constraint| constraint.matches(pod))
            }
        }
    }
}
