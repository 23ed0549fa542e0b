//! statefulset-controller: pods with names and claims that stay, made and replaced in the order of their ordinals.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/>

mod claims;
mod history;
mod pods;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};

use super::cache::View;
use super::claim::claim;
use super::controller::{Controller, EventNote, Plan, Watch, Write};
use super::revisions;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::store::Change;
use history::History;

/// At most this many pods are created in one sync.
const BURST: usize = 500;

pub struct StatefulSetController;

impl Controller for StatefulSetController {
    fn name(&self) -> &str {
        "statefulset-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::itself(StatefulSet::kind()),
            Watch::owner(Pod::kind(), StatefulSet::kind()),
            Watch::with(Pod::kind(), sets_that_may_adopt),
            Watch::with(PersistentVolumeClaim::kind(), sets_that_miss),
            // Only looked up.
            Watch::with(ControllerRevision::kind(), |_, _| Vec::new()),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let Some(set) = view.get::<StatefulSet>(key) else { return Plan::done() };
        let selector = Selector::of(&set.spec::<StatefulSet>().selector);
        let mut plan = Plan::done();
        let history = History::of(set, &selector, view, &mut plan);
        let is_member = |pod: &Object| pods::ordinal(set, pod).is_some();
        let pods = claim(set, Pod::kind(), &selector, view, is_member, &mut plan);
        Sync::new(set, history, &pods, *view, plan).run(&pods)
    }
}

/// A pod without a controller concerns the sets whose name and selector match it.
fn sets_that_may_adopt(view: &View<'_>, change: &Change) -> Vec<Key> {
    let Some(pod) = change.after.as_ref().filter(|pod| pod.controller().is_none()) else { return Vec::new() };
    let labels = pod.metadata().labels.as_ref();
    let matching = |set: &&Object| {
        pods::ordinal(set, pod).is_some() && Selector::of(&set.spec::<StatefulSet>().selector).matches(labels)
    };
    view.list::<StatefulSet>(&pod.key.namespace).filter(matching).map(|set| set.key.clone()).collect()
}

/// A claim that is gone concerns the set that it was made for, which may have waited for that.
fn sets_that_miss(view: &View<'_>, change: &Change) -> Vec<Key> {
    let gone = change.key();
    let is_of = |set: &&Object| {
        let ordinal = gone.name.rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse().ok());
        ordinal.is_some_and(|ordinal| claims::keys(set, ordinal).any(|key| key == *gone))
    };
    let sets = change.after.is_none().then(|| view.list::<StatefulSet>(&gone.namespace));
    sets.into_iter().flatten().filter(is_of).map(|set| set.key.clone()).collect()
}

/// What is done to a pod, with the reasons of the Events about it.
struct Verb {
    name: &'static str,
    done: &'static str,
    failed: &'static str,
}

const CREATE: Verb = Verb { name: "Create", done: "SuccessfulCreate", failed: "FailedCreate" };
const UPDATE: Verb = Verb { name: "Update", done: "SuccessfulUpdate", failed: "FailedUpdate" };
const DELETE: Verb = Verb { name: "Delete", done: "SuccessfulDelete", failed: "FailedDelete" };

/// Nothing more is to be done before what was done, or what is waited for, shows.
type Flow = ControlFlow<()>;

/// One look at one set.
struct Sync<'a> {
    set: &'a Object,
    spec: &'a StatefulSetSpec,
    view: View<'a>,
    history: History<'a>,
    /// By ordinal.
    replicas: BTreeMap<i32, &'a Object>,
    /// Those whose ordinals are not wanted (any more), the highest first.
    condemned: Vec<(i32, &'a Object)>,
    /// As it is before this look changes anything.
    status: StatefulSetStatus,
    plan: Plan,
}

impl<'a> Sync<'a> {
    fn new(set: &'a Object, history: History<'a>, pods: &[&'a Object], view: View<'a>, plan: Plan) -> Sync<'a> {
        let spec = set.spec::<StatefulSet>();
        let ordinals = pods::ordinals(spec);
        let members = pods.iter().filter_map(|pod| Some((pods::ordinal(set, pod)?, *pod)));
        let (wanted, mut condemned): (Vec<_>, Vec<_>) = members.partition(|(ordinal, _)| ordinals.contains(ordinal));
        let replicas = BTreeMap::from_iter(wanted);
        condemned.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        let mut sync = Sync { set, spec, view, history, replicas, condemned, status: Default::default(), plan };
        sync.status = sync.count(pods);
        sync
    }

