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
    /// Whether they concern a node, by its position.
    concern: Vec<bool>,
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
    /// Where each node stands, by its position.
    places: Vec<Place>,
}

#[derive(Clone, Debug, Default)]
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
            places: Vec::new(),
        };
        Wishes { wishes: spreads.into_iter().map(wish).collect(), are_defaults, concern: Vec::new() }
    }

    /// There are so many nodes now; those beyond are gone.
    pub fn resize(&mut self, nodes: usize) {
        self.concern.resize(nodes, false);
        self.wishes.iter_mut().for_each(|wish| wish.resize(nodes));
    }

    /// Counts a node instead of what was counted of it before.
    pub fn count(&mut self, ask: &Ask, position: usize, node: &NodeInfo) {
        let has_domain = |wish: &Wish| node.label(&wish.spread.topology_key).is_some();
        let concern = self.are_defaults || self.wishes.iter().all(has_domain);
        self.concern[position] = concern;
        self.wishes.iter_mut().for_each(|wish| wish.count(ask, position, node, concern));
    }
}

impl Wish {
    fn resize(&mut self, nodes: usize) {
        for gone in self.places.drain(nodes.min(self.places.len())..) {
            if gone.counted > 0 {
                self.counts[gone.domain] -= gone.counted;
            }
        }
        self.places.resize_with(nodes, Place::default);
    }

    fn count(&mut self, ask: &Ask, position: usize, node: &NodeInfo, concern: bool) {
        let value = node.label(&self.spread.topology_key);
        let (has_domain, own) = (value.is_some(), matching_pods(&self.spread, ask, node));
        if self.is_by_node {
            self.places[position] = Place { has_domain, own, ..Place::default() };
            return;
        }
        let domain = self.number(value.unwrap_or_default());
        let counted = if has_domain && concern && includes(&self.spread, ask, node) { own } else { 0 };
        let before = std::mem::replace(&mut self.places[position], Place { has_domain, domain, own, counted });
        self.counts[before.domain] -= before.counted;
        self.counts[domain] += counted;
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
    fn domains(&self, concern: &[bool], candidates: &[Candidate<'_>]) -> usize {
        let concerned = candidates.iter().filter(|candidate| concern[candidate.position]);
        if self.is_by_node {
            return concerned.count();
        }
        let mut present = vec![false; self.counts.len()];
        concerned.for_each(|candidate| present[self.places[candidate.position].domain] = true);
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
        for wish in &wishes.wishes {
            let weight = ((wish.domains(&wishes.concern, candidates) + 2) as f64).ln();
            for (counted, candidate) in counted.iter_mut().zip(candidates) {
                let place = &wish.places[candidate.position];
                if place.has_domain {
                    let count = if wish.is_by_node { place.own } else { wish.counts[place.domain] };
                    *counted += count as f64 * weight + (wish.spread.max_skew - 1) as f64;
                }
            }
        }
        for (value, counted) in values.iter_mut().zip(&counted) {
            *value = counted.round() as i64;
        }
        let concerned = || candidates.iter().map(|candidate| wishes.concern[candidate.position]);
        let scored = || values.iter().zip(concerned()).filter(|(_, concerned)| *concerned).map(|(value, _)| *value);
        let (least, most) = (scored().min().unwrap_or(0), scored().max().unwrap_or(0));
        for (value, concerned) in values.iter_mut().zip(concerned()) {
            *value = match (concerned, most) {
                (false, _) => 0,
                (true, 0) => POINTS_MAX,
                (true, _) => POINTS_MAX * (most + least - *value) / most,
            };
        }
    }
}
