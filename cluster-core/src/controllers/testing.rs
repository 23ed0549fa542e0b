//! A cluster for the tests of controllers: nothing but an apiserver and kube-controller-manager, and a hand that plays
//! kubelet and scheduler.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node, Pod, PodCondition};
use serde_json::{Value, json};

use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::{PatchType, Request};
use crate::api::status::Status;
use crate::trace::Actor;
use crate::{Cluster, Config};

pub fn user() -> Actor {
    "kubectl".into()
}

pub fn control_plane() -> Cluster {
    let without = ["kubelet", "kube-proxy", "kube-scheduler"].map(String::from).to_vec();
    Cluster::new(Config { without, ..Config::default() })
}

pub fn create<K: Resource>(cluster: &mut Cluster, value: Value) -> Object {
    let mut object = Object::from_json(K::kind(), value).expect("a right manifest");
    if K::kind().namespaced && object.key.namespace.is_empty() {
        object.rename(Key::new("default", object.key.name.clone()));
    }
    let answer = cluster.request(Request::create(&user(), object)).expect("created");
    answer.object().expect("one object")
}

pub fn patch<K: Resource>(cluster: &mut Cluster, name: &str, body: Value) -> Result<(), Status> {
    let key = if K::kind().namespaced { Key::new("default", name) } else { Key::cluster(name) };
    cluster.request(Request::patch(&user(), K::kind(), key, PatchType::Merge, body)).map(drop)
}

pub fn patch_status<K: Resource>(cluster: &mut Cluster, name: &str, body: Value) -> Result<(), Status> {
    let key = if K::kind().namespaced { Key::new("default", name) } else { Key::cluster(name) };
    let mut request = Request::patch(&user(), K::kind(), key, PatchType::Merge, body);
    request.subresource = "status";
    cluster.request(request).map(drop)
}

pub fn delete<K: Resource>(cluster: &mut Cluster, name: &str) -> Result<(), Status> {
    let key = if K::kind().namespaced { Key::new("default", name) } else { Key::cluster(name) };
    cluster.request(Request::delete(&user(), K::kind(), key)).map(drop)
}

pub fn settle(cluster: &mut Cluster) {
    cluster.settle(Duration::from_secs(60), |_| true);
}

pub fn node(cluster: &mut Cluster, name: &str) {
    create::<Node>(cluster, json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}));
}

/// Makes a pod Running and Ready, or not ready, as its kubelet would.
pub fn run_pod(cluster: &mut Cluster, pod: &Object, ready: bool) {
    let now = cluster.now().to_meta();
    let mut pod = pod.clone();
    pod.revision = 0;
    let status = pod.status_mut::<Pod>();
    status.phase = Some("Running".into());
    let condition = PodCondition {
        type_: "Ready".into(),
        status: if ready { "True" } else { "False" }.into(),
        last_transition_time: Some(now),
        ..PodCondition::default()
    };
    status.conditions.get_or_insert_default().retain(|known| known.type_ != "Ready");
    status.conditions.get_or_insert_default().push(condition);
    cluster.request(Request::update_status(&"kubelet/node-1".into(), pod)).expect("the pod is there");
}

/// Ends all containers of a pod with this code, as its kubelet would tell it.
pub fn end_pod(cluster: &mut Cluster, pod: &Object, exit_code: i32) {
    let now = cluster.now().to_meta();
    let terminated = json!({"exitCode": exit_code, "startedAt": now, "finishedAt": now});
    let ended = json!({"name": "c", "image": "img:1", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": terminated}});
    let phase = if exit_code == 0 { "Succeeded" } else { "Failed" };
    let status = json!({"phase": phase, "conditions": [], "containerStatuses": [ended]});
    patch_status::<Pod>(cluster, &pod.key.name, json!({"status": status})).expect("the pod is there");
}

pub fn give_ip(cluster: &mut Cluster, pod: &Object, ip: &str) {
    let mut pod = pod.clone();
    pod.revision = 0;
    let status = pod.status_mut::<Pod>();
    status.pod_ip = Some(ip.into());
    status.pod_ips = Some(vec![k8s_openapi::api::core::v1::PodIP { ip: ip.into() }]);
    cluster.request(Request::update_status(&"kubelet/node-1".into(), pod)).expect("the pod is there");
}

/// What a kubelet does when the containers of a pod that is being deleted have ended.
pub fn force_delete(cluster: &mut Cluster, name: &str) {
    let mut request = Request::delete(&"kubelet/node-1".into(), Pod::kind(), Key::new("default", name));
    request.options.grace_period_seconds = Some(0);
    cluster.request(request).expect("the pod is there");
}

/// Runs everything that is Pending, and again what comes of that, until nothing changes.
pub fn play_kubelets(cluster: &mut Cluster) {
    loop {
        settle(cluster);
        let pending: Vec<Object> = cluster
            .list::<Pod>("")
            .filter(|pod| !pod.is_terminating() && pod.status::<Pod>().phase.as_deref() == Some("Pending"))
            .cloned()
            .collect();
        if pending.is_empty() {
            return;
        }
        for pod in pending {
            run_pod(cluster, &pod, pod.annotation("sim/ready") != Some("never"));
        }
    }
}

/// Reason and message of the events about an object of this name, in the order in which they came.
pub fn events(cluster: &Cluster, about: &str) -> Vec<String> {
    let mut events: Vec<&Object> = cluster.list::<Event>("").collect();
    events.sort_by_key(|event| event.revision);
    let told = events.iter().map(|event| event.spec::<Event>());
    let told = told.filter(|event| event.involved_object.name.as_deref() == Some(about));
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    told.map(|event| format!("{} {}", text(&event.reason), text(&event.message))).collect()
}
