//! What a user sees of CronJobs. Time begins with the year 2026.

use serde_json::{Value, json};

use super::*;
use crate::Cluster;
use crate::controllers::testing::*;

fn cron_job(schedule: &str, spec: Value) -> Value {
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "img:1"}]}});
    let mut cron_job = json!({"metadata": {"name": "cj"}, "spec": spec});
    cron_job["spec"]["schedule"] = schedule.into();
    cron_job["spec"]["jobTemplate"] = json!({"metadata": {"labels": {"l": "1"}}, "spec": {"template": template}});
    cron_job
}

fn start(schedule: &str, spec: Value) -> Cluster {
    let mut cluster = control_plane();
    create::<CronJob>(&mut cluster, cron_job(schedule, spec));
    settle(&mut cluster);
    cluster
}

fn status(cluster: &Cluster) -> Value {
    cluster.get::<CronJob>("default", "cj").unwrap().to_json()["status"].take()
}

fn pass(cluster: &mut Cluster, seconds: u64) {
    cluster.advance(Duration::from_secs(seconds), |_| true);
    play_kubelets(cluster);
}

fn names(cluster: &Cluster) -> Vec<String> {
    cluster.list::<Job>("default").map(|job| job.key.name.to_string()).collect()
}

fn told(cluster: &Cluster, reason: &str) -> usize {
    events(cluster, "cj").iter().filter(|event| event.starts_with(reason)).count()
}

/// Ends what runs.
fn succeed(cluster: &mut Cluster) {
    use k8s_openapi::api::core::v1::Pod;
    let running = |pod: &&Object| pod.status::<Pod>().phase.as_deref() == Some("Running");
    for pod in cluster.list::<Pod>("default").filter(running).cloned().collect::<Vec<_>>() {
        end_pod(cluster, &pod, 0);
    }
    play_kubelets(cluster);
}

const FIRST_MINUTE: i64 = 1_767_225_600 / 60;

#[test]
fn each_time_has_a_job() {
    let mut cluster = start("*/2 * * * *", json!({}));
    assert!(names(&cluster).is_empty());
    pass(&mut cluster, 121);
    let name = format!("cj-{}", FIRST_MINUTE + 2);
    assert_eq!(names(&cluster), [name.as_str()]);
    let job = cluster.get::<Job>("default", &name).unwrap().clone();
    assert_eq!(job.annotation(SCHEDULED), Some("2026-01-01T00:02:00Z"));
    assert_eq!((job.label("l"), job.controller().map(|owner| owner.name.as_str())), (Some("1"), Some("cj")));
    assert_eq!(status(&cluster)["active"][0]["uid"], job.uid());
    assert_eq!(status(&cluster)["lastScheduleTime"], "2026-01-01T00:02:00Z");
    succeed(&mut cluster);
    assert_eq!(status(&cluster)["active"], json!(null));
    assert!(status(&cluster)["lastSuccessfulTime"].is_string());
    let completed = format!("SawCompletedJob Saw completed job: {name}, condition: Complete");
    assert_eq!(events(&cluster, "cj"), [format!("SuccessfulCreate Created job {name}"), completed]);
    pass(&mut cluster, 120);
    assert_eq!(names(&cluster).len(), 2);
}

#[test]
fn a_time_zone_shifts_the_day() {
    let mut cluster = start("0 1 * * *", json!({"timeZone": "Europe/Berlin"}));
    pass(&mut cluster, 3600);
    assert!(names(&cluster).is_empty(), "one o'clock in Berlin was when time began");
    pass(&mut cluster, 23 * 3600 + 1);
    let job = cluster.list::<Job>("default").next().unwrap();
    assert_eq!(job.annotation(SCHEDULED), Some("2026-01-02T01:00:00+01:00"));
}

