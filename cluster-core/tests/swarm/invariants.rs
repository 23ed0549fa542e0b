//! What no commit may break: one row an invariant, each looked at with every write of the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::Resource;
use cluster_core::api::object::Object;
use cluster_core::api::request::Verb;
use cluster_core::clock::Time;
use cluster_core::trace::{Entry, RequestEntry, What};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    Namespace, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::{containers, limits};

type Verdict = Result<(), String>;

pub struct Invariant {
    pub name: &'static str,
    pub check: fn(&Commit<'_>) -> Verdict,
}

/// Every invariant of a single commit.
const ALL: &[Invariant] = &[
    Invariant { name: "an object keeps its identity", check: identity },
    Invariant { name: "a deletion is not taken back", check: deletion },
    Invariant { name: "what is deleted is held by nothing", check: removal },
    Invariant { name: "an object has at most one controller", check: one_controller },
    Invariant { name: "a generation counts changes of the spec", check: generation },
    Invariant { name: "a status write writes no spec", check: status_only },
    Invariant { name: "nothing is created in a namespace that goes", check: namespace },
    Invariant { name: "a pod is bound once, and its life goes one way", check: pod_life },
    Invariant { name: "a pod is confirmed gone by its kubelet", check: pod_removal },
    Invariant { name: "a Service's addresses are its own", check: service_addresses },
    Invariant { name: "a claim and a volume belong together for good", check: binding },
    Invariant { name: "what can't change does not change", check: immutable },
    Invariant { name: "numbers of replicas fit each other", check: replica_numbers },
    Invariant { name: "a Job ends once", check: job_end },
    Invariant { name: "an eviction is paid from a budget", check: eviction },
    Invariant { name: "no loop makes more pods than it was ever told to", check: limits::pods },
    Invariant { name: "a rollout keeps to its surge and its unavailable", check: limits::rollout },
];

/// What is remembered of the past of a run.
#[derive(Clone, Default)]
pub struct Past {
    /// The number of the last entry that was looked at.
    pub seen: u64,
    revision: u64,
    /// The revision of each object's last version.
    last: BTreeMap<(usize, Key), u64>,
    /// How many pods a loop was told to have at most, by its uid, and since when.
    pub wishes: BTreeMap<String, Vec<(Time, limits::Wish)>>,
    pub running: containers::Running,
}

/// A write, and what it came upon.
pub struct Commit<'a> {
    pub cluster: &'a Cluster,
    pub past: &'a Past,
    pub features: &'a BTreeSet<&'static str>,
    pub entry: &'a Entry,
    pub write: &'a RequestEntry,
}

impl Commit<'_> {
    pub fn before(&self) -> Option<&Object> {
        self.write.before.as_ref()
    }

    pub fn after(&self) -> Option<&Object> {
        self.write.after.as_ref()
    }

    /// The versions before and after, if it was and still is there.
    fn change(&self) -> Option<(&Object, &Object)> {
        self.before().zip(self.after())
    }

    pub fn is_of<K: Resource>(&self) -> bool {
        self.write.kind.slot == K::kind().slot
    }

    fn is_by(&self, actor: &str) -> bool {
        *self.entry.actor == *actor
    }
}

/// Looks at everything that has been recorded since the last time.
pub fn look(past: &mut Past, cluster: &Cluster, features: &BTreeSet<&'static str>) -> Verdict {
    let trace = cluster.trace();
    while let Some(entry) = trace.get(past.seen + 1) {
        past.seen += 1;
        match &entry.what {
            What::Request(write) if write.is_write() => {
                history(past, write).map_err(|what| format!("a write has a history that holds: {what}"))?;
                limits::remember(past, entry, write);
                let commit = Commit { cluster, past, features, entry, write };
                for invariant in ALL {
                    (invariant.check)(&commit).map_err(|what| format!("{}: {what}", invariant.name))?;
                }
            }
            What::Container(container) => past.running.look(container, cluster, features)?,
            _ => {}
        }
    }
    Ok(())
}

fn fails(what: impl Into<String>) -> Verdict {
    Err(what.into())
}

