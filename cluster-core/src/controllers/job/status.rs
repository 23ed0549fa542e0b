//! The status of a Job: its counters, which no pod may miss or enter twice, and its conditions.
//!
//! A pod that has ended is first written down among the uncounted ones, then loses its finalizer, then is counted. A
//! succeeded pod of an Indexed Job is written down by its index.
//! <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/#JobStatus>

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus, UncountedTerminatedPods};

use super::indexes::{Indexes, index_of};
use super::moves::Moves;
use super::policies::{self, Failure};
use super::{Sync, Verdict, is_tracked, phase, release};
use crate::api::object::Object;
use crate::clock::Time;
use crate::controllers::controller::{EventNote, Plan};
use crate::controllers::{jobs, pods};

/// So many pods are written down at once.
const UNCOUNTED_MAX: usize = 500;

pub struct Outcome {
    pub status: JobStatus,
    pub events: Vec<EventNote>,
}

/// What the status must say before a pod may lose its finalizer.
#[derive(PartialEq)]
enum Due {
    Nothing,
    Success,
    SuccessOf(i32),
    Failure,
}

pub fn counted(count: i32) -> Option<i32> {
    (count > 0).then_some(count)
}

pub fn with_status(job: &Object, status: JobStatus) -> Object {
    let mut job = job.clone();
    *job.status_mut::<Job>() = status;
    job
}

impl<'a> Sync<'a> {
    /// How many pods have succeeded, those that the status does not count yet among them.
    pub(super) fn succeeded(&self) -> i32 {
        if self.indexes.is_some() {
            return self.succeeded_indexes.total();
        }
        let (uncounted, _) = self.uncounted();
        let fresh = self.fresh(&uncounted).filter(|pod| phase(pod) == "Succeeded").count();
        self.known().succeeded.unwrap_or(0) + (uncounted.len() + fresh) as i32
    }

    pub(super) fn failed(&self) -> i32 {
        let (_, uncounted) = self.uncounted();
        let fresh = self.fresh(&uncounted).filter(|pod| self.is_failed(pod) && !self.is_ignored(pod)).count();
        self.known().failed.unwrap_or(0) + (uncounted.len() + fresh) as i32
    }

    pub(super) fn terminating(&self) -> i32 {
        self.pods.iter().filter(|pod| pods::is_leaving(pod)).count() as i32
    }

