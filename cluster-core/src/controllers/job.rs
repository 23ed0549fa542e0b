//! job-controller: runs pods until enough of them have succeeded, or too many have failed.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/job/>

mod backoff;
mod indexes;
mod moves;
pub mod orphans;
mod policies;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::cache::View;
use super::claim::claim_and_hold;
use super::controller::{Controller, Plan, Watch, Write};
use super::{jobs, pods};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::PatchType;
use crate::api::selector::Selector;
use crate::clock::{Class, Time};
use crate::store::Change;
use backoff::finished_at;
use indexes::{Indexes, earlier_failures, index_of};
use policies::Failure;

/// A pod carries it until the status of its Job has counted it.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const CONTROLLER: &str = "kubernetes.io/job-controller";
/// Changes of pods wait so long that more can gather.
const BATCH_PERIOD: Duration = Duration::from_secs(1);

pub struct JobController;

impl Controller for JobController {
    fn name(&self) -> &str {
        "job-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::itself(Job::kind()),
            Watch::owner(Pod::kind(), Job::kind()).delayed(|_, _| (BATCH_PERIOD, Class::Work)),
            Watch::with(Pod::kind(), jobs_that_may_adopt),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(job) = view.get::<Job>(key) else { return plan };
        if is_managed_elsewhere(job) || jobs::end(job).is_some() {
            return plan;
        }
        let selector = job.spec::<Job>().selector.as_ref().map(Selector::of).unwrap_or_default();
        let pods = claim_and_hold(job, Pod::kind(), &selector, Some(TRACKING), view, |_| true, &mut plan);
        Sync::new(job, pods, view.now).run(&mut plan);
        plan
    }
}

/// A pod without a controller concerns the Jobs whose selectors match it.
fn jobs_that_may_adopt(view: &View<'_>, change: &Change) -> Vec<Key> {
    let Some(pod) = change.after.as_ref().filter(|pod| pod.controller().is_none()) else { return Vec::new() };
    let labels = pod.metadata().labels.as_ref();
    let matches = |job: &&Object| {
        let selector = job.spec::<Job>().selector.as_ref().map(Selector::of);
        labels.is_some() && selector.is_some_and(|selector| selector.matches(labels))
    };
    view.list::<Job>(&pod.key.namespace).filter(matches).map(|job| job.key.clone()).collect()
}

fn is_managed_elsewhere(job: &Object) -> bool {
    job.spec::<Job>().managed_by.as_deref().is_some_and(|name| name != CONTROLLER)
}

fn is_tracked(pod: &Object) -> bool {
    pod.metadata().finalizers.iter().flatten().any(|known| known == TRACKING)
}

/// Takes the finalizer away from a pod.
fn release<'a>(pod: &Object, reason: &'static str, plan: &'a mut Plan) -> &'a mut Write {
    let patch = json!({"metadata": {"uid": pod.uid(), "$deleteFromPrimitiveList/finalizers": [TRACKING]}});
    plan.patch(pod, PatchType::StrategicMerge, patch, reason).tolerate(&["NotFound"])
}

/// How a Job ends. Its status first tells that it will, and when all pods are gone and counted, that it has.
struct Verdict {
    failed: bool,
    reason: String,
    message: String,
    /// The status tells of it already.
    told: bool,
}

impl Verdict {
    fn new(failed: bool, reason: &str, message: impl Into<String>) -> Verdict {
        Verdict { failed, reason: reason.into(), message: message.into(), told: false }
    }

    fn completed() -> Verdict {
        Verdict::new(false, "CompletionsReached", "Reached expected number of succeeded pods")
    }
}

/// One look at a Job and its pods.
struct Sync<'a> {
    job: &'a Object,
    spec: &'a JobSpec,
    /// All pods; those of an Indexed Job by their index.
    pods: Vec<&'a Object>,
    active: Vec<&'a Object>,
    /// The number of indexes, if the Job is Indexed.
    indexes: Option<i32>,
    succeeded_indexes: Indexes,
    /// Only if each index has a backoff limit of its own.
    failed_indexes: Option<Indexes>,
    /// The last failed pod of each index that is to be tried again; it stays until it is replaced.
    to_replace: BTreeMap<i32, &'a Object>,
    now: Time,
}

