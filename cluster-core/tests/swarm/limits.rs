//! How many pods a loop may make, by what it was told within the time that it may lag.

use cluster_core::api::object::Object;
use cluster_core::trace::{Entry, RequestEntry};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::invariants::{Commit, LAG_MAX, Past};

/// How many pods at most, and for Deployments how many at least.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    most: i64,
    least: i64,
}

/// What a version of an object wishes.
fn wish(object: &Object) -> Option<Wish> {
    if object.is::<ReplicaSet>() {
        let most = i64::from(object.spec::<ReplicaSet>().replicas.unwrap_or(1));
        return Some(Wish { most, least: 0 });
    }
    if object.is::<ReplicationController>() {
        let most = i64::from(object.spec::<ReplicationController>().replicas.unwrap_or(1));
        return Some(Wish { most, least: 0 });
    }
    if object.is::<Job>() {
        let spec = object.spec::<Job>();
        return Some(Wish { most: i64::from(spec.parallelism.unwrap_or(1)), least: 0 });
    }
    if !object.is::<Deployment>() {
        return None;
    }
    let spec = object.spec::<Deployment>();
    let replicas = i64::from(spec.replicas.unwrap_or(1));
    let rolling = spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    let Some(rolling) = rolling else { return Some(Wish { most: replicas, least: 0 }) };
    let surge = resolve(rolling.max_surge.as_ref(), replicas, true);
    let mut unavailable = resolve(rolling.max_unavailable.as_ref(), replicas, false);
    if surge == 0 && unavailable == 0 {
        unavailable = 1;
    }
    Some(Wish { most: replicas + surge, least: (replicas - unavailable).max(0) })
}

/// Percentages of surge are rounded up, those of unavailable down.
fn resolve(amount: Option<&IntOrString>, of: i64, up: bool) -> i64 {
    match amount {
        None => 0,
        Some(IntOrString::Int(number)) => i64::from(*number),
        Some(IntOrString::String(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            if up { (percent * of + 99) / 100 } else { percent * of / 100 }
        }
    }
}

/// Remembers what a write wishes.
pub fn remember(past: &mut Past, entry: &Entry, write: &RequestEntry) {
    let Some(after) = &write.after else { return };
    if let Some(wish) = wish(after) {
        past.wishes.entry(after.uid().to_owned()).or_default().push((entry.at, wish));
    }
}

/// What an owner wished within the time that a loop may lag behind.
fn recent<'a>(commit: &'a Commit<'_>, uid: &str) -> impl Iterator<Item = Wish> + 'a {
    let all = commit.past.wishes.get(uid).map(Vec::as_slice).unwrap_or_default();
    let since = commit.entry.at - LAG_MAX;
    let superseded = all.iter().skip(1).map(|(at, _)| *at).chain([commit.entry.at]);
    all.iter().zip(superseded).filter(move |(_, until)| *until >= since).map(|((_, wish), _)| *wish)
}

/// A loop that can't know what it has done may do too much.
fn is_misled(commit: &Commit<'_>) -> bool {
    ["event lost", "answer lost"].iter().any(|feature| commit.features.contains(feature))
}

pub fn pods(commit: &Commit<'_>) -> Result<(), String> {
    let Some(pod) = commit.after().filter(|_| commit.is_of::<Pod>() && commit.before().is_none()) else {
        return Ok(());
    };
    let Some(owner) = pod.controller().filter(|_| !is_misled(commit)) else { return Ok(()) };
    let Some(most) = recent(commit, &owner.uid).map(|wish| wish.most).max() else { return Ok(()) };
    let counts = |other: &&Object| {
        other.controller().is_some_and(|of| of.uid == owner.uid)
            && cluster_core::controllers::pods::is_active(other)
            && other.label("app") == pod.label("app")
    };
    let active = commit.cluster.list::<Pod>(&pod.key.namespace).filter(counts).count() as i64;
    if active <= most { Ok(()) } else { Err(format!("{active} pods of {} {}, at most {most}", owner.kind, owner.name)) }
}

pub fn rollout(commit: &Commit<'_>) -> Result<(), String> {
    let Some(after) = commit.after().filter(|_| commit.is_of::<ReplicaSet>()) else { return Ok(()) };
    let size = |set: &Object| i64::from(set.spec::<ReplicaSet>().replicas.unwrap_or(1));
    let grown = size(after) - commit.before().map_or(0, size);
    let by_loop = *commit.entry.actor == *"deployment-controller" && grown != 0;
    let strangers = ["delete and orphan", "relabel set", "scale owned set"];
    let Some(owner) = after.controller().filter(|_| by_loop && !is_misled(commit)) else { return Ok(()) };
    if strangers.iter().any(|feature| commit.features.contains(feature)) {
        return Ok(());
    }
    let owned = |set: &&Object| set.controller().is_some_and(|of| of.uid == owner.uid);
    let total: i64 = commit.cluster.list::<ReplicaSet>(&after.key.namespace).filter(owned).map(size).sum();
    let most = recent(commit, &owner.uid).map(|wish| wish.most).max().unwrap_or(i64::MAX);
    if grown > 0 && total > most {
        return Err(format!("{} grows to {total} pods in all, at most {most}", owner.name));
    }
    let least = recent(commit, &owner.uid).map(|wish| wish.least).min().unwrap_or(0);
    if grown < 0 && total < least {
        return Err(format!("{} shrinks to {total} pods in all, at least {least}", owner.name));
    }
    Ok(())
}
