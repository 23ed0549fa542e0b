//! Hooks, ephemeral containers, and what containers leave behind.

use super::*;
use crate::api::request::{Body, Verb};

/// Changes the pod through one of its subresources.
pub fn change(cluster: &mut Cluster, subresource: &'static str, body: Value) {
    let verb = Verb::Patch(PatchType::StrategicMerge);
    let request = Request::new(&learner(), verb, KindRef::of::<Pod>(), Key::new("default", "web"));
    let request = Request { subresource, body: Body::Json(body), ..request };
    cluster.request(request).unwrap();
}

#[test]
fn a_container_runs_when_its_post_start_hook_is_over() {
    let mut cluster = cluster();
    let hook = json!({"postStart": {"exec": {"command": ["sh", "-c", "sleep 5; echo done > /tmp/hook"]}}});
    run(&mut cluster, json!({}), json!({"image": "nginx", "lifecycle": hook}));
    advance(&mut cluster, 4);
    assert_eq!((phase(&cluster).as_str(), condition(&cluster, "Ready").as_str()), ("Pending", "False"));
    assert_eq!(status(&cluster)["state"]["waiting"]["reason"], "ContainerCreating");
    settle(&mut cluster);
    assert_eq!(phase(&cluster), "Running");
    assert_eq!(output(&mut cluster, "cat /tmp/hook"), "done\n");
}

#[test]
fn a_container_whose_post_start_hook_fails_is_killed_and_tried_again() {
    let mut cluster = cluster();
    let hook = json!({"postStart": {"exec": {"command": ["sh", "-c", "echo no; exit 3"]}}});
    run(&mut cluster, json!({}), json!({"image": "nginx", "lifecycle": hook}));
    advance(&mut cluster, 5);
    let events = events(&cluster);
    let of = |reason: &str| events.iter().find(|(known, _)| known == reason).map(|(_, message)| message.clone());
    assert_eq!(of("FailedPostStartHook").as_deref(), Some("PostStartHook failed"));
    assert_eq!(of("Killing").as_deref(), Some("FailedPostStartHook"));
    advance(&mut cluster, 20);
    let waiting = status(&cluster)["state"]["waiting"]["reason"].clone();
    assert!(waiting == "CrashLoopBackOff" || waiting == "PostStartHookError", "{waiting}");
    assert_ne!(status(&cluster)["restartCount"], 0);
}

#[test]
fn a_pre_stop_hook_that_fails_is_told_of_and_stops_nothing() {
    let mut cluster = cluster();
    let hook = json!({"preStop": {"httpGet": {"port": 81, "path": "/bye"}}});
    run(&mut cluster, json!({}), json!({"image": "nginx", "lifecycle": hook}));
    settle(&mut cluster);
    delete(&mut cluster);
    settle(&mut cluster);
    assert_eq!(phase(&cluster), "gone");
    assert!(reasons(&cluster).ends_with(&["Killing".into(), "FailedPreStopHook".into()]));
}

#[test]
fn an_ephemeral_container_joins_a_pod_that_runs() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx"}));
    settle(&mut cluster);
    let debugger = json!({"name": "look", "image": "busybox", "command": ["sh", "-c", "hostname; sleep 5"]});
    change(&mut cluster, "ephemeralcontainers", json!({"spec": {"ephemeralContainers": [debugger]}}));
    advance(&mut cluster, 4);
    let of = |cluster: &Cluster| pod(cluster)["status"]["ephemeralContainerStatuses"][0].clone();
    assert!(of(&cluster)["state"]["running"].is_object(), "{}", of(&cluster));
    assert_eq!((&of(&cluster)["ready"], of(&cluster).get("started")), (&json!(false), None));
    settle(&mut cluster);
    assert_eq!(of(&cluster)["state"]["terminated"]["exitCode"], 0);
    assert_eq!((phase(&cluster).as_str(), condition(&cluster, "Ready").as_str()), ("Running", "True"));
    let log = cluster.log(&Key::new("default", "web"), "look", &Default::default()).unwrap().0;
    assert_eq!(log.iter().map(|line| line.text.to_string()).collect::<Vec<_>>(), ["web"]);
}

#[test]
fn what_a_program_writes_before_its_end_stands_in_the_status() {
    let mut cluster = cluster();
    let command = json!(["sh", "-c", "echo out of ideas > /dev/termination-log; exit 4"]);
    run(&mut cluster, json!({"restartPolicy": "Never"}), json!({"image": "busybox", "command": command}));
    settle(&mut cluster);
    assert_eq!(status(&cluster)["state"]["terminated"]["message"], "out of ideas\n");
}

#[test]
fn the_end_of_the_log_can_stand_in_for_a_message() {
    let mut cluster = cluster();
    let container = json!({
        "image": "busybox", "command": ["sh", "-c", "echo it broke; exit 1"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    run(&mut cluster, json!({"restartPolicy": "Never"}), container);
    settle(&mut cluster);
    assert_eq!(status(&cluster)["state"]["terminated"]["message"], "it broke\n");
}

#[test]
fn rules_restart_a_container_for_some_exit_codes_only() {
    let mut cluster = cluster();
    add_account(&mut cluster);
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    let of = |code: &str| {
        json!({"image": "busybox", "command": ["sh", "-c", format!("exit {code}")], "restartPolicy": "Never",
            "restartPolicyRules": rules})
    };
    run(&mut cluster, json!({"restartPolicy": "Never"}), of("42"));
    advance(&mut cluster, 8);
    assert_ne!(status(&cluster)["restartCount"], 0);
    delete(&mut cluster);
    settle(&mut cluster);
    run(&mut cluster, json!({"restartPolicy": "Never"}), of("1"));
    advance(&mut cluster, 8);
    assert_eq!((status(&cluster)["restartCount"].as_i64(), phase(&cluster).as_str()), (Some(0), "Failed"));
}

#[test]
fn a_shell_with_an_open_input_waits_for_what_is_typed() {
    let mut cluster = cluster();
    run(&mut cluster, json!({"restartPolicy": "Never"}), json!({"image": "busybox", "stdin": true, "tty": true}));
    settle(&mut cluster);
    assert_eq!(phase(&cluster), "Running");
}