impl<'a> Sync<'a> {
    fn new(job: &'a Object, mut pods: Vec<&'a Object>, now: Time) -> Sync<'a> {
        let (spec, status) = (job.spec::<Job>(), job.status::<Job>());
        let indexes = spec.completions.filter(|_| spec.completion_mode.as_deref() == Some("Indexed"));
        if indexes.is_some() {
            pods.sort_by_key(|pod| index_of(pod));
        }
        let active = pods.iter().copied().filter(|pod| pods::is_active(pod)).collect();
        let known = |text: &Option<String>| Indexes::parse(text.as_deref().unwrap_or_default(), indexes.unwrap_or(0));
        let failed_indexes = indexes.and(spec.backoff_limit_per_index).map(|_| known(&status.failed_indexes));
        let succeeded_indexes = known(&status.completed_indexes);
        let to_replace = BTreeMap::new();
        let mut sync = Sync { job, spec, pods, active, indexes, succeeded_indexes, failed_indexes, to_replace, now };
        if indexes.is_some() {
            sync.count_indexes();
        }
        sync
    }

    fn count_indexes(&mut self) {
        let tracked: Vec<_> = self.pods.iter().copied().filter(|pod| is_tracked(pod) && self.is_valid(pod)).collect();
        let succeeded = tracked.iter().filter(|pod| phase(pod) == "Succeeded").filter_map(|pod| index_of(pod));
        self.succeeded_indexes = self.succeeded_indexes.with(succeeded);
        let Some(failed_indexes) = &self.failed_indexes else { return };
        let failed = tracked.iter().filter(|pod| self.fails_index(pod)).filter_map(|pod| index_of(pod));
        let failed_indexes = failed_indexes.with(failed);
        let settled =
            self.succeeded_indexes.merge(&failed_indexes).with(self.active.iter().filter_map(|p| index_of(p)));
        self.failed_indexes = Some(failed_indexes);
        let age = |pod: &Object| (earlier_failures(pod).0 + earlier_failures(pod).1, finished_at(pod));
        let mut to_replace: BTreeMap<i32, &'a Object> = BTreeMap::new();
        for pod in tracked.into_iter().filter(|pod| self.is_failed(pod)) {
            let Some(index) = index_of(pod).filter(|index| !settled.has(*index)) else { continue };
            let known = to_replace.entry(index).or_insert(pod);
            if age(known) <= age(pod) {
                *known = pod;
            }
        }
        self.to_replace = to_replace;
    }

    /// This pod was the last that its index could have.
    fn fails_index(&self, pod: &Object) -> bool {
        self.is_failed(pod)
            && match policies::judge(self.spec.pod_failure_policy.as_ref(), pod) {
                Failure::FailsIndex => true,
                Failure::Ignored => false,
                Failure::Counts | Failure::FailsJob(_) => {
                    earlier_failures(pod).0 >= self.spec.backoff_limit_per_index.unwrap_or(i32::MAX)
                }
            }
    }

    fn run(&self, plan: &mut Plan) {
        let verdict = self.verdict();
        let moves = match &verdict {
            Some(_) => moves::Moves::stop(&self.active),
            None if self.job.is_terminating() => moves::Moves::default(),
            None => self.moves(),
        };
        let verdict = verdict.or_else(|| self.is_complete(&moves).then(Verdict::completed));
        self.release_counted(verdict.as_ref(), plan);
        let outcome = self.status(verdict.as_ref(), &moves);
        self.carry_out(&moves, &outcome.status, plan);
        if outcome.status != *self.job.status::<Job>() {
            plan.update_status(status::with_status(self.job, outcome.status), "its pods or its wishes have changed");
            outcome.events.into_iter().for_each(|event| plan.event(event));
        }
        if let Some(wait) = moves.wait {
            plan.requeue_after(wait.max(BATCH_PERIOD));
        }
        if let Some(left) = self.time_left().filter(|_| verdict.is_none()) {
            plan.requeue_after(left);
        }
    }

    /// What the status says already or the pods force upon the Job.
    fn verdict(&self) -> Option<Verdict> {
        let told = |name: &str, failed: bool| {
            let told = jobs::condition(self.job.status::<Job>(), name)?;
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            Some(Verdict { failed, reason: text(&told.reason), message: text(&told.message), told: true })
        };
        told("SuccessCriteriaMet", false)
            .or_else(|| told("FailureTarget", true))
            .or_else(|| self.failure())
            .or_else(|| self.failure_of_indexes())
            .or_else(|| {
                let policy = self.spec.success_policy.as_ref();
                let message = policies::success(policy, self.indexes?, &self.succeeded_indexes)?;
                Some(Verdict::new(false, "SuccessPolicy", message))
            })
    }

    fn failure(&self) -> Option<Verdict> {
        let policy = self.spec.pod_failure_policy.as_ref();
        let failed = self.pods.iter().filter(|pod| policy.is_some() && self.is_failed(pod));
        let message = failed.map(|pod| policies::judge(policy, pod)).find_map(|failure| match failure {
            Failure::FailsJob(message) => Some(message),
            _ => None,
        });
        if let Some(message) = message {
            return Some(Verdict::new(true, "PodFailurePolicy", message));
        }
        if self.failed() > self.backoff_limit() || self.restarts_too_often() {
            return Some(Verdict::new(true, "BackoffLimitExceeded", "Job has reached the specified backoff limit"));
        }
        let message = "Job was active longer than specified deadline";
        let past = self.time_left().is_some_and(|left| left.is_zero());
        past.then(|| Verdict::new(true, "DeadlineExceeded", message))
    }

    fn failure_of_indexes(&self) -> Option<Verdict> {
        let (failed, succeeded) = (self.failed_indexes.as_ref()?.total(), self.succeeded_indexes.total());
        if self.spec.max_failed_indexes.is_some_and(|max| failed > max) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(Verdict::new(true, "MaxFailedIndexesExceeded", message));
        }
        let over = failed > 0 && failed + succeeded >= self.indexes?;
        over.then(|| Verdict::new(true, "FailedIndexes", "Job has failed indexes"))
    }

    /// Without a number of completions, one success is enough, once the other pods have ended, too.
    fn is_complete(&self, moves: &moves::Moves<'_>) -> bool {
        self.succeeded() >= self.spec.completions.unwrap_or(1) && moves.active(&self.active) == 0
    }

    fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    fn backoff_limit(&self) -> i32 {
        self.spec.backoff_limit.unwrap_or(6)
    }

    /// Until the deadline of a Job that has one and runs.
    fn time_left(&self) -> Option<Duration> {
        let allowed = Duration::from_secs(self.spec.active_deadline_seconds.filter(|_| !self.is_suspended())? as u64);
        let start = self.job.status::<Job>().start_time.as_ref().map_or(self.now, Time::from);
        Some((start + allowed).since(self.now))
    }

    /// Where containers are restarted in their pods, restarts count like failures.
    fn restarts_too_often(&self) -> bool {
        let template = self.spec.template.spec.as_ref();
        if template.and_then(|spec| spec.restart_policy.as_deref()) != Some("OnFailure") {
            return false;
        }
        let living = self.pods.iter().filter(|pod| matches!(phase(pod), "Running" | "Pending"));
        let containers = living
            .map(|pod| pod.status::<Pod>())
            .flat_map(|status| status.container_statuses.iter().chain(&status.init_container_statuses).flatten());
        containers.map(|container| container.restart_count).sum::<i32>() >= self.backoff_limit().max(1)
    }

    /// Pods are only replaced when they have ended, not when they begin to end.
    fn replaces_only_ended(&self) -> bool {
        self.spec.pod_replacement_policy.as_deref() == Some("Failed") || self.spec.pod_failure_policy.is_some()
    }

    fn is_failed(&self, pod: &Object) -> bool {
        match phase(pod) {
            "Failed" => true,
            "Succeeded" => false,
            _ => pod.is_terminating() && !self.replaces_only_ended(),
        }
    }

    /// A pod of an Indexed Job counts only if its index is one of the Job's.
    fn is_valid(&self, pod: &Object) -> bool {
        self.indexes.is_none_or(|indexes| index_of(pod).is_some_and(|index| index < indexes))
    }
}

fn phase(pod: &Object) -> &str {
    pod.status::<Pod>().phase.as_deref().unwrap_or_default()
}
