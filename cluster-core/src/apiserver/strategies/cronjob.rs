//! CronJobs: a schedule, and a Job for each time that it names.

use k8s_openapi::api::batch::v1::CronJob;
use serde_json::json;

use super::job;
use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{self, cron};
use crate::apiserver::warnings;

/// A Job's name is the CronJob's and a number of ten digits.
const NAME_LENGTH_MAX: usize = 52;

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<CronJob>();
        spec.concurrency_policy.get_or_insert_with(|| "Allow".into());
        spec.suspend.get_or_insert(false);
        spec.successful_jobs_history_limit.get_or_insert(3);
        spec.failed_jobs_history_limit.get_or_insert(1);
        spec.job_template.metadata.get_or_insert_default();
        job::job_template(spec.job_template.spec.get_or_insert_default());
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        validate(&mut causes, object);
        causes.into()
    }

    fn validate_create(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        validate(&mut causes, object);
        if object.key.name.len() > NAME_LENGTH_MAX {
            let detail = format!("must be no more than {NAME_LENGTH_MAX} characters");
            causes.invalid(&Path::new("metadata.name"), &*object.key.name, detail);
        }
        causes.into()
    }

    fn warnings(&self, old: Option<&Object>, new: &Object) -> Vec<String> {
        let spec = new.spec::<CronJob>().job_template.spec.as_ref();
        warnings::workload(old, new, || {
            spec.map(|spec| warnings::job("spec.jobTemplate.spec", spec)).unwrap_or_default()
        })
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn validate(causes: &mut Causes, object: &Object) {
    let (path, spec) = (Path::new("spec"), object.spec::<CronJob>());
    let schedule_path = path.child("schedule");
    if spec.schedule.is_empty() {
        causes.required(&schedule_path, "");
    } else {
        if let Err(problem) = cron::check(&spec.schedule) {
            causes.invalid(&schedule_path, spec.schedule.as_str(), problem);
        }
        if spec.schedule.contains("TZ") {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            causes.invalid(&schedule_path, spec.schedule.as_str(), detail);
        }
    }
    causes.non_negative(&path.child("startingDeadlineSeconds"), spec.starting_deadline_seconds);
    if let Some(zone) = &spec.time_zone {
        time_zone(causes, &path.child("timeZone"), zone);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    causes.required_one_of(&path.child("concurrencyPolicy"), spec.concurrency_policy.as_deref(), &policies);
    let (template_path, template) =
        (path.child("jobTemplate.spec"), spec.job_template.spec.clone().unwrap_or_default());
    validation::job::spec(causes, &template_path, &template);
    if let Some(selector) = &template.selector {
        causes.invalid(&template_path.child("selector"), json!(selector), "`selector` will be auto-generated");
    }
    if template.manual_selector == Some(true) {
        causes.not_supported(&template_path.child("manualSelector"), true, &["nil", "false"]);
    }
    causes.non_negative(&path.child("successfulJobsHistoryLimit"), spec.successful_jobs_history_limit);
    causes.non_negative(&path.child("failedJobsHistoryLimit"), spec.failed_jobs_history_limit);
}

fn time_zone(causes: &mut Causes, path: &Path, zone: &str) {
    if zone.is_empty() {
        return causes.invalid(path, zone, "timeZone must be nil or non-empty string");
    }
    if zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        causes.invalid(path, zone, detail);
    }
    if let Err(problem) = cron::time_zone(zone) {
        causes.invalid(path, zone, problem);
    }
}