    fn run(mut self, pods: &[&Object]) -> Plan {
        let mut status = self.status.clone();
        if !self.set.is_terminating() {
            let outgrown = match self.keep() {
                ControlFlow::Continue(()) => self.replace_outdated(),
                ControlFlow::Break(()) => 0,
            };
            let current = status.current_replicas.unwrap_or(0) - outgrown;
            status.current_replicas = Some(current).filter(|current| *current > 0);
        }
        if status != *self.set.status::<StatefulSet>() {
            self.plan.update_status(self.with_status(status), "its pods have changed");
        }
        self.history.truncate(self.set, pods, &mut self.plan);
        if let Some(next) = self.next_available(pods) {
            self.plan.continue_after(next);
        }
        self.plan
    }

    /// In order: one pod at a time, and only while all before it are well.
    fn is_ordered(&self) -> bool {
        self.spec.pod_management_policy.as_deref() != Some("Parallel")
    }

    /// As many pods as are wanted, each with its claims.
    fn keep(&mut self) -> Flow {
        let mut missing = 0;
        for ordinal in pods::ordinals(self.spec) {
            let replica = self.replicas.get(&ordinal).copied();
            missing += usize::from(replica.is_none());
            let flow = match replica {
                Some(pod) => self.look_after(ordinal, pod),
                None => self.create(ordinal),
            };
            if self.is_ordered() || missing == BURST {
                flow?;
            }
        }
        for (ordinal, pod) in self.condemned.clone() {
            self.own_claims(ordinal, pod);
        }
        for (_, pod) in self.condemned.clone() {
            let flow = self.condemn(pod);
            if self.is_ordered() {
                flow?;
            }
        }
        Flow::Continue(())
    }

    fn create(&mut self, ordinal: i32) -> Flow {
        let claims = claims::keys(self.set, ordinal).filter_map(|key| self.view.get::<PersistentVolumeClaim>(&key));
        let claims: Vec<_> = claims.collect();
        if claims.iter().any(|claim| claims::is_of_gone_pod(self.set, ordinal, claim)) {
            return Flow::Break(());
        }
        let pod = match self.build(ordinal) {
            Ok(pod) => pod,
            Err(error) => {
                self.plan.error = Some(error);
                return Flow::Break(());
            }
        };
        let (done, failed) = self.events(&CREATE, &pod);
        if let Some(claim) = claims.iter().find(|claim| claim.is_terminating()) {
            let message = format!("{}pvc {} is being deleted", failed.message, claim.key.name);
            self.plan.event(EventNote { message, ..failed });
            return Flow::Break(());
        }
        self.create_claims(ordinal, &pod);
        self.write(|plan| plan.create(pod, "a pod of this ordinal is missing").event(done).on_failure(failed));
        Flow::Break(())
    }

    /// A pod that isn't there yet, with the old template or the new one.
    fn build(&self, ordinal: i32) -> Result<Object, String> {
        let History { current, update, .. } = &self.history;
        if current.key == update.key || !self.is_outside_of_update(ordinal) {
            return Ok(pods::build(self.set, ordinal, &self.spec.template, &update.key.name));
        }
        Ok(pods::build(self.set, ordinal, &revisions::template(current)?, &current.key.name))
    }

    /// What keeps its old template while an update goes on: the ordinals before the partition.
    fn is_outside_of_update(&self, ordinal: i32) -> bool {
        let strategy = self.spec.update_strategy.as_ref();
        let is_rolling = strategy.is_none_or(|strategy| strategy.type_.as_deref() == Some("RollingUpdate"));
        let old = match strategy.and_then(|strategy| strategy.rolling_update.as_ref()) {
            Some(rolling) => rolling.partition.unwrap_or(0),
            None => self.set.status::<StatefulSet>().current_replicas.unwrap_or(0),
        };
        is_rolling && ordinal - pods::ordinals(self.spec).start < old
    }

