use k8s_openapi::api::core::v1::{Event as EventObject, ServiceAccount};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use serde_json::{Value, json};

use super::*;
use crate::api::request::{Body, Request, Verb};
use crate::faults::{Edge, Effect, Rule};
use crate::{Cluster, Config};
use std::time::Duration;

mod profiles;

fn cluster() -> Cluster {
    let without = ["kubelet", "kube-proxy", "kube-controller-manager"].map(str::to_owned).to_vec();
    Cluster::new(Config { nodes: 0, without, ..Config::default() })
}

fn create<K: Resource>(cluster: &mut Cluster, body: Value) -> Object {
    let mut object = Object::from_json(K::kind(), body).unwrap();
    if K::kind().namespaced {
        object.rename(Key::new("default", object.key.name.clone()));
    }
    let request = Request::create(&"kubectl".into(), object.clone());
    let created = cluster.request(request).unwrap().object().unwrap();
    object.revision = 0;
    if !K::kind().namespaced {
        // No controller is there to take the taint of new nodes away.
        cluster.request(Request::update(&"kubectl".into(), object.clone())).unwrap();
        cluster.request(Request::update_status(&"kubelet".into(), object)).unwrap();
    }
    created
}

fn node(cluster: &mut Cluster, name: &str, cpu: &str, spec: Value) {
    let capacity = json!({"cpu": cpu, "memory": "32Gi", "pods": "110"});
    let labels = json!({"kubernetes.io/hostname": name, "zone": format!("z-{}", &name[..1])});
    let status = json!({"capacity": capacity, "allocatable": capacity});
    let body = json!({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status});
    create::<Node>(cluster, body);
}

fn pod(cluster: &mut Cluster, name: &str, labels: Value, spec: Value) {
    let mut body =
        json!({"metadata": {"name": name, "labels": labels}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    for (field, value) in spec.as_object().unwrap() {
        body["spec"][field] = value.clone();
    }
    create::<Pod>(cluster, body);
}

/// A class of this value, as the pods' specs name it.
fn class(cluster: &mut Cluster, value: i32) -> String {
    let name = format!("value-{value}");
    if cluster.get::<PriorityClass>("", &name).is_none() {
        let class = json!({"metadata": {"name": name}, "value": value});
        let object = Object::from_json(PriorityClass::kind(), class).unwrap();
        cluster.request(Request::create(&"kubectl".into(), object)).unwrap();
    }
    name
}

fn requesting(cpu: &str) -> Value {
    json!({"containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": cpu}}}]})
}

fn settle(cluster: &mut Cluster) {
    cluster.settle(Duration::from_secs(60), |_| true);
}

fn node_of(cluster: &Cluster, pod: &str) -> Option<String> {
    cluster.get::<Pod>("default", pod).and_then(|pod| pod.spec::<Pod>().node_name.clone())
}

fn told(cluster: &Cluster, pod: &str) -> String {
    let pod = cluster.get::<Pod>("default", pod).unwrap();
    let conditions = pod.status::<Pod>().conditions.iter().flatten();
    let condition = conditions.into_iter().find(|condition| condition.type_ == "PodScheduled").unwrap();
    assert_eq!((condition.status.as_str(), condition.reason.as_deref()), ("False", Some("Unschedulable")));
    condition.message.clone().unwrap()
}

fn events(cluster: &Cluster, pod: &str) -> Vec<String> {
    let events = cluster.list::<EventObject>("default").map(|event| event.spec::<EventObject>());
    let about = events.filter(|event| event.involved_object.name.as_deref() == Some(pod));
    about.map(|event| format!("{} {}", event.reason.clone().unwrap(), event.message.clone().unwrap())).collect()
}