/// Revisions grow by one, and each version follows the one before: compare-and-swap.
fn history(past: &mut Past, write: &RequestEntry) -> Verdict {
    let expected = if past.revision == 0 { write.revision } else { past.revision + 1 };
    past.revision = write.revision;
    if write.revision != expected {
        return fails(format!("revision {} instead of {expected}", write.revision));
    }
    if write.after.as_ref().is_some_and(|after| after.revision != write.revision) {
        return fails("the object has another revision than its write");
    }
    let id = (write.kind.slot, write.key.clone());
    let known = match write.after {
        Some(_) => past.last.insert(id, write.revision),
        None => past.last.remove(&id),
    };
    match (&write.before, known) {
        (None, Some(known)) => fails(format!("created over revision {known}")),
        (Some(before), Some(known)) if before.revision != known => {
            fails(format!("written over revision {}, the last one was {known}", before.revision))
        }
        // What a cluster begins with was never written.
        (Some(before), None) if before.revision > 1 => fails("written over what had gone"),
        _ => Ok(()),
    }
}

fn identity(commit: &Commit<'_>) -> Verdict {
    let Some((before, after)) = commit.change() else { return Ok(()) };
    let (old, new) = (before.metadata(), after.metadata());
    if before.uid() != after.uid() || before.uid().is_empty() {
        return fails(format!("uid {} became {}", before.uid(), after.uid()));
    }
    if old.creation_timestamp != new.creation_timestamp || before.key != after.key {
        return fails("its name or its time of creation changed");
    }
    if before.same(after) {
        let managed = cluster_core::apiserver::managed::entries;
        if managed(before) == managed(after) {
            return fails("a write that changes nothing got a revision");
        }
    }
    Ok(())
}

fn deletion(commit: &Commit<'_>) -> Verdict {
    let Some((before, after)) = commit.change().filter(|(before, _)| before.is_terminating()) else { return Ok(()) };
    if !after.is_terminating() {
        return fails("the deletionTimestamp went");
    }
    // Who gets less time than has passed already is due now.
    let now = Some(commit.entry.at.to_meta());
    if after.metadata().deletion_timestamp > before.metadata().deletion_timestamp.clone().max(now) {
        return fails("the deletionTimestamp was put off");
    }
    let held = |object: &Object| object.metadata().finalizers.clone().unwrap_or_default();
    let known = held(before);
    let joins = |name: &String| !known.contains(name) && !is_a_wish(name, commit.write.verb);
    match held(after).into_iter().find(joins) {
        Some(new) => fails(format!("{new} was added while it is being deleted")),
        None => Ok(()),
    }
}

/// A deletion brings the finalizer of its propagation, and takes that of an earlier one.
fn is_a_wish(finalizer: &str, verb: Verb) -> bool {
    matches!(verb, Verb::Delete | Verb::DeleteCollection) && matches!(finalizer, "orphan" | "foregroundDeletion")
}

fn removal(commit: &Commit<'_>) -> Verdict {
    let (Some(before), None) = (commit.before(), commit.after()) else { return Ok(()) };
    let finalizers = before.metadata().finalizers.as_deref().unwrap_or_default();
    match (commit.write.verb, finalizers) {
        (_, []) => Ok(()),
        // The apiserver empties the kind itself.
        (_, [one]) if one == "customresourcecleanup.apiextensions.k8s.io" => Ok(()),
        (verb, [one]) if is_a_wish(one, verb) => Ok(()),
        (Verb::Update | Verb::Patch(_), [one, others @ ..]) if others.iter().all(|other| other == one) => Ok(()),
        _ => fails(format!("it was held by {finalizers:?}")),
    }
}

fn one_controller(commit: &Commit<'_>) -> Verdict {
    let Some(after) = commit.after() else { return Ok(()) };
    let owners = after.metadata().owner_references.as_deref().unwrap_or_default();
    let controllers = owners.iter().filter(|owner| owner.controller == Some(true)).count();
    let uids: BTreeSet<&str> = owners.iter().map(|owner| owner.uid.as_str()).collect();
    if controllers > 1 || uids.len() < owners.len() {
        return fails(format!("{owners:?}"));
    }
    // It goes from hand to hand only over nobody's; but a claim that is to go with its pod passes to it from its set.
    let Some((before, owner)) = commit.before().and_then(Object::controller).zip(after.controller()) else {
        return Ok(());
    };
    let in_the_family = after.is::<PersistentVolumeClaim>()
        && [before, owner].iter().all(|owner| matches!(owner.kind.as_str(), "StatefulSet" | "Pod"));
    if before.uid != owner.uid && !in_the_family {
        return fails(format!("{} was taken over by {}", before.name, owner.name));
    }
    Ok(())
}

