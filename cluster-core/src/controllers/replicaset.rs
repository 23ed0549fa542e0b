//! replicaset-controller and replicationcontroller-controller: keep as many pods as a ReplicaSet says, or a
//! ReplicationController, which is the older way to say the same.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/>

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};

use super::cache::View;
use super::claim::claim;
use super::controller::{Controller, EventNote, Plan, Watch};
use super::pods;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::api::status::Status;
use crate::clock::Time;
use crate::store::Change;

/// At most this many pods are created or deleted in one sync.
const BURST: usize = 500;

/// A kind whose objects keep a number of pods.
pub trait ReplicaKind: Resource {
    /// The name of its control loop.
    const CONTROLLER: &'static str;
    /// As what the loop signs its Events.
    const SOURCE: &'static str;

    fn replicas(set: &Object) -> Option<i32>;
    fn min_ready_seconds(set: &Object) -> i32;
    fn selector(set: &Object) -> Selector;
    fn template(set: &Object) -> Option<&PodTemplateSpec>;
    fn status(set: &Object) -> ReplicaSetStatus;
    fn set_status(set: &mut Object, status: ReplicaSetStatus);
}

impl ReplicaKind for ReplicaSet {
    const CONTROLLER: &'static str = "replicaset-controller";
    const SOURCE: &'static str = "replicaset-controller";

    fn replicas(set: &Object) -> Option<i32> {
        set.spec::<ReplicaSet>().replicas
    }

    fn min_ready_seconds(set: &Object) -> i32 {
        set.spec::<ReplicaSet>().min_ready_seconds.unwrap_or(0)
    }

    fn selector(set: &Object) -> Selector {
        Selector::of(&set.spec::<ReplicaSet>().selector)
    }

    fn template(set: &Object) -> Option<&PodTemplateSpec> {
        set.spec::<ReplicaSet>().template.as_ref()
    }

    fn status(set: &Object) -> ReplicaSetStatus {
        set.status::<ReplicaSet>().clone()
    }

    fn set_status(set: &mut Object, status: ReplicaSetStatus) {
        *set.status_mut::<ReplicaSet>() = status;
    }
}

/// The loop of one of these kinds.
pub struct ReplicaController<K>(PhantomData<K>);

impl<K> Default for ReplicaController<K> {
    fn default() -> ReplicaController<K> {
        ReplicaController(PhantomData)
    }
}

impl<K: ReplicaKind + Send + Sync> Controller for ReplicaController<K> {
    fn name(&self) -> &str {
        K::CONTROLLER
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::itself(K::kind()),
            Watch::owner(Pod::kind(), K::kind()),
            Watch::with(Pod::kind(), sets_that_may_adopt::<K>),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(set) = view.get::<K>(key) else { return plan };
        let wanted = if set.is_terminating() { None } else { Some(K::replicas(set).unwrap_or(1).max(0)) };
        let mut census = Census::of_tallies::<K>(set, view);
        let waits = K::min_ready_seconds(set) > 0;
        if census.strangers || may_adopt::<K>(set, view) || waits || wanted.is_some_and(|wanted| census.active > wanted)
        {
            let selector = K::selector(set);
            let pods = claim(set, Pod::kind(), &selector, view, pods::is_active, &mut plan);
            census = census.of_pods::<K>(set, &pods, view);
            if let Some(wanted) = wanted.filter(|wanted| census.active > *wanted) {
                delete_pods::<K>(set, (census.active - wanted) as usize, &pods, &census, view, &mut plan);
            }
        }
        if let Some(wanted) = wanted.filter(|wanted| census.active < *wanted) {
            create_pods::<K>(set, (wanted - census.active) as usize, &census, &mut plan);
        }
        let status = with_status::<K>(set, census.status::<K>(set));
        if !status.same_status(set) {
            plan.update_status(status, "its pods have changed");
        }
        if let Some(next) = census.next_available {
            plan.continue_after(next);
        }
        plan
    }
}

