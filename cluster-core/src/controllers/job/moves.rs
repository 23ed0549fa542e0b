//! Which pods a Job creates and deletes.

use std::cmp::Reverse;
use std::time::Duration;

use k8s_openapi::api::batch::v1::JobStatus;
use k8s_openapi::api::core::v1::Pod;

use super::indexes::{self, index_of};
use super::policies::{self, Failure};
use super::{Sync, TRACKING, backoff, is_tracked, phase, release, status};
use crate::api::object::Object;
use crate::clock::Time;
use crate::controllers::controller::{EventNote, Plan};
use crate::controllers::pods;

/// At most this many pods are created or deleted in one sync.
const BURST: usize = 500;

/// What a Job wants done with its pods.
#[derive(Default)]
pub struct Moves<'a> {
    pub create: Vec<Object>,
    pub delete: Vec<&'a Object>,
    /// The deleted pods count for nothing; otherwise they stay until they are counted.
    pub uncounted: bool,
    /// How long creations still have to wait.
    pub wait: Option<Duration>,
    pub reason: &'static str,
}

impl<'a> Moves<'a> {
    /// All active pods end with their Job.
    pub fn stop(active: &[&'a Object]) -> Moves<'a> {
        Moves { delete: active.to_vec(), reason: "the Job is over", ..Moves::default() }
    }

    fn delete(pods: Vec<&'a Object>, reason: &'static str) -> Moves<'a> {
        Moves { delete: pods, uncounted: true, reason, ..Moves::default() }
    }

    /// How many pods are active when all is done.
    pub fn active(&self, active: &[&Object]) -> i32 {
        (active.len() + self.create.len() - self.delete.len()) as i32
    }
}

impl<'a> Sync<'a> {
    pub(super) fn moves(&self) -> Moves<'a> {
        if self.is_suspended() {
            return Moves::delete(self.active.clone(), "the Job is suspended");
        }
        let active = self.active.len() as i32;
        let parallelism = self.spec.parallelism.unwrap_or(1);
        let wanted = match self.spec.completions {
            None if self.succeeded() > 0 => active,
            None => parallelism,
            Some(completions) => (completions - self.succeeded()).clamp(0, parallelism.max(0)),
        };
        let surplus = self.surplus((active - wanted).max(0) as usize);
        if !surplus.is_empty() {
            return Moves::delete(surplus, "there are too many pods");
        }
        let leaving = if self.replaces_only_ended() { self.terminating() } else { 0 };
        let missing = (wanted - leaving - active).max(0) as usize;
        if missing == 0 { Moves::default() } else { self.replacements(missing.min(BURST)) }
    }

