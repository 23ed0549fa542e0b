use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Node, PersistentVolumeClaim, Pod, ServiceAccount};
use serde_json::{Value, json};

use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::{PatchType, Request};
use crate::trace::Actor;
use crate::{Cluster, Config};

mod hooks;
mod pressure;
mod scripts;
mod static_pods;
mod volumes;

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

/// Pods can be made later than in the first seconds, in which no account is asked for.
fn add_account(cluster: &mut Cluster) {
    create::<ServiceAccount>(cluster, json!({"metadata": {"name": "default", "namespace": "default"}}));
}

/// What a shell in the pod's container prints.
fn output(cluster: &mut Cluster, script: &str) -> String {
    let command = ["sh", "-c", script].map(str::to_owned);
    cluster.run_in_container(&Key::new("default", "web"), "web", &command).map(|done| done.output).unwrap_or_default()
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

#[test]
fn a_crashed_container_is_restarted_in_the_same_pod() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx:1.27"}));
    settle(&mut cluster);
    let uid = pod(&cluster)["metadata"]["uid"].clone();
    assert!(cluster.kill_container("default", "web", "web"));
    settle(&mut cluster);
    let status = status(&cluster);
    assert_eq!((status["restartCount"].as_i64(), phase(&cluster).as_str()), (Some(1), "Running"));
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 137);
    assert_eq!(status["lastState"]["terminated"]["reason"], "Error");
    assert_eq!(pod(&cluster)["metadata"]["uid"], uid);
    assert_eq!(condition(&cluster, "Ready"), "True");
    let message = "Container image \"nginx:1.27\" already present on machine and can be accessed by the pod";
    assert_eq!(events(&cluster)[4], ("Pulled".into(), message.into()));
}

/// When the pod's container was started, in whole seconds after the one before had ended.
fn waits(cluster: &Cluster) -> Vec<u64> {
    use crate::trace::{ContainerPhase, What};
    let mut exited = None;
    let mut waits = Vec::new();
    for entry in cluster.trace().iter() {
        if let What::Container(container) = &entry.what {
            match container.phase {
                ContainerPhase::Exited { .. } => exited = Some(entry.at),
                ContainerPhase::Created => waits.extend(exited.map(|exited| entry.at.since(exited).as_secs())),
                _ => {}
            }
        }
    }
    waits
}

#[test]
fn a_crash_loop_backs_off_from_ten_seconds_to_five_minutes() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "busybox:1.36", "command": ["sh", "-c", "echo starting; exit 3"]}));
    settle(&mut cluster);
    let first = status(&cluster);
    assert_eq!(first["state"]["waiting"]["reason"], "CrashLoopBackOff");
    let uid = pod(&cluster)["metadata"]["uid"].as_str().unwrap().to_owned();
    let message = format!("back-off 10s restarting failed container=web pod=web_default({uid})");
    assert_eq!(first["state"]["waiting"]["message"], message);
    assert_eq!(first["lastState"]["terminated"]["exitCode"], 3);
    assert_eq!(phase(&cluster), "Running");
    assert_eq!(condition(&cluster, "Ready"), "False");
    advance(&mut cluster, 1100);
    assert_eq!(waits(&cluster), [0, 10, 20, 40, 80, 160, 300, 300]);
    let told = format!("Back-off restarting failed container web in pod web_default({uid})");
    assert!(events(&cluster).contains(&("BackOff".into(), told)));
    let key = Key::new("default", "web");
    let (_, container) = cluster.machine("node-1").unwrap().runtime.find(&key, "web").unwrap();
    assert_eq!(container.logs().map(|line| line.text.into_owned()).collect::<Vec<_>>(), ["starting"]);
}

