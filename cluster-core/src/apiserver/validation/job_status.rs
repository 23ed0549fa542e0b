//! The status of a Job, which controllers of others may write, too: its conditions follow one another, its counters only
//! grow, and a Job that is finished stays so. What an old status did wrong already may stay as it is.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/job/#terminal-job-conditions>

use k8s_openapi::api::batch::v1::{JobSpec, JobStatus, UncountedTerminatedPods};
use serde_json::json;

use super::field::{Causes, Path};
use super::job::{count_indexes, without_value};

fn stands(status: &JobStatus, condition: &str) -> bool {
    status.conditions.iter().flatten().any(|known| known.type_ == condition && known.status == "True")
}

fn is_finished(status: &JobStatus) -> bool {
    stands(status, "Complete") || stands(status, "Failed")
}

pub fn update(causes: &mut Causes, spec: &JobSpec, old: &JobStatus, new: &JobStatus) {
    numbers(causes, new);
    conditions(causes, old, new);
    times_and_pods(causes, old, new);
    indexes(causes, spec, old, new);
    late_numbers(causes, old, new);
    success(causes, spec, new);
    history(causes, spec, old, new);
}

fn path(field: &str) -> Path {
    Path::new("status").child(field)
}

fn wrong_conditions(causes: &mut Causes, detail: impl AsRef<str>) {
    without_value(causes, &path("conditions"), detail.as_ref());
}

fn numbers(causes: &mut Causes, status: &JobStatus) {
    causes.non_negative(&path("active"), status.active);
    causes.non_negative(&path("succeeded"), status.succeeded);
    causes.non_negative(&path("failed"), status.failed);
    causes.non_negative(&path("ready"), status.ready);
    causes.non_negative(&path("terminating"), status.terminating);
    let Some(UncountedTerminatedPods { succeeded, failed }) = &status.uncounted_terminated_pods else { return };
    let mut seen = Vec::new();
    for (field, uids) in [("succeeded", succeeded), ("failed", failed)] {
        let path = path("uncountedTerminatedPods").child(field);
        for (index, uid) in uids.iter().flatten().enumerate() {
            if uid.is_empty() {
                causes.invalid(&path.index(index), "", "must not be empty");
            } else if seen.contains(&uid) {
                causes.duplicate(&path.index(index), uid.as_str());
            }
            seen.push(uid);
        }
    }
}

fn conditions(causes: &mut Causes, old: &JobStatus, new: &JobStatus) {
    let changed = |condition: &str| stands(old, condition) != stands(new, condition);
    let both = |a: &str, b: &str| (changed(a) || changed(b)) && stands(new, a) && stands(new, b);
    if both("Complete", "Failed") {
        wrong_conditions(causes, "cannot set Complete=True and Failed=true conditions");
    }
    if both("Complete", "FailureTarget") {
        wrong_conditions(causes, "cannot set Complete=True and FailureTarget=true conditions");
    }
}

fn times_and_pods(causes: &mut Causes, old: &JobStatus, new: &JobStatus) {
    let changed = |condition: &str| stands(old, condition) != stands(new, condition);
    let finished = is_finished(new);
    let finish_changed = finished != is_finished(old);
    let start_changed = old.start_time != new.start_time;
    let completion_changed = old.completion_time != new.completion_time;
    if changed("Complete") || completion_changed {
        match &new.completion_time {
            Some(time) if !stands(new, "Complete") => {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                causes.invalid(&path("completionTime"), json!(time), detail);
            }
            None if stands(new, "Complete") => {
                causes.required(&path("completionTime"), "completionTime is required for Complete jobs");
            }
            _ => {}
        }
    }
    if start_changed || completion_changed {
        let ends = new.start_time.as_ref().zip(new.completion_time.as_ref());
        if let Some((_, completion)) = ends.filter(|(start, completion)| completion < start) {
            let detail = "completionTime cannot be set before startTime";
            causes.invalid(&path("completionTime"), json!(completion), detail);
        }
    }
    let without = |target: &str, end: &str| stands(new, end) && !stands(new, target);
    if (changed("Failed") || changed("FailureTarget")) && without("FailureTarget", "Failed") {
        wrong_conditions(causes, "cannot set Failed=True condition without the FailureTarget=true condition");
    }
    if (changed("Complete") || changed("SuccessCriteriaMet")) && without("SuccessCriteriaMet", "Complete") {
        wrong_conditions(causes, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
    }
    let active = new.active.unwrap_or(0);
    if (finish_changed || old.active != new.active) && finished && active > 0 {
        causes.invalid(&path("active"), active, "active>0 is invalid for finished job");
    }
    if (finish_changed || start_changed) && finished && new.start_time.is_none() {
        causes.required(&path("startTime"), "startTime is required for finished job");
    }
    let uncounted = new.uncounted_terminated_pods.as_ref();
    let any = |pods: &UncountedTerminatedPods| pods.succeeded.iter().chain(&pods.failed).any(|uids| !uids.is_empty());
    if (finish_changed || old.uncounted_terminated_pods != new.uncounted_terminated_pods)
        && finished
        && uncounted.is_some_and(any)
    {
        let detail = "uncountedTerminatedPods needs to be empty for finished job";
        causes.invalid(&path("uncountedTerminatedPods"), json!(uncounted), detail);
    }
}

fn indexes(causes: &mut Causes, spec: &JobSpec, old: &JobStatus, new: &JobStatus) {
    let (completed, failed) = (new.completed_indexes.as_deref().unwrap_or_default(), new.failed_indexes.as_deref());
    let completed_changed = old.completed_indexes.as_deref().unwrap_or_default() != completed;
    let failed_changed = old.failed_indexes != new.failed_indexes;
    if let Some(completions) = spec.completions {
        let lists = [
            ("completedIndexes", Some(completed).filter(|_| completed_changed)),
            ("failedIndexes", failed.filter(|_| failed_changed && spec.backoff_limit_per_index.is_some())),
        ];
        for (field, text) in lists {
            if let Some(text) = text.filter(|text| !text.is_empty())
                && let Err(problem) = count_indexes(text, completions)
            {
                causes.invalid(&path(field), text, format!("error parsing {field}: {problem}"));
            }
        }
    }
    if completed_changed && !completed.is_empty() && spec.completion_mode.as_deref() != Some("Indexed") {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        causes.invalid(&path("completedIndexes"), completed, detail);
    }
    let Some(failed) = failed else { return };
    if failed_changed && spec.backoff_limit_per_index.is_none() {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        causes.invalid(&path("failedIndexes"), failed, detail);
    }
    if (completed_changed || failed_changed)
        && spec.completions.is_some()
        && let Some(index) = first_common(completed, failed)
    {
        let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
        causes.invalid(&path("failedIndexes"), failed, detail);
    }
}

/// The first index that is in both; intervals that cannot be read are left out.
fn first_common(a: &str, b: &str) -> Option<i32> {
    let intervals = |text: &str| -> Vec<(i32, i32)> {
        let interval = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        text.split(',').filter_map(interval).collect()
    };
    let (a, b) = (intervals(a), intervals(b));
    let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (x.0.max(y.0), x.1.min(y.1))));
    pairs.filter(|(first, last)| first <= last).map(|(first, _)| first).min()
}