#[test]
fn concurrency_is_allowed_forbidden_or_replaced() {
    let running = |policy: &str| {
        let mut cluster = start("* * * * *", json!({"concurrencyPolicy": policy}));
        pass(&mut cluster, 61);
        pass(&mut cluster, 60);
        (names(&cluster).len(), status(&cluster)["active"].as_array().map_or(0, Vec::len), cluster)
    };
    let (jobs, active, _) = running("Allow");
    assert_eq!((jobs, active), (2, 2));
    let (jobs, active, mut cluster) = running("Forbid");
    assert_eq!((jobs, active, told(&cluster, "JobAlreadyActive")), (1, 1, 1));
    let earlier = json!({"status": {"lastScheduleTime": "2020-07-01T00:00:00Z"}});
    patch_status::<CronJob>(&mut cluster, "cj", earlier).unwrap();
    settle(&mut cluster);
    assert_eq!(status(&cluster)["active"].as_array().map(Vec::len), Some(1));
    let (jobs, active, cluster) = running("Replace");
    assert_eq!((jobs, active, told(&cluster, "SuccessfulDelete")), (1, 1, 1));
    assert_eq!(names(&cluster), [format!("cj-{}", FIRST_MINUTE + 2)]);
}

#[test]
fn what_was_missed_is_started_once_unless_it_is_too_late() {
    let mut cluster = start("*/10 * * * *", json!({"suspend": true, "startingDeadlineSeconds": 300}));
    pass(&mut cluster, 3600 + 120);
    patch::<CronJob>(&mut cluster, "cj", json!({"spec": {"suspend": false}})).unwrap();
    settle(&mut cluster);
    assert_eq!(names(&cluster), [format!("cj-{}", FIRST_MINUTE + 60)]);
    patch::<CronJob>(&mut cluster, "cj", json!({"spec": {"suspend": true}})).unwrap();
    pass(&mut cluster, 900);
    patch::<CronJob>(&mut cluster, "cj", json!({"spec": {"suspend": false}})).unwrap();
    settle(&mut cluster);
    assert_eq!(names(&cluster).len(), 1, "seven minutes are too late");
}

#[test]
fn a_new_schedule_counts_from_its_next_time_on() {
    let mut cluster = start("0 0 1 6 *", json!({}));
    pass(&mut cluster, 630);
    patch::<CronJob>(&mut cluster, "cj", json!({"spec": {"schedule": "* * * * *"}})).unwrap();
    settle(&mut cluster);
    assert!(names(&cluster).is_empty());
    pass(&mut cluster, 60);
    assert_eq!(names(&cluster), [format!("cj-{}", FIRST_MINUTE + 11)]);
}

#[test]
fn only_the_newest_ended_jobs_are_kept() {
    let mut cluster = start("* * * * *", json!({"successfulJobsHistoryLimit": 1}));
    for _ in 0..3 {
        pass(&mut cluster, 60);
        succeed(&mut cluster);
    }
    assert_eq!(names(&cluster).len(), 1);
    assert!(told(&cluster, "SuccessfulDelete") >= 1);
}

#[test]
fn a_foreign_job_is_noticed_and_a_lost_one_missed() {
    let mut cluster = start("* * * * *", json!({}));
    let owner = cluster.get::<CronJob>("default", "cj").unwrap().controller_reference();
    let mut foreign = cron_job("", json!({}))["spec"]["jobTemplate"].take();
    foreign["metadata"] = json!({"name": "by-hand", "ownerReferences": [owner]});
    create::<Job>(&mut cluster, foreign);
    settle(&mut cluster);
    let noticed = "UnexpectedJob Saw a job that the controller did not create or forgot: by-hand";
    assert!(events(&cluster, "cj").contains(&noticed.to_owned()));
    pass(&mut cluster, 61);
    let name = format!("cj-{}", FIRST_MINUTE + 1);
    delete::<Job>(&mut cluster, &name).unwrap();
    settle(&mut cluster);
    assert!(events(&cluster, "cj").contains(&format!("MissingJob Active job went missing: {name}")));
    assert_eq!(status(&cluster)["active"], json!(null));
}
