//! cronjob-controller: starts a Job at each time of a schedule, and keeps some of those that have ended.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/>

mod schedule;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use super::jobs;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::apiserver::validation::cron::{self, Schedule};
use crate::clock::Class;
use crate::store::Change;
use schedule::{Missed, Since};

/// The time of the schedule for which a Job was made.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

pub struct CronJobController;

impl Controller for CronJobController {
    fn name(&self) -> &str {
        "cronjob-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::itself(CronJob::kind()).delayed(until_new_schedule), Watch::owner(Job::kind(), CronJob::kind())]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let Some(cron_job) = view.get::<CronJob>(key) else { return Plan::done() };
        let jobs: Vec<&Object> = view.controlled::<Job>(cron_job.uid()).collect();
        let mut sync = Sync::new(cron_job, view);
        sync.clean_up(&jobs);
        sync.follow(&jobs);
        sync.forget_missing(&jobs);
        if !cron_job.is_terminating() {
            sync.schedule();
        }
        sync.finish()
    }
}

/// A new schedule counts from its next time on.
fn until_new_schedule(view: &View<'_>, change: &Change) -> (Duration, Class) {
    let times = |object: &Object| {
        let spec = object.spec::<CronJob>();
        (spec.schedule.clone(), spec.time_zone.clone())
    };
    let new = change.after.as_ref().filter(|new| change.before.as_ref().is_some_and(|old| times(old) != times(new)));
    let wait = new.and_then(|new| {
        let schedule = schedule_of(new.spec::<CronJob>()).ok()?;
        schedule::until_next(since(new, new.status::<CronJob>()), &schedule, view.now.timestamp())
    });
    (wait.unwrap_or(Duration::ZERO), Class::Background)
}

fn schedule_of(spec: &CronJobSpec) -> Result<Schedule, String> {
    Schedule::parse(&spec.schedule, cron::time_zone(spec.time_zone.as_deref().unwrap_or("UTC"))?)
}

fn since(cron_job: &Object, status: &CronJobStatus) -> Since {
    let created = cron_job.metadata().creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    Since { created, last_scheduled: status.last_schedule_time.as_ref().map(|time| time.0) }
}

/// The name says which time it was for, so that no time can have two Jobs.
fn job_name(cron_job: &Object, scheduled: Timestamp) -> String {
    format!("{}-{}", cron_job.key.name, scheduled.as_second() / 60)
}

/// One look at a CronJob.
struct Sync<'a> {
    cron_job: &'a Object,
    spec: &'a CronJobSpec,
    /// As it will be written.
    status: CronJobStatus,
    view: &'a View<'a>,
    now: Timestamp,
    plan: Plan,
}

