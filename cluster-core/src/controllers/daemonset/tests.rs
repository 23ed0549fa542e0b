use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::Cluster;
use crate::api::request::Request;
use crate::controllers::revisions;
use crate::controllers::testing::*;

fn agent(strategy: Value) -> Value {
    json!({
        "metadata": {"name": "agent"},
        "spec": {
            "updateStrategy": strategy,
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"nodeSelector": {"pool": "a"}, "containers": [{"name": "c", "image": "img:1"}]},
            },
        },
    })
}

fn cluster_of(names: &[&str]) -> Cluster {
    let without = ["kubelet", "kube-proxy", "kube-scheduler"].map(String::from).to_vec();
    let mut cluster = Cluster::new(crate::Config { nodes: 0, without, ..crate::Config::default() });
    names.iter().for_each(|name| add_node(&mut cluster, name));
    cluster
}

fn add_node(cluster: &mut Cluster, name: &str) {
    create::<Node>(cluster, json!({"metadata": {"name": name, "labels": {"pool": "a"}}}));
    let mut ready = cluster.get::<Node>("", name).unwrap().to_json();
    ready["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let ready = Object::from_json(Node::kind(), ready).unwrap();
    cluster.request(Request::update_status(&user(), ready)).unwrap();
}

/// Brings pods to their nodes, as the scheduler would, and runs them; again until nothing changes.
fn play(cluster: &mut Cluster) {
    loop {
        settle(cluster);
        let waiting: Vec<Object> = cluster
            .list::<Pod>("default")
            .filter(|pod| !pod.is_terminating() && pod.status::<Pod>().phase.as_deref() == Some("Pending"))
            .cloned()
            .collect();
        if waiting.is_empty() {
            return;
        }
        for pod in waiting {
            let pod = bind(cluster, &pod);
            run_pod(cluster, &pod, pod.annotation("sim/ready") != Some("never"));
        }
    }
}

fn bind(cluster: &mut Cluster, pod: &Object) -> Object {
    let node = placement::target_node(pod).unwrap();
    let request = Request {
        subresource: "binding",
        body: crate::api::request::Body::Json(
            json!({"metadata": {"name": &*pod.key.name}, "target": {"kind": "Node", "name": node}}),
        ),
        ..Request::new(&user(), crate::api::request::Verb::Create, Pod::kind(), pod.key.clone())
    };
    cluster.request(request).unwrap();
    cluster.get::<Pod>("default", &pod.key.name).unwrap().clone()
}

/// Node and image of each pod that is not on its way out, by node.
fn pods(cluster: &Cluster) -> Vec<(String, String)> {
    let present = cluster.list::<Pod>("default").filter(|pod| !pod.is_terminating());
    let mut pods: Vec<_> = present
        .map(|pod| {
            let image = pod.spec::<Pod>().containers[0].image.clone().unwrap();
            (placement::target_node(pod).unwrap().to_owned(), image)
        })
        .collect();
    pods.sort();
    pods
}

fn status(cluster: &Cluster) -> Value {
    cluster.get::<DaemonSet>("default", "agent").unwrap().to_json()["status"].take()
}

fn set_image(cluster: &mut Cluster, image: &str, annotations: Value) {
    let template =
        json!({"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "c", "image": image}]}});
    patch::<DaemonSet>(cluster, "agent", json!({"spec": {"template": template}})).unwrap();
    play(cluster);
}

/// Ends the pods that are on their way out, until none is.
fn finish(cluster: &mut Cluster) {
    loop {
        play(cluster);
        let leaving: Vec<_> =
            cluster.list::<Pod>("default").filter(|pod| pod.is_terminating()).map(|pod| pod.key.clone()).collect();
        if leaving.is_empty() {
            return;
        }
        leaving.iter().for_each(|key| force_delete(cluster, &key.name));
    }
}

#[test]
fn each_node_that_takes_it_has_one_pod() {
    let mut cluster = cluster_of(&["a", "b"]);
    create::<DaemonSet>(&mut cluster, agent(json!({})));
    play(&mut cluster);
    assert_eq!(pods(&cluster), [("a".into(), "img:1".into()), ("b".into(), "img:1".into())]);
    assert_eq!(
        status(&cluster),
        json!({"currentNumberScheduled": 2, "desiredNumberScheduled": 2, "numberAvailable": 2, "numberMisscheduled": 0,
            "numberReady": 2, "observedGeneration": 1, "updatedNumberScheduled": 2})
    );
    assert_eq!(events(&cluster, "agent").len(), 2);
    let revision = cluster.list::<ControllerRevision>("default").next().unwrap();
    let pod = cluster.list::<Pod>("default").next().unwrap();
    assert_eq!(pod.label("controller-revision-hash"), revision.label("controller-revision-hash"));
    assert_eq!(pod.label("pod-template-generation"), Some("1"));

    add_node(&mut cluster, "c");
    patch::<Node>(&mut cluster, "a", json!({"metadata": {"labels": {"pool": "b"}}})).unwrap();
    finish(&mut cluster);
    assert_eq!(pods(&cluster).into_iter().map(|(node, _)| node).collect::<Vec<_>>(), ["b", "c"]);
    delete::<Node>(&mut cluster, "c").unwrap();
    settle(&mut cluster);
    assert_eq!(status(&cluster)["desiredNumberScheduled"], 2);
}

#[test]
fn a_rolling_update_stops_at_what_may_be_unavailable() {
    let mut cluster = cluster_of(&["a", "b", "c", "d"]);
    create::<DaemonSet>(&mut cluster, agent(json!({"rollingUpdate": {"maxUnavailable": 2}})));
    play(&mut cluster);
    set_image(&mut cluster, "img:2", json!({"sim/ready": "never"}));
    finish(&mut cluster);
    let new = pods(&cluster).into_iter().filter(|(_, image)| image == "img:2").count();
    assert_eq!((new, &status(&cluster)["numberUnavailable"]), (2, &json!(2)));
    set_image(&mut cluster, "img:3", json!({"sim/ready": null}));
    finish(&mut cluster);
    assert!(pods(&cluster).iter().all(|(_, image)| image == "img:3"));
    let mut numbers: Vec<_> = cluster.list::<ControllerRevision>("default").map(revisions::number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);
    set_image(&mut cluster, "img:1", json!({}));
    finish(&mut cluster);
    assert_eq!(cluster.list::<ControllerRevision>("default").count(), 3, "the first template is wanted again");
}

#[test]
fn with_surge_the_new_pod_comes_before_the_old_one_goes() {
    let mut cluster = cluster_of(&["a", "b"]);
    create::<DaemonSet>(&mut cluster, agent(json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})));
    play(&mut cluster);
    // Of pods of the same second the name would decide which one counts.
    cluster.advance(Duration::from_secs(2), |_| true);
    set_image(&mut cluster, "img:2", json!({"sim/ready": "never"}));
    let pods_now = pods(&cluster);
    assert_eq!(pods_now.len(), 3, "{pods_now:?}");
    assert_eq!(status(&cluster)["numberAvailable"], 2);
    let unready = cluster.list::<Pod>("default").find(|pod| pod.annotation("sim/ready").is_some()).unwrap().clone();
    run_pod(&mut cluster, &unready, true);
    settle(&mut cluster);
    let node = placement::target_node(&unready).unwrap();
    let there: Vec<_> = pods(&cluster).into_iter().filter(|(on, _)| on == node).collect();
    assert_eq!(there, [(node.to_owned(), "img:2".to_owned())]);
}

#[test]
fn on_delete_nothing_is_replaced_by_itself() {
    let mut cluster = cluster_of(&["a", "b"]);
    create::<DaemonSet>(&mut cluster, agent(json!({"type": "OnDelete"})));
    play(&mut cluster);
    set_image(&mut cluster, "img:2", json!({}));
    assert!(pods(&cluster).iter().all(|(_, image)| image == "img:1"));
    assert_eq!(status(&cluster)["updatedNumberScheduled"], Value::Null);
    let first = cluster.list::<Pod>("default").next().unwrap().key.name.to_string();
    delete::<Pod>(&mut cluster, &first).unwrap();
    finish(&mut cluster);
    assert_eq!(status(&cluster)["updatedNumberScheduled"], 1);
}

#[test]
fn a_pod_that_fails_is_replaced_later_and_later() {
    let mut cluster = cluster_of(&["a"]);
    create::<DaemonSet>(&mut cluster, agent(json!({})));
    settle(&mut cluster);
    let mut waits = Vec::new();
    for _ in 0..4 {
        let pod = cluster.list::<Pod>("default").next().unwrap().clone();
        let mut pod = bind(&mut cluster, &pod);
        pod.revision = 0;
        pod.status_mut::<Pod>().phase = Some("Failed".into());
        cluster.request(Request::update_status(&user(), pod.clone())).unwrap();
        let failed = cluster.now();
        while cluster.get::<Pod>("default", &pod.key.name).is_some() {
            cluster.advance(Duration::from_millis(500), |_| true);
        }
        waits.push(cluster.now().since(failed).as_secs());
        settle(&mut cluster);
    }
    assert_eq!(waits, [0, 1, 2, 4]);
    let told = events(&cluster, "agent").into_iter().filter(|event| event.starts_with("FailedDaemonPod Found failed"));
    assert_eq!(told.count(), 4);
}
