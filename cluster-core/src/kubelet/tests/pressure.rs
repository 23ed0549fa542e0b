//! Pods that the machine has no place for, or that take too much of it; pods that are resized.

use super::hooks::change;
use super::*;

fn of(requests: Value, limits: Value) -> Value {
    json!({"image": "nginx", "resources": {"requests": requests, "limits": limits}})
}

fn node_condition(cluster: &Cluster, name: &str) -> String {
    let node = cluster.get::<Node>("", "node-1").map(Object::to_json).unwrap_or_default();
    let all = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|condition| condition["type"] == name).cloned().unwrap_or_default();
    found["status"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_pod_that_does_not_fit_is_turned_away() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), of(json!({"cpu": "9"}), json!({})));
    settle(&mut cluster);
    let status = pod(&cluster)["status"].clone();
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("OutOfcpu")));
    let message = "Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 8000";
    assert_eq!(status["message"], format!("Pod was rejected: {message}"));
    assert_eq!(status.get("conditions"), None);
    assert_eq!(events(&cluster), [("OutOfcpu".to_owned(), message.to_owned())]);
}

#[test]
fn a_pod_whose_selector_does_not_fit_is_turned_away() {
    let mut cluster = cluster();
    run(&mut cluster, json!({"nodeSelector": {"disk": "ssd"}}), json!({"image": "nginx"}));
    settle(&mut cluster);
    assert_eq!(pod(&cluster)["status"]["reason"], "NodeAffinity");
}

#[test]
fn a_program_that_takes_more_memory_than_its_limit_is_killed() {
    let mut cluster = cluster();
    let container = json!({
        "image": "polinux/stress", "command": ["stress"],
        "args": ["--vm", "1", "--vm-bytes", "250M", "--vm-hang", "1"],
        "resources": {"limits": {"memory": "100Mi"}},
    });
    run(&mut cluster, json!({"restartPolicy": "Never"}), container);
    settle(&mut cluster);
    let ended = status(&cluster)["state"]["terminated"].clone();
    assert_eq!((&ended["reason"], &ended["exitCode"]), (&json!("OOMKilled"), &json!(137)));
}

#[test]
fn a_machine_short_of_memory_evicts_who_takes_more_than_it_asked_for() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), of(json!({"memory": "10Mi"}), json!({})));
    settle(&mut cluster);
    assert!(cluster.fill_memory("default", "web", "web", 33 << 30));
    advance(&mut cluster, 15);
    assert_eq!(node_condition(&cluster, "MemoryPressure"), "True");
    let status = pod(&cluster)["status"].clone();
    assert_eq!((&status["phase"], &status["reason"]), (&json!("Failed"), &json!("Evicted")));
    let message = status["message"].as_str().unwrap();
    let begins =
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 0. Container web was using ";
    assert!(message.starts_with(begins) && message.ends_with(", request is 10Mi, has larger consumption of memory. "));
    assert_eq!(condition(&cluster, "DisruptionTarget"), "True");
    advance(&mut cluster, 400);
    assert_eq!(node_condition(&cluster, "MemoryPressure"), "False");
}

#[test]
fn a_soft_threshold_lets_the_machine_recover_for_a_while() {
    let mut cluster = cluster();
    let soft =
        json!({"evictionSoft": {"memory.available": "20Gi"}, "evictionSoftGracePeriod": {"memory.available": "1m"}});
    run(&mut cluster, json!({}), of(json!({"memory": "10Mi"}), json!({})));
    settle(&mut cluster);
    cluster.configure_kubelets(&soft).unwrap();
    settle(&mut cluster);
    assert!(cluster.fill_memory("default", "web", "web", 15 << 30));
    advance(&mut cluster, 30);
    assert_eq!((node_condition(&cluster, "MemoryPressure").as_str(), phase(&cluster).as_str()), ("True", "Running"));
    advance(&mut cluster, 60);
    let status = pod(&cluster)["status"].clone();
    assert_eq!(status["reason"], "Evicted");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("The node was low on resource: memory. Threshold quantity: 20Gi, available: "),
        "{message}"
    );
}