fn late_numbers(causes: &mut Causes, old: &JobStatus, new: &JobStatus) {
    let finished = is_finished(new);
    let terminating = new.terminating.unwrap_or(0);
    if (finished != is_finished(old) || old.terminating != new.terminating) && finished && terminating > 0 {
        causes.invalid(&path("terminating"), terminating, "terminating>0 is invalid for finished job");
    }
    let ready = new.ready.unwrap_or(0);
    if (old.ready != new.ready || old.active != new.active) && ready > new.active.unwrap_or(0) {
        causes.invalid(&path("ready"), ready, "cannot set more ready pods than active");
    }
}

fn success(causes: &mut Causes, spec: &JobSpec, new: &JobStatus) {
    let met = stands(new, "SuccessCriteriaMet");
    if met && stands(new, "Failed") {
        wrong_conditions(causes, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
    }
    if met && stands(new, "FailureTarget") {
        wrong_conditions(causes, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
    }
    if spec.success_policy.is_some() && !met && stands(new, "Complete") {
        let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        wrong_conditions(causes, detail);
    }
}

fn history(causes: &mut Causes, spec: &JobSpec, old: &JobStatus, new: &JobStatus) {
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if stands(old, condition) && !stands(new, condition) {
            wrong_conditions(causes, format!("cannot disable the terminal {condition}=True condition"));
        }
    }
    // Elastic Indexed Jobs may be scaled down below what they have reached.
    let elastic = spec.completion_mode.as_deref() == Some("Indexed") && spec.completions == spec.parallelism;
    let counters = [("failed", old.failed, new.failed, true), ("succeeded", old.succeeded, new.succeeded, !elastic)];
    for (field, old, new, grows) in counters {
        if grows && new.unwrap_or(0) < old.unwrap_or(0) {
            causes.invalid(&path(field), new.unwrap_or(0), format!("cannot decrease the {field} counter"));
        }
    }
    if let (Some(before), Some(after)) = (&old.completion_time, &new.completion_time)
        && before != after
    {
        causes.invalid(&path("completionTime"), json!(after), "completionTime cannot be mutated");
    }
    if old.start_time.is_some() && old.start_time != new.start_time && spec.suspend != Some(true) {
        causes.required(&path("startTime"), "startTime cannot be removed for unsuspended job");
    }
    let (was_met, is_met) = (stands(old, "SuccessCriteriaMet"), stands(new, "SuccessCriteriaMet"));
    if was_met && !is_met {
        wrong_conditions(causes, "cannot disable the SuccessCriteriaMet=True condition");
    }
    if stands(old, "Complete") && !was_met && is_met {
        let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        wrong_conditions(causes, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(old: serde_json::Value, new: serde_json::Value) -> Vec<String> {
        let status = |value| serde_json::from_value::<JobStatus>(value).unwrap();
        let mut causes = Causes::new();
        update(&mut causes, &JobSpec::default(), &status(old), &status(new));
        let causes: Vec<crate::api::status::Cause> = causes.into();
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn an_end_is_announced_and_stays() {
        let time = "2026-01-01T00:00:00Z";
        let standing = |names: &[&str]| -> serde_json::Value {
            names.iter().map(|name| json!({"type": name, "status": "True"})).collect()
        };
        let complete = json!({
            "startTime": time, "completionTime": time,
            "conditions": standing(&["SuccessCriteriaMet", "Complete"]),
        });
        assert_eq!(faults(json!({"startTime": time}), complete.clone()), [""; 0]);
        assert_eq!(
            faults(json!({}), json!({"startTime": time, "active": 1, "conditions": standing(&["Failed"])})),
            [
                "status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition",
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
            ]
        );
        assert_eq!(
            faults(complete, json!({"startTime": time})),
            [
                "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
                "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
            ]
        );
        assert_eq!(
            faults(json!({"failed": 2, "startTime": time}), json!({"failed": 1, "ready": 1})),
            [
                "status.ready: Invalid value: 1: cannot set more ready pods than active",
                "status.failed: Invalid value: 1: cannot decrease the failed counter",
                "status.startTime: Required value: startTime cannot be removed for unsuspended job",
            ]
        );
    }
}
