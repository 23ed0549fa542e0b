//! What a scheduler profile decides: which plugins have a say, what their points weigh, and what they are told.
//! <https://kubernetes.io/docs/reference/scheduling/config/#multiple-profiles>

use std::sync::Arc;

use super::filters;
use super::node::NodeInfo;
use super::pod::Ask;
use super::scores;
use super::spreading::{HOSTNAME, ZONE};
use super::terms::NodeTerm;
use crate::api::Name;

/// The scheduler that pods have if they name none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// What kube-scheduler is started with.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    pub profiles: Vec<Arc<Profile>>,
    /// How long a pod backs off after its first attempt, and at most.
    pub backoff_seconds: (u64, u64),
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration { profiles: vec![Arc::default()], backoff_seconds: (1, 10) }
    }
}

impl Configuration {
    /// The profile that a pod names; `None` if it is another scheduler's.
    pub fn profile(&self, scheduler_name: &str) -> Option<&Arc<Profile>> {
        self.profiles.iter().find(|profile| *profile.scheduler_name == *scheduler_name)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub scheduler_name: Name,
    /// Whether each filter has a say, in the order of [`filters::ALL`].
    pub filters: [bool; filters::COUNT],
    /// The weight of each score, in the order of [`scores::ALL`]; 0 for one that is not asked.
    pub weights: [i64; scores::COUNT],
    /// DefaultPreemption makes room for pods that find none.
    pub preempts: bool,
    /// How many nodes in a hundred must pass before the search ends; 0 leaves it to the size of the cluster.
    pub percentage_of_nodes: usize,
    pub fit: Fit,
    pub spread: DefaultSpread,
    /// The weight of a required affinity of a pod that is there towards one that comes.
    pub hard_pod_affinity_weight: i64,
    /// Preferences of pods that are there don't count, unless the coming pod has some, too.
    pub ignores_preferences_of_others: bool,
    /// Nodes must match one of these beside what the pod says.
    pub added_node_terms: Option<Vec<NodeTerm>>,
    pub added_node_preferences: Vec<(i64, NodeTerm)>,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            scheduler_name: DEFAULT_SCHEDULER.into(),
            filters: [true; filters::COUNT],
            weights: scores::ALL.map(|score| score.weight()),
            preempts: true,
            percentage_of_nodes: 0,
            fit: Fit::default(),
            spread: DefaultSpread::default(),
            hard_pod_affinity_weight: 1,
            ignores_preferences_of_others: false,
            added_node_terms: None,
            added_node_preferences: Vec::new(),
        }
    }
}

impl Profile {
    /// The filters that have a say.
    pub fn filters(&self) -> impl Iterator<Item = &'static dyn filters::Filter> {
        filters::ALL.into_iter().zip(&self.filters).filter(|(_, enabled)| **enabled).map(|(filter, _)| filter)
    }

    /// The scores that are asked, with their places and weights.
    pub fn scores(&self) -> impl Iterator<Item = (usize, &'static dyn scores::Score, i64)> {
        let all = scores::ALL.into_iter().zip(self.weights).enumerate();
        all.filter(|(_, (_, weight))| *weight > 0).map(|(index, (score, weight))| (index, score, weight))
    }

    /// How many nodes must pass before the search ends.
    /// <https://kubernetes.io/docs/concepts/scheduling-eviction/scheduler-perf-tuning/>
    pub fn nodes_to_find(&self, nodes: usize) -> usize {
        if nodes < NODES_MIN {
            return nodes;
        }
        let adaptive = 50_usize.saturating_sub(nodes / 125).max(PERCENT_MIN);
        let percent = if self.percentage_of_nodes == 0 { adaptive } else { self.percentage_of_nodes };
        if percent >= 100 { nodes } else { (nodes * percent / 100).max(NODES_MIN) }
    }
}

/// Below this many nodes all are looked at; above it the search ends when enough have passed.
pub const NODES_MIN: usize = 100;
const PERCENT_MIN: usize = 5;

/// How NodeResourcesFit gives points.
/// <https://kubernetes.io/docs/concepts/scheduling-eviction/resource-bin-packing/>
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    pub strategy: Strategy,
    /// The resources that are looked at, and their weights.
    pub resources: Vec<(String, i64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// The more is left, the better.
    LeastAllocated,
    /// The fuller, the better.
    MostAllocated,
    /// Points by use in percent, along straight lines between these.
    RequestedToCapacityRatio(Vec<(i64, i64)>),
}