#[test]
fn restart_policies_decide_about_phases() {
    for (policy, code, want) in [
        ("Never", 0, "Succeeded"),
        ("Never", 1, "Failed"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 1, "Running"),
        ("Always", 0, "Running"),
    ] {
        let mut cluster = cluster();
        let annotations = json!({"sim/exit": code.to_string()});
        run_annotated(&mut cluster, annotations, json!({"restartPolicy": policy}), json!({"image": "img:1"}));
        settle(&mut cluster);
        assert_eq!(phase(&cluster), want, "{policy} {code}");
        if policy == "Never" {
            let end = &status(&cluster)["state"]["terminated"];
            assert_eq!(end["reason"], if code == 0 { "Completed" } else { "Error" });
            assert_eq!(condition(&cluster, "Initialized"), "True");
        }
    }
}

#[test]
fn an_image_that_is_not_there_is_tried_again_later_and_later() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nosuch:1"}));
    cluster.settle(Duration::from_millis(1200), |_| true);
    assert_eq!(status(&cluster)["state"]["waiting"]["reason"], "ErrImagePull");
    settle(&mut cluster);
    let waiting = &status(&cluster)["state"]["waiting"];
    assert_eq!(waiting["reason"], "ImagePullBackOff");
    assert!(
        waiting["message"]
            .as_str()
            .unwrap()
            .starts_with("Back-off pulling image \"nosuch:1\": ErrImagePull: rpc error")
    );
    assert_eq!(phase(&cluster), "Pending");
    assert_eq!(reasons(&cluster), ["Pulling", "Failed", "Failed", "BackOff", "Failed"]);
    let pulls = |cluster: &Cluster| {
        use crate::trace::{ContainerPhase, What};
        let pulling = |what: &What| matches!(what, What::Container(entry) if entry.phase == ContainerPhase::Pulling);
        cluster.trace().iter().filter(|entry| pulling(&entry.what)).count()
    };
    // At 0, 10, 30, 70, 150 seconds.
    advance(&mut cluster, 100);
    assert_eq!(pulls(&cluster), 4);
    advance(&mut cluster, 60);
    assert_eq!(pulls(&cluster), 5);
}

