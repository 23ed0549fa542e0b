//! Jobs and cron jobs.

use cluster_core::apiserver::table::human_duration;
use cluster_core::clock::Time;
use serde_json::Value;

use super::super::failure::Outcome;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{
    Page, capital, controlled_by, labels_and_annotations, list, name, name_and_labels, number, or_none, selector,
    shown, template, text, time,
};

/// A list of completed indexes is cut behind the number that stands there.
const INDEXES_LENGTH: usize = 50;

pub fn job(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let job = &item.value;
    name(item, page);
    page.field(0, "Selector", selector(job.pointer("/spec/selector")));
    labels_and_annotations(item, page);
    controlled_by(job, page);
    page.field(0, "Parallelism", number(job, "/spec/parallelism"));
    page.field(0, "Completions", shown(job, "/spec/completions", "<unset>"));
    for (name, path) in [
        ("Completion Mode", "/spec/completionMode"),
        ("Suspend", "/spec/suspend"),
        ("Backoff Limit", "/spec/backoffLimit"),
        ("TTL Seconds After Finished", "/spec/ttlSecondsAfterFinished"),
    ] {
        if job.pointer(path).is_some() {
            page.field(0, name, shown(job, path, ""));
        }
    }
    times(page, job);
    if job.pointer("/spec/activeDeadlineSeconds").is_some() {
        page.field(0, "Active Deadline Seconds", format!("{}s", number(job, "/spec/activeDeadlineSeconds")));
    }
    let of = |field: &str| number(job, &format!("/status/{field}"));
    let ready = match job.pointer("/status/ready") {
        Some(_) => format!(" ({} Ready)", of("ready")),
        None => String::new(),
    };
    let (active, succeeded, failed) = (of("active"), of("succeeded"), of("failed"));
    page.field(0, "Pods Statuses", format!("{active} Active{ready} / {succeeded} Succeeded / {failed} Failed"));
    if text(job, "/spec/completionMode") == "Indexed" {
        page.field(0, "Completed Indexes", or_none(&indexes(text(job, "/status/completedIndexes"))));
    }
    template::in_page(page, &job["spec"]["template"]);
    Ok(())
}

fn times(page: &mut Page, job: &Value) {
    let moment = |path: &str| text(job, path).parse().map(Time::from_timestamp).ok();
    let (start, completion) = ("/status/startTime", "/status/completionTime");
    for (name, path) in [("Start Time", start), ("Completed At", completion)] {
        if moment(path).is_some() {
            page.field(0, name, time(text(job, path)));
        }
    }
    if let (Some(start), Some(completion)) = (moment(start), moment(completion)) {
        page.field(0, "Duration", human_duration(completion.since(start)));
    }
}

fn indexes(all: &str) -> String {
    match all.get(INDEXES_LENGTH..).and_then(|rest| rest.find(',')) {
        Some(end) => format!("{}...", &all[..=INDEXES_LENGTH + end]),
        None => all.to_owned(),
    }
}

pub fn cron_job(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let cron = &item.value;
    name_and_labels(item, page);
    page.field(0, "Schedule", text(cron, "/spec/schedule"));
    page.field(0, "Concurrency Policy", text(cron, "/spec/concurrencyPolicy"));
    page.field(0, "Suspend", capital(cron, "/spec/suspend"));
    page.field(0, "Time Zone", shown(cron, "/spec/timeZone", "<unset>"));
    let limit = |field: &str| shown(cron, &format!("/spec/{field}"), "<unset>");
    page.field(0, "Successful Job History Limit", limit("successfulJobsHistoryLimit"));
    page.field(0, "Failed Job History Limit", limit("failedJobsHistoryLimit"));
    let deadline = match cron.pointer("/spec/startingDeadlineSeconds") {
        Some(_) => format!("{}s", number(cron, "/spec/startingDeadlineSeconds")),
        None => "<unset>".into(),
    };
    page.field(0, "Starting Deadline Seconds", deadline);
    let spec = &cron["spec"]["jobTemplate"]["spec"];
    let selected = spec.get("selector").map_or("<unset>".into(), |labels| selector(Some(labels)));
    page.field(0, "Selector", selected);
    page.field(0, "Parallelism", shown(spec, "/parallelism", "<unset>"));
    page.field(0, "Completions", shown(spec, "/completions", "<unset>"));
    if spec.get("activeDeadlineSeconds").is_some() {
        page.field(0, "Active Deadline Seconds", format!("{}s", number(spec, "/activeDeadlineSeconds")));
    }
    template::in_page(page, &spec["template"]);
    let last = match text(cron, "/status/lastScheduleTime") {
        "" => "<unset>".to_owned(),
        last => time(last),
    };
    page.field(0, "Last Schedule Time", last);
    let active: Vec<&str> = list(cron, "/status/active").iter().map(|job| text(job, "/name")).collect();
    page.field(0, "Active Jobs", or_none(&active.join(", ")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_indexes_are_cut_behind_a_whole_one() {
        assert_eq!(indexes("0-3,5"), "0-3,5");
        let many: Vec<String> = (100..140).map(|index| index.to_string()).collect();
        assert_eq!(indexes(&many.join(",")), format!("{},...", many[..13].join(",")));
    }
}
