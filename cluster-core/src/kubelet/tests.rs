use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use serde_json::{Value, json};

use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::Request;
use crate::trace::Actor;
use crate::{Cluster, Config};

const SETTLE: Duration = Duration::from_secs(60);

fn cluster() -> Cluster {
    let without = ["kube-scheduler", "kube-controller-manager", "kube-proxy"].map(String::from).to_vec();
    let mut cluster = Cluster::new(Config { nodes: 1, without, ..Config::default() });
    cluster.settle(SETTLE, |_| true);
    cluster
}

fn learner() -> Actor {
    "learner".into()
}

fn create<K: Resource>(cluster: &mut Cluster, manifest: Value) {
    let object = Object::from_json(KindRef::of::<K>(), manifest).unwrap();
    cluster.request(Request::create(&learner(), object)).unwrap();
}

/// Creates a pod on node-1 of one container `web`, with these fields of the spec and these of the container.
fn run(cluster: &mut Cluster, spec: Value, container: Value) {
    run_annotated(cluster, json!({}), spec, container);
}

fn run_annotated(cluster: &mut Cluster, annotations: Value, spec: Value, container: Value) {
    let mut manifest = json!({
        "metadata": {"name": "web", "namespace": "default", "annotations": annotations},
        "spec": {"nodeName": "node-1", "containers": [{"name": "web"}]},
    });
    merge(&mut manifest["spec"], spec);
    merge(&mut manifest["spec"]["containers"][0], container);
    create::<Pod>(cluster, manifest);
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

fn settle(cluster: &mut Cluster) {
    cluster.settle(SETTLE, |_| true);
}

fn advance(cluster: &mut Cluster, seconds: u64) {
    cluster.advance(Duration::from_secs(seconds), |_| true);
}

fn delete(cluster: &mut Cluster) {
    let request = Request::delete(&learner(), KindRef::of::<Pod>(), Key::new("default", "web"));
    cluster.request(request).unwrap();
}

fn pod(cluster: &Cluster) -> Value {
    cluster.get::<Pod>("default", "web").map(Object::to_json).unwrap_or_default()
}

fn phase(cluster: &Cluster) -> String {
    pod(cluster)["status"]["phase"].as_str().unwrap_or("gone").to_owned()
}

fn status(cluster: &Cluster) -> Value {
    pod(cluster)["status"]["containerStatuses"][0].clone()
}

fn condition(cluster: &Cluster, name: &str) -> String {
    let pod = pod(cluster);
    let all = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|condition| condition["type"] == name).cloned().unwrap_or_default();
    found["status"].as_str().unwrap_or_default().to_owned()
}

/// Reasons and messages of the events about the pod, oldest first.
fn events(cluster: &Cluster) -> Vec<(String, String)> {
    let mut all: Vec<&Object> = cluster
        .list::<Event>("default")
        .filter(|e| e.spec::<Event>().involved_object.name.as_deref() == Some("web"))
        .collect();
    all.sort_by_key(|event| (event.spec::<Event>().first_timestamp.clone().map(|time| time.0), event.key.name.clone()));
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    all.iter().map(|event| (text(&event.spec::<Event>().reason), text(&event.spec::<Event>().message))).collect()
}

fn reasons(cluster: &Cluster) -> Vec<String> {
    events(cluster).into_iter().map(|(reason, _)| reason).collect()
}

#[test]
fn a_kubelet_registers_its_node_and_keeps_its_lease() {
    let mut cluster = cluster();
    let node = cluster.get::<Node>("", "node-1").map(Object::to_json).unwrap();
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "node-1");
    assert_eq!(node["status"]["capacity"]["cpu"], "8");
    assert_eq!(node["status"]["conditions"][3]["reason"], "KubeletReady");
    let renewed = |cluster: &Cluster| {
        let lease = cluster.list_of(cluster.kind("coordination.k8s.io/v1", "Lease").unwrap(), "kube-node-lease").next();
        lease.map(Object::to_json).unwrap()["spec"]["renewTime"].as_str().unwrap().to_owned()
    };
    let before = renewed(&cluster);
    advance(&mut cluster, 11);
    assert!(renewed(&cluster) > before);
}

#[test]
fn a_bound_pod_becomes_ready() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx:1.27"}));
    settle(&mut cluster);
    assert_eq!(phase(&cluster), "Running");
    for name in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"] {
        assert_eq!(condition(&cluster, name), "True", "{name}");
    }
    let status = status(&cluster);
    assert_eq!(status["image"], "docker.io/library/nginx:1.27");
    assert_eq!(status["restartCount"], 0);
    assert!(status["containerID"].as_str().unwrap().starts_with("containerd://"));
    assert!(status["state"]["running"]["startedAt"].is_string());
    assert_eq!(pod(&cluster)["status"]["podIP"], "10.244.1.2");
    assert_eq!(reasons(&cluster), ["Pulling", "Pulled", "Created", "Started"]);
    assert!(events(&cluster)[1].1.starts_with("Successfully pulled image \"nginx:1.27\" in "));
}

#[test]
fn a_deleted_pod_goes_when_its_containers_have_ended() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx"}));
    settle(&mut cluster);
    let before = cluster.now();
    delete(&mut cluster);
    assert!(pod(&cluster)["metadata"]["deletionTimestamp"].is_string());
    settle(&mut cluster);
    assert_eq!(phase(&cluster), "gone");
    assert!(cluster.now().since(before) < Duration::from_secs(1));
    assert_eq!(events(&cluster).last().unwrap().1, "Stopping container web");
    assert_eq!(cluster.machine("node-1").unwrap().runtime.containers().count(), 0);
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_after_the_grace_period() {
    let mut cluster = cluster();
    run(
        &mut cluster,
        json!({"terminationGracePeriodSeconds": 7}),
        json!({"image": "busybox", "command": ["sleep", "3600"]}),
    );
    advance(&mut cluster, 5);
    delete(&mut cluster);
    advance(&mut cluster, 6);
    assert_eq!(phase(&cluster), "Running");
    advance(&mut cluster, 2);
    assert_eq!(phase(&cluster), "gone");
}