#[test]
fn a_missing_config_map_holds_a_container_back() {
    let mut cluster = cluster();
    let env = json!([{"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}}]);
    run(
        &mut cluster,
        json!({}),
        json!({"image": "busybox", "env": env, "command": ["sh", "-c", "echo $MODE; sleep 999"]}),
    );
    settle(&mut cluster);
    assert_eq!(status(&cluster)["state"]["waiting"]["reason"], "CreateContainerConfigError");
    assert_eq!(status(&cluster)["state"]["waiting"]["message"], "configmap \"settings\" not found");
    create::<k8s_openapi::api::core::v1::ConfigMap>(
        &mut cluster,
        json!({"metadata": {"name": "settings", "namespace": "default"}, "data": {"mode": "fast"}}),
    );
    advance(&mut cluster, 15);
    assert_eq!(phase(&cluster), "Running");
    let (_, container) = cluster.machine("node-1").unwrap().runtime.find(&Key::new("default", "web"), "web").unwrap();
    assert_eq!(container.logs().next().unwrap().text, "fast");
}

#[test]
fn init_containers_run_one_after_the_other_and_sidecars_stay() {
    let mut cluster = cluster();
    let init = json!([
        {"name": "log", "image": "busybox", "restartPolicy": "Always", "command": ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 1; done"]},
        {"name": "setup", "image": "busybox", "command": ["sleep", "5"]},
    ]);
    run(&mut cluster, json!({"initContainers": init}), json!({"image": "nginx"}));
    advance(&mut cluster, 5);
    assert_eq!(phase(&cluster), "Pending");
    assert_eq!(status(&cluster)["state"]["waiting"]["reason"], "PodInitializing");
    assert_eq!(condition(&cluster, "Initialized"), "False");
    settle(&mut cluster);
    assert_eq!(condition(&cluster, "Ready"), "True");
    let init = pod(&cluster)["status"]["initContainerStatuses"].clone();
    assert_eq!((&init[0]["ready"], &init[0]["started"]), (&json!(true), &json!(true)));
    assert_eq!(init[1]["state"]["terminated"]["reason"], "Completed");
    delete(&mut cluster);
    settle(&mut cluster);
    assert_eq!(phase(&cluster), "gone");
    let killed: Vec<_> =
        events(&cluster).into_iter().filter(|(reason, _)| reason == "Killing").map(|(_, text)| text).collect();
    assert_eq!(killed, ["Stopping container web", "Stopping container log"]);
}

#[test]
fn readiness_comes_and_goes_without_a_restart() {
    let mut cluster = cluster();
    let probe = json!({"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5, "failureThreshold": 2});
    run(&mut cluster, json!({}), json!({"image": "nginx", "readinessProbe": probe}));
    settle(&mut cluster);
    assert_eq!(condition(&cluster, "Ready"), "True");
    assert!(cluster.set_healthy("default", "web", "web", false));
    advance(&mut cluster, 4);
    assert_eq!(condition(&cluster, "Ready"), "True");
    advance(&mut cluster, 7);
    assert_eq!(condition(&cluster, "Ready"), "False");
    assert_eq!(events(&cluster).last().unwrap().1, "Readiness probe failed: HTTP probe failed with statuscode: 503");
    cluster.set_healthy("default", "web", "web", true);
    advance(&mut cluster, 6);
    assert_eq!(condition(&cluster, "Ready"), "True");
    assert_eq!(status(&cluster)["restartCount"], 0);
}

#[test]
fn a_wrong_path_never_gets_ready() {
    let mut cluster = cluster();
    let probe = json!({"httpGet": {"path": "/healthz", "port": 80}});
    run(&mut cluster, json!({}), json!({"image": "nginx", "readinessProbe": probe}));
    settle(&mut cluster);
    assert_eq!((phase(&cluster).as_str(), condition(&cluster, "Ready").as_str()), ("Running", "False"));
    assert_eq!(events(&cluster).last().unwrap().1, "Readiness probe failed: HTTP probe failed with statuscode: 404");
}

#[test]
fn a_failed_liveness_probe_restarts_the_container() {
    let mut cluster = cluster();
    let command = "touch /tmp/healthy; sleep 30; rm -f /tmp/healthy; sleep 600";
    let probe = json!({"exec": {"command": ["cat", "/tmp/healthy"]}, "initialDelaySeconds": 5, "periodSeconds": 5});
    let container = json!({"image": "busybox", "args": ["/bin/sh", "-c", command], "livenessProbe": probe});
    run(&mut cluster, json!({}), container);
    advance(&mut cluster, 35);
    assert_eq!(status(&cluster)["restartCount"], 0);
    // Three failures in fifteen seconds, then thirty seconds of grace that the shell does not use.
    advance(&mut cluster, 50);
    assert_eq!(status(&cluster)["restartCount"], 1);
    assert_eq!(status(&cluster)["lastState"]["terminated"]["exitCode"], 137);
    let told: Vec<_> = events(&cluster).into_iter().map(|(_, message)| message).collect();
    assert!(
        told.contains(&"Liveness probe failed: cat: can't open '/tmp/healthy': No such file or directory\n".to_owned()),
        "{told:?}"
    );
    assert!(told.contains(&"Container web failed liveness probe, will be restarted".to_owned()));
}

#[test]
fn a_startup_probe_holds_the_others_back() {
    let mut cluster = cluster();
    let startup = json!({"exec": {"command": ["cat", "/ready"]}, "periodSeconds": 2, "failureThreshold": 20});
    let container = json!({
        "image": "busybox", "command": ["sh", "-c", "sleep 9; touch /ready; sleep 900"], "startupProbe": startup,
        "livenessProbe": {"exec": {"command": ["cat", "/ready"]}, "periodSeconds": 1, "failureThreshold": 1},
    });
    run(&mut cluster, json!({}), container);
    advance(&mut cluster, 8);
    assert_eq!((status(&cluster)["started"].clone(), condition(&cluster, "Ready").as_str()), (json!(false), "False"));
    advance(&mut cluster, 8);
    assert_eq!((status(&cluster)["started"].clone(), condition(&cluster, "Ready").as_str()), (json!(true), "True"));
    assert_eq!(status(&cluster)["restartCount"], 0);
}

#[test]
fn a_pre_stop_hook_is_waited_for() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx", "lifecycle": {"preStop": {"sleep": {"seconds": 8}}}}));
    settle(&mut cluster);
    delete(&mut cluster);
    advance(&mut cluster, 7);
    assert_eq!(condition(&cluster, "Ready"), "True");
    advance(&mut cluster, 2);
    assert_eq!(phase(&cluster), "gone");
}

#[test]
fn containers_outlive_their_kubelet_and_are_taken_over() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx"}));
    settle(&mut cluster);
    let id = status(&cluster)["containerID"].clone();
    cluster.stop("kubelet/node-1");
    advance(&mut cluster, 60);
    cluster.start("kubelet/node-1");
    settle(&mut cluster);
    assert_eq!(status(&cluster)["containerID"], id);
    cluster.stop("kubelet/node-1");
    cluster.kill_container("default", "web", "web");
    advance(&mut cluster, 60);
    assert_eq!(status(&cluster)["restartCount"], 0);
    cluster.start("kubelet/node-1");
    settle(&mut cluster);
    assert_eq!(status(&cluster)["restartCount"], 1);
    // Force-deleted while the kubelet is down: its containers are ended when it is back.
    cluster.stop("kubelet/node-1");
    let mut request = Request::delete(&learner(), KindRef::of::<Pod>(), Key::new("default", "web"));
    request.options.grace_period_seconds = Some(0);
    cluster.request(request).unwrap();
    advance(&mut cluster, 5);
    assert_eq!(cluster.machine("node-1").unwrap().runtime.containers().filter(|(_, c)| c.is_running()).count(), 1);
    cluster.start("kubelet/node-1");
    settle(&mut cluster);
    assert_eq!(cluster.machine("node-1").unwrap().runtime.containers().count(), 0);
}

#[test]
fn without_an_apiserver_containers_are_still_restarted() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx:1.27"}));
    settle(&mut cluster);
    cluster.stop("kube-apiserver");
    cluster.kill_container("default", "web", "web");
    advance(&mut cluster, 30);
    assert_eq!(status(&cluster)["restartCount"], 0);
    let running = |cluster: &Cluster| {
        cluster.machine("node-1").unwrap().runtime.containers().filter(|(_, c)| c.is_running()).count()
    };
    assert_eq!(running(&cluster), 1);
    cluster.start("kube-apiserver");
    advance(&mut cluster, 15);
    assert_eq!(status(&cluster)["restartCount"], 1);
    assert_eq!(condition(&cluster, "Ready"), "True");
}

#[test]
fn after_a_power_cut_containers_are_made_again() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx:1.27"}));
    settle(&mut cluster);
    cluster.power_off("node-1");
    advance(&mut cluster, 20);
    cluster.power_on("node-1");
    settle(&mut cluster);
    assert_eq!((phase(&cluster).as_str(), condition(&cluster, "Ready").as_str()), ("Running", "True"));
    assert_eq!(status(&cluster)["restartCount"], 1);
    assert_eq!(status(&cluster)["lastState"]["terminated"]["exitCode"], 255);
}

#[test]
fn after_a_silence_the_node_is_reported_on_with_the_next_heartbeat() {
    let mut cluster = cluster();
    cluster.partition("node-1");
    advance(&mut cluster, 60);
    cluster.heal("node-1");
    advance(&mut cluster, 15);
    assert!(cluster.trace().writes().any(|(_, write)| &*write.reason == "reports on its node again"));
}

#[test]
fn what_somebody_else_says_of_readiness_is_put_right() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx:1.27"}));
    settle(&mut cluster);
    let mut silent = cluster.get::<Pod>("default", "web").unwrap().clone();
    for condition in silent.status_mut::<Pod>().conditions.iter_mut().flatten().filter(|known| known.type_ == "Ready") {
        condition.status = "False".into();
    }
    cluster.request(Request::update_status(&"node-lifecycle-controller".into(), silent)).unwrap();
    assert_eq!(condition(&cluster, "Ready"), "False");
    settle(&mut cluster);
    assert_eq!(condition(&cluster, "Ready"), "True");
}

#[test]
fn a_deletion_right_before_a_status_is_heard_of() {
    let mut cluster = cluster();
    cluster.settings_mut().watch = (Duration::from_secs(1), Duration::from_secs(1));
    run(&mut cluster, json!({}), json!({"image": "nginx:1.27"}));
    while cluster.machine("node-1").unwrap().runtime.containers().all(|(_, container)| !container.is_running()) {
        cluster.step();
    }
    delete(&mut cluster);
    advance(&mut cluster, 60);
    assert_eq!(phase(&cluster), "gone");
}

#[test]
fn a_new_image_replaces_the_container() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx:1.27"}));
    settle(&mut cluster);
    let mut pod = cluster.get::<Pod>("default", "web").cloned().unwrap();
    pod.spec_mut::<Pod>().containers[0].image = Some("nginx:1.28".into());
    cluster.request(Request::update(&learner(), pod)).unwrap();
    settle(&mut cluster);
    assert_eq!(status(&cluster)["image"], "docker.io/library/nginx:1.28");
    assert_eq!(status(&cluster)["restartCount"], 1);
    assert!(
        events(&cluster).contains(&("Killing".into(), "Container web definition changed, will be restarted".into()))
    );
}

