//! Pods whose containers follow annotations, and pods on nodes that a client speaks for.

use super::*;

fn annotate(cluster: &mut Cluster, annotations: Value) {
    let body = json!({"metadata": {"annotations": annotations}});
    let key = Key::new("default", "web");
    let request = Request::patch(&learner(), KindRef::of::<Pod>(), key, PatchType::Merge, body);
    cluster.request(request).unwrap();
    settle(cluster);
}

#[test]
fn a_pod_that_runs_follows_a_new_script() {
    let mut cluster = cluster();
    run(&mut cluster, json!({"restartPolicy": "Never"}), json!({"image": "img:1"}));
    settle(&mut cluster);
    annotate(&mut cluster, json!({"sim/ready": "never"}));
    assert_eq!((phase(&cluster).as_str(), condition(&cluster, "Ready").as_str()), ("Running", "False"));
    annotate(&mut cluster, json!({"sim/ready": null}));
    assert_eq!(condition(&cluster, "Ready"), "True");
    annotate(&mut cluster, json!({"sim/exit": "1"}));
    assert_eq!((phase(&cluster).as_str(), &status(&cluster)["state"]["terminated"]["exitCode"]), ("Failed", &json!(1)));
}

#[test]
fn a_pod_that_was_said_to_have_failed_is_ended_and_stays_failed() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "img:1"}));
    settle(&mut cluster);
    let mut pod = cluster.get::<Pod>("default", "web").unwrap().clone();
    pod.status_mut::<Pod>().phase = Some("Failed".into());
    cluster.request(Request::update_status(&learner(), pod)).unwrap();
    settle(&mut cluster);
    assert_eq!(phase(&cluster), "Failed");
    assert!(status(&cluster)["state"]["terminated"].is_object());
}

#[test]
fn a_node_that_a_client_speaks_for_gets_its_pods_run() {
    let without = ["kube-scheduler", "kube-controller-manager", "kube-proxy"].map(String::from).to_vec();
    let mut cluster = Cluster::new(Config { nodes: 0, without, hollow_nodes: true, ..Config::default() });
    let conditions = json!([{"type": "Ready", "status": "False", "reason": "x"}]);
    create::<Node>(&mut cluster, json!({"metadata": {"name": "node-1"}, "status": {"conditions": conditions}}));
    run(&mut cluster, json!({}), json!({"image": "img:1"}));
    advance(&mut cluster, 20);
    assert_eq!(phase(&cluster), "Running");
    let node = cluster.get::<Node>("", "node-1").unwrap().to_json();
    assert_eq!((&node["status"]["conditions"][0]["reason"], &node["status"]["addresses"]), (&json!("x"), &Value::Null));
    assert_eq!(cluster.list::<Event>("default").count(), 0);
    delete(&mut cluster);
    settle(&mut cluster);
    assert_eq!(phase(&cluster), "gone");
}

#[test]
fn a_pod_may_be_scripted_never_to_be_ready() {
    let mut cluster = cluster();
    run_annotated(&mut cluster, json!({"sim/ready": "never"}), json!({}), json!({"image": "img:1"}));
    settle(&mut cluster);
    assert_eq!((phase(&cluster).as_str(), condition(&cluster, "Ready").as_str()), ("Running", "False"));
}