fn generation(commit: &Commit<'_>) -> Verdict {
    let Some((before, after)) = commit.change() else { return Ok(()) };
    let number = |object: &Object| object.metadata().generation.unwrap_or(0);
    let (old, new) = (number(before), number(after));
    if new != old && new != old + 1 {
        return fails(format!("{old} became {new}"));
    }
    let deletion_changed = before.metadata().deletion_timestamp != after.metadata().deletion_timestamp;
    let annotated = after.is::<Deployment>() && before.metadata().annotations != after.metadata().annotations
        || after.is::<EndpointSlice>() && before.metadata().labels != after.metadata().labels;
    let spec_changed = if after.is::<Pod>() { !same_but_node(before, after) } else { !before.same_spec(after) };
    if new == old + 1 && !(spec_changed || deletion_changed || annotated) {
        return fails(format!("{old} became {new}, the spec stays"));
    }
    if old > 0 && new == old && spec_changed && commit.write.subresource.is_empty() && !after.is::<Pod>() {
        return fails(format!("it stays {new}, the spec changed"));
    }
    match observed_generation(after) {
        Some(observed) if observed > new => fails(format!("observedGeneration {observed} is ahead of {new}")),
        _ => Ok(()),
    }
}

fn observed_generation(object: &Object) -> Option<i64> {
    if object.is::<Deployment>() {
        object.status::<Deployment>().observed_generation
    } else if object.is::<ReplicaSet>() {
        object.status::<ReplicaSet>().observed_generation
    } else if object.is::<StatefulSet>() {
        object.status::<StatefulSet>().observed_generation
    } else if object.is::<DaemonSet>() {
        object.status::<DaemonSet>().observed_generation
    } else if object.is::<PodDisruptionBudget>() {
        object.status::<PodDisruptionBudget>().observed_generation
    } else {
        None
    }
}

fn same_but_node(before: &Object, after: &Object) -> bool {
    let (mut a, mut b) = (before.spec::<Pod>().clone(), after.spec::<Pod>().clone());
    (a.node_name, b.node_name) = (None, None);
    a == b
}

fn status_only(commit: &Commit<'_>) -> Verdict {
    let Some((before, after)) = commit.change() else { return Ok(()) };
    match commit.write.subresource == "status" && !before.same_spec(after) {
        true => fails("the spec changed"),
        false => Ok(()),
    }
}

fn namespace(commit: &Commit<'_>) -> Verdict {
    let namespace = &commit.write.key.namespace;
    if commit.before().is_some() || namespace.is_empty() {
        return Ok(());
    }
    match commit.cluster.get::<Namespace>("", namespace) {
        None => fails(format!("{namespace} is not there")),
        Some(found) if found.is_terminating() => fails(format!("{namespace} is on its way out")),
        Some(_) => Ok(()),
    }
}

fn pod_life(commit: &Commit<'_>) -> Verdict {
    let Some((before, after)) = commit.change().filter(|_| commit.is_of::<Pod>()) else { return Ok(()) };
    let node = |pod: &Object| pod.spec::<Pod>().node_name.clone().unwrap_or_default();
    if !node(before).is_empty() && node(before) != node(after) {
        return fails(format!("{} became {}", node(before), node(after)));
    }
    let phase = |pod: &Object| pod.status::<Pod>().phase.clone().unwrap_or_default();
    let rank = |phase: &str| ["", "Pending", "Running", "Succeeded", "Failed"].iter().position(|known| *known == phase);
    let (old, new) = (phase(before), phase(after));
    let ended = matches!(old.as_str(), "Succeeded" | "Failed");
    if ended && old != new || rank(&old) > rank(&new) || rank(&new).is_none() {
        return fails(format!("{old} became {new}"));
    }
    let restarts = |pod: &Object| {
        let status = pod.status::<Pod>();
        let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        all.map(|status| (status.name.clone(), status.restart_count)).collect::<BTreeMap<_, _>>()
    };
    let (old, new) = (restarts(before), restarts(after));
    match old.iter().find(|(name, count)| new.get(*name).is_none_or(|new| new < count)) {
        Some((name, count)) => fails(format!("the restartCount {count} of {name} fell: {new:?}")),
        None => Ok(()),
    }
}

