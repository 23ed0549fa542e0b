//! Preferred affinity and anti-affinity between pods.

use super::pod_topology_spread::Wishes;
use super::{Candidate, POINTS_MAX, Score};
use crate::scheduler::cycle::Cycle;

pub struct InterPodAffinity;

impl Score for InterPodAffinity {
    fn name(&self) -> &'static str {
        "InterPodAffinity"
    }

    fn weight(&self) -> i64 {
        2
    }

    fn finish(&self, cycle: &Cycle<'_>, _: &Wishes, candidates: &[Candidate<'_>], values: &mut [i64]) {
        let preferred = &cycle.neighbours.preferred;
        if preferred.is_empty() {
            return;
        }
        for (value, candidate) in values.iter_mut().zip(candidates) {
            let here = preferred.iter().filter(|((key, domain), _)| candidate.node.label(key) == Some(domain));
            *value = here.map(|(_, weight)| weight).sum();
        }
        let (least, most) = (values.iter().copied().min().unwrap_or(0), values.iter().copied().max().unwrap_or(0));
        for value in values {
            let share = if most > least { (*value - least) as f64 / (most - least) as f64 } else { 0.0 };
            *value = (POINTS_MAX as f64 * share) as i64;
        }
    }
}