/// A pod without a controller concerns those whose selectors match it.
fn sets_that_may_adopt<K: ReplicaKind>(view: &View<'_>, change: &Change) -> Vec<Key> {
    let Some(pod) = change.after.as_ref().filter(|pod| pod.controller().is_none()) else { return Vec::new() };
    let labels = pod.metadata().labels.as_ref();
    let matching = |set: &&Object| labels.is_some() && K::selector(set).matches(labels);
    view.list::<K>(&pod.key.namespace).filter(matching).map(|set| set.key.clone()).collect()
}

fn may_adopt<K: ReplicaKind>(set: &Object, view: &View<'_>) -> bool {
    let mut orphans = view.uncontrolled_of(Pod::kind(), &set.key.namespace).peekable();
    orphans.peek().is_some() && {
        let selector = K::selector(set);
        orphans.any(|pod| selector.matches(pod.metadata().labels.as_ref()))
    }
}

fn create_pods<K: ReplicaKind>(set: &Object, missing: usize, census: &Census, plan: &mut Plan) {
    let Some(template) = K::template(set) else { return };
    let pod = pods::from_template(template, set, set.controller_reference());
    let created = EventNote::normal(set, "SuccessfulCreate", "Created pod: {}").from(K::SOURCE);
    let failed = EventNote::warning(set, "FailedCreate", "Error creating: ").from(K::SOURCE);
    let confession = with_status::<K>(set, census.failing_status::<K>(set));
    for _ in 0..missing.min(BURST) {
        plan.create(pod.clone(), "there are too few pods")
            .event(created.clone())
            .on_failure(failed.clone())
            .tolerate(&["NamespaceTerminating"])
            .confess(confession.clone(), |set, refusal, now| tell_failure::<K>(set, "FailedCreate", refusal, now));
    }
}

fn delete_pods<K: ReplicaKind>(
    set: &Object,
    surplus: usize,
    pods: &[&Object],
    census: &Census,
    view: &View<'_>,
    plan: &mut Plan,
) {
    let crowds = crowds::<K>(set, view);
    let mut candidates: Vec<_> = pods.iter().map(|pod| Candidate::new(pod, &crowds)).collect();
    if surplus < candidates.len() {
        candidates.sort_by(|a, b| a.compare(b, view.now));
    }
    let confession = with_status::<K>(set, census.failing_status::<K>(set));
    for candidate in candidates.iter().take(surplus.min(BURST)) {
        plan.delete(candidate.pod, "there are too many pods")
            .event(EventNote::normal(set, "SuccessfulDelete", "Deleted pod: {}").from(K::SOURCE))
            .on_failure(EventNote::warning(set, "FailedDelete", "Error deleting: ").from(K::SOURCE))
            .confess(confession.clone(), |set, refusal, now| tell_failure::<K>(set, "FailedDelete", refusal, now));
    }
}

/// How many active pods of this set and its siblings are on each node. One without a controller has no siblings and
/// does not count itself either.
fn crowds<'a, K: ReplicaKind>(set: &'a Object, view: &View<'a>) -> BTreeMap<&'a str, usize> {
    let mut crowds = BTreeMap::new();
    let siblings = set.controller().into_iter().flat_map(|owner| view.controlled::<K>(&owner.uid));
    for pod in siblings.flat_map(|sibling| view.controlled::<Pod>(sibling.uid())).filter(|pod| pods::is_active(pod)) {
        *crowds.entry(pod.spec::<Pod>().node_name.as_deref().unwrap_or_default()).or_default() += 1;
    }
    crowds
}

/// What decides which pod goes first.
struct Candidate<'a> {
    pod: &'a Object,
    bound: bool,
    phase: u8,
    ready: bool,
    cost: i32,
    crowd: usize,
    ready_since: Option<Time>,
    restarts: i32,
    created: Time,
}

