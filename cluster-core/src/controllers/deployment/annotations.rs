//! What a Deployment writes into the annotations of its ReplicaSets: revisions, and the size of the whole.

use std::collections::BTreeMap;

use crate::api::object::Object;

pub const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of a Deployment that stay with it.
const NOT_COPIED: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
];

/// The history annotation holds no more characters than this; the oldest revisions go first.
const HISTORY_LENGTH_MAX: usize = 2000;

pub fn revision(object: &Object) -> i64 {
    object.annotation(REVISION).and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

pub fn desired_replicas(set: &Object) -> Option<i32> {
    set.annotation(DESIRED_REPLICAS)?.parse().ok()
}

pub fn max_replicas(set: &Object) -> Option<i32> {
    set.annotation(MAX_REPLICAS)?.parse().ok()
}

/// Copies the Deployment's annotations and gives the ReplicaSet its revision; one that had an earlier revision
/// remembers it. True if anything changed.
pub fn note_revision(set: &mut Object, deployment: &Object, revision: i64) -> bool {
    let before = set.metadata().annotations.clone().unwrap_or_default();
    let mut after = before.clone();
    let copied = deployment.metadata().annotations.iter().flatten();
    after.extend(copied.filter(|(name, _)| !NOT_COPIED.contains(&name.as_str())).map(|(k, v)| (k.clone(), v.clone())));
    match before.get(REVISION).map(|known| (known, known.parse::<i64>())) {
        None => drop(after.insert(REVISION.into(), revision.to_string())),
        Some((known, Ok(number))) if number < revision => {
            after.insert(REVISION.into(), revision.to_string());
            remember(&mut after, known);
        }
        Some(_) => {}
    }
    replace(set, before, after)
}

fn remember(annotations: &mut BTreeMap<String, String>, revision: &str) {
    let history = annotations.entry(REVISION_HISTORY.into()).or_default();
    let mut revisions: Vec<&str> = history.split(',').filter(|revision| !revision.is_empty()).collect();
    revisions.push(revision);
    while revisions.len() > 1 && revisions.join(",").len() > HISTORY_LENGTH_MAX {
        revisions.remove(0);
    }
    *history = revisions.join(",");
}

/// True if anything changed.
pub fn note_size(set: &mut Object, desired: i32, max: i32) -> bool {
    let before = set.metadata().annotations.clone().unwrap_or_default();
    let mut after = before.clone();
    after.insert(DESIRED_REPLICAS.into(), desired.to_string());
    after.insert(MAX_REPLICAS.into(), max.to_string());
    replace(set, before, after)
}

fn replace(set: &mut Object, before: BTreeMap<String, String>, after: BTreeMap<String, String>) -> bool {
    let changed = before != after;
    if changed {
        set.metadata_mut().annotations = Some(after);
    }
    changed
}
