use k8s_openapi::api::core::v1::{Event, Pod};
use serde_json::{Value, json};

use std::time::Duration;

use super::*;
use crate::api::Key;
use crate::api::request::{Options, Request, Verb};
use crate::controllers::testing::{create, delete, settle, user};
use crate::network::connect;
use crate::{Cluster, Config};

/// A cluster with one node and an image `shop` that does this.
fn cluster(spec: Value) -> Cluster {
    let mut cluster = Cluster::new(Config { nodes: 1, images: true, ..Config::default() });
    settle(&mut cluster);
    declare(&mut cluster, "shop", spec).unwrap();
    settle(&mut cluster);
    cluster
}

fn declare(cluster: &mut Cluster, name: &str, spec: Value) -> Result<(), String> {
    let kind = cluster.kind(API_VERSION, KIND).cloned().unwrap();
    let body = json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec});
    let request = Request::new(&user(), Verb::Create, &kind, Key::cluster(name));
    let options = Options { field_validation: crate::api::request::FieldValidation::Strict, ..Options::default() };
    let request = Request { body: crate::api::request::Body::Json(body), options, ..request };
    cluster.request(request).map(|_| ()).map_err(|status| status.message)
}

/// Runs the pod `web` of one container with these fields.
fn run(cluster: &mut Cluster, container: Value) {
    let mut whole = json!({"name": "web", "image": "shop"});
    whole.as_object_mut().unwrap().extend(container.as_object().cloned().unwrap());
    create::<Pod>(
        cluster,
        json!({"metadata": {"name": "web"}, "spec": {"restartPolicy": "Never", "containers": [whole]}}),
    );
    settle(cluster);
}

fn status(cluster: &Cluster) -> Value {
    let pod = cluster.get::<Pod>("default", "web").map(Object::to_json).unwrap_or_default();
    pod["status"]["containerStatuses"][0].clone()
}

fn ended(cluster: &Cluster) -> (Value, Value) {
    let state = &status(cluster)["state"]["terminated"];
    (state["reason"].clone(), state["exitCode"].clone())
}

fn told(cluster: &Cluster, reason: &str) -> Vec<String> {
    let events = cluster.list::<Event>("default").map(Object::to_json).filter(|event| event["reason"] == reason);
    events.filter_map(|event| event["message"].as_str().map(str::to_owned)).collect()
}

fn log(cluster: &Cluster) -> Vec<String> {
    let runtime = &cluster.machine("node-1").unwrap().runtime;
    runtime.find(&Key::new("default", "web"), "web").unwrap().1.logs().map(|line| line.text.to_string()).collect()
}

fn advance(cluster: &mut Cluster, seconds: u64) {
    cluster.advance(Duration::from_secs(seconds), |_| true);
}

fn get(cluster: &mut Cluster, path: &str) -> (String, Duration) {
    let ip = cluster.get::<Pod>("default", "web").unwrap().status::<Pod>().pod_ip.clone().unwrap();
    let url = format!("http://{ip}:8080{path}");
    let answer = cluster.connect(&connect::Origin::Node("node-1".into()), &url, &connect::Options::default());
    let text =
        answer.result.map_or_else(|failure| failure.to_string(), |reply| format!("{} {}", reply.status, reply.body));
    (text, answer.took)
}