#[test]
fn a_pod_goes_to_the_node_with_most_room_and_the_event_says_so() {
    let mut cluster = cluster();
    node(&mut cluster, "small", "2", json!({}));
    node(&mut cluster, "large", "8", json!({}));
    pod(&mut cluster, "p", json!({}), requesting("1"));
    settle(&mut cluster);
    assert_eq!(node_of(&cluster, "p").as_deref(), Some("large"));
    assert_eq!(events(&cluster, "p"), ["Scheduled Successfully assigned default/p to large"]);
}

#[test]
fn replicas_of_one_thing_are_spread_over_the_nodes() {
    let mut cluster = cluster();
    for name in ["a", "b", "c"] {
        node(&mut cluster, name, "8", json!({}));
    }
    create::<Service>(
        &mut cluster,
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
    );
    settle(&mut cluster);
    for index in 0..6 {
        pod(&mut cluster, &format!("web-{index}"), json!({"app": "web"}), json!({}));
    }
    settle(&mut cluster);
    let mut nodes: Vec<_> = (0..6).filter_map(|index| node_of(&cluster, &format!("web-{index}"))).collect();
    nodes.sort();
    assert_eq!(nodes, ["a", "a", "b", "b", "c", "c"]);
}

#[test]
fn all_reasons_stand_in_one_message() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "1", json!({}));
    node(&mut cluster, "b", "8", json!({"taints": [{"key": "k", "effect": "NoSchedule"}]}));
    node(&mut cluster, "c", "8", json!({"unschedulable": true}));
    pod(&mut cluster, "p", json!({}), requesting("4"));
    settle(&mut cluster);
    let message = "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) were \
                   unschedulable. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is \
                   not helpful for scheduling.";
    assert_eq!(told(&cluster, "p"), message);
    assert_eq!(events(&cluster, "p"), [format!("FailedScheduling {message}")]);
}

#[test]
fn a_pod_that_names_a_node_hears_of_the_others_too() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "1", json!({}));
    let field = json!({"key": "metadata.name", "operator": "In", "values": ["none"]});
    let required = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    pod(&mut cluster, "p", json!({}), json!({"affinity": affinity}));
    settle(&mut cluster);
    assert!(
        told(&cluster, "p").starts_with("0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity].")
    );
}

#[test]
fn a_waiting_pod_is_bound_when_a_node_comes() {
    let mut cluster = cluster();
    pod(&mut cluster, "p", json!({}), json!({}));
    settle(&mut cluster);
    assert_eq!(told(&cluster, "p"), "no nodes available to schedule pods");
    node(&mut cluster, "a", "1", json!({}));
    settle(&mut cluster);
    assert_eq!(node_of(&cluster, "p").as_deref(), Some("a"));
    let (entry, _) = crate::trace::causes::last_write(cluster.trace(), Pod::kind(), &Key::new("default", "p")).unwrap();
    let causes = crate::trace::causes::chain(cluster.trace(), entry.sequence, 2);
    assert!(causes.iter().any(|cause| crate::trace::causes::concerns(cause, Node::kind(), &Key::cluster("a"))));
}

#[test]
fn a_gated_pod_waits_until_its_gates_are_gone() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "1", json!({}));
    pod(&mut cluster, "p", json!({}), json!({"schedulingGates": [{"name": "example.com/g"}]}));
    settle(&mut cluster);
    assert_eq!((node_of(&cluster, "p"), events(&cluster, "p").len()), (None, 0));
    let conditions = cluster.get::<Pod>("default", "p").unwrap().status::<Pod>().conditions.clone().unwrap();
    assert_eq!(conditions[0].reason.as_deref(), Some("SchedulingGated"));
}

