//! Pods that a kubelet runs without being told by the API.

use super::*;

const NAME: &str = "web-node-1";

fn manifest(image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}]},
    })
}

fn put(cluster: &mut Cluster, manifest: Option<Value>) {
    cluster.put_manifest("node-1", "web.yaml", manifest).unwrap();
    settle(cluster);
}

fn mirror(cluster: &Cluster) -> Value {
    cluster.get::<Pod>("default", NAME).map(Object::to_json).unwrap_or_default()
}

fn running(cluster: &Cluster) -> usize {
    let containers = cluster.machine("node-1").unwrap().runtime.containers();
    containers.filter(|(_, container)| container.is_running()).count()
}

#[test]
fn a_manifest_becomes_a_pod_and_its_mirror() {
    let mut cluster = cluster();
    put(&mut cluster, Some(manifest("nginx")));
    let pod = mirror(&cluster);
    assert_eq!(pod["status"]["phase"], "Running");
    let annotations = &pod["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/config.source"], "file");
    assert_eq!(annotations["kubernetes.io/config.mirror"], annotations["kubernetes.io/config.hash"]);
    let owner = &pod["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("Node"), &json!("node-1")));
    assert_eq!(pod["spec"]["tolerations"][0], json!({"operator": "Exists", "effect": "NoExecute"}));
}

#[test]
fn deleting_the_mirror_does_not_stop_the_pod() {
    let mut cluster = cluster();
    put(&mut cluster, Some(manifest("nginx")));
    let before = mirror(&cluster)["metadata"]["uid"].clone();
    cluster.request(Request::delete(&learner(), KindRef::of::<Pod>(), Key::new("default", NAME))).unwrap();
    settle(&mut cluster);
    let after = mirror(&cluster);
    assert_ne!(after["metadata"]["uid"], before);
    assert_eq!(after["status"]["containerStatuses"][0]["restartCount"], 0);
    assert_eq!(after["status"]["phase"], "Running");
}

#[test]
fn the_manifest_decides_what_runs() {
    let mut cluster = cluster();
    put(&mut cluster, Some(manifest("nginx")));
    put(&mut cluster, Some(manifest("httpd")));
    assert_eq!(mirror(&cluster)["spec"]["containers"][0]["image"], "httpd");
    assert_eq!(running(&cluster), 1);
    put(&mut cluster, None);
    assert_eq!((mirror(&cluster), running(&cluster)), (Value::Null, 0));
}

#[test]
fn a_static_pod_needs_no_apiserver() {
    let mut cluster = cluster();
    cluster.stop("kube-apiserver");
    put(&mut cluster, Some(manifest("nginx")));
    assert_eq!((mirror(&cluster), running(&cluster)), (Value::Null, 1));
    cluster.start("kube-apiserver");
    advance(&mut cluster, 30);
    assert_eq!(mirror(&cluster)["status"]["phase"], "Running");
    cluster.stop("kubelet/node-1");
    cluster.start("kubelet/node-1");
    settle(&mut cluster);
    assert_eq!(
        (running(&cluster), &mirror(&cluster)["status"]["containerStatuses"][0]["restartCount"]),
        (1, &json!(0))
    );
}

#[test]
fn a_manifest_that_is_none_is_refused() {
    let mut cluster = cluster();
    let refused = cluster.put_manifest("node-1", "x.yaml", Some(json!({"kind": "Service"}))).unwrap_err();
    assert_eq!(refused, "x.yaml: expected a Pod");
    assert!(cluster.put_manifest("node-9", "x.yaml", None).is_err());
}
