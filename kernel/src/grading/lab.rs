//! A copy of the learner's cluster on which one check is tried: it may be broken, and time may pass on it.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::clock::Time;
use cluster_core::trace::{Sequence, What};

use super::properties::Property;
use super::words::Words;

/// A run that takes more steps than this (in units of 256) will not come to rest.
const TURNS_MAX: u32 = 400;
/// Among so many of the last entries of the trace the busiest writer is sought.
const LAST: u64 = 2_000;
/// Quiet time in which nothing but heartbeats is written can still change what a property sees, so it is looked at this
/// often at least.
const LOOK_EVERY: Duration = Duration::from_secs(60);

pub struct Lab<'a> {
    /// The cluster as the exercise began.
    pub start: &'a Cluster,
    pub cluster: Cluster,
    turns: u32,
}

impl<'a> Lab<'a> {
    pub fn new(start: &'a Cluster, answer: &Cluster) -> Lab<'a> {
        Lab { start, cluster: answer.clone(), turns: 0 }
    }

    /// Lets things settle, and then waits on until the property holds: `limit` of virtual time in all. What is missing
    /// then is the error.
    pub fn wait(&mut self, property: &dyn Property, limit: Duration) -> Result<(), Words> {
        let deadline = self.cluster.now() + limit;
        let turns = &mut self.turns;
        self.cluster.settle(limit, |_| more(turns));
        let mut looked = self.look(property);
        while looked.is_err() && self.cluster.now() < deadline && self.turns < TURNS_MAX {
            self.run_to_next_change(deadline);
            looked = self.look(property);
        }
        looked
    }

    /// Lets things settle while it demands `meanwhile` at every change, and goes on until the property holds: `limit` of virtual
    /// time in all.
    pub fn wait_under(
        &mut self,
        meanwhile: &dyn Property,
        property: &dyn Property,
        limit: Duration,
    ) -> Result<(), Words> {
        let deadline = self.cluster.now() + limit;
        loop {
            self.look(meanwhile)?;
            let looked = self.look(property);
            let is_over = self.cluster.now() >= deadline || self.turns >= TURNS_MAX;
            if is_over || looked.is_ok() && self.is_settled(deadline) {
                return looked;
            }
            self.run_to_next_change(deadline);
        }
    }

    /// Nothing but periodic work is due before the deadline.
    fn is_settled(&self, deadline: Time) -> bool {
        self.cluster.next_work_due().is_none_or(|at| at > deadline)
    }

    /// Looks at the property whenever something changes, for `span` of virtual time; the error says what was missing
    /// and how long it had lasted.
    pub fn keep(&mut self, property: &dyn Property, span: Duration) -> Result<(), (Words, Duration)> {
        let begun = self.cluster.now();
        let deadline = begun + span;
        while self.cluster.now() < deadline && self.turns < TURNS_MAX {
            self.run_to_next_change(deadline);
            self.look(property).map_err(|missing| (missing, self.cluster.now().since(begun)))?;
        }
        Ok(())
    }

    /// A cluster that was too busy to be watched to the end has not shown that anything lasts: who keeps it busy.
    pub fn restless(&self) -> Option<Words> {
        if self.turns < TURNS_MAX {
            return None;
        }
        let trace = self.cluster.trace();
        let mut writes: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in trace.since(trace.next_sequence().saturating_sub(LAST)) {
            if matches!(&entry.what, What::Request(request) if request.is_write()) {
                *writes.entry(&entry.actor).or_default() += 1;
            }
        }
        let busiest = writes.into_iter().max_by_key(|(_, count)| *count).map_or("?", |(actor, _)| actor);
        Some(Words::new(format!("{busiest} が書き続けている"), format!("{busiest} writes on and on")))
    }

    /// A property looks at a copy, so that what it tries leaves no mark.
    fn look(&self, property: &dyn Property) -> Result<(), Words> {
        property.look(&mut self.cluster.clone(), self.start)
    }

    fn run_to_next_change(&mut self, deadline: Time) {
        let until = deadline.min(self.cluster.now() + LOOK_EVERY);
        let mut seen = self.cluster.trace().next_sequence();
        for step in 1_u32.. {
            if step.is_multiple_of(256) && !more(&mut self.turns) {
                return;
            }
            if !self.cluster.step_before(until) {
                return;
            }
            let next = self.cluster.trace().next_sequence();
            if (seen..next).any(|sequence| matters(&self.cluster, sequence)) {
                return;
            }
            seen = next;
        }
    }
}

fn more(turns: &mut u32) -> bool {
    *turns += 1;
    *turns < TURNS_MAX
}

/// Everything but heartbeats, Events and thoughts.
fn matters(cluster: &Cluster, sequence: Sequence) -> bool {
    let Some(entry) = cluster.trace().get(sequence) else { return false };
    match &entry.what {
        What::Request(request) => request.is_write() && !matches!(&*request.kind.kind, "Event" | "Lease"),
        What::Container(_) | What::Rules { .. } | What::Fault(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use cluster_core::Config;

    use super::*;

    /// Holds in the first ten minutes.
    #[derive(Debug)]
    struct Early;

    impl Property for Early {
        fn look(&self, cluster: &mut Cluster, _: &Cluster) -> Result<(), Words> {
            match cluster.now() <= Time::from_secs(600) {
                true => Ok(()),
                false => Err(Words::same("late")),
            }
        }
    }

    #[test]
    fn one_lucky_moment_is_not_enough() {
        let cluster = Cluster::new(Config::default());
        let mut lab = Lab::new(&cluster, &cluster);
        assert_eq!(lab.wait(&Early, Duration::from_secs(60)), Ok(()));
        assert_eq!(lab.keep(&Early, Duration::from_secs(300)), Ok(()));
        let (missing, lasted) = lab.keep(&Early, Duration::from_secs(900)).unwrap_err();
        assert_eq!(missing, Words::same("late"));
        assert!(lasted < Duration::from_secs(400), "{lasted:?}");
    }

    #[test]
    fn what_must_hold_meanwhile_is_looked_at_on_the_way() {
        let cluster = Cluster::new(Config::default());
        let mut lab = Lab::new(&cluster, &cluster);
        assert_eq!(lab.wait_under(&Early, &Early, Duration::from_secs(60)), Ok(()));
        lab.cluster.advance(Duration::from_secs(700), |_| true);
        assert_eq!(lab.wait_under(&Early, &Early, Duration::from_secs(60)), Err(Words::same("late")));
    }

    #[test]
    fn a_cluster_that_never_rests_is_known_as_such() {
        let cluster = Cluster::new(Config::default());
        let mut lab = Lab::new(&cluster, &cluster);
        lab.turns = TURNS_MAX;
        assert_eq!(lab.keep(&Early, Duration::from_secs(1)), Ok(()));
        assert!(lab.restless().is_some());
    }
}
