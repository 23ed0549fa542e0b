//! daemonset-controller: one pod on each node that takes it.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/>

mod history;
mod placement;
mod update;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::cache::View;
use super::claim::claim;
use super::controller::{Controller, EventNote, Plan, Watch};
use super::pods;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::api::{Key, Name};
use crate::clock::Time;
use crate::store::Change;
use history::History;
use placement::{Eligibility, Place};

/// At most this many pods are created, and as many deleted, in one sync.
const BURST: usize = 250;

pub struct DaemonSetController;

impl Controller for DaemonSetController {
    fn name(&self) -> &str {
        "daemonset-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::itself(DaemonSet::kind()),
            Watch::owner(Pod::kind(), DaemonSet::kind()),
            Watch::with(Pod::kind(), sets_that_may_adopt),
            Watch::owner(ControllerRevision::kind(), DaemonSet::kind()),
            Watch::with(Node::kind(), sets_that_a_node_concerns),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(set) = view.get::<DaemonSet>(key) else { return plan };
        let spec = set.spec::<DaemonSet>();
        if spec.selector == LabelSelector::default() {
            let text = "This daemon set is selecting all pods. A non-empty selector is required.";
            plan.event(EventNote::warning(set, "SelectingAll", text));
            return plan;
        }
        if set.is_terminating() {
            return plan;
        }
        let selector = Selector::of(&spec.selector);
        let history = History::of(set, &selector, view, &mut plan);
        let pods = claim(set, Pod::kind(), &selector, view, |_| true, &mut plan);
        let mut sync = Sync { set, spec, view, history, nodes: nodes(set, view), pods: by_node(&pods), plan };
        let mut work = sync.manage();
        if work.is_empty() {
            work = sync.roll();
        }
        let status = sync.status();
        sync.carry_out(&work, &status);
        sync.history.clean_up(set, &pods, &mut sync.plan);
        if !status.same_status(set) {
            sync.plan.update_status(status, "its pods or nodes have changed");
        }
        sync.plan
    }
}

/// One look at a DaemonSet.
struct Sync<'a> {
    set: &'a Object,
    spec: &'a DaemonSetSpec,
    view: &'a View<'a>,
    history: History<'a>,
    /// Every node, and whether it takes the pod.
    nodes: BTreeMap<&'a str, Place>,
    /// The pods by the nodes that they are for; of those of one node, the one that counts comes first.
    pods: BTreeMap<&'a str, Vec<&'a Object>>,
    plan: Plan,
}

/// What is to be done.
#[derive(Default)]
struct Work<'a> {
    /// Nodes that need a pod.
    create: Vec<&'a str>,
    delete: Vec<&'a Object>,
}

impl Work<'_> {
    fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }
}

fn nodes<'a>(set: &Object, view: &View<'a>) -> BTreeMap<&'a str, Place> {
    let eligibility = Eligibility::of(set);
    view.list::<Node>("").map(|node| (&*node.key.name, eligibility.of_node(node))).collect()
}

/// Pods that have ended and are being deleted are somebody else's business already.
fn by_node<'a>(pods: &[&'a Object]) -> BTreeMap<&'a str, Vec<&'a Object>> {
    let mut by_node: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !(pods::is_finished(pod) && pod.is_terminating())) {
        if let Some(node) = placement::target_node(pod) {
            by_node.entry(node).or_default().push(pod);
        }
    }
    for pods in by_node.values_mut() {
        pods.sort_by_key(|pod| {
            let created = pod.metadata().creation_timestamp.as_ref().map(Time::from);
            (pod.spec::<Pod>().node_name.is_none(), created, pod.key.name.clone())
        });
    }
    by_node
}

impl<'a> Sync<'a> {
    fn is_updated(&self, pod: &Object) -> bool {
        let of_generation = placement::generation(self.set);
        pod.label(placement::HASH_LABEL) == Some(&self.history.hash)
            || (of_generation.is_some() && pod.label(placement::GENERATION_LABEL) == of_generation)
    }

    fn is_available(&self, pod: &Object) -> bool {
        let least = self.spec.min_ready_seconds.unwrap_or(0);
        pods::available_in(pod, least, self.view.now).is_some_and(|wait| wait.is_zero())
    }

    /// Each node gets what it lacks and loses what it should not have.
    fn manage(&mut self) -> Work<'a> {
        let mut work = Work::default();
        let nodes: Vec<(&'a str, Place)> = self.nodes.iter().map(|(node, place)| (*node, *place)).collect();
        for (node, place) in nodes {
            match self.pods.get(node).cloned() {
                None if place.takes => work.create.push(node),
                None => {}
                Some(pods) if place.keeps => self.manage_node(node, place, &pods, &mut work),
                Some(pods) => work.delete.extend(pods.into_iter().filter(|pod| !pod.is_terminating())),
            }
        }
        // The scheduler can't bring these anywhere, and nobody collects a pod that never had a node.
        let lost = self.pods.iter().filter(|(node, _)| !self.nodes.contains_key(*node)).flat_map(|(_, pods)| pods);
        work.delete.extend(lost.filter(|pod| pod.spec::<Pod>().node_name.is_none() && !pod.is_terminating()));
        work
    }