#[test]
fn a_pod_does_what_its_image_declares() {
    let http = json!([
        {"port": 8080, "body": "home"},
        {"port": 8080, "path": "/slow", "delay": "3s", "status": 418},
        {"port": 8080, "path": "/ready", "after": "20s"},
    ]);
    let log_lines = json!([{"line": "started"}, {"line": "tick", "every": "30s"}]);
    let mut cluster = cluster(json!({"startDelay": "5s", "http": http, "log": log_lines, "cpu": "250m"}));
    let probe = json!({"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5});
    run(&mut cluster, json!({"readinessProbe": probe}));
    advance(&mut cluster, 15);
    assert_eq!(status(&cluster)["ready"], true);
    let unready = told(&cluster, "Unhealthy");
    assert!(unready.iter().any(|text| text.ends_with("connect: connection refused")), "{unready:?}");
    assert!(unready.iter().any(|text| text.ends_with("statuscode: 503")), "{unready:?}");
    assert_eq!(get(&mut cluster, "/").0, "200 home");
    assert_eq!(get(&mut cluster, "/ready/x").0, "200 Hello from web\n");
    let (text, took) = get(&mut cluster, "/slow?now");
    assert!(text.starts_with("418") && took >= Duration::from_secs(3), "{text} {took:?}");
    advance(&mut cluster, 45);
    assert_eq!(log(&cluster), ["started", "tick", "tick"]);
}

#[test]
fn a_slow_answer_fails_a_probe() {
    let mut cluster = cluster(json!({"http": [{"port": 8080, "delay": "2s"}]}));
    run(&mut cluster, json!({"readinessProbe": {"httpGet": {"path": "/", "port": 8080}}}));
    assert_eq!(status(&cluster)["ready"], false);
    let unready = told(&cluster, "Unhealthy");
    assert!(unready[0].ends_with("context deadline exceeded (Client.Timeout exceeded while awaiting headers)"));
}

#[test]
fn it_ends_by_itself_or_for_want_of_memory() {
    let mut cluster = cluster(json!({"exit": {"code": 3, "after": "40s"}}));
    run(&mut cluster, json!({}));
    assert_eq!(ended(&cluster), ("Error".into(), 3.into()));
    let growing = json!({"image": "leak:1", "memory": {"initial": "32Mi", "growth": "32Mi", "every": "10s"}});
    declare(&mut cluster, "leak", growing).unwrap();
    delete::<Pod>(&mut cluster, "web").unwrap();
    settle(&mut cluster);
    run(&mut cluster, json!({"image": "leak:1", "resources": {"limits": {"memory": "100Mi"}}}));
    advance(&mut cluster, 15);
    assert!(status(&cluster)["state"]["running"].is_object());
    advance(&mut cluster, 15);
    assert_eq!(ended(&cluster), ("OOMKilled".into(), 137.into()));
}

#[test]
fn it_answers_sigterm_as_declared() {
    for (sigterm, code) in [(json!({"after": "3s", "code": 7}), 7), (json!({"ignored": true}), 137)] {
        let mut cluster = cluster(json!({"sigterm": sigterm}));
        run(&mut cluster, json!({}));
        delete::<Pod>(&mut cluster, "web").unwrap();
        settle(&mut cluster);
        let exits = cluster.trace().iter().filter_map(|entry| match &entry.what {
            crate::trace::What::Container(container) => match container.phase {
                crate::trace::ContainerPhase::Exited { code, .. } => Some(code),
                _ => None,
            },
            _ => None,
        });
        assert_eq!(exits.collect::<Vec<_>>(), [code]);
    }
}

#[test]
fn a_registry_may_not_have_it() {
    let mut cluster = cluster(json!({"image": "shop", "pull": {"notFound": true}}));
    run(&mut cluster, json!({}));
    let waiting = status(&cluster)["state"]["waiting"]["reason"].clone();
    assert!(waiting == "ErrImagePull" || waiting == "ImagePullBackOff", "{waiting}");
}

#[test]
fn what_it_does_not_know_is_refused() {
    let mut cluster = cluster(json!({}));
    assert_eq!(
        declare(&mut cluster, "a", json!({"exit": {"after": "soon"}})).unwrap_err(),
        "Image.kernetes.dev \"a\" is invalid: spec.exit.after: Invalid value: \"soon\": spec.exit.after in body should \
         match '^([0-9]{1,5}(h|m|s|ms)){1,4}$'"
    );
    let unknown = declare(&mut cluster, "a", json!({"exits": {}})).unwrap_err();
    assert!(unknown.ends_with("unknown field \"spec.exits\""), "{unknown}");
}