    fn create_claims(&mut self, ordinal: i32, pod: &Object) {
        for claim in claims::build(self.set, ordinal) {
            if self.view.get::<PersistentVolumeClaim>(&claim.key).is_some() {
                continue;
            }
            let (set, claim_name, pod_name) = (&self.set.key.name, claim.key.name.clone(), &pod.key.name);
            let done = format!("Create Claim {claim_name} Pod {pod_name} in StatefulSet {set} success");
            let failed = format!("Create Claim {claim_name} for Pod {pod_name} in StatefulSet {set} failed error: ");
            let done = EventNote::normal(self.set, CREATE.done, done);
            let failed = EventNote::warning(self.set, CREATE.failed, failed);
            self.write(|plan| {
                let write = plan.create(claim, "the pod of this ordinal claims it");
                write.event(done).on_failure(failed).tolerate(&["AlreadyExists"])
            });
        }
    }

    /// A pod that is there: gone on with, waited for, or replaced.
    fn look_after(&mut self, ordinal: i32, pod: &'a Object) -> Flow {
        if super::pods::is_finished(pod) {
            if !pod.is_terminating() {
                self.delete(pod, "it has ended, and pods of a StatefulSet run for ever");
            }
            return Flow::Break(());
        }
        if pods::phase(pod) == "Pending" {
            self.create_claims(ordinal, pod);
            self.own_claims(ordinal, pod);
        }
        if self.is_ordered() && !self.is_well(pod) {
            return Flow::Break(());
        }
        let owned = pods::phase(pod) != "Pending" && self.own_claims(ordinal, pod);
        match pods::mended(self.set, ordinal, pod) {
            Some(mended) => {
                self.create_claims(ordinal, pod);
                let (done, failed) = self.events(&UPDATE, pod);
                self.write(|plan| {
                    plan.update(mended, "it must be what its ordinal says").event(done).on_failure(failed)
                });
            }
            None if owned => {
                let (done, _) = self.events(&UPDATE, pod);
                self.plan.event(done);
            }
            None => {}
        }
        Flow::Continue(())
    }

    /// Sees to it that the claims of a pod go with what the retention policy says; true if some did not.
    fn own_claims(&mut self, ordinal: i32, pod: &Object) -> bool {
        let mut changed = false;
        for key in claims::keys(self.set, ordinal) {
            let Some(claim) = self.view.get::<PersistentVolumeClaim>(&key) else { continue };
            let owners = claims::owners(self.set, pod, ordinal, claim);
            let Some(references) = owners.change else { continue };
            if owners.is_in_conflict {
                let text = format!(
                    "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a managing controller, the \
                     retention policy is ignored for this claim",
                    key.name
                );
                self.plan.event(EventNote::warning(self.set, "ConflictingController", text));
            }
            let mut owned = claim.clone();
            owned.metadata_mut().owner_references = Some(references).filter(|references| !references.is_empty());
            self.write(|plan| plan.update(owned, "the retention policy of claims says whose it is"));
            changed = true;
        }
        changed
    }

    /// Takes away a pod that is not wanted. In order, it must be well, or the only one that is not.
    fn condemn(&mut self, pod: &'a Object) -> Flow {
        if !pod.is_terminating() {
            let is_first_unwell = || self.first_unwell().is_some_and(|first| first.key == pod.key);
            if !self.is_ordered() || self.is_well(pod) || is_first_unwell() {
                self.delete(pod, "its ordinal is not wanted");
            }
        }
        Flow::Break(())
    }