    fn manage_node(&mut self, node: &'a str, place: Place, pods: &[&'a Object], work: &mut Work<'a>) {
        let mut running = Vec::new();
        for pod in pods.iter().filter(|pod| !pod.is_terminating()) {
            match pod.status::<Pod>().phase.as_deref() {
                Some("Failed") => self.replace_failed(node, pod, work),
                Some("Succeeded") => {
                    let text = format!("Found succeeded daemon pod {} on node {node}, will try to delete it", pod.key);
                    self.plan.event(EventNote::normal(self.set, "SucceededDaemonPod", text));
                    work.delete.push(pod);
                }
                _ => running.push(*pod),
            }
        }
        if !update::surges(self.spec) {
            work.delete.extend(running.into_iter().skip(1));
        } else if running.len() <= 1 {
            if running.is_empty() && place.takes {
                work.create.push(node);
            }
        } else {
            self.prune_surge(&running, work);
        }
    }

    /// A pod that keeps failing is replaced at longer and longer intervals.
    fn replace_failed(&mut self, node: &str, pod: &'a Object, work: &mut Work<'a>) {
        let observed = self.set.status::<DaemonSet>().observed_generation.unwrap_or(0);
        let id = Name::from(format!("{}/{observed}/{node}", self.set.uid()));
        let wait = self.view.backoff(&id);
        if !wait.is_zero() {
            self.plan.requeue_after(wait);
            return;
        }
        self.plan.back_off(id);
        let text = format!("Found failed daemon pod {} on node {node}, will try to kill it", pod.key);
        self.plan.event(EventNote::warning(self.set, "FailedDaemonPod", text));
        work.delete.push(pod);
    }

    /// Of several pods on one node the oldest of the new and of the old ones stay, until the new one can take over.
    fn prune_surge(&self, running: &[&'a Object], work: &mut Work<'a>) {
        let (mut new, mut old) = (None, None);
        for pod in running {
            let is_new = pod.label(placement::HASH_LABEL) == Some(&self.history.hash);
            let oldest = if is_new { &mut new } else { &mut old };
            match oldest {
                None => *oldest = Some(*pod),
                Some(_) => work.delete.push(pod),
            }
        }
        if let (Some(new), Some(old)) = (new, old)
            && (!pods::is_ready(old) || self.is_available(new))
        {
            work.delete.push(old);
        }
    }

    fn carry_out(&mut self, work: &Work<'_>, status: &Object) {
        let (set, plan) = (self.set, &mut self.plan);
        if !work.create.is_empty() {
            let template = placement::template(set, &self.history.hash);
            let created = EventNote::normal(set, "SuccessfulCreate", "Created pod: {}");
            let failed = EventNote::warning(set, "FailedCreate", "Error creating: ");
            for node in work.create.iter().take(BURST) {
                plan.create(placement::pod(&template, set, node), "a node has none")
                    .event(created.clone())
                    .on_failure(failed.clone())
                    .tolerate(&["NamespaceTerminating"])
                    .confess(status.clone(), |_, _, _| {});
            }
        }
        for pod in work.delete.iter().take(BURST) {
            plan.delete(pod, "it should not be on its node")
                .event(EventNote::normal(set, "SuccessfulDelete", "Deleted pod: {}"))
                .on_failure(EventNote::warning(set, "FailedDelete", "Error deleting: "))
                .confess(status.clone(), |_, _, _| {});
        }
    }

    /// The DaemonSet with the status that it should have.
    fn status(&mut self) -> Object {
        let mut status = DaemonSetStatus {
            observed_generation: self.set.metadata().generation,
            collision_count: self.history.collision_count,
            conditions: self.set.status::<DaemonSet>().conditions.clone(),
            ..DaemonSetStatus::default()
        };
        let (mut updated, mut available) = (0, 0);
        for (node, place) in &self.nodes {
            let pod = self.pods.get(node).and_then(|pods| pods.first());
            if !place.takes {
                status.number_misscheduled += i32::from(pod.is_some());
                continue;
            }
            status.desired_number_scheduled += 1;
            let Some(pod) = pod else { continue };
            status.current_number_scheduled += 1;
            status.number_ready += i32::from(pods::is_ready(pod));
            updated += i32::from(self.is_updated(pod));
            available += i32::from(self.is_available(pod));
        }
        let least = self.spec.min_ready_seconds.unwrap_or(0);
        let waits = self.pods.values().flatten().filter_map(|pod| pods::available_in(pod, least, self.view.now));
        if let Some(next) = waits.filter(|wait| !wait.is_zero()).min() {
            self.plan.continue_after(next);
        }
        let counted = |count: i32| (count > 0).then_some(count);
        status.updated_number_scheduled = counted(updated);
        status.number_available = counted(available);
        status.number_unavailable = counted(status.desired_number_scheduled - available);
        let mut set = self.set.clone();
        *set.status_mut::<DaemonSet>() = status;
        set
    }
}

/// A pod without a controller concerns the DaemonSets whose selectors match it.
fn sets_that_may_adopt(view: &View<'_>, change: &Change) -> Vec<Key> {
    let Some(pod) = change.after.as_ref().filter(|pod| pod.controller().is_none()) else { return Vec::new() };
    let labels = pod.metadata().labels.as_ref();
    let matching = |set: &&Object| labels.is_some() && Selector::of(&set.spec::<DaemonSet>().selector).matches(labels);
    view.list::<DaemonSet>(&pod.key.namespace).filter(matching).map(|set| set.key.clone()).collect()
}

/// A node that comes or changes concerns the DaemonSets that it lacks a pod of, or has one too many. That a node goes
/// concerns nobody: its pods are still there.
fn sets_that_a_node_concerns(view: &View<'_>, change: &Change) -> Vec<Key> {
    let Some(node) = &change.after else { return Vec::new() };
    if let Some(before) = &change.before
        && before.same_spec(node)
        && before.metadata().labels == node.metadata().labels
    {
        return Vec::new();
    }
    let concerned = |set: &&Object| {
        let place = Eligibility::of(set).of_node(node);
        let before = change.before.as_ref().map(|before| Eligibility::of(set).of_node(before));
        before.map_or(place.takes, |before| before != place)
    };
    view.list::<DaemonSet>("").filter(concerned).map(|set| set.key.clone()).collect()
}

#[cfg(test)]
mod tests;
