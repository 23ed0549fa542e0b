//! Spread that is wished for: by the pod's own constraints, or by the system's defaults for replicas of one thing.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/#internal-default-constraints>

use std::collections::BTreeMap;

use super::{Candidate, POINTS_MAX, Score};
use crate::scheduler::cycle::Cycle;
use crate::scheduler::filters::pod_topology_spread::{includes, matching_pods};
use crate::scheduler::node::NodeInfo;
use crate::scheduler::pod::Ask;
use crate::scheduler::spreading::HOSTNAME;
use crate::scheduler::terms::Spread;

pub struct PodTopologySpread;

/// The wishes of pods that ask for the same, with the pods that they count, kept up to date node by node.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    wishes: Vec<Wish>,
    /// Of the system's defaults, a node without a zone still keeps the one about nodes.
    are_defaults: bool,
}

#[derive(Clone, Debug)]
struct Wish {
    spread: Spread,
    /// Every node is a domain of its own.
    is_by_node: bool,
    /// The numbers of the domains that were ever seen.
    numbers: BTreeMap<String, usize>,
    /// Counted pods by the number of the domain.
    counts: Vec<i64>,
}

/// A node's part in the wishes.
#[derive(Clone, Debug, Default)]
pub struct Share {
    takes_part: bool,
    /// One a wish.
    places: Vec<Place>,
}

#[derive(Clone, Debug)]
struct Place {
    has_domain: bool,
    domain: usize,
    /// Counted pods that the node itself has.
    own: i64,
    /// Those of them that count for the domain.
    counted: i64,
}

impl Wishes {
    pub fn new(spreads: Vec<Spread>, are_defaults: bool) -> Wishes {
        let wish = |spread: Spread| Wish {
            is_by_node: spread.topology_key == HOSTNAME,
            spread,
            numbers: BTreeMap::new(),
            counts: Vec::new(),
        };
        Wishes { wishes: spreads.into_iter().map(wish).collect(), are_defaults }
    }

    /// Counts a node.
    pub fn add(&mut self, ask: &Ask, node: &NodeInfo) -> Share {
        let has_domain = |wish: &Wish| node.label(&wish.spread.topology_key).is_some();
        let takes_part = self.are_defaults || self.wishes.iter().all(has_domain);
        let places = self.wishes.iter_mut().map(|wish| wish.add(ask, node, takes_part)).collect();
        Share { takes_part, places }
    }

    /// Takes back what a node was counted for.
    pub fn subtract(&mut self, share: &Share) {
        for (wish, place) in self.wishes.iter_mut().zip(&share.places) {
            if !wish.is_by_node {
                wish.counts[place.domain] -= place.counted;
            }
        }
    }
}

impl Wish {
    fn add(&mut self, ask: &Ask, node: &NodeInfo, takes_part: bool) -> Place {
        let value = node.label(&self.spread.topology_key);
        let own = matching_pods(&self.spread, ask, node);
        if self.is_by_node {
            return Place { has_domain: value.is_some(), domain: 0, own, counted: 0 };
        }
        let domain = self.number(value.unwrap_or_default());
        let counts = value.is_some() && takes_part && includes(&self.spread, ask, node);
        let counted = if counts { own } else { 0 };
        self.counts[domain] += counted;
        Place { has_domain: value.is_some(), domain, own, counted }
    }

    fn number(&mut self, value: &str) -> usize {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        self.numbers.insert(value.to_owned(), self.counts.len());
        self.counts.push(0);
        self.counts.len() - 1
    }

    /// How many different domains the candidates are in.
    fn domains(&self, index: usize, candidates: &[Candidate<'_>]) -> usize {
        let taking_part = candidates.iter().filter(|candidate| candidate.share.takes_part);
        if self.is_by_node {
            return taking_part.count();
        }
        let mut present = vec![false; self.counts.len()];
        taking_part.for_each(|candidate| present[candidate.share.places[index].domain] = true);
        present.into_iter().filter(|present| *present).count()
    }
}

impl Score for PodTopologySpread {
    fn name(&self) -> &'static str {
        "PodTopologySpread"
    }

    fn weight(&self) -> i64 {
        2
    }

    fn finish(&self, _: &Cycle<'_>, wishes: &Wishes, candidates: &[Candidate<'_>], values: &mut [i64]) {
        if wishes.wishes.is_empty() {
            return;
        }
        let mut counted = vec![0.0; candidates.len()];
        for (index, wish) in wishes.wishes.iter().enumerate() {
            let weight = ((wish.domains(index, candidates) + 2) as f64).ln();
            for (counted, candidate) in counted.iter_mut().zip(candidates) {
                let place = &candidate.share.places[index];
                if place.has_domain {
                    let count = if wish.is_by_node { place.own } else { wish.counts[place.domain] };
                    *counted += count as f64 * weight + (wish.spread.max_skew - 1) as f64;
                }
            }
        }
        for (value, counted) in values.iter_mut().zip(&counted) {
            *value = counted.round() as i64;
        }
        let parts = || candidates.iter().map(|candidate| candidate.share.takes_part);
        let scored = || values.iter().zip(parts()).filter(|(_, takes_part)| *takes_part).map(|(value, _)| *value);
        let (least, most) = (scored().min().unwrap_or(0), scored().max().unwrap_or(0));
        for (value, takes_part) in values.iter_mut().zip(parts()) {
            *value = match (takes_part, most) {
                (false, _) => 0,
                (true, 0) => POINTS_MAX,
                (true, _) => POINTS_MAX * (most + least - *value) / most,
            };
        }
    }
}