    fn known(&self) -> &'a JobStatus {
        self.job.status::<Job>()
    }

    /// The uids of pods that are written down and not counted: succeeded and failed ones.
    fn uncounted(&self) -> (BTreeSet<&'a str>, BTreeSet<&'a str>) {
        let uncounted = self.known().uncounted_terminated_pods.as_ref();
        let uids = |uids: Option<&'a Vec<String>>| uids.into_iter().flatten().map(String::as_str).collect();
        (
            uids(uncounted.and_then(|pods| pods.succeeded.as_ref())),
            uids(uncounted.and_then(|pods| pods.failed.as_ref())),
        )
    }

    /// Pods that may yet have to be written down.
    fn fresh(&self, uncounted: &BTreeSet<&str>) -> impl Iterator<Item = &'a Object> {
        let fresh = |pod: &&&'a Object| is_tracked(pod) && self.is_valid(pod) && !uncounted.contains(pod.uid());
        self.pods.iter().filter(fresh).copied()
    }

    fn is_ignored(&self, pod: &Object) -> bool {
        policies::judge(self.spec.pod_failure_policy.as_ref(), pod) == Failure::Ignored
    }

    /// Which of its pods a Job needs no more: all when it is over; else those that have ended, unless they are kept to
    /// tell their successor how often its index has failed.
    fn is_done_with(&self, pod: &Object, verdict: Option<&Verdict>) -> bool {
        let is_kept = || {
            let kept = index_of(pod).and_then(|index| self.to_replace.get(&index));
            kept.is_some_and(|kept| kept.uid() == pod.uid())
        };
        self.job.is_terminating()
            || verdict.is_some()
            || phase(pod) == "Succeeded"
            || (self.is_failed(pod) && !is_kept())
    }

    fn due(&self, pod: &Object, verdict: Option<&Verdict>, counted: &Counted<'_>) -> Due {
        if verdict.is_some_and(|verdict| verdict.told && !verdict.failed) && pod.is_terminating() {
            return Due::Nothing;
        }
        let fails_with_job = verdict.is_some_and(|verdict| verdict.failed);
        let has_failed = counted.failed.contains(pod.uid());
        if phase(pod) == "Succeeded" && !has_failed {
            return match index_of(pod).filter(|_| self.indexes.is_some()) {
                Some(index) if self.is_valid(pod) && !counted.indexes.has(index) => Due::SuccessOf(index),
                None if self.indexes.is_none() && !counted.succeeded.contains(pod.uid()) => Due::Success,
                _ => Due::Nothing,
            };
        }
        let counts = !has_failed && self.is_valid(pod) && !self.is_ignored(pod);
        if counts && (fails_with_job || self.is_failed(pod)) { Due::Failure } else { Due::Nothing }
    }

    fn counted(&self) -> Counted<'a> {
        let (succeeded, failed) = self.uncounted();
        let text = self.known().completed_indexes.as_deref().unwrap_or_default();
        Counted { succeeded, failed, indexes: Indexes::parse(text, self.indexes.unwrap_or(0)) }
    }

    /// Takes the finalizers from the pods of which the status tells all that it must.
    pub(super) fn release_counted(&self, verdict: Option<&Verdict>, plan: &mut Plan) {
        if verdict.is_some_and(|verdict| !verdict.told) {
            return;
        }
        let counted = self.counted();
        for pod in self.pods.iter().filter(|pod| is_tracked(pod) && self.is_done_with(pod, verdict)) {
            if self.due(pod, verdict, &counted) == Due::Nothing {
                release(pod, "the status counts it", plan);
                plan.continue_after(Duration::ZERO);
            }
        }
    }

    pub(super) fn status(&self, verdict: Option<&Verdict>, moves: &Moves<'_>) -> Outcome {
        let ready = self.active.iter().filter(|pod| pods::is_ready(pod)).count();
        let deleted_ready = moves.delete.iter().filter(|pod| pods::is_ready(pod)).count();
        let mut status = JobStatus {
            active: counted(moves.active(&self.active)),
            ready: Some((ready - deleted_ready) as i32),
            terminating: Some(self.terminating() + moves.delete.len() as i32),
            ..self.known().clone()
        };
        if status.start_time.is_none() && !self.is_suspended() {
            status.start_time = Some(self.now.to_meta());
        }
        self.count_released(&mut status);
        self.write_down(&mut status, verdict);
        if self.indexes.is_some() {
            let indexes = self.succeeded_indexes.to_string();
            status.completed_indexes = Some(indexes).filter(|indexes| !indexes.is_empty());
            status.succeeded = counted(self.succeeded_indexes.total());
            status.failed_indexes = self.failed_indexes.as_ref().map(Indexes::to_string);
        }
        let events = match verdict {
            Some(verdict) => self.tell_verdict(&mut status, verdict),
            None if self.job.is_terminating() => Vec::new(),
            None => self.tell_suspension(&mut status),
        };
        Outcome { status, events }
    }

    /// Pods that were written down and have lost their finalizers, or are gone, are counted.
    fn count_released(&self, status: &mut JobStatus) {
        let tracked: BTreeSet<&str> = self.pods.iter().filter(|pod| is_tracked(pod)).map(|pod| pod.uid()).collect();
        let uncounted = status.uncounted_terminated_pods.get_or_insert_with(UncountedTerminatedPods::default);
        let lists = [(&mut uncounted.succeeded, &mut status.succeeded), (&mut uncounted.failed, &mut status.failed)];
        for (uids, count) in lists {
            let before = uids.as_ref().map_or(0, Vec::len);
            let left: Vec<String> = uids.take().into_iter().flatten().filter(|uid| tracked.contains(&**uid)).collect();
            *count = counted(count.unwrap_or(0) + (before - left.len()) as i32);
            *uids = Some(left).filter(|left| !left.is_empty());
        }
    }

    fn write_down(&self, status: &mut JobStatus, verdict: Option<&Verdict>) {
        let counted = self.counted();
        let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
        let mut written: usize =
            [&uncounted.succeeded, &uncounted.failed].into_iter().map(|uids| uids.as_ref().map_or(0, Vec::len)).sum();
        for pod in self.pods.iter().filter(|pod| is_tracked(pod) && self.is_done_with(pod, verdict)) {
            if written >= UNCOUNTED_MAX {
                break;
            }
            let list = match self.due(pod, verdict, &counted) {
                Due::Success => &mut uncounted.succeeded,
                Due::Failure => &mut uncounted.failed,
                Due::Nothing | Due::SuccessOf(_) => continue,
            };
            list.get_or_insert_default().push(pod.uid().to_owned());
            written += 1;
        }
    }

    fn tell_verdict(&self, status: &mut JobStatus, verdict: &Verdict) -> Vec<EventNote> {
        let Verdict { failed, reason, message, told } = verdict;
        if !told {
            let interim = if *failed { "FailureTarget" } else { "SuccessCriteriaMet" };
            set_condition(status, interim, "True", reason, message, self.now);
            return Vec::new();
        }
        if self.pods.iter().any(|pod| is_tracked(pod)) || status.terminating != Some(0) {
            return Vec::new();
        }
        if *failed {
            set_condition(status, "Failed", "True", reason, message, self.now);
            return vec![EventNote::warning(self.job, event_reason(reason), message.as_str())];
        }
        set_condition(status, "Complete", "True", reason, message, self.now);
        status.completion_time = Some(self.now.to_meta());
        let surplus = self.spec.completions.is_some_and(|wanted| status.succeeded.unwrap_or(0) > wanted);
        let message = "Too many succeeded pods running after completion count reached";
        let warning = surplus.then(|| EventNote::warning(self.job, "TooManySucceededPods", message));
        warning.into_iter().chain([EventNote::normal(self.job, "Completed", "Job completed")]).collect()
    }

    /// A Job that is resumed starts anew.
    fn tell_suspension(&self, status: &mut JobStatus) -> Vec<EventNote> {
        let stands = jobs::condition(status, "Suspended").is_some();
        match (self.is_suspended(), stands) {
            (true, false) => {
                set_condition(status, "Suspended", "True", "JobSuspended", "Job suspended", self.now);
                status.start_time = None;
                vec![EventNote::normal(self.job, "Suspended", "Job suspended")]
            }
            (false, true) => {
                set_condition(status, "Suspended", "False", "JobResumed", "Job resumed", self.now);
                status.start_time = Some(self.now.to_meta());
                vec![EventNote::normal(self.job, "Resumed", "Job resumed")]
            }
            _ => Vec::new(),
        }
    }
}

/// What the status counts or has written down.
struct Counted<'a> {
    succeeded: BTreeSet<&'a str>,
    failed: BTreeSet<&'a str>,
    indexes: Indexes,
}

fn set_condition(status: &mut JobStatus, name: &str, value: &str, reason: &str, message: &str, now: Time) {
    let condition = JobCondition {
        type_: name.into(),
        status: value.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_probe_time: Some(now.to_meta()),
        last_transition_time: Some(now.to_meta()),
    };
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|known| known.type_ == name) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// Events of a failed Job have the reason of its condition.
fn event_reason(reason: &str) -> &'static str {
    const REASONS: [&str; 5] =
        ["BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy", "MaxFailedIndexesExceeded", "FailedIndexes"];
    REASONS.into_iter().find(|known| *known == reason).unwrap_or("Failed")
}