#[test]
fn required_anti_affinity_and_spread_are_kept() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "8", json!({}));
    node(&mut cluster, "b", "8", json!({}));
    let term = json!({"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"});
    let alone = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}});
    for name in ["one", "two", "three"] {
        pod(&mut cluster, name, json!({"app": "x"}), alone.clone());
        settle(&mut cluster);
    }
    assert_ne!(node_of(&cluster, "one"), node_of(&cluster, "two"));
    assert!(
        told(&cluster, "three")
            .starts_with("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. ")
    );
    pod(&mut cluster, "four", json!({"app": "x"}), json!({}));
    settle(&mut cluster);
    assert_eq!(
        told(&cluster, "four"),
        "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules. no new claims to \
         deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    );

    let zones = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "y"}}}]});
    for index in 0..4 {
        pod(&mut cluster, &format!("y-{index}"), json!({"app": "y"}), zones.clone());
    }
    settle(&mut cluster);
    let on_a = (0..4).filter(|index| node_of(&cluster, &format!("y-{index}")).as_deref() == Some("a"));
    assert_eq!(on_a.count(), 2);
}

#[test]
fn a_pod_of_higher_priority_takes_the_place_of_a_lower_one() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "2", json!({}));
    let with_priority = |cluster: &mut Cluster, cpu: &str, priority: i32| {
        let mut spec = requesting(cpu);
        spec["priorityClassName"] = class(cluster, priority).into();
        spec
    };
    let low = with_priority(&mut cluster, "2", 1);
    pod(&mut cluster, "low", json!({}), low);
    settle(&mut cluster);
    let high = with_priority(&mut cluster, "1500m", 1000);
    pod(&mut cluster, "high", json!({}), high);
    cluster.settle(Duration::from_secs(5), |_| true);
    assert!(cluster.get::<Pod>("default", "low").is_none_or(Object::is_terminating));
    let high = cluster.get::<Pod>("default", "high").unwrap();
    assert_eq!(high.status::<Pod>().nominated_node_name.as_deref(), Some("a"));
    let uid = high.uid().to_owned();
    assert_eq!(events(&cluster, "low")[1], format!("Preempted Preempted by pod {uid} on node a"));
}

#[test]
fn a_claim_that_waits_for_its_pod_decides_with_it() {
    let mut cluster = cluster();
    for name in ["a", "b"] {
        node(&mut cluster, name, "8", json!({}));
    }
    let claiming = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]});
    pod(&mut cluster, "p", json!({}), claiming);
    settle(&mut cluster);
    assert_eq!(told(&cluster, "p"), "0/2 nodes are available: persistentvolumeclaim \"c\" not found. not found");

    let mode = "WaitForFirstConsumer";
    let class = json!({"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode});
    let class = Object::from_json(StorageClass::kind(), class).unwrap();
    cluster.request(Request::create(&"kubectl".into(), class)).unwrap();
    let at_b = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]});
    let volume = json!({
        "metadata": {"name": "disk"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "hostPath": {"path": "/d"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [at_b]}]}}},
        "status": {"phase": "Available"},
    });
    create::<PersistentVolume>(&mut cluster, volume);
    let claim = json!({
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local", "resources": {"requests": {"storage": "1Gi"}}},
    });
    create::<PersistentVolumeClaim>(&mut cluster, claim);
    settle(&mut cluster);
    let disk = cluster.get::<PersistentVolume>("", "disk").unwrap().spec::<PersistentVolume>();
    assert_eq!(disk.claim_ref.as_ref().and_then(|claim| claim.name.as_deref()), Some("c"));
    assert_eq!(node_of(&cluster, "p"), None, "it is bound only when its claim is");
    let nominated = cluster.get::<Pod>("default", "p").unwrap().status::<Pod>().nominated_node_name.clone();
    assert_eq!(nominated.as_deref(), Some("b"));

    let body = json!({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "disk"}});
    let (kind, key) = (PersistentVolumeClaim::kind(), Key::new("default", "c"));
    let patch = crate::api::request::PatchType::Merge;
    cluster.request(Request::patch(&"controller".into(), kind, key, patch, body)).unwrap();
    settle(&mut cluster);
    assert_eq!(node_of(&cluster, "p").as_deref(), Some("b"));
}

