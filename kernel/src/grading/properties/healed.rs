//! `healers: [red, green]` and `healed-at: [red, green]`: before the learner began, something of each colour was hurt: a
//! container of a Pod `app=red` was killed, or an object of it deleted. The answer of that name, `COMPONENT@REVISION`, names
//! the component that brought it back, and one of the writes with which it did.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::trace::{Entry, RequestEntry};
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::Property;
use crate::grading::answer::{answer, is_not_so};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Healers {
    colours: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct HealedAt {
    colours: Vec<String>,
}

impl Property for Healers {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        for colour in &self.colours {
            let (told, ..) = answer(cluster, colour)?;
            let (component, _) = parts(&told);
            let healing = healing(start, colour);
            if !healing.first().is_some_and(|(entry, _)| is_named(&entry.actor, component)) {
                return Err(is_not_so(colour, &told));
            }
        }
        Ok(())
    }
}

impl Property for HealedAt {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        for colour in &self.colours {
            let (told, ..) = answer(cluster, colour)?;
            let (_, revision) = parts(&told);
            let revision = revision.parse::<u64>().ok();
            if !healing(start, colour).iter().any(|(_, write)| Some(write.revision) == revision) {
                return Err(is_not_so(colour, &told));
            }
        }
        Ok(())
    }
}

/// `replicaset-controller@120`, with whatever stands between the two.
fn parts(told: &str) -> (&str, &str) {
    let end = told.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let component = end.trim_end_matches(|letter: char| letter.is_whitespace() || "@#:=,".contains(letter));
    (component, &told[end.len()..])
}

/// A kubelet may be named with its node or without.
fn is_named(actor: &str, component: &str) -> bool {
    actor == component || actor.split('/').next() == Some(component)
}

/// The writes that brought back what was hurt, all by one component.
fn healing<'a>(start: &'a Cluster, colour: &str) -> Vec<(&'a Entry, &'a RequestEntry)> {
    let writes = || start.trace().writes();
    let of_colour = |write: &RequestEntry| write.object().is_some_and(|object| is_of(object, colour));
    let deleted = writes().find(|(entry, write)| {
        &*entry.actor == "kubectl" && matches!(write.verb.as_str(), "delete" | "deletecollection") && of_colour(write)
    });
    match deleted {
        Some((deletion, hurt)) => writes()
            .filter(|(entry, write)| {
                entry.sequence > deletion.sequence
                    && write.before.is_none()
                    && write.kind.slot == hurt.kind.slot
                    && of_colour(write)
            })
            .take(1)
            .collect(),
        None => writes().filter(|(_, write)| of_colour(write) && is_restarted(write)).collect(),
    }
}

fn is_of(object: &Object, colour: &str) -> bool {
    match &*object.kind.kind {
        "Pod" => object.label("app") == Some(colour),
        "EndpointSlice" => object.label("kubernetes.io/service-name") == Some(colour),
        _ => false,
    }
}

/// A kubelet says of a Pod that a container of it runs anew.
fn is_restarted(write: &RequestEntry) -> bool {
    let restarts = |pod: &Object| {
        let statuses = &pod.status::<Pod>().container_statuses;
        statuses.iter().flatten().map(|status| status.restart_count).sum::<i32>()
    };
    let pod = write.after.as_ref().filter(|object| object.is::<Pod>());
    write.subresource == "status" && pod.is_some_and(|pod| restarts(pod) > 0)
}