    /// Of the pods that there are too many of, the lowest that is not well, if all that are wanted are.
    fn first_unwell(&self) -> Option<&'a Object> {
        let is_well = |ordinal: i32| self.replicas.get(&ordinal).is_some_and(|pod| self.is_well(pod));
        let all_well = pods::ordinals(self.spec).all(is_well);
        let mut condemned = self.condemned.iter().rev().map(|(_, pod)| *pod);
        condemned.find(|pod| !self.is_well(pod)).filter(|_| all_well)
    }

    /// Deletes the highest pod that has an old template, if all above it are well, and says how many it took.
    fn replace_outdated(&mut self) -> i32 {
        let strategy = self.spec.update_strategy.as_ref();
        if strategy.is_some_and(|strategy| strategy.type_.as_deref() == Some("OnDelete")) {
            return 0;
        }
        let partition = strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.partition).unwrap_or(0);
        let ordinals = pods::ordinals(self.spec);
        for ordinal in (ordinals.start.saturating_add(partition.max(0))..ordinals.end).rev() {
            let Some(pod) = self.replicas.get(&ordinal).copied() else { return 0 };
            if pods::revision(pod) != &*self.history.update.key.name && !pod.is_terminating() {
                self.delete(pod, "it has an old template");
                return 1;
            }
            if !self.is_well(pod) {
                return 0;
            }
        }
        0
    }

    fn delete(&mut self, pod: &Object, reason: &'static str) {
        let (done, failed) = self.events(&DELETE, pod);
        self.write(|plan| plan.delete(pod, reason).event(done).on_failure(failed));
    }

    /// A refused write does not keep the status from being told.
    fn write(&mut self, write: impl FnOnce(&mut Plan) -> &mut Write) {
        let confession = self.with_status(self.status.clone());
        let write = write(&mut self.plan);
        if self.status != *self.set.status::<StatefulSet>() {
            write.confess(confession, |_, _, _| {});
        }
    }

    /// That something was done to a pod, and that it was refused.
    fn events(&self, verb: &Verb, pod: &Object) -> (EventNote, EventNote) {
        let what = format!("{} Pod {} in StatefulSet {}", verb.name, pod.key.name, self.set.key.name);
        let failed = EventNote::warning(self.set, verb.failed, format!("{what} failed error: "));
        (EventNote::normal(self.set, verb.done, format!("{what} successful")), failed)
    }

    /// It serves, and goes on serving.
    fn is_well(&self, pod: &Object) -> bool {
        self.is_available(pod) && !pod.is_terminating()
    }

    fn is_available(&self, pod: &Object) -> bool {
        pods::is_available(pod, self.min_ready_seconds(), self.view.now)
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec.min_ready_seconds.unwrap_or(0)
    }

    fn with_status(&self, status: StatefulSetStatus) -> Object {
        let mut set = self.set.clone();
        *set.status_mut::<StatefulSet>() = status;
        set
    }

    fn count(&self, pods: &[&Object]) -> StatefulSetStatus {
        let count = |counts: &dyn Fn(&Object) -> bool| pods.iter().filter(|pod| counts(pod)).count() as i32;
        let some = |count: i32| Some(count).filter(|count| *count > 0);
        let is_of = |pod: &Object, revision: &Object| {
            !pods::phase(pod).is_empty() && !pod.is_terminating() && pods::revision(pod) == &*revision.key.name
        };
        let History { current, update, collision_count, .. } = &self.history;
        let mut status = StatefulSetStatus {
            observed_generation: self.set.metadata().generation,
            current_revision: Some(current.key.name.to_string()),
            update_revision: Some(update.key.name.to_string()),
            collision_count: Some(*collision_count),
            replicas: count(&|pod| !pods::phase(pod).is_empty()),
            ready_replicas: some(count(&pods::is_running_and_ready)),
            available_replicas: Some(count(&|pod| self.is_available(pod))),
            current_replicas: some(count(&|pod| is_of(pod, current))),
            updated_replicas: some(count(&|pod| is_of(pod, update))),
            conditions: None,
        };
        let wanted = self.spec.replicas.unwrap_or(1);
        let is_rolling = self
            .spec
            .update_strategy
            .as_ref()
            .is_none_or(|strategy| strategy.type_.as_deref() == Some("RollingUpdate"));
        let counts = [status.replicas, status.ready_replicas.unwrap_or(0), status.updated_replicas.unwrap_or(0)];
        if is_rolling && counts == [wanted; 3] {
            status.current_revision = status.update_revision.clone();
            status.current_replicas = status.updated_replicas;
        }
        status
    }

    /// When the next ready pod counts as available.
    fn next_available(&self, pods: &[&Object]) -> Option<Duration> {
        let waits = pods.iter().filter_map(|pod| {
            super::pods::available_in(pod, self.min_ready_seconds(), self.view.now).filter(|wait| !wait.is_zero())
        });
        waits.min()
    }
}