#[test]
fn somebody_else_binds_first_and_is_respected() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "8", json!({}));
    node(&mut cluster, "b", "2", json!({}));
    pod(&mut cluster, "p", json!({}), requesting("1"));
    while cluster.scheduler().binding.len() == 0 {
        cluster.step();
    }
    let body = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "b"}});
    let request = Request::new(&"learner".into(), Verb::Create, Pod::kind(), Key::new("default", "p"));
    cluster.request(Request { subresource: "binding", body: Body::Json(body), ..request }).unwrap();
    settle(&mut cluster);
    assert_eq!(node_of(&cluster, "p").as_deref(), Some("b"));
    assert!(events(&cluster, "p")[0].contains("pod p is already assigned to node \"b\""));
    assert_eq!(cluster.scheduler().cache.node("b").unwrap().requested.milli_cpu, 1000);
    assert_eq!(cluster.scheduler().cache.node("a").unwrap().requested.milli_cpu, 0);
}

#[test]
fn the_verdict_tells_every_node() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "8", json!({}));
    node(&mut cluster, "b", "8", json!({}));
    node(&mut cluster, "c", "8", json!({"unschedulable": true}));
    pod(&mut cluster, "p", json!({}), requesting("1"));
    settle(&mut cluster);
    let verdict = cluster.scheduler().verdict(&Key::new("default", "p")).unwrap();
    assert_eq!(verdict.outcome.clone().ok().map(|node| node.to_string()), node_of(&cluster, "p"));
    let rejected =
        NodeVerdict::Rejected { plugin: "NodeUnschedulable", reasons: vec!["node(s) were unschedulable".into()] };
    assert!(verdict.nodes.contains(&("c".into(), rejected)));
    let points = |name: &str| match verdict.nodes.iter().find(|(node, _)| **node == *name) {
        Some((_, NodeVerdict::Passed { total, .. })) => *total,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(points("a"), points("b"));
    assert!(points("a") > 300);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
    /// Whatever comes in whatever order, no node gets more than it has.
    #[test]
    fn nodes_are_never_overcommitted(seed in 0..u64::MAX, pods in proptest::collection::vec((1..40_i64, 0..3_i32, 0..400_u64), 1..40)) {
        let without = ["kubelet", "kube-proxy", "kube-controller-manager"].map(str::to_owned).to_vec();
        let mut cluster = Cluster::new(Config { seed, nodes: 0, without, ..Config::default() });
        create::<ServiceAccount>(&mut cluster, json!({"metadata": {"name": "default"}}));
        for name in ["a", "b", "c"] {
            node(&mut cluster, name, "4", json!({}));
        }
        for (index, (tenths, priority, pause)) in pods.iter().enumerate() {
            let mut spec = requesting(&format!("{}m", tenths * 100));
            spec["priorityClassName"] = class(&mut cluster, *priority).into();
            pod(&mut cluster, &format!("p-{index}"), json!({}), spec);
            cluster.advance(Duration::from_millis(*pause), |_| true);
        }
        settle(&mut cluster);
        let mut taken = std::collections::BTreeMap::<String, i64>::new();
        for (index, (tenths, _, _)) in pods.iter().enumerate() {
            if let Some(node) = node_of(&cluster, &format!("p-{index}")) {
                *taken.entry(node).or_default() += tenths * 100;
            }
        }
        proptest::prop_assert!(taken.values().all(|milli_cpu| *milli_cpu <= 4000), "{taken:?}");
    }
}