/// A pod on a node goes when its kubelet says so, when somebody forces it, or with its node.
fn pod_removal(commit: &Commit<'_>) -> Verdict {
    let (Some(before), None) = (commit.before().filter(|_| commit.is_of::<Pod>()), commit.after()) else {
        return Ok(());
    };
    let Some(node) = before.spec::<Pod>().node_name.as_deref() else { return Ok(()) };
    let ended = matches!(before.status::<Pod>().phase.as_deref(), Some("Succeeded" | "Failed"));
    let no_grace = before.metadata().deletion_grace_period_seconds == Some(0)
        || before.spec::<Pod>().termination_grace_period_seconds == Some(0);
    let by_kubelet = commit.is_by(&format!("kubelet/{node}"));
    let may = by_kubelet || ended || no_grace || commit.is_by("kubectl") || commit.is_by("pod-garbage-collector");
    if may { Ok(()) } else { fails(format!("it was on {node}")) }
}

fn service_addresses(commit: &Commit<'_>) -> Verdict {
    let Some(after) = commit.after().filter(|_| commit.is_of::<Service>()) else { return Ok(()) };
    let addresses = |service: &Object| {
        let spec = service.spec::<Service>();
        let ips = spec.cluster_ips.clone().unwrap_or_default().into_iter().filter(|ip| ip != "None");
        let ports =
            spec.ports.iter().flatten().filter_map(|port| port.node_port).map(|port| format!("node port {port}"));
        ips.chain(ports).collect::<Vec<_>>()
    };
    let own = addresses(after);
    for other in commit.cluster.list::<Service>("").filter(|other| other.key != after.key) {
        if let Some(twice) = addresses(other).into_iter().find(|address| own.contains(address)) {
            return fails(format!("{twice} is also {}'s", other.key));
        }
    }
    let ip = |service: &Object| service.spec::<Service>().cluster_ip.clone().unwrap_or_default();
    match commit.before().map(ip) {
        Some(known) if !known.is_empty() && known != ip(after) => fails(format!("{known} became {}", ip(after))),
        _ => Ok(()),
    }
}

fn binding(commit: &Commit<'_>) -> Verdict {
    if let Some(after) = commit.after().filter(|_| commit.is_of::<PersistentVolumeClaim>()) {
        let volume = |claim: &Object| claim.spec::<PersistentVolumeClaim>().volume_name.clone().unwrap_or_default();
        let own = volume(after);
        if let Some(known) = commit.before().map(volume)
            && !known.is_empty()
            && known != own
        {
            return fails(format!("volume {known} became {own}"));
        }
        let mut others = commit.cluster.list::<PersistentVolumeClaim>("").filter(|other| other.uid() != after.uid());
        if let Some(other) = others.find(|other| !own.is_empty() && volume(other) == own) {
            return fails(format!("{own} is also {}'s", other.key));
        }
    }
    if let Some((before, after)) = commit.change().filter(|_| commit.is_of::<PersistentVolume>()) {
        let uid = |volume: &Object| volume.spec::<PersistentVolume>().claim_ref.clone().and_then(|claim| claim.uid);
        if let (Some(old), Some(new)) = (uid(before), uid(after))
            && old != new
        {
            return fails(format!("the claim {old} became {new}"));
        }
    }
    Ok(())
}

fn immutable(commit: &Commit<'_>) -> Verdict {
    let Some((before, after)) = commit.change() else { return Ok(()) };
    let changed = if after.is::<Deployment>() {
        before.spec::<Deployment>().selector != after.spec::<Deployment>().selector
    } else if after.is::<ReplicaSet>() {
        before.spec::<ReplicaSet>().selector != after.spec::<ReplicaSet>().selector
    } else if after.is::<StatefulSet>() {
        let (old, new) = (before.spec::<StatefulSet>(), after.spec::<StatefulSet>());
        old.selector != new.selector
            || old.service_name != new.service_name
            || old.pod_management_policy != new.pod_management_policy
            || old.volume_claim_templates != new.volume_claim_templates
    } else if after.is::<Job>() {
        let (old, new) = (before.spec::<Job>(), after.spec::<Job>());
        old.selector != new.selector || old.completion_mode != new.completion_mode || old.template != new.template
    } else {
        false
    };
    if changed { fails("a field that is for good has changed") } else { Ok(()) }
}

