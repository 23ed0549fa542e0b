//! The status of a Deployment: counts of its ReplicaSets, and the conditions Available, Progressing, ReplicaFailure.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#deployment-status>

use std::time::Duration;

use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet, ReplicaSetStatus,
};

use super::{Sync, annotations, available, fenceposts, total, wanted};
use crate::api::object::Object;
use crate::clock::Time;

pub(super) fn counted(set: &Object) -> &ReplicaSetStatus {
    set.status::<ReplicaSet>()
}

pub(super) fn condition<'a>(deployment: &'a Object, condition_type: &str) -> Option<&'a DeploymentCondition> {
    find(deployment.status::<Deployment>(), condition_type)
}

fn find<'a>(status: &'a DeploymentStatus, condition_type: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == condition_type)
}

pub(super) fn has_deadline(spec: &DeploymentSpec) -> bool {
    spec.progress_deadline_seconds.is_some_and(|seconds| seconds != i32::MAX)
}

/// Gives the Deployment the revision of its newest ReplicaSet. True if it had another.
pub(super) fn note_revision(deployment: &mut Object, revision: i64) -> bool {
    let changed = annotations::revision(deployment) != revision;
    if changed {
        let annotations = deployment.metadata_mut().annotations.get_or_insert_default();
        annotations.insert(annotations::REVISION.into(), revision.to_string());
    }
    changed
}

pub(super) fn set(deployment: &mut Object, kind: &str, status: &str, reason: &str, message: String, now: Time) {
    put(deployment.status_mut::<Deployment>(), new_condition(kind, status, reason, message, now));
}

fn new_condition(kind: &str, status: &str, reason: &str, message: String, now: Time) -> DeploymentCondition {
    DeploymentCondition {
        type_: kind.into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some(message),
        last_update_time: Some(now.to_meta()),
        last_transition_time: Some(now.to_meta()),
    }
}

/// Replaces a condition, unless it says the same already. What only gives another reason keeps its transition time.
fn put(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(known) = find(status, &condition.type_) {
        if known.status == condition.status && known.reason == condition.reason {
            return;
        }
        if known.status == condition.status {
            condition.last_transition_time = known.last_transition_time.clone();
        }
    }
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

fn remove(status: &mut DeploymentStatus, condition_type: &str) {
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != condition_type);
    status.conditions = status.conditions.take().filter(|conditions| !conditions.is_empty());
}

