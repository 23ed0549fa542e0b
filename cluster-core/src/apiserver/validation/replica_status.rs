//! Numbers of pods in the status of a workload, which cannot contradict each other.

use super::field::{Causes, Path};

/// The numbers of a status by their fields, in the order of the API's checks.
pub struct Counts<'a> {
    pub replicas: i64,
    /// Those that are some of the replicas.
    pub parts: &'a [(&'a str, i64)],
    /// Any other.
    pub others: &'a [(&'a str, Option<i64>)],
    /// How the message about more available than ready pods names the latter.
    pub ready_noun: &'a str,
}

pub fn counts(causes: &mut Causes, counts: &Counts<'_>) {
    let path = Path::new("status");
    causes.non_negative(&path.child("replicas"), Some(counts.replicas));
    for (field, count) in counts.parts {
        causes.non_negative(&path.child(field), Some(*count));
    }
    for (field, count) in counts.others {
        causes.non_negative(&path.child(field), *count);
    }
    for (field, count) in counts.parts.iter().filter(|(_, count)| *count > counts.replicas) {
        causes.invalid(&path.child(field), *count, "cannot be greater than status.replicas");
    }
    let count = |name: &str| counts.parts.iter().find(|(field, _)| *field == name).map_or(0, |(_, count)| *count);
    if count("availableReplicas") > count("readyReplicas") {
        let detail = format!("cannot be greater than {}", counts.ready_noun);
        causes.invalid(&path.child("availableReplicas"), count("availableReplicas"), detail);
    }
}

/// A count of hash collisions only grows.
pub fn collisions(causes: &mut Causes, old: Option<i32>, new: Option<i32>) {
    if new.unwrap_or(0) < old.unwrap_or(0) {
        causes.invalid(&Path::new("status.collisionCount"), new.unwrap_or(0), "cannot be decremented");
    }
}
