//! One check of an exercise: what must hold, and the faults after which it must hold again.

use std::time::Duration;

use cluster_core::Cluster;
use jiff::SignedDuration;
use serde::{Deserialize, Deserializer};

use super::faults::{self, Fault};
use super::lab::Lab;
use super::properties::{self, Property};
use super::words::Words;

/// How much longer than a check's own limit is looked, to tell what is late from what is wrong.
const LATE: Duration = Duration::from_secs(1200);

/// What an exercise's `checks` list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Names it in reports: `three-ready`.
    pub id: String,
    /// Struck one after another; what is expected must hold again after each.
    #[serde(default)]
    pub after: Vec<Strike>,
    pub expect: Expectation,
    /// What must hold at every moment after each fault, also while things are on their way.
    #[serde(default)]
    pub meanwhile: Option<Expectation>,
    /// The virtual time in which it must come true, and after each fault again.
    #[serde(default = "ten_minutes", deserialize_with = "span")]
    pub within: Duration,
    /// The virtual time for which it must then stay true: longer than the longest wait before a container is restarted.
    #[serde(default = "ten_minutes", deserialize_with = "span")]
    pub stays: Duration,
    /// What a learner is told whose answer fails here. It names what is wrong, not what to do.
    pub message: Words,
}

#[derive(Debug)]
pub struct Expectation(pub Box<dyn Property>);

#[derive(Debug)]
pub struct Strike(pub Box<dyn Fault>);

impl<'de> Deserialize<'de> for Expectation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::kind::one_of(properties::ALL, deserializer).map(Expectation)
    }
}

impl<'de> Deserialize<'de> for Strike {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::kind::one_of(faults::ALL, deserializer).map(Strike)
    }
}

fn ten_minutes() -> Duration {
    Duration::from_secs(600)
}

pub fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    SignedDuration::deserialize(deserializer).map(SignedDuration::unsigned_abs)
}

/// What a check finds.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    Holds,
    /// With what was found in the place of what was expected.
    Fails(Words),
    /// It does not hold in time, but will: the cluster was still on its way.
    Late(Words),
    /// Nothing was missing for as long as the cluster could be watched, but it never comes to rest.
    Restless(Words),
}

impl Check {
    /// Tries the check on a copy of the learner's cluster.
    pub fn run(&self, start: &Cluster, answer: &Cluster) -> Finding {
        let mut lab = Lab::new(start, answer);
        let property = &*self.expect.0;
        if property.is_timeless() {
            return property.look(&mut lab.cluster, start).map_or_else(Finding::Fails, |()| Finding::Holds);
        }
        let meanwhile = self.meanwhile.as_ref().map(|expected| &*expected.0);
        if self.after.is_empty()
            && let Err(found) = lab.wait(property, self.within)
        {
            let late = lab.wait(property, LATE).is_ok() && lab.keep(property, self.stays).is_ok();
            return if late { Finding::Late(found) } else { Finding::Fails(found) };
        }
        if let Some(found) = lab.restless() {
            return Finding::Restless(found);
        }
        for Strike(fault) in &self.after {
            let found = match fault.strike(&mut lab.cluster) {
                Ok(()) => match meanwhile {
                    Some(meanwhile) => lab.wait_under(meanwhile, property, self.within),
                    None => lab.wait(property, self.within),
                },
                Err(missing) => Err(missing),
            };
            if let Err(found) = found {
                return Finding::Fails(after(&fault.words(), &found));
            }
        }
        match lab.keep(property, self.stays) {
            Ok(()) => lab.restless().map_or(Finding::Holds, Finding::Restless),
            Err((found, lasted)) => Finding::Fails(lasting(&found, lasted)),
        }
    }
}

fn after(fault: &Words, found: &Words) -> Words {
    Words::new(format!("{}あと: {}", fault.ja, found.ja), format!("after {}: {}", fault.en, found.en))
}

fn lasting(found: &Words, lasted: Duration) -> Words {
    let seconds = lasted.as_secs();
    Words::new(
        format!("{seconds}秒だけ続いたが、その後: {}", found.ja),
        format!("so for {seconds} s, but then: {}", found.en),
    )
}