#[test]
fn a_full_disk_first_costs_unused_images_then_pods() {
    let mut cluster = cluster();
    let volumes = json!([{"name": "v", "emptyDir": {}}]);
    let mounts = json!([{"name": "v", "mountPath": "/v"}]);
    let container = json!({"image": "busybox", "command": ["sleep", "infinity"], "volumeMounts": mounts});
    run(&mut cluster, json!({"volumes": volumes}), container);
    settle(&mut cluster);
    output(&mut cluster, "dd if=/dev/zero of=/v/big bs=1G count=95");
    assert!(cluster.fill_disk("node-1", 1 << 20));
    advance(&mut cluster, 20);
    assert_eq!(node_condition(&cluster, "DiskPressure"), "True");
    assert_eq!(pod(&cluster)["status"]["reason"], "Evicted");
}

#[test]
fn an_empty_dir_has_a_limit() {
    let mut cluster = cluster();
    let volumes = json!([{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]);
    let mounts = json!([{"name": "v", "mountPath": "/v"}]);
    let command = ["sh", "-c", "dd if=/dev/zero of=/v/big bs=1M count=2; sleep infinity"];
    let container = json!({"image": "busybox", "command": command, "volumeMounts": mounts});
    run(&mut cluster, json!({"volumes": volumes}), container);
    advance(&mut cluster, 30);
    let status = pod(&cluster)["status"].clone();
    assert_eq!(status["message"], "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ");
}

fn resize(cluster: &mut Cluster, cpu: &str) {
    let container = json!({"name": "web", "resources": {"requests": {"cpu": cpu}}});
    change(cluster, "resize", json!({"spec": {"containers": [container]}}));
    settle(cluster);
}

#[test]
fn a_pod_is_resized_while_it_runs() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), of(json!({"cpu": "1"}), json!({})));
    settle(&mut cluster);
    resize(&mut cluster, "2");
    let status = status(&cluster);
    assert_eq!(status["allocatedResources"]["cpu"], "2");
    assert_eq!(status["resources"]["requests"]["cpu"], "2");
    assert_eq!(status["restartCount"], 0);
    assert!(reasons(&cluster).ends_with(&["ResizeStarted".into(), "ResizeCompleted".into()]));
}

#[test]
fn a_resize_that_the_machine_can_never_do_stays_pending() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), of(json!({"cpu": "1"}), json!({})));
    settle(&mut cluster);
    resize(&mut cluster, "100");
    let conditions = pod(&cluster)["status"]["conditions"].clone();
    let pending = conditions.as_array().unwrap().iter().find(|one| one["type"] == "PodResizePending").unwrap();
    assert_eq!(pending["reason"], "Infeasible");
    assert_eq!(pending["message"], "Node didn't have enough capacity: cpu, requested: 100000, capacity: 8000");
    assert_eq!(status(&cluster)["allocatedResources"]["cpu"], "1");
}

#[test]
fn a_container_may_ask_to_be_restarted_for_its_resize() {
    let mut cluster = cluster();
    let mut container = of(json!({"cpu": "1"}), json!({}));
    container["resizePolicy"] = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
    run(&mut cluster, json!({}), container);
    settle(&mut cluster);
    resize(&mut cluster, "2");
    assert_eq!(status(&cluster)["restartCount"], 1);
}

#[test]
fn a_port_of_the_machine_is_taken_at_one_of_its_addresses() {
    for (host, reason) in [("10.0.0.11", None), ("127.0.0.1", Some("NodePorts")), ("", Some("NodePorts"))] {
        let mut cluster = cluster();
        let ports = |host: &str| json!([{"containerPort": 80, "hostPort": 54323, "hostIP": host}]);
        create::<Pod>(
            &mut cluster,
            json!({"metadata": {"name": "first", "namespace": "default"}, "spec": {"nodeName": "node-1",
                "containers": [{"name": "web", "image": "nginx", "ports": ports("127.0.0.1")}]}}),
        );
        settle(&mut cluster);
        run(&mut cluster, json!({}), json!({"image": "nginx", "ports": ports(host)}));
        settle(&mut cluster);
        assert_eq!(pod(&cluster)["status"]["reason"].as_str(), reason, "{host}");
    }
}

#[test]
fn a_deadline_may_be_brought_forward() {
    let mut cluster = cluster();
    run(&mut cluster, json!({"terminationGracePeriodSeconds": 1}), json!({"image": "nginx"}));
    advance(&mut cluster, 25);
    let body = json!({"spec": {"activeDeadlineSeconds": 30}});
    let key = Key::new("default", "web");
    cluster.request(Request::patch(&learner(), KindRef::of::<Pod>(), key, PatchType::Merge, body)).unwrap();
    advance(&mut cluster, 3);
    assert_eq!(phase(&cluster), "Running");
    advance(&mut cluster, 10);
    assert_eq!(phase(&cluster), "Failed");
}
