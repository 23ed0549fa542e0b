//! Spread that is wished for: by the pod's own constraints, or by the system's defaults for replicas of one thing.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/#internal-default-constraints>

use std::collections::BTreeMap;

use super::{POINTS_MAX, Score};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::filters::pod_topology_spread::{includes, matching_pods};
use crate::scheduler::node::NodeInfo;
use crate::scheduler::spreading::HOSTNAME;
use crate::scheduler::terms::Spread;

pub struct PodTopologySpread;

impl Score for PodTopologySpread {
    fn name(&self) -> &'static str {
        "PodTopologySpread"
    }

    fn weight(&self) -> i64 {
        2
    }

    /// How many of the counted pods the node itself has.
    fn look(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let by_node = cycle.wishes.iter().find(|wish| wish.topology_key == HOSTNAME);
        by_node.map_or(0, |wish| matching_pods(wish, cycle.ask, node))
    }

    fn finish(&self, cycle: &Cycle<'_>, nodes: &[&NodeInfo], values: &mut [i64]) {
        if cycle.wishes.is_empty() {
            return;
        }
        // Of the defaults, a node without a zone still keeps the one about nodes.
        let takes_part = |node: &NodeInfo| {
            cycle.wishes_are_defaults || cycle.wishes.iter().all(|wish| node.label(&wish.topology_key).is_some())
        };
        let taking_part: Vec<bool> = nodes.iter().map(|node| takes_part(node)).collect();
        let mut counted = vec![0.0; nodes.len()];
        for (index, wish) in cycle.wishes.iter().enumerate() {
            let is_first_by_node = cycle.wishes.iter().position(|wish| wish.topology_key == HOSTNAME) == Some(index);
            let by_value = if wish.topology_key == HOSTNAME {
                None
            } else {
                Some(counts(cycle, wish, nodes, &taking_part, takes_part))
            };
            let domains = match &by_value {
                Some(counts) => counts.len(),
                None => taking_part.iter().filter(|takes_part| **takes_part).count(),
            };
            let weight = ((domains + 2) as f64).ln();
            for (at, node) in nodes.iter().enumerate() {
                let Some(value) = node.label(&wish.topology_key) else { continue };
                let count = match &by_value {
                    Some(counts) => counts.get(value).copied().unwrap_or(0),
                    None if is_first_by_node => values[at],
                    None => matching_pods(wish, cycle.ask, node),
                };
                counted[at] += count as f64 * weight + (wish.max_skew - 1) as f64;
            }
        }
        for (at, value) in values.iter_mut().enumerate() {
            *value = counted[at].round() as i64;
        }
        let scored = || values.iter().zip(&taking_part).filter(|(_, takes_part)| **takes_part).map(|(value, _)| *value);
        let (least, most) = (scored().min().unwrap_or(0), scored().max().unwrap_or(0));
        for (value, takes_part) in values.iter_mut().zip(&taking_part) {
            *value = match (takes_part, most) {
                (false, _) => 0,
                (true, 0) => POINTS_MAX,
                (true, _) => POINTS_MAX * (most + least - *value) / most,
            };
        }
    }
}

/// Counted pods of each domain that a candidate is in, over all nodes.
fn counts<'a>(
    cycle: &Cycle<'_>,
    wish: &Spread,
    candidates: &[&'a NodeInfo],
    taking_part: &[bool],
    takes_part: impl Fn(&NodeInfo) -> bool,
) -> BTreeMap<&'a str, i64> {
    let value = |node: &'a NodeInfo| node.label(&wish.topology_key).unwrap_or_default();
    let parts = candidates.iter().zip(taking_part).filter(|(_, takes_part)| **takes_part);
    let mut counts: BTreeMap<&str, i64> = parts.map(|(node, _)| (value(node), 0)).collect();
    if counts.keys().all(|value| value.is_empty()) {
        return counts;
    }
    for node in cycle.cache.nodes() {
        if let Some(count) = node.label(&wish.topology_key).and_then(|value| counts.get_mut(value))
            && takes_part(node)
            && includes(wish, cycle.ask, node)
        {
            *count += matching_pods(wish, cycle.ask, node);
        }
    }
    counts
}