fn budget(cluster: &mut Cluster, app: &str, allowed: i32) {
    let selector = json!({"matchLabels": {"app": app}});
    let status = json!({"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1});
    let body = json!({"metadata": {"name": app}, "spec": {"selector": selector, "minAvailable": 1}, "status": status});
    let mut object = create::<PodDisruptionBudget>(cluster, body.clone());
    object.set_status_part(Object::from_json(PodDisruptionBudget::kind(), body).unwrap().status_part().clone());
    cluster.request(Request::update_status(&"disruption-controller".into(), object)).unwrap();
}

#[test]
fn preemption_spares_whom_a_budget_keeps() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "2", json!({}));
    node(&mut cluster, "b", "2", json!({}));
    budget(&mut cluster, "kept", 0);
    for (name, app, priority, at) in [("kept", "kept", 1, "a"), ("free", "free", 5, "b")] {
        let mut spec = requesting("2");
        spec["priorityClassName"] = class(&mut cluster, priority).into();
        spec["nodeSelector"] = json!({"kubernetes.io/hostname": at});
        pod(&mut cluster, name, json!({"app": app}), spec);
    }
    settle(&mut cluster);
    let mut spec = requesting("2");
    spec["priorityClassName"] = class(&mut cluster, 100).into();
    pod(&mut cluster, "boss", json!({}), spec);
    cluster.settle(Duration::from_secs(5), |_| true);
    let leaves = |name: &str| cluster.get::<Pod>("default", name).is_none_or(Object::is_terminating);
    assert_eq!((leaves("kept"), leaves("free")), (false, true));
}

#[test]
fn a_binding_that_fails_is_tried_again_after_a_while() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "2", json!({}));
    let fails = Rule {
        edge: Edge::Request,
        component: "kube-scheduler".into(),
        kind: "pods".into(),
        name: "".into(),
        effect: Effect::Drop,
        times: Some(2),
        until: None,
    };
    cluster.add_rule(fails, "bindings fail");
    pod(&mut cluster, "p", json!({}), json!({}));
    cluster.advance(Duration::from_millis(900), |_| true);
    assert_eq!(node_of(&cluster, "p"), None);
    cluster.advance(Duration::from_secs(10), |_| true);
    assert_eq!(node_of(&cluster, "p").as_deref(), Some("a"));
}

#[test]
fn a_driver_attaches_only_so_many_volumes() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "2", json!({}));
    let driver = json!({"name": "disk.test", "nodeID": "a", "allocatable": {"count": 1}});
    let drivers = json!({"metadata": {"name": "a"}, "spec": {"drivers": [driver]}});
    let drivers = Object::from_json(CSINode::kind(), drivers).unwrap();
    cluster.request(Request::create(&"driver".into(), drivers)).unwrap();
    for name in ["one", "two"] {
        let common = json!({"accessModes": ["ReadWriteMany"], "storageClassName": ""});
        let (mut volume, mut claim) = (common.clone(), common);
        volume["capacity"] = json!({"storage": "1Gi"});
        volume["csi"] = json!({"driver": "disk.test", "volumeHandle": name});
        volume["claimRef"] = json!({"namespace": "default", "name": name});
        claim["resources"] = json!({"requests": {"storage": "1Gi"}});
        claim["volumeName"] = name.into();
        create::<PersistentVolume>(&mut cluster, json!({"metadata": {"name": name}, "spec": volume}));
        let bound = json!({"pv.kubernetes.io/bind-completed": "yes"});
        create::<PersistentVolumeClaim>(
            &mut cluster,
            json!({"metadata": {"name": name, "annotations": bound}, "spec": claim}),
        );
    }
    let mounts = |claim: &str| json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]});
    pod(&mut cluster, "first", json!({}), mounts("one"));
    settle(&mut cluster);
    pod(&mut cluster, "shares", json!({}), mounts("one"));
    pod(&mut cluster, "more", json!({}), mounts("two"));
    settle(&mut cluster);
    assert_eq!(node_of(&cluster, "shares").as_deref(), Some("a"));
    assert!(told(&cluster, "more").starts_with("0/1 nodes are available: 1 node(s) exceed max volume count."));
}

#[test]
fn a_pod_of_another_scheduler_is_left_alone() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "2", json!({}));
    pod(&mut cluster, "p", json!({}), json!({"schedulerName": "other"}));
    settle(&mut cluster);
    assert_eq!((node_of(&cluster, "p"), events(&cluster, "p").len()), (None, 0));
    assert!(cluster.get::<Pod>("default", "p").unwrap().status::<Pod>().conditions.is_none());
}

