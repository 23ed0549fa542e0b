//! What a user sees of Jobs.

use k8s_openapi::api::core::v1::ResourceQuota;
use serde_json::Value;

use super::*;
use crate::Cluster;
use crate::controllers::testing::*;

fn job(spec: Value) -> Value {
    let containers = json!([{"name": "c", "image": "img:1"}]);
    let template = json!({"spec": {"restartPolicy": "Never", "nodeName": "node-1", "containers": containers}});
    let mut job = json!({"metadata": {"name": "j"}, "spec": spec});
    job["spec"]["template"] = template;
    job
}

fn start(spec: Value) -> Cluster {
    let mut cluster = control_plane();
    node(&mut cluster, "node-1");
    create::<Job>(&mut cluster, job(spec));
    play_kubelets(&mut cluster);
    cluster
}

fn status(cluster: &Cluster) -> Value {
    cluster.get::<Job>("default", "j").unwrap().to_json()["status"].take()
}

/// Type and reason of the conditions that stand.
fn conditions(cluster: &Cluster) -> Vec<String> {
    let status = status(cluster);
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let standing = conditions.iter().filter(|condition| condition["status"] == "True");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    standing.map(|condition| format!("{} {}", text(&condition["type"]), text(&condition["reason"]))).collect()
}

fn running(cluster: &Cluster) -> Vec<Object> {
    cluster.list::<Pod>("default").filter(|pod| phase(pod) == "Running" && !pod.is_terminating()).cloned().collect()
}

fn end(cluster: &mut Cluster, pods: &[Object], exit_code: i32) {
    pods.iter().for_each(|pod| end_pod(cluster, pod, exit_code));
    play_kubelets(cluster);
}

fn pass(cluster: &mut Cluster, seconds: u64) {
    cluster.advance(Duration::from_secs(seconds), |_| true);
    play_kubelets(cluster);
}

/// Reasons of the Events about the Job.
fn told(cluster: &Cluster) -> Vec<String> {
    let reasons = events(cluster, "j").into_iter();
    reasons.map(|event| event.split(' ').next().unwrap_or_default().to_owned()).collect()
}

/// Pods that are deleted end at once.
fn bury(cluster: &mut Cluster) {
    let leaving: Vec<Object> = cluster.list::<Pod>("default").filter(|pod| pod.is_terminating()).cloned().collect();
    leaving.iter().for_each(|pod| force_delete(cluster, &pod.key.name));
    play_kubelets(cluster);
}

#[test]
fn it_is_complete_when_enough_pods_have_succeeded() {
    let mut cluster = start(json!({"completions": 3, "parallelism": 2}));
    assert_eq!((&status(&cluster)["active"], &status(&cluster)["ready"]), (&json!(2), &json!(2)));
    let pods = running(&cluster);
    assert!(pods.iter().all(is_tracked));
    end(&mut cluster, &pods, 0);
    assert_eq!((&status(&cluster)["active"], &status(&cluster)["succeeded"]), (&json!(1), &json!(2)));
    let pods = running(&cluster);
    end(&mut cluster, &pods, 0);

    let status = status(&cluster);
    let counters = ["active", "ready", "succeeded", "failed", "terminating", "uncountedTerminatedPods"];
    let counters = counters.map(|name| status[name].to_string());
    assert_eq!(counters, ["null", "0", "3", "null", "0", "{}"]);
    assert!(status["completionTime"].is_string());
    assert_eq!(conditions(&cluster), ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]);
    assert_eq!(status["conditions"][0]["message"], "Reached expected number of succeeded pods");
    assert!(!cluster.list::<Pod>("default").any(is_tracked));
    assert_eq!(told(&cluster), ["SuccessfulCreate", "SuccessfulCreate", "SuccessfulCreate", "Completed"]);
}