    fn replacements(&self, missing: usize) -> Moves<'a> {
        let template = &self.spec.template;
        let mut pod = pods::from_template(template, self.job, self.job.controller_reference());
        let finalizers = pod.metadata_mut().finalizers.get_or_insert_default();
        if finalizers.iter().all(|known| known != TRACKING) {
            finalizers.push(TRACKING.into());
        }
        let reason = "there are too few pods";
        if self.failed_indexes.is_none() {
            let wait = self.wait();
            if !wait.is_zero() {
                return Moves { wait: Some(wait), ..Moves::default() };
            }
        }
        let Some(completions) = self.indexes else {
            return Moves { create: vec![pod; missing], reason, ..Moves::default() };
        };
        let pending: Vec<i32> = self.taken().missing(completions).take(missing).collect();
        let wait = |index: i32| {
            self.to_replace.get(&index).map_or(Duration::ZERO, |pod| backoff::wait_of_index(pod, self.now))
        };
        let due: Vec<i32> = pending.iter().copied().filter(|index| wait(*index).is_zero()).collect();
        let create = due.into_iter().map(|index| self.pod_of_index(&pod, index)).collect();
        // Indexes that have to wait longer are looked at when pods change, at the latest when the first of them is due.
        let wait = pending.into_iter().map(wait).filter(|wait| !wait.is_zero()).min();
        Moves { create, wait, reason, ..Moves::default() }
    }

    /// Indexes that need no new pod.
    fn taken(&self) -> indexes::Indexes {
        let leaving = self.pods.iter().filter(|pod| self.replaces_only_ended() && pods::is_leaving(pod));
        let present = self.active.iter().chain(leaving).filter_map(|pod| index_of(pod));
        let taken = self.succeeded_indexes.with(present);
        self.failed_indexes.iter().fold(taken, |taken, failed| taken.merge(failed))
    }

    fn pod_of_index(&self, pod: &Object, index: i32) -> Object {
        let mut pod = pod.clone();
        indexes::assign(&mut pod, &self.job.key.name, index);
        if self.failed_indexes.is_some() {
            let failures = self.to_replace.get(&index).map_or((0, 0), |replaced| {
                let (counted, ignored) = indexes::earlier_failures(replaced);
                match policies::judge(self.spec.pod_failure_policy.as_ref(), replaced) {
                    Failure::Ignored => (counted, ignored + 1),
                    _ => (counted + 1, ignored),
                }
            });
            indexes::tell_failures(&mut pod, failures);
        }
        pod
    }

    fn wait(&self) -> Duration {
        let counts = |pod: &&&Object| is_tracked(pod) || !pod.is_terminating();
        let succeeded = self.pods.iter().filter(|pod| phase(pod) == "Succeeded");
        let failed = self.pods.iter().filter(counts).filter(|pod| self.is_failed(pod));
        backoff::wait(succeeded.copied(), failed.copied(), self.now)
    }

    /// The pods to delete: those whose index is not the Job's or is taken by another pod, then those that are least far
    /// along.
    fn surplus(&self, at_least: usize) -> Vec<&'a Object> {
        let mut pods = self.active.clone();
        pods.sort_by_key(|pod| progress(pod));
        let mut surplus = Vec::new();
        if self.indexes.is_some() {
            let is_last = |position: usize| {
                let index = index_of(pods[position]);
                self.is_valid(pods[position]) && pods[position + 1..].iter().all(|pod| index_of(pod) != index)
            };
            let last: Vec<bool> = (0..pods.len()).map(is_last).collect();
            surplus = pods.iter().zip(&last).filter(|(_, last)| !**last).map(|(pod, _)| *pod).collect();
            pods = pods.iter().zip(&last).filter(|(_, last)| **last).map(|(pod, _)| *pod).collect();
        }
        let more = at_least.saturating_sub(surplus.len());
        surplus.extend(pods.into_iter().take(more));
        surplus.truncate(BURST);
        surplus
    }

    /// Writes the moves down. If a creation is refused, the status tells of what was done before.
    pub(super) fn carry_out(&self, moves: &Moves<'_>, status: &JobStatus, plan: &mut Plan) {
        for pod in &moves.delete {
            if moves.uncounted && is_tracked(pod) {
                release(pod, moves.reason, plan);
            }
            plan.delete(pod, moves.reason)
                .event(EventNote::normal(self.job, "SuccessfulDelete", "Deleted pod: {}"))
                .on_failure(EventNote::warning(self.job, "FailedDelete", "Error deleting: "));
        }
        let before = self.active.len();
        for (created, pod) in moves.create.iter().enumerate() {
            let so_far = JobStatus { active: status::counted((before + created) as i32), ..status.clone() };
            plan.create(pod.clone(), moves.reason)
                .event(EventNote::normal(self.job, "SuccessfulCreate", "Created pod: {}"))
                .on_failure(EventNote::warning(self.job, "FailedCreate", "Error creating: "))
                .tolerate(&["NamespaceTerminating"])
                .confess(status::with_status(self.job, so_far), |_, _, _| {});
        }
    }
}

/// client-go's `ActivePods`: the least goes first.
fn progress(pod: &Object) -> impl Ord + use<> {
    let phase = match phase(pod) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let bound = pod.spec::<Pod>().node_name.as_deref().is_some_and(|node| !node.is_empty());
    let created = pod.metadata().creation_timestamp.as_ref().map_or(Time::ZERO, Time::from);
    let ready_since = pods::ready_since(pod);
    (bound, phase, ready_since.is_some(), Reverse(ready_since), Reverse(pods::restarts(pod)), Reverse(created))
}