impl<'a> Sync<'a> {
    fn new(cron_job: &'a Object, view: &'a View<'a>) -> Sync<'a> {
        let (spec, status) = (cron_job.spec::<CronJob>(), cron_job.status::<CronJob>().clone());
        Sync { cron_job, spec, status, view, now: view.now.timestamp(), plan: Plan::done() }
    }

    /// Deletes the oldest of the Jobs that have ended, as many as are more than the limits.
    fn clean_up(&mut self, jobs: &[&Object]) {
        let limits =
            [("Complete", self.spec.successful_jobs_history_limit), ("Failed", self.spec.failed_jobs_history_limit)];
        for (end, limit) in limits {
            let Some(limit) = limit else { continue };
            let ended = jobs.iter().copied();
            let mut ended: Vec<&Object> =
                ended.filter(|job| jobs::end(job).is_some_and(|condition| condition.type_ == end)).collect();
            let surplus = ended.len().saturating_sub(limit.max(0) as usize);
            let start = |job: &Object| job.status::<Job>().start_time.as_ref().map(|start| start.0);
            ended.sort_by_key(|job| (start(job).is_none(), start(job), job.key.name.clone()));
            for job in ended.into_iter().take(surplus).filter(|job| !job.is_terminating()) {
                self.delete(job, "more Jobs have ended than are kept");
            }
        }
    }

    fn delete(&mut self, job: &Object, reason: &'static str) {
        self.plan
            .delete(job, reason)
            .event(EventNote::normal(self.cron_job, "SuccessfulDelete", format!("Deleted job {}", job.key.name)))
            .on_failure(EventNote::warning(self.cron_job, "FailedDelete", "Deleted job: "));
        self.forget(job.uid());
    }

    /// Takes note of Jobs that have begun or ended.
    fn follow(&mut self, jobs: &[&Object]) {
        for job in jobs {
            self.note_start(job);
            let is_known = self.knows(job);
            let name = &job.key.name;
            match jobs::end(job) {
                None if !is_known => {
                    let message = format!("Saw a job that the controller did not create or forgot: {name}");
                    self.warn("UnexpectedJob", message);
                }
                None => {}
                Some(end) => {
                    if is_known {
                        self.forget(job.uid());
                        let message = format!("Saw completed job: {name}, condition: {}", end.type_);
                        self.plan.event(EventNote::normal(self.cron_job, "SawCompletedJob", message));
                    }
                    let completed = job.status::<Job>().completion_time.as_ref().filter(|_| end.type_ == "Complete");
                    let newest = [completed, self.status.last_successful_time.as_ref()].into_iter().flatten().max();
                    self.status.last_successful_time = newest.cloned();
                }
            }
        }
    }

    /// A Job for a time after the last one is the controller's own, and not in the status yet.
    fn note_start(&mut self, job: &Object) {
        let Some(scheduled) = job.annotation(SCHEDULED).and_then(|time| time.parse::<Timestamp>().ok()) else { return };
        let is_new = !self.knows(job) && self.status.last_schedule_time.as_ref().is_none_or(|last| scheduled > last.0);
        if is_new && *job.key.name == *job_name(self.cron_job, scheduled) {
            self.status.active.get_or_insert_default().push(ObjectReference {
                api_version: Some(job.kind.api_version()),
                kind: Some(job.kind.kind.to_string()),
                name: Some(job.key.name.to_string()),
                namespace: Some(job.key.namespace.to_string()),
                uid: Some(job.uid().to_owned()),
                resource_version: Some(job.revision.to_string()),
                field_path: None,
            });
            self.status.last_schedule_time = Some(meta::Time(scheduled));
        }
    }

    fn forget_missing(&mut self, jobs: &[&Object]) {
        let known: Vec<ObjectReference> = self.active().cloned().collect();
        for gone in known.into_iter().filter(|known| jobs.iter().all(|job| known.uid.as_deref() != Some(job.uid()))) {
            let name = gone.name.unwrap_or_default();
            let namespace = gone.namespace.as_deref().unwrap_or_default();
            if self.view.get::<Job>(&Key::new(namespace, name.as_str())).is_none() {
                let message = format!("Active job went missing: {name}");
                self.plan.event(EventNote::normal(self.cron_job, "MissingJob", message));
                self.forget(&gone.uid.unwrap_or_default());
            }
        }
    }

    /// Starts the Job of the last time that has passed, if there is one, and waits for the next time.
    fn schedule(&mut self) {
        if let Some(zone) = &self.spec.time_zone
            && let Err(problem) = cron::time_zone(zone)
        {
            return self.warn("UnknownTimeZone", format!("invalid timeZone: {zone:?}: {problem}"));
        }
        if self.spec.suspend == Some(true) {
            return;
        }
        let text = &self.spec.schedule;
        let schedule = match schedule_of(self.spec) {
            Ok(schedule) => schedule,
            Err(problem) => {
                return self.warn("UnparseableSchedule", format!("unparseable schedule: {text:?} : {problem}"));
            }
        };
        let deadline = self.spec.starting_deadline_seconds;
        let scheduled = match schedule::missed(since(self.cron_job, &self.status), &schedule, self.now, deadline) {
            Ok(Missed { last: None, .. }) => None,
            Ok(Missed { last: Some(last), many, .. }) => {
                if many {
                    let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check \
                                   clock skew";
                    self.warn("TooManyMissedTimes", message);
                }
                Some(last)
            }
            Err(problem) => return self.warn("InvalidSchedule", format!("invalid schedule: {text} : {problem}")),
        };
        if scheduled.is_none_or(|scheduled| self.start(scheduled)) {
            self.wait_for_next(&schedule);
        }
    }

    /// Starts the Job of this time, if it may; false if a Job of another's has its name.
    fn start(&mut self, scheduled: Timestamp) -> bool {
        let deadline = self.spec.starting_deadline_seconds.map(|seconds| scheduled.as_second() + seconds);
        if deadline.is_some_and(|deadline| Timestamp::from_second(deadline).is_ok_and(|deadline| deadline < self.now)) {
            let time = scheduled.strftime("%a, %d %b %Y %H:%M:%S +0000");
            self.warn("MissSchedule", format!("Missed scheduled time to start a job: {time}"));
            return true;
        }
        let name = job_name(self.cron_job, scheduled);
        let is_active = self.active().any(|known| known.name.as_ref() == Some(&name));
        if is_active || self.status.last_schedule_time.as_ref().is_some_and(|last| last.0 == scheduled) {
            return true;
        }
        let policy = self.spec.concurrency_policy.as_deref();
        if policy == Some("Forbid") && self.active().next().is_some() {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            self.plan.event(EventNote::normal(self.cron_job, "JobAlreadyActive", message));
            return true;
        }
        if policy == Some("Replace") {
            let running: Vec<&Object> =
                self.active().filter_map(|known| self.view.by_uid(known.uid.as_deref()?)).collect();
            running.into_iter().for_each(|job| self.delete(job, "the next Job takes its place"));
        }
        let key = Key::new(self.cron_job.key.namespace.clone(), name.as_str());
        if self.view.get::<Job>(&key).is_some() {
            return false;
        }
        self.plan
            .create(self.job(name, scheduled), "its time has come")
            .event(EventNote::normal(self.cron_job, "SuccessfulCreate", "Created job {}"))
            .on_failure(EventNote::warning(self.cron_job, "FailedCreate", "Error creating job: "))
            .tolerate(&["NamespaceTerminating"]);
        true
    }

    fn job(&self, name: String, scheduled: Timestamp) -> Object {
        let template = &self.spec.job_template;
        let mut job =
            Object::new::<Job>(&self.cron_job.key.namespace, &name, template.spec.clone().unwrap_or_default());
        let from = template.metadata.clone().unwrap_or_default();
        let metadata = job.metadata_mut();
        metadata.labels = from.labels;
        metadata.annotations = from.annotations;
        metadata.owner_references = Some(vec![self.cron_job.controller_reference()]);
        let zone = self.spec.time_zone.as_deref().and_then(|zone| cron::time_zone(zone).ok());
        let local = zone.map(|zone| scheduled.to_zoned(zone)).filter(|local| local.offset().seconds() != 0);
        let time =
            local.map_or_else(|| scheduled.to_string(), |local| local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string());
        metadata.annotations.get_or_insert_default().insert(SCHEDULED.into(), time);
        job
    }

    fn wait_for_next(&mut self, schedule: &Schedule) {
        if let Some(wait) = schedule::until_next(since(self.cron_job, &self.status), schedule, self.now) {
            self.plan.requeue_after(wait);
        }
    }

    fn finish(mut self) -> Plan {
        if self.status.active.as_ref().is_some_and(Vec::is_empty) {
            self.status.active = None;
        }
        if self.status != *self.cron_job.status::<CronJob>() {
            let mut cron_job = self.cron_job.clone();
            *cron_job.status_mut::<CronJob>() = self.status;
            self.plan.update_status(cron_job, "its Jobs have changed");
        }
        self.plan
    }

    fn active(&self) -> impl Iterator<Item = &ObjectReference> {
        self.status.active.iter().flatten()
    }

    fn knows(&self, job: &Object) -> bool {
        self.active().any(|known| known.uid.as_deref() == Some(job.uid()))
    }

    fn forget(&mut self, uid: &str) {
        self.status.active.iter_mut().for_each(|active| active.retain(|known| known.uid.as_deref() != Some(uid)));
    }

    fn warn(&mut self, reason: &'static str, message: impl Into<String>) {
        self.plan.event(EventNote::warning(self.cron_job, reason, message));
    }
}
