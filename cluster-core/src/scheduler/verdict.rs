//! What the scheduler said about each node, and in the words of its events.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cache::Cache;
use super::cycle::{Class, Evaluation, evaluate};
use super::pod::PodInfo;
use super::scores;
use crate::api::{Key, Name};
use crate::clock::Time;

/// The outcome of a pod's last scheduling cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub at: Time,
    /// The node that was chosen, or why none was.
    pub outcome: Result<Name, String>,
    /// The nodes that were looked at, in that order.
    pub nodes: Vec<(Name, NodeVerdict)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NodeVerdict {
    /// The filter that refused it, and why.
    Rejected { plugin: &'static str, reasons: Vec<String> },
    /// Points of each plugin, times its weight. All 0 if it was the only node left: then nothing is scored.
    Passed { points: Vec<(&'static str, i64)>, total: i64 },
}

/// The last cycles, as the state that they saw; the tables are made when somebody asks.
#[derive(Clone, Debug, Default)]
pub struct History {
    cycles: imbl::OrdMap<Key, Arc<Past>>,
    order: imbl::Vector<Key>,
}

#[derive(Clone, Debug)]
struct Past {
    at: Time,
    pod: Arc<PodInfo>,
    cache: Cache,
    start: usize,
    outcome: Result<Name, String>,
}

impl History {
    const MAX: usize = 256;

    pub fn record(&mut self, at: Time, pod: Arc<PodInfo>, cache: Cache, start: usize, outcome: Result<Name, String>) {
        let key = pod.key().clone();
        if self.cycles.insert(key.clone(), Arc::new(Past { at, pod, cache, start, outcome })).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > History::MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.cycles.remove(&oldest);
        }
    }

    pub fn verdict(&self, pod: &Key) -> Option<Verdict> {
        let past = self.cycles.get(pod)?;
        let evaluation = evaluate(&past.pod, &past.cache, &mut Class::new(&past.pod, &past.cache), past.start);
        let name = |position: usize| past.cache.nodes().get(position).map(|node| node.name.clone());
        let totals = evaluation.totals();
        let passed = evaluation.passed.iter().enumerate().filter_map(|(at, position)| {
            let points = scores::ALL.iter().zip(&evaluation.points);
            let points = points.map(|(plugin, points)| (plugin.name(), points[at])).collect();
            Some((name(*position)?, NodeVerdict::Passed { points, total: totals[at] }))
        });
        let rejected = evaluation.rejected.iter().filter_map(|(position, rejection)| {
            let reasons = rejection.reasons.iter().map(|reason| reason.to_string()).collect();
            Some((name(*position)?, NodeVerdict::Rejected { plugin: rejection.plugin, reasons }))
        });
        let nodes = passed.chain(rejected).collect();
        Some(Verdict { at: past.at, outcome: past.outcome.clone(), nodes })
    }
}

/// `0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.`
pub fn unavailable<'a>(nodes: usize, reasons: impl Iterator<Item = (&'a str, usize)>) -> String {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for (reason, number) in reasons.filter(|(_, number)| *number > 0) {
        *numbers.entry(reason).or_default() += number;
    }
    let mut parts: Vec<String> = numbers.iter().map(|(reason, number)| format!("{number} {reason}")).collect();
    parts.sort();
    if parts.is_empty() {
        return format!("0/{nodes} nodes are available");
    }
    format!("0/{nodes} nodes are available: {}.", parts.join(", "))
}

impl Evaluation {
    /// Why no node passed.
    pub fn message(&self) -> String {
        if let Some(refusal) = &self.refusal {
            return format!("0/{} nodes are available: {refusal}.", self.nodes);
        }
        let rejected = self.rejected.iter().flat_map(|(_, rejection)| &rejection.reasons).map(|reason| (&**reason, 1));
        let others = self.unnamed.iter().flat_map(|rejection| &rejection.reasons);
        let others = others.map(|reason| (&**reason, self.nodes - self.looked_at));
        unavailable(self.nodes, rejected.chain(others))
    }

    /// The plugins that refused nodes.
    pub fn refused_by(&self) -> Vec<&'static str> {
        let plugins = self.rejected.iter().map(|(_, rejection)| rejection.plugin);
        let others = self.unnamed.iter().map(|rejection| rejection.plugin);
        let refusal = self.refusal.iter().map(|_| "VolumeBinding");
        let mut all: Vec<&'static str> = plugins.chain(others).chain(refusal).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_sorted_as_text() {
        let reasons = [("Insufficient cpu", 10), ("node(s) were unschedulable", 1), ("Insufficient cpu", 2), ("x", 0)];
        assert_eq!(
            unavailable(13, reasons.into_iter()),
            "0/13 nodes are available: 1 node(s) were unschedulable, 12 Insufficient cpu."
        );
    }
}