#[test]
fn a_node_that_has_a_large_image_is_better() {
    let mut cluster = cluster();
    for name in ["a", "b", "c"] {
        node(&mut cluster, name, "8", json!({}));
    }
    let mut has_it = cluster.get::<Node>("", "b").unwrap().clone();
    let image = json!({"names": ["registry.test/model:1"], "sizeBytes": 900 << 20});
    has_it.status_mut::<Node>().images = serde_json::from_value(json!([image])).unwrap();
    cluster.request(Request::update_status(&"kubelet".into(), has_it)).unwrap();
    settle(&mut cluster);
    pod(&mut cluster, "p", json!({}), json!({"containers": [{"name": "c", "image": "registry.test/model:1"}]}));
    settle(&mut cluster);
    assert_eq!(node_of(&cluster, "p").as_deref(), Some("b"));
    let verdict = cluster.scheduler().verdict(&Key::new("default", "p")).unwrap();
    let of = |name: &str| match verdict.nodes.iter().find(|(node, _)| **node == *name) {
        Some((_, NodeVerdict::Passed { points, .. })) => {
            points.iter().find(|(name, _)| *name == "ImageLocality").unwrap().1
        }
        other => panic!("{name}: {other:?}"),
    };
    // A third of the nodes has it, so it counts as 300 MiB of 23 to 1000.
    assert_eq!((of("a"), of("b")), (0, 28));
}

#[test]
fn a_claim_for_one_pod_keeps_the_second_waiting() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "8", json!({}));
    let spec = json!({
        "accessModes": ["ReadWriteOncePod"], "storageClassName": "", "volumeName": "disk",
        "resources": {"requests": {"storage": "1Gi"}},
    });
    let annotations = json!({"pv.kubernetes.io/bind-completed": "yes"});
    create::<PersistentVolumeClaim>(
        &mut cluster,
        json!({"metadata": {"name": "c", "annotations": annotations}, "spec": spec}),
    );
    let spec = json!({
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOncePod"], "hostPath": {"path": "/d"},
        "claimRef": {"namespace": "default", "name": "c"},
    });
    create::<PersistentVolume>(&mut cluster, json!({"metadata": {"name": "disk"}, "spec": spec}));
    for name in ["one", "two"] {
        pod(
            &mut cluster,
            name,
            json!({}),
            json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}),
        );
        settle(&mut cluster);
    }
    assert_eq!(node_of(&cluster, "one").as_deref(), Some("a"));
    assert!(told(&cluster, "two").starts_with(
        "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
         already in-use by another pod. "
    ));
    cluster.request(Request::delete(&"kubectl".into(), Pod::kind(), Key::new("default", "one"))).unwrap();
    let mut delete = Request::delete(&"kubelet".into(), Pod::kind(), Key::new("default", "one"));
    delete.options.grace_period_seconds = Some(0);
    cluster.request(delete).unwrap();
    settle(&mut cluster);
    assert_eq!(node_of(&cluster, "two").as_deref(), Some("a"));
}

#[test]
fn what_forbids_every_node_is_told_before_any_is_looked_at() {
    let mut cluster = cluster();
    node(&mut cluster, "a", "8", json!({}));
    let named = |name: &str| json!({"key": "metadata.name", "operator": "In", "values": [name]});
    let required = json!({"nodeSelectorTerms": [{"matchFields": [named("a"), named("b")]}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    pod(&mut cluster, "torn", json!({}), json!({"affinity": affinity}));
    let template = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    pod(
        &mut cluster,
        "early",
        json!({}),
        json!({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}]}),
    );
    settle(&mut cluster);
    assert_eq!(told(&cluster, "torn"), "0/1 nodes are available: pod affinity terms conflict. not found");
    assert_eq!(
        told(&cluster, "early"),
        "0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim \
         \"early-v\". not found"
    );
}