fn replica_numbers(commit: &Commit<'_>) -> Verdict {
    let Some(after) = commit.after() else { return Ok(()) };
    let numbers = if after.is::<ReplicaSet>() {
        let status = after.status::<ReplicaSet>();
        [Some(status.replicas), status.ready_replicas, status.available_replicas]
    } else if after.is::<Deployment>() {
        let status = after.status::<Deployment>();
        [status.replicas, status.ready_replicas, status.available_replicas]
    } else if after.is::<StatefulSet>() {
        let status = after.status::<StatefulSet>();
        [Some(status.replicas), status.ready_replicas, status.available_replicas]
    } else if after.is::<ReplicationController>() {
        let status = after.status::<ReplicationController>();
        [Some(status.replicas), status.ready_replicas, status.available_replicas]
    } else {
        return Ok(());
    };
    let [all, ready, available] = numbers.map(Option::unwrap_or_default);
    if 0 <= available && available <= ready && ready <= all { Ok(()) } else { fails(format!("{numbers:?}")) }
}

fn job_end(commit: &Commit<'_>) -> Verdict {
    let Some((before, after)) = commit.change().filter(|_| commit.is_of::<Job>()) else { return Ok(()) };
    let ends = |job: &Object| {
        let conditions = job.status::<Job>().conditions.iter().flatten();
        let ended = |type_: &str| matches!(type_, "Complete" | "Failed");
        let types: Vec<String> = conditions
            .filter(|condition| ended(&condition.type_) && condition.status == "True")
            .map(|condition| condition.type_.clone())
            .collect();
        types
    };
    let (old, new) = (ends(before), ends(after));
    if new.len() > 1 || !old.is_empty() && old != new {
        return fails(format!("{old:?} became {new:?}"));
    }
    let (old, new) = (before.status::<Job>(), after.status::<Job>());
    let number = |number: Option<i32>| number.unwrap_or(0);
    if after.spec::<Job>().completion_mode.as_deref() != Some("Indexed")
        && number(new.succeeded) < number(old.succeeded)
    {
        return fails("succeeded fell");
    }
    if old.completion_time.is_some() && old.completion_time != new.completion_time {
        return fails("it was complete at another time");
    }
    Ok(())
}

fn eviction(commit: &Commit<'_>) -> Verdict {
    let Some((before, after)) = commit.change() else { return Ok(()) };
    if commit.is_of::<PodDisruptionBudget>() && commit.is_by("kubectl") && commit.write.subresource == "status" {
        let allowed = |budget: &Object| budget.status::<PodDisruptionBudget>().disruptions_allowed.unwrap_or(0);
        let observed = before.status::<PodDisruptionBudget>().observed_generation;
        if allowed(before) < 1 || allowed(after) != allowed(before) - 1 || observed < before.metadata().generation {
            return fails(format!("{} disruptions were allowed of generation {observed:?}", allowed(before)));
        }
    }
    if !commit.is_of::<Pod>() || !commit.is_by("kubectl") || before.is_terminating() {
        return Ok(());
    }
    let evicted = |pod: &Object| {
        let mut conditions = pod.status::<Pod>().conditions.iter().flatten();
        conditions.any(|condition| condition.reason.as_deref() == Some("EvictionByEvictionAPI"))
    };
    let counts = before.status::<Pod>().phase.as_deref() == Some("Running")
        && before
            .status::<Pod>()
            .conditions
            .iter()
            .flatten()
            .any(|known| known.type_ == "Ready" && known.status == "True");
    if evicted(before) || !evicted(after) || !counts {
        return Ok(());
    }
    let covered = commit
        .cluster
        .list::<PodDisruptionBudget>(&before.key.namespace)
        .any(|budget| cluster_core::disruption::covers(budget, before));
    let paid = commit.cluster.trace().get(commit.entry.sequence - 1).is_some_and(
        |entry| matches!(&entry.what, What::Request(write) if write.kind.slot == PodDisruptionBudget::kind().slot),
    );
    if covered && !paid { fails("a ready pod was evicted without asking its budget") } else { Ok(()) }
}

/// What was true within this time can still be what a loop goes by.
pub const LAG_MAX: Duration = Duration::from_secs(180);