impl<'a> Candidate<'a> {
    fn new(pod: &'a Object, crowds: &BTreeMap<&str, usize>) -> Candidate<'a> {
        let node = pod.spec::<Pod>().node_name.as_deref().unwrap_or_default();
        let phase = match pod.status::<Pod>().phase.as_deref() {
            Some("Running") => 2,
            Some("Unknown") => 1,
            _ => 0,
        };
        let cost = pod.annotation("controller.kubernetes.io/pod-deletion-cost");
        Candidate {
            pod,
            bound: !node.is_empty(),
            phase,
            ready: pods::is_ready(pod),
            cost: cost.and_then(|cost| cost.parse().ok()).unwrap_or(0),
            crowd: crowds.get(node).copied().unwrap_or(0),
            ready_since: pods::ready_since(pod),
            restarts: pods::restarts(pod),
            created: pod.metadata().creation_timestamp.as_ref().map_or(Time::ZERO, Time::from),
        }
    }

    /// Kubernetes' `ActivePodsWithRanks`: the lesser goes first. Ages are compared by the power of two that they have
    /// reached, so that of pods of about the same age a random one goes.
    fn compare(&self, other: &Candidate<'_>, now: Time) -> Ordering {
        let by_age = |a: Time, b: Time| {
            let age = |since: Time| (now.since(since).as_nanos() as u64).checked_ilog2();
            (a != b).then(|| age(a).cmp(&age(b)).then_with(|| self.pod.uid().cmp(other.pod.uid())))
        };
        let weight = |c: &Candidate<'_>| (c.bound, c.phase, c.ready, c.cost, Reverse(c.crowd));
        let readiness = self.ready_since.zip(other.ready_since).and_then(|(a, b)| by_age(a, b));
        weight(self)
            .cmp(&weight(other))
            .then(readiness.unwrap_or(Ordering::Equal))
            .then(other.restarts.cmp(&self.restarts))
            .then(by_age(self.created, other.created).unwrap_or(Ordering::Equal))
    }
}

/// The pods of a set, counted.
#[derive(Debug, Default)]
struct Census {
    active: i32,
    labelled: i32,
    ready: i32,
    available: i32,
    leaving: i32,
    /// Some that it controls are not selected any more.
    strangers: bool,
    /// When the next ready pod counts as available.
    next_available: Option<Duration>,
}

impl Census {
    /// From the counts that the cache keeps; right unless pods come or go by their labels, or wait to be available.
    fn of_tallies<K: ReplicaKind>(set: &Object, view: &View<'_>) -> Census {
        let selector = K::selector(set);
        let template = template_selector::<K>(set);
        let mut census = Census::default();
        for (labels, tally) in view.tallies(set.uid()) {
            if selector.matches(Some(labels)) {
                census.active += tally.active;
                census.ready += tally.ready;
                census.leaving += tally.leaving;
                census.labelled += if template.matches(Some(labels)) { tally.active } else { 0 };
            } else {
                census.strangers |= tally.active > 0;
            }
        }
        Census { available: census.ready, ..census }
    }

    fn of_pods<K: ReplicaKind>(&self, set: &Object, pods: &[&Object], view: &View<'_>) -> Census {
        let template = template_selector::<K>(set);
        let min_ready_seconds = K::min_ready_seconds(set);
        let mut census = Census { active: pods.len() as i32, leaving: self.leaving, ..Census::default() };
        for pod in pods {
            census.labelled += i32::from(template.matches(pod.metadata().labels.as_ref()));
            if let Some(wait) = pods::available_in(pod, min_ready_seconds, view.now) {
                census.ready += 1;
                census.available += i32::from(wait.is_zero());
                let next = [census.next_available, Some(wait)].into_iter().flatten();
                census.next_available = next.filter(|wait| !wait.is_zero()).min();
            }
        }
        census
    }

