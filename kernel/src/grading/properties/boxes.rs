//! `boxes: {create-pod: pod, apply-deployment: deployment, …}`: for each box there was an object of this kind and name, made
//! with the verb that its name begins with, and then a Pod of it was deleted by hand. `evidence: {…}`: the answer of that
//! name is the record's number of what became of it: of the making of a new Pod, or of the end of the old one if none came.

use std::collections::BTreeMap;

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::trace::{Entry, RequestEntry, Trace, What};
use serde::Deserialize;

use super::Property;
use crate::commands::kubectl::LAST_APPLIED;
use crate::grading::answer::{answer, is_not_so};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Boxes {
    kinds: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Evidence {
    kinds: BTreeMap<String, String>,
}

impl Property for Boxes {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        self.kinds.iter().try_for_each(|(name, kind)| experiment(cluster, start, name, kind).map(drop))
    }
}

impl Property for Evidence {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        for (name, kind) in &self.kinds {
            let deleted = experiment(cluster, start, name, kind)?;
            let (told, ..) = answer(cluster, name)?;
            let shows = |(entry, write): (&Entry, &RequestEntry)| {
                let is_new = write.before.is_none() && entry.sequence > deleted.0;
                let is_end = (write.after.is_none() || entry.sequence == deleted.0)
                    && write.object().is_some_and(|pod| pod.uid() == deleted.1);
                match kind.as_str() {
                    "pod" => is_end,
                    _ => is_new && is_of(write, name, kind),
                }
            };
            if !named(cluster.trace(), &told).is_some_and(shows) {
                return Err(is_not_so(name, &told));
            }
        }
        Ok(())
    }
}

/// The number of the deletion by hand, and the uid of the Pod that it met.
fn experiment(cluster: &Cluster, start: &Cluster, name: &str, kind: &str) -> Result<(u64, String), Words> {
    let begun = start.trace().next_sequence();
    let verb = name.split('-').next().unwrap_or_default();
    let mut writes = cluster.trace().writes().filter(|(entry, _)| entry.sequence >= begun);
    let missing = |ja: &str, en: &str| Words::new(format!("{name}: {ja}"), format!("{name}: {en}"));
    let is_made = |write: &RequestEntry| {
        let is_applied = |made: &Object| made.annotation(LAST_APPLIED).is_some() || write.verb.as_str() == "patch";
        let made = write.after.as_ref().filter(|_| write.before.is_none() && *write.kind.singular == *kind);
        made.is_some_and(|made| *made.key.name == *name && is_applied(made) == (verb == "apply"))
    };
    if !writes.by_ref().any(|(_, write)| is_made(write)) {
        return Err(missing("作られていない", "it was not made so"));
    }
    let is_deletion = |entry: &Entry, write: &RequestEntry| {
        &*entry.actor == "kubectl"
            && matches!(write.verb.as_str(), "delete" | "deletecollection")
            && is_of(write, name, kind)
    };
    let deletion = writes.find(|(entry, write)| is_deletion(entry, write));
    let deletion = deletion.and_then(|(entry, write)| Some((entry.sequence, write.object()?.uid().to_owned())));
    deletion.ok_or_else(|| missing("Podが消されていない", "no Pod of it was deleted"))
}

/// A write of a Pod that is the box's own.
fn is_of(write: &RequestEntry, name: &str, kind: &str) -> bool {
    let pod = &write.key.name;
    &*write.kind.kind == "Pod"
        && match kind {
            "pod" => **pod == *name,
            _ => pod.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')),
        }
}

/// The write that a number means: `#12` is the twelfth entry of the record, `@12` or `12` the write at that revision.
fn named<'a>(trace: &'a Trace, text: &str) -> Option<(&'a Entry, &'a RequestEntry)> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match text.strip_prefix('#') {
        Some(sequence) => {
            let entry = trace.get(number(sequence)?)?;
            if let What::Request(write) = &entry.what { Some((entry, write)) } else { None }
        }
        None => {
            let revision = number(text.strip_prefix('@').unwrap_or(text))?;
            trace.writes().find(|(_, write)| write.revision == revision)
        }
    }
}
