//! Preemption: a pod of higher priority that finds no node takes the place of others.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/>

use std::cmp::Reverse;
use std::iter::repeat;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::cache::Cache;
use super::cycle::{Cycle, Evaluation};
use super::filters::Rejection;
use super::pod::PodInfo;
use super::verdict::unavailable;
use crate::api::{Key, Name};
use crate::clock::Time;
use crate::random::Random;

/// How many nodes are tried out at least, and which share of them.
const CANDIDATES_MIN: usize = 100;
const CANDIDATES_PERCENT: usize = 10;

pub enum Outcome {
    /// Room can be made on this node by taking these pods off it.
    Nominate { node: Name, victims: Vec<Arc<PodInfo>> },
    /// Why it does not help, as the end of the message.
    Refuse(String),
}

struct Candidate {
    node: Name,
    /// The most important first.
    victims: Vec<Arc<PodInfo>>,
    /// How many of them a budget of disruptions would keep.
    broken_budgets: usize,
}

pub fn preempt(pod: &PodInfo, evaluation: &Evaluation, cache: &Cache, random: &mut Random) -> Outcome {
    if !pod.ask.preempts {
        return Outcome::Refuse("not eligible due to preemptionPolicy=Never.".into());
    }
    if waits_for_victims(pod, evaluation, cache) {
        return Outcome::Refuse("not eligible due to a terminating pod on the nominated node.".into());
    }
    let helped: Vec<usize> =
        evaluation.rejected.iter().filter(|(_, rejection)| !rejection.is_unresolvable).map(|(at, _)| *at).collect();
    let wanted = (helped.len() * CANDIDATES_PERCENT / 100).max(CANDIDATES_MIN);
    let offset = random.below(helped.len() as u64) as usize;
    let mut candidates = Vec::new();
    let mut refusals = Vec::new();
    for position in helped[offset..].iter().chain(&helped[..offset]) {
        match victims(pod, cache, *position) {
            Ok(candidate) => candidates.push(candidate),
            Err(rejection) => refusals.push(rejection),
        }
        if candidates.len() >= wanted {
            break;
        }
    }
    match choose(candidates, cache) {
        Some(Candidate { node, victims, .. }) => Outcome::Nominate { node, victims },
        None => {
            let refused = refusals.iter().flat_map(|rejection| &rejection.reasons).map(|reason| (&**reason, 1));
            let others = ("Preemption is not helpful for scheduling", evaluation.nodes - refusals.len());
            Outcome::Refuse(unavailable(evaluation.nodes, refused.chain([others])))
        }
    }
}

/// It has made room already, and the victims are still on their way out.
fn waits_for_victims(pod: &PodInfo, evaluation: &Evaluation, cache: &Cache) -> bool {
    let Some((name, _)) = cache.nominated.get(pod.key()) else { return false };
    let Some(position) = cache.position(name) else { return false };
    let is_hopeless = evaluation.rejected.iter().any(|(at, rejection)| *at == position && rejection.is_unresolvable);
    let is_leaving =
        |other: &Key| cache.pod(other).is_some_and(|object| object.is_terminating() && is_disrupted(object));
    !is_hopeless
        && cache.nodes().get(position).is_some_and(|node| {
            node.pods.iter().any(|other| other.ask.priority < pod.ask.priority && is_leaving(other.key()))
        })
}

fn is_disrupted(pod: &crate::api::object::Object) -> bool {
    let conditions = pod.status::<Pod>().conditions.iter().flatten();
    conditions.into_iter().any(|condition| {
        condition.type_ == "DisruptionTarget" && condition.reason.as_deref() == Some("PreemptionByScheduler")
    })
}

/// The fewest and least important pods whose absence lets the pod fit on the node.
fn victims(pod: &PodInfo, cache: &Cache, position: usize) -> Result<Candidate, Rejection> {
    let none = || Rejection::unresolvable("DefaultPreemption", "No preemption victims found for incoming pod");
    let node = cache.nodes().get(position).ok_or_else(none)?;
    let mut potential: Vec<_> =
        node.pods.iter().filter(|other| other.ask.priority < pod.ask.priority).cloned().collect();
    if potential.is_empty() {
        return Err(none());
    }
    let mut without = cache.clone();
    for victim in &potential {
        without.take_away(victim.key());
    }
    fits(pod, &without, position)?;
    let importance = |victim: &Arc<PodInfo>| (Reverse(victim.ask.priority), started(cache, victim));
    potential.sort_by_key(importance);
    // Those whom a budget keeps are spared first.
    let (kept, others) = cache.budgets.part(potential);
    let mut victims = Vec::new();
    let mut broken_budgets = 0;
    for (victim, is_kept) in kept.into_iter().zip(repeat(true)).chain(others.into_iter().zip(repeat(false))) {
        without.place(victim.clone(), &node.name);
        if fits(pod, &without, position).is_err() {
            without.take_away(victim.key());
            victims.push(victim);
            broken_budgets += usize::from(is_kept);
        }
    }
    victims.sort_by_key(importance);
    if victims.is_empty() { Err(none()) } else { Ok(Candidate { node: node.name.clone(), victims, broken_budgets }) }
}

fn fits(pod: &PodInfo, cache: &Cache, position: usize) -> Result<(), Rejection> {
    cache.nodes().get(position).map_or(Ok(()), |node| Cycle::new(pod, cache).check_with_nominated(node))
}

/// A pod that has not started counts as started just now.
fn started(cache: &Cache, pod: &PodInfo) -> Time {
    let object = cache.pod(pod.key()).unwrap_or(&pod.object);
    object.status::<Pod>().start_time.as_ref().map_or(Time::MAX, Time::from)
}

/// The node where the fewest budgets are broken, then the one whose most important victim matters least, then the one with the smallest sum of priorities, the fewest
/// victims, the victim that started last.
fn choose(candidates: Vec<Candidate>, cache: &Cache) -> Option<Candidate> {
    candidates.into_iter().min_by_key(|candidate| {
        let victims = &candidate.victims;
        let highest = victims.iter().map(|victim| victim.ask.priority).max().unwrap_or(i32::MIN);
        let sum: i64 = victims.iter().map(|victim| i64::from(victim.ask.priority) + (1 << 31)).sum();
        let most_important = victims.iter().filter(|victim| victim.ask.priority == highest);
        let earliest = most_important.map(|victim| started(cache, victim)).min();
        (candidate.broken_budgets, highest, sum, victims.len(), Reverse(earliest))
    })
}