    fn status<K: ReplicaKind>(&self, set: &Object) -> ReplicaSetStatus {
        let conditions = K::status(set).conditions.into_iter().flatten();
        let conditions: Vec<_> = conditions.filter(|condition| condition.type_ != "ReplicaFailure").collect();
        let counted = |count: i32| (count > 0).then_some(count);
        ReplicaSetStatus {
            replicas: self.active,
            fully_labeled_replicas: counted(self.labelled),
            ready_replicas: counted(self.ready),
            available_replicas: counted(self.available),
            terminating_replicas: Some(self.leaving),
            observed_generation: set.metadata().generation,
            conditions: (!conditions.is_empty()).then_some(conditions),
        }
    }

    /// The status of a sync that failed: a failure that is known already stays as it is.
    fn failing_status<K: ReplicaKind>(&self, set: &Object) -> ReplicaSetStatus {
        ReplicaSetStatus { conditions: K::status(set).conditions, ..self.status::<K>(set) }
    }
}

fn template_selector<K: ReplicaKind>(set: &Object) -> Selector {
    let template = K::template(set).and_then(|template| template.metadata.as_ref());
    template.and_then(|metadata| metadata.labels.as_ref()).map(Selector::of_labels).unwrap_or_default()
}

fn with_status<K: ReplicaKind>(set: &Object, status: ReplicaSetStatus) -> Object {
    let mut set = set.clone();
    K::set_status(&mut set, status);
    set
}

fn tell_failure<K: ReplicaKind>(set: &mut Object, reason: &str, refusal: &Status, now: Time) {
    let condition = ReplicaSetCondition {
        type_: "ReplicaFailure".into(),
        status: "True".into(),
        reason: Some(reason.into()),
        message: Some(refusal.message.clone()),
        last_transition_time: Some(now.to_meta()),
    };
    let mut status = K::status(set);
    let conditions = status.conditions.get_or_insert_default();
    if conditions.iter().all(|known| known.type_ != condition.type_) {
        conditions.push(condition);
        K::set_status(set, status);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Cluster;
    use crate::controllers::testing::*;

    fn web(replicas: i32) -> Value {
        json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "img:1"}]},
                },
            },
        })
    }

    fn bare_pod(name: &str, app: &str) -> Value {
        json!({
            "metadata": {"name": name, "labels": {"app": app}},
            "spec": {"containers": [{"name": "c", "image": "img:1"}]},
        })
    }

    fn status(cluster: &Cluster) -> Value {
        cluster.get::<ReplicaSet>("default", "web").unwrap().to_json()["status"].take()
    }

    fn names(cluster: &Cluster) -> Vec<String> {
        cluster.list::<Pod>("default").map(|pod| pod.key.name.to_string()).collect()
    }

    fn controlled(cluster: &Cluster) -> usize {
        let owned = |pod: &&Object| pod.controller().is_some_and(|owner| owner.name == "web");
        cluster.list::<Pod>("default").filter(owned).count()
    }

    #[test]
    fn it_creates_the_missing_pods_and_deletes_the_surplus() {
        let mut cluster = control_plane();
        let set = create::<ReplicaSet>(&mut cluster, web(3));
        play_kubelets(&mut cluster);
        assert_eq!(
            status(&cluster),
            json!({"availableReplicas": 3, "fullyLabeledReplicas": 3, "observedGeneration": 1, "readyReplicas": 3,
                "replicas": 3, "terminatingReplicas": 0})
        );
        let pod = cluster.list::<Pod>("default").next().unwrap();
        assert_eq!(pod.metadata().generate_name.as_deref(), Some("web-"));
        assert_eq!(pod.controller(), Some(&set.controller_reference()));
        let created = events(&cluster, "web");
        assert_eq!(created.len(), 3);
        assert!(created.contains(&format!("SuccessfulCreate Created pod: {}", pod.key.name)));

        patch::<ReplicaSet>(&mut cluster, "web", json!({"spec": {"replicas": 1}})).unwrap();
        settle(&mut cluster);
        assert_eq!(names(&cluster).len(), 1);
        assert_eq!(status(&cluster)["replicas"], 1);
        assert_eq!(
            events(&cluster, "web").iter().filter(|e| e.starts_with("SuccessfulDelete Deleted pod: web-")).count(),
            2
        );
    }

    #[test]
    fn it_adopts_what_it_selects_and_releases_what_it_selects_no_longer() {
        let mut cluster = control_plane();
        create::<Pod>(&mut cluster, bare_pod("mine", "web"));
        create::<Pod>(&mut cluster, bare_pod("other", "db"));
        create::<ReplicaSet>(&mut cluster, web(2));
        play_kubelets(&mut cluster);
        assert_eq!((names(&cluster).len(), controlled(&cluster)), (3, 2));
        assert!(cluster.get::<Pod>("default", "mine").unwrap().controller().is_some());
        assert!(cluster.get::<Pod>("default", "other").unwrap().controller().is_none());

        patch::<Pod>(&mut cluster, "mine", json!({"metadata": {"labels": {"app": "aside"}}})).unwrap();
        play_kubelets(&mut cluster);
        let aside = cluster.get::<Pod>("default", "mine").unwrap();
        assert_eq!(aside.metadata().owner_references, None);
        assert_eq!((names(&cluster).len(), controlled(&cluster)), (4, 2));

        patch::<Pod>(&mut cluster, "mine", json!({"metadata": {"labels": {"app": "web"}}})).unwrap();
        play_kubelets(&mut cluster);
        assert_eq!((names(&cluster).len(), controlled(&cluster)), (3, 2));
    }

    #[test]
    fn the_least_useful_pod_goes_first() {
        let mut cluster = control_plane();
        let pod = |name: &str, cost: &str, node: &str| {
            let mut pod = bare_pod(name, "web");
            pod["metadata"]["annotations"] = json!({"controller.kubernetes.io/pod-deletion-cost": cost});
            if !node.is_empty() {
                pod["spec"]["nodeName"] = json!(node);
            }
            pod
        };
        for (name, cost, node, ready) in [
            ("dear", "100", "node-1", true),
            ("cheap", "-5", "node-1", true),
            ("plain", "0", "node-1", true),
            ("unready", "500", "node-1", false),
            ("gated", "900", "", false),
        ] {
            let pod = create::<Pod>(&mut cluster, pod(name, cost, node));
            if !node.is_empty() {
                run_pod(&mut cluster, &pod, ready);
            }
        }
        create::<ReplicaSet>(&mut cluster, web(5));
        let mut gone = Vec::new();
        for replicas in (1..5).rev() {
            patch::<ReplicaSet>(&mut cluster, "web", json!({"spec": {"replicas": replicas}})).unwrap();
            settle(&mut cluster);
            let active = cluster.list::<Pod>("default").filter(|pod| pods::is_active(pod));
            let left: Vec<_> = active.map(|pod| pod.key.name.to_string()).collect();
            let all = ["dear", "cheap", "plain", "unready", "gated"];
            gone.extend(
                all.into_iter()
                    .filter(|name| !left.iter().any(|l| l == name) && !gone.contains(name))
                    .collect::<Vec<_>>(),
            );
        }
        assert_eq!(gone, ["gated", "unready", "cheap", "plain"]);
    }

    #[test]
    fn a_ready_pod_counts_as_available_after_min_ready_seconds() {
        let mut cluster = control_plane();
        let mut set = web(1);
        set["spec"]["minReadySeconds"] = json!(10);
        create::<ReplicaSet>(&mut cluster, set);
        settle(&mut cluster);
        let pod = cluster.list::<Pod>("default").next().unwrap().clone();
        run_pod(&mut cluster, &pod, true);
        cluster.advance(std::time::Duration::from_secs(9), |_| true);
        assert_eq!(
            (&status(&cluster)["readyReplicas"], &status(&cluster)["availableReplicas"]),
            (&json!(1), &json!(null))
        );
        settle(&mut cluster);
        assert_eq!(status(&cluster)["availableReplicas"], 1);
    }
}