#[test]
fn a_deadline_ends_a_pod() {
    let mut cluster = cluster();
    let spec = json!({"activeDeadlineSeconds": 20, "terminationGracePeriodSeconds": 1});
    run(&mut cluster, spec, json!({"image": "nginx"}));
    advance(&mut cluster, 25);
    assert_eq!(phase(&cluster), "Failed");
    assert_eq!(pod(&cluster)["status"]["reason"], "DeadlineExceeded");
}

#[test]
fn each_status_knows_the_container_event_that_led_to_it() {
    use crate::trace::{ContainerPhase, What, causes};
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx"}));
    settle(&mut cluster);
    let (entry, _) = causes::last_write(cluster.trace(), KindRef::of::<Pod>(), &Key::new("default", "web")).unwrap();
    let chain = causes::chain(cluster.trace(), entry.sequence, 20);
    let phases: Vec<_> = chain
        .iter()
        .filter_map(|entry| match &entry.what {
            What::Container(container) => Some(container.phase.clone()),
            _ => None,
        })
        .collect();
    for phase in [ContainerPhase::SandboxCreated, ContainerPhase::Pulled, ContainerPhase::Started] {
        assert!(phases.contains(&phase), "{phase:?}");
    }
    assert!(matches!(&chain[0].what, What::Request(request) if request.before.is_none()));
}

#[test]
fn a_pod_waits_until_its_claims_are_bound() {
    let mut cluster = cluster();
    run(
        &mut cluster,
        json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}),
        json!({"image": "nginx"}),
    );
    settle(&mut cluster);
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    create::<PersistentVolumeClaim>(
        &mut cluster,
        json!({"metadata": {"name": "data", "namespace": "default"}, "spec": spec}),
    );
    advance(&mut cluster, 15);
    let why = |reason: &str| {
        format!(
            "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process \
             volumes=[v]: error processing PVC default/data: {reason}"
        )
    };
    let missing = why("failed to fetch PVC from API server: persistentvolumeclaims \"data\" not found");
    let told = events(&cluster);
    let mount = |message| ("FailedMount".to_owned(), message);
    assert_eq!(told, [mount(missing), mount(why("PVC is not bound"))]);

    let mut bound = cluster.get::<PersistentVolumeClaim>("default", "data").unwrap().clone();
    bound.status_mut::<PersistentVolumeClaim>().phase = Some("Bound".into());
    cluster.request(Request::update_status(&learner(), bound)).unwrap();
    advance(&mut cluster, 30);
    assert_eq!(phase(&cluster), "Running");
}
