//! What the scheduler said about each node, and in the words of its events.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cycle::Evaluation;
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

/// What the last cycles found; the tables are made when somebody asks.
#[derive(Clone, Debug, Default)]
pub struct History {
    cycles: imbl::OrdMap<Key, Arc<Past>>,
    order: imbl::Vector<Key>,
}

#[derive(Clone, Debug)]
struct Past {
    at: Time,
    /// The names of the nodes by their positions at that time.
    names: Arc<Vec<Name>>,
    evaluation: Evaluation,
    outcome: Result<Name, String>,
}

impl History {
    const MAX: usize = 100;

    pub fn record(
        &mut self,
        at: Time,
        pod: &Key,
        names: Arc<Vec<Name>>,
        evaluation: Evaluation,
        outcome: Result<Name, String>,
    ) {
        let past = Arc::new(Past { at, names, evaluation, outcome });
        if self.cycles.insert(pod.clone(), past).is_some() {
            return;
        }
        self.order.push_back(pod.clone());
        if self.order.len() > History::MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.cycles.remove(&oldest);
        }
    }

    pub fn verdict(&self, pod: &Key) -> Option<Verdict> {
        let Past { at, names, evaluation, outcome } = &**self.cycles.get(pod)?;
        let totals = evaluation.totals();
        let passed = evaluation.passed.iter().zip(totals).enumerate().map(|(index, (position, total))| {
            let scores = evaluation.profile.scores();
            let points = scores.map(|(at, plugin, _)| (plugin.name(), evaluation.points[at][index])).collect();
            (names[*position].clone(), NodeVerdict::Passed { points, total })
        });
        let rejected = evaluation.rejected.iter().map(|(position, rejection)| {
            let reasons = rejection.reasons.iter().map(|reason| reason.to_string()).collect();
            (names[*position].clone(), NodeVerdict::Rejected { plugin: rejection.plugin, reasons })
        });
        Some(Verdict { at: *at, outcome: outcome.clone(), nodes: passed.chain(rejected).collect() })
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
            return format!("0/{} nodes are available: {}.", self.nodes, refusal.reasons.join(", "));
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
        let refusal = self.refusal.iter().map(|rejection| rejection.plugin);
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