#[test]
fn failed_pods_are_replaced_later_and_later_until_there_are_too_many() {
    let mut cluster = start(json!({"backoffLimit": 1}));
    let pods = running(&cluster);
    end(&mut cluster, &pods, 1);
    assert_eq!((&status(&cluster)["failed"], &status(&cluster)["active"]), (&json!(1), &json!(null)));
    pass(&mut cluster, 5);
    assert!(running(&cluster).is_empty());
    pass(&mut cluster, 6);
    let pods = running(&cluster);
    assert_eq!(pods.len(), 1);
    end(&mut cluster, &pods, 1);
    assert_eq!(conditions(&cluster), ["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]);
    assert_eq!(status(&cluster)["failed"], 2);
    let last = events(&cluster, "j").pop().unwrap();
    assert_eq!(last, "BackoffLimitExceeded Job has reached the specified backoff limit");
}

#[test]
fn a_work_queue_waits_for_its_other_workers() {
    let mut cluster = start(json!({"parallelism": 2}));
    let pods = running(&cluster);
    end(&mut cluster, &pods[..1], 0);
    assert_eq!((&status(&cluster)["succeeded"], &status(&cluster)["active"]), (&json!(1), &json!(1)));
    assert!(conditions(&cluster).is_empty());
    end(&mut cluster, &pods[1..], 0);
    assert_eq!(status(&cluster)["succeeded"], 2);
    assert_eq!(conditions(&cluster).len(), 2);
}

#[test]
fn each_index_has_one_success() {
    let mut cluster = start(json!({"completions": 4, "parallelism": 4, "completionMode": "Indexed"}));
    let mut pods = running(&cluster);
    pods.sort_by_key(index_of);
    let seen = pods[1].to_json();
    assert_eq!(seen["metadata"]["generateName"], "j-1-");
    assert_eq!(seen["metadata"]["labels"][indexes::INDEX], "1");
    assert_eq!(seen["metadata"]["annotations"][indexes::INDEX], "1");
    assert_eq!(seen["spec"]["hostname"], "j-1");
    assert_eq!(seen["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
    let path = "metadata.labels['batch.kubernetes.io/job-completion-index']";
    assert_eq!(seen["spec"]["containers"][0]["env"][0]["valueFrom"]["fieldRef"]["fieldPath"], path);
    end(&mut cluster, &pods[1..], 0);
    assert_eq!((&status(&cluster)["completedIndexes"], &status(&cluster)["succeeded"]), (&json!("1-3"), &json!(3)));
    end(&mut cluster, &pods[..1], 1);
    pass(&mut cluster, 12);
    let pods = running(&cluster);
    assert_eq!(pods.iter().map(index_of).collect::<Vec<_>>(), [Some(0)]);
    end(&mut cluster, &pods, 0);
    assert_eq!(status(&cluster)["completedIndexes"], "0-3");
    assert_eq!(conditions(&cluster).len(), 2);
}

#[test]
fn an_index_may_fail_on_its_own() {
    let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 1});
    let mut cluster = start(spec);
    let mut pods = running(&cluster);
    pods.sort_by_key(index_of);
    end(&mut cluster, &pods[..1], 1);
    assert_eq!((&status(&cluster)["failedIndexes"], &status(&cluster)["failed"]), (&json!(""), &json!(null)));
    pass(&mut cluster, 12);
    let second = running(&cluster).into_iter().find(|pod| index_of(pod) == Some(0)).unwrap();
    assert_eq!(second.annotation("batch.kubernetes.io/job-index-failure-count"), Some("1"));
    assert_eq!(status(&cluster)["failed"], 1);
    end(&mut cluster, &[second], 1);
    assert_eq!((&status(&cluster)["failedIndexes"], &status(&cluster)["failed"]), (&json!("0"), &json!(2)));
    assert!(conditions(&cluster).is_empty());
    end(&mut cluster, &pods[1..], 0);
    assert_eq!(conditions(&cluster), ["FailureTarget FailedIndexes", "Failed FailedIndexes"]);
    assert_eq!(status(&cluster)["completedIndexes"], "1");
}

#[test]
fn a_policy_decides_what_a_failure_is() {
    let rules = json!([
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]);
    let mut cluster = start(json!({"backoffLimit": 0, "podFailurePolicy": {"rules": rules}}));
    let ignored = running(&cluster).pop().unwrap();
    let disrupted = pods::disrupted(&ignored, "PreemptionByScheduler", "", cluster.now());
    let conditions_now = disrupted.to_json()["status"]["conditions"].take();
    let failed = json!({"status": {"phase": "Failed", "conditions": conditions_now}});
    patch_status::<Pod>(&mut cluster, &ignored.key.name, failed).unwrap();
    play_kubelets(&mut cluster);
    assert_eq!((&status(&cluster)["failed"], conditions(&cluster).len()), (&json!(null), 0));
    pass(&mut cluster, 12);
    let pods = running(&cluster);
    end(&mut cluster, &pods, 42);
    assert_eq!(conditions(&cluster), ["FailureTarget PodFailurePolicy", "Failed PodFailurePolicy"]);
    let name = &pods[0].key.name;
    let message =
        format!("Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 1");
    assert_eq!(status(&cluster)["conditions"][1]["message"], message);
}

#[test]
fn with_success_enough_the_other_pods_end() {
    let policy = json!({"rules": [{"succeededIndexes": "0"}]});
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed", "successPolicy": policy});
    let mut cluster = start(spec);
    let first = running(&cluster).into_iter().find(|pod| index_of(pod) == Some(0)).unwrap();
    end(&mut cluster, &[first], 0);
    assert_eq!(conditions(&cluster), ["SuccessCriteriaMet SuccessPolicy"]);
    assert_eq!(status(&cluster)["terminating"], 2);
    bury(&mut cluster);
    assert_eq!(conditions(&cluster), ["SuccessCriteriaMet SuccessPolicy", "Complete SuccessPolicy"]);
    assert_eq!((&status(&cluster)["succeeded"], &status(&cluster)["failed"]), (&json!(1), &json!(null)));
}

#[test]
fn the_deadline_ends_it() {
    let mut cluster = start(json!({"activeDeadlineSeconds": 30, "parallelism": 2, "completions": 4}));
    pass(&mut cluster, 25);
    assert!(conditions(&cluster).is_empty());
    pass(&mut cluster, 6);
    assert_eq!(conditions(&cluster), ["FailureTarget DeadlineExceeded"]);
    assert_eq!((&status(&cluster)["failed"], &status(&cluster)["terminating"]), (&json!(2), &json!(2)));
    bury(&mut cluster);
    assert_eq!(conditions(&cluster), ["FailureTarget DeadlineExceeded", "Failed DeadlineExceeded"]);
}

#[test]
fn suspended_it_has_no_pods_and_no_start() {
    let mut cluster = start(json!({"suspend": true, "parallelism": 2, "completions": 2}));
    assert_eq!(conditions(&cluster), ["Suspended JobSuspended"]);
    assert!(status(&cluster)["startTime"].is_null() && running(&cluster).is_empty());
    pass(&mut cluster, 60);
    patch::<Job>(&mut cluster, "j", json!({"spec": {"suspend": false}})).unwrap();
    play_kubelets(&mut cluster);
    assert!(conditions(&cluster).is_empty());
    assert_eq!((running(&cluster).len(), status(&cluster)["startTime"].is_string()), (2, true));
    patch::<Job>(&mut cluster, "j", json!({"spec": {"suspend": true}})).unwrap();
    play_kubelets(&mut cluster);
    bury(&mut cluster);
    let end = status(&cluster);
    assert_eq!((&end["active"], &end["failed"], &end["startTime"]), (&json!(null), &json!(null), &json!(null)));
    let told = told(&cluster);
    assert_eq!(told.iter().filter(|reason| *reason == "Suspended" || *reason == "Resumed").count(), 3 - 1);
}

#[test]
fn parallelism_follows_the_wish() {
    let mut cluster = start(json!({"parallelism": 3, "completions": 5}));
    patch::<Job>(&mut cluster, "j", json!({"spec": {"parallelism": 1}})).unwrap();
    play_kubelets(&mut cluster);
    bury(&mut cluster);
    let counters = status(&cluster);
    assert_eq!(
        (&counters["active"], &counters["failed"], &counters["terminating"]),
        (&json!(1), &json!(null), &json!(0))
    );
    assert_eq!(running(&cluster).len(), 1);
}

#[test]
fn what_a_quota_refuses_does_not_keep_the_rest_from_being_counted() {
    let mut cluster = control_plane();
    node(&mut cluster, "node-1");
    create::<ResourceQuota>(&mut cluster, json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}));
    settle(&mut cluster);
    create::<Job>(&mut cluster, job(json!({"parallelism": 3, "completions": 3})));
    cluster.advance(Duration::from_secs(5), |_| true);
    assert_eq!(status(&cluster)["active"], 2, "{:?}", events(&cluster, "j"));
    assert!(told(&cluster).contains(&"FailedCreate".to_owned()));
    for pod in cluster.list::<Pod>("default").cloned().collect::<Vec<_>>() {
        end_pod(&mut cluster, &pod, 0);
    }
    pass(&mut cluster, 30);
    assert_eq!(status(&cluster)["succeeded"], 2);
}

#[test]
fn pods_outlive_a_job_that_is_deleted_without_them() {
    let mut cluster = start(json!({}));
    let mut request = crate::api::request::Request::delete(&user(), Job::kind(), Key::new("default", "j"));
    request.options.propagation = Some(crate::api::request::Propagation::Orphan);
    cluster.request(request).unwrap();
    play_kubelets(&mut cluster);
    let pods = running(&cluster);
    assert_eq!((pods.len(), is_tracked(&pods[0]), pods[0].controller()), (1, false, None));
}

#[test]
fn a_job_of_another_controller_is_left_alone() {
    let cluster = start(json!({"managedBy": "example.com/other"}));
    assert!(running(&cluster).is_empty());
    assert_eq!(status(&cluster), json!({}));
}