impl Default for Fit {
    fn default() -> Fit {
        Fit { strategy: Strategy::LeastAllocated, resources: vec![("cpu".into(), 1), ("memory".into(), 1)] }
    }
}

impl Fit {
    /// The points of a node for a pod, 0 to 100. A container without requests counts as a small one.
    pub fn points(&self, ask: &Ask, node: &NodeInfo) -> i64 {
        let (mut sum, mut weights) = (0_i128, 0_i128);
        for (name, weight) in &self.resources {
            let (taken, all) = match name.as_str() {
                "cpu" => (node.milli_cpu_assumed + ask.milli_cpu_assumed, node.allocatable.milli_cpu),
                "memory" => (node.memory_assumed + ask.memory_assumed, node.allocatable.memory),
                // Resources that only some pods need are nothing to the others.
                name if ask.requests.amount(name) == 0 => continue,
                name => (node.requested.amount(name) + ask.requests.amount(name), node.allocatable.amount(name)),
            };
            if all <= 0 {
                continue;
            }
            let points = self.strategy.points(i128::from(taken), i128::from(all));
            // A ratio of no points does not pull the others down.
            if points > 0 || !matches!(self.strategy, Strategy::RequestedToCapacityRatio(_)) {
                sum += points * i128::from(*weight);
                weights += i128::from(*weight);
            }
        }
        if weights == 0 {
            return 0;
        }
        let average = match self.strategy {
            Strategy::RequestedToCapacityRatio(_) => (sum as f64 / weights as f64).round() as i128,
            _ => sum / weights,
        };
        i64::try_from(average).unwrap_or(0)
    }
}

impl Strategy {
    fn points(&self, taken: i128, all: i128) -> i128 {
        let most = i128::from(scores::POINTS_MAX);
        match self {
            Strategy::LeastAllocated if taken > all => 0,
            Strategy::LeastAllocated => (all - taken) * most / all,
            Strategy::MostAllocated => taken.min(all) * most / all,
            Strategy::RequestedToCapacityRatio(shape) => {
                let used = if taken > all { 100 } else { taken * 100 / all };
                let at = |(use_, score): &(i64, i64)| (i128::from(*use_), i128::from(*score) * most / 10);
                let points: Vec<(i128, i128)> = shape.iter().map(at).collect();
                let next = points.iter().position(|(at, _)| used <= *at);
                match next {
                    None => points.last().map_or(0, |(_, score)| *score),
                    Some(0) => points[0].1,
                    Some(next) => {
                        let ((x0, y0), (x1, y1)) = (points[next - 1], points[next]);
                        y0 + (y1 - y0) * (used - x0) / (x1 - x0).max(1)
                    }
                }
            }
        }
    }
}

/// The spread of pods that have no constraints of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultSpread {
    /// They are the system's own: a node without a zone still counts.
    pub is_system: bool,
    /// Topology key, largest skew, and whether it is required.
    pub constraints: Vec<(String, i64, bool)>,
}

impl Default for DefaultSpread {
    fn default() -> DefaultSpread {
        DefaultSpread { is_system: true, constraints: vec![(HOSTNAME.into(), 3, false), (ZONE.into(), 5, false)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_clusters_are_sampled() {
        let profile = Profile::default();
        for (nodes, found) in [(3, 3), (99, 99), (100, 100), (1000, 420), (5000, 500), (10_000, 500)] {
            assert_eq!(profile.nodes_to_find(nodes), found, "{nodes} nodes");
        }
        let half = Profile { percentage_of_nodes: 50, ..Profile::default() };
        assert_eq!([half.nodes_to_find(150), half.nodes_to_find(1000)], [100, 500]);
    }

    #[test]
    fn points_follow_the_strategy() {
        let bins = Strategy::RequestedToCapacityRatio(vec![(0, 0), (50, 10), (100, 0)]);
        let points = |strategy: &Strategy| [0, 25, 50, 75, 100, 120].map(|taken| strategy.points(taken, 100));
        assert_eq!(points(&Strategy::LeastAllocated), [100, 75, 50, 25, 0, 0]);
        assert_eq!(points(&Strategy::MostAllocated), [0, 25, 50, 75, 100, 100]);
        assert_eq!(points(&bins), [0, 50, 100, 50, 0, 0]);
    }
}