impl Sync<'_> {
    fn status(&self) -> &DeploymentStatus {
        self.deployment.status::<Deployment>()
    }

    /// Tells in the Progressing condition that the rollout was paused or resumed. True if it had to.
    pub(super) fn note_pause(&mut self) -> bool {
        let known = condition(self.deployment, "Progressing").and_then(|condition| condition.reason.as_deref());
        if !has_deadline(self.spec) || known == Some("ProgressDeadlineExceeded") {
            return false;
        }
        let (reason, text) = match (self.spec.paused.unwrap_or(false), known == Some("DeploymentPaused")) {
            (true, false) => ("DeploymentPaused", "Deployment is paused"),
            (false, true) => ("DeploymentResumed", "Deployment is resumed"),
            _ => return false,
        };
        let mut deployment = self.deployment.clone();
        set(&mut deployment, "Progressing", "Unknown", reason, text.into(), self.view.now);
        self.plan.update_status(deployment, text);
        true
    }

    /// Every pod is a new one, and available.
    pub(super) fn is_complete(&self) -> bool {
        self.completes(self.status())
    }

    fn completes(&self, status: &DeploymentStatus) -> bool {
        let all = [status.updated_replicas, status.replicas, status.available_replicas];
        all.iter().all(|count| count.unwrap_or(0) == self.replicas)
            && status.observed_generation >= self.deployment.metadata().generation
    }

    /// Counts, and the condition Available.
    fn count(&self) -> DeploymentStatus {
        let known = self.status();
        let sum = |count: fn(&ReplicaSetStatus) -> i32| self.sets.iter().map(|set| count(counted(set))).sum::<i32>();
        let available_total = total(self.sets.iter().map(available));
        let wanted_total = total(self.sets.iter().map(wanted));
        let terminating = |set: &Object| match counted(set) {
            status if status.observed_generation.is_none() && status.terminating_replicas.is_none() => Some(0),
            status => status.terminating_replicas,
        };
        let nonzero = |count: i32| (count != 0).then_some(count);
        let mut status = DeploymentStatus {
            observed_generation: self.deployment.metadata().generation,
            replicas: nonzero(sum(|status| status.replicas)),
            updated_replicas: nonzero(self.new.map_or(0, |new| counted(&self.sets[new]).replicas)),
            ready_replicas: nonzero(sum(|status| status.ready_replicas.unwrap_or(0))),
            available_replicas: nonzero(available_total),
            unavailable_replicas: nonzero((wanted_total - available_total).max(0)),
            terminating_replicas: self.sets.iter().map(terminating).sum(),
            collision_count: known.collision_count,
            conditions: known.conditions.clone(),
        };
        let enough = available_total >= self.replicas - fenceposts::max_unavailable(self.spec);
        let (is, reason, text) = if enough {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        put(&mut status, new_condition("Available", is, reason, text.into(), self.view.now));
        status
    }

    pub(super) fn sync_status(&mut self) {
        let status = self.count();
        self.write_status(status);
    }

    /// Counts, and whether the rollout gets on.
    pub(super) fn sync_rollout_status(&mut self) {
        let mut status = self.count();
        self.judge_progress(&mut status);
        match self.replica_failure() {
            Some(failure) => put(&mut status, failure),
            None => remove(&mut status, "ReplicaFailure"),
        }
        if !self.write_status(status) {
            self.look_again_at_deadline();
        }
    }

    /// True if the status changed.
    fn write_status(&mut self, status: DeploymentStatus) -> bool {
        if status == *self.status() {
            return false;
        }
        let mut deployment = self.deployment.clone();
        *deployment.status_mut::<Deployment>() = status;
        self.plan.update_status(deployment, "its ReplicaSets have changed");
        true
    }

    fn judge_progress(&self, status: &mut DeploymentStatus) {
        if !has_deadline(self.spec) {
            return remove(status, "Progressing");
        }
        let known = condition(self.deployment, "Progressing");
        let was_complete = known.is_some_and(|known| known.reason.as_deref() == Some("NewReplicaSetAvailable"));
        if was_complete && status.replicas == status.updated_replicas {
            return;
        }
        let subject = match self.new {
            Some(new) => format!("ReplicaSet \"{}\"", self.sets[new].key.name),
            None => format!("Deployment \"{}\"", self.deployment.key.name),
        };
        let now = self.view.now;
        let progressing =
            |is, reason, text: &str| new_condition("Progressing", is, reason, format!("{subject} {text}"), now);
        if self.completes(status) {
            put(status, progressing("True", "NewReplicaSetAvailable", "has successfully progressed."));
        } else if self.gets_on(status) {
            let mut condition = progressing("True", "ReplicaSetUpdated", "is progressing.");
            if let Some(known) = known.filter(|known| known.status == "True") {
                condition.last_transition_time = known.last_transition_time.clone();
            }
            // With the same reason, too: the deadline counts from the last progress.
            remove(status, "Progressing");
            put(status, condition);
        } else if self.is_late(status) {
            put(status, progressing("False", "ProgressDeadlineExceeded", "has timed out progressing."));
        }
    }

    /// More pods are new, ready or available than before, or fewer old ones are left.
    fn gets_on(&self, status: &DeploymentStatus) -> bool {
        let before = self.status();
        let old = |status: &DeploymentStatus| status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0);
        status.updated_replicas > before.updated_replicas
            || old(status) < old(before)
            || status.ready_replicas > before.ready_replicas
            || status.available_replicas > before.available_replicas
    }

    fn deadline(&self, progressing: &DeploymentCondition) -> Time {
        let from = progressing.last_update_time.as_ref().map_or(Time::ZERO, Time::from);
        from + Duration::from_secs(self.spec.progress_deadline_seconds.unwrap_or(0).max(0) as u64)
    }

    fn is_late(&self, status: &DeploymentStatus) -> bool {
        let Some(condition) = find(status, "Progressing") else { return false };
        match condition.reason.as_deref() {
            Some("NewReplicaSetAvailable") => false,
            Some("ProgressDeadlineExceeded") => true,
            _ => self.deadline(condition) < self.view.now,
        }
    }

    /// Nothing will wake a stuck rollout when its deadline has passed, but this.
    fn look_again_at_deadline(&mut self) {
        let Some(condition) = condition(self.deployment, "Progressing").filter(|_| has_deadline(self.spec)) else {
            return;
        };
        if !self.is_complete() && condition.reason.as_deref() != Some("ProgressDeadlineExceeded") {
            let left = self.deadline(condition).since(self.view.now);
            self.plan.requeue_after(left + Duration::from_secs(1));
        }
    }

    /// The failure of the new ReplicaSet, or else of an old one.
    fn replica_failure(&self) -> Option<DeploymentCondition> {
        let failure = |set: &Object| {
            let mut conditions = counted(set).conditions.iter().flatten();
            conditions.find(|condition| condition.type_ == "ReplicaFailure").cloned()
        };
        let new = self.new.and_then(|new| failure(&self.sets[new]));
        let failure = new.or_else(|| self.sets.iter().find_map(failure))?;
        Some(DeploymentCondition {
            type_: failure.type_,
            status: failure.status,
            reason: failure.reason,
            message: failure.message,
            last_transition_time: failure.last_transition_time.clone(),
            last_update_time: failure.last_transition_time,
        })
    }
}
