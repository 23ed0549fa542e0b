//! How users change their minds: one row an edit; and how in the end they wish only what can be.

use cluster_core::api::Key;
use cluster_core::api::object::Object;
use cluster_core::api::request::{Body, Propagation, Request, Verb};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use crate::manifests::{BAD, GOOD};
use crate::run::{Act, HOLD, Run};
use crate::workloads;

/// An annotation without a meaning.
const TOUCHED: &str = "example.com/touched";

/// Every edit.
pub const ALL: &[Act] = &[
    Act { name: "scale", act: scale },
    Act { name: "scale owned set", act: scale_owned_set },
    Act { name: "image", act: image },
    Act { name: "bad image", act: bad_image },
    Act { name: "strategy", act: strategy },
    Act { name: "pause or resume", act: pause },
    Act { name: "suspend or resume", act: suspend },
    Act { name: "parallelism", act: parallelism },
    Act { name: "delete in background", act: delete_in_background },
    Act { name: "delete in foreground", act: delete_in_foreground },
    Act { name: "delete and orphan", act: delete_and_orphan },
    Act { name: "delete pod", act: delete_pod },
    Act { name: "delete pod by force", act: delete_pod_by_force },
    Act { name: "delete something", act: delete_something },
    Act { name: "delete namespace", act: delete_namespace },
    Act { name: "delete definition", act: delete_definition },
    Act { name: "release pod", act: release_pod },
    Act { name: "adoptable pod", act: adoptable_pod },
    Act { name: "relabel set", act: relabel_set },
    Act { name: "hold", act: hold },
    Act { name: "let go", act: let_go },
    Act { name: "evict", act: evict },
    Act { name: "cordon or uncordon", act: cordon },
    Act { name: "drain", act: drain },
    Act { name: "taint", act: taint },
    Act { name: "label node", act: label_node },
    Act { name: "add node", act: add_node },
    Act { name: "delete node", act: delete_node },
    Act { name: "service selector", act: service_selector },
    Act { name: "service type", act: service_type },
    Act { name: "change budget", act: change_budget },
    Act { name: "apply", act: apply },
    Act { name: "stale update", act: stale_update },
];

const WITH_TEMPLATE: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];
const WITH_REPLICAS: [&str; 4] = ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"];
const OWNERS: [&str; 7] =
    ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"];

/// Against its Deployment's will.
fn scale_owned_set(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["ReplicaSet"])?;
    let replicas = run.below(6);
    Some(run.patch(&of, json!({"spec": {"replicas": replicas}})))
}

fn scale(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&WITH_REPLICAS).filter(|of| of.controller().is_none())?;
    let replicas = run.below(6);
    if run.chance(30) {
        let mut request = Request::new(&"".into(), Verb::Update, &of.kind, of.key.clone());
        request.subresource = "scale";
        let metadata = json!({"name": &*of.key.name, "namespace": &*of.key.namespace});
        request.body = Body::Json(json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas},
        }));
        return Some(format!("{} to {replicas}", run.kubectl(request)));
    }
    Some(run.patch(&of, json!({"spec": {"replicas": replicas}})))
}

/// Puts another image into the template's first container.
fn set_image(run: &mut Run, of: &Object, image: &str) -> String {
    let told = run.edit(of, |body| body["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image));
    format!("{told} to {image}")
}

fn image(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&WITH_TEMPLATE)?;
    let image = run.one(&GOOD);
    Some(set_image(run, &of, image))
}

fn bad_image(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&WITH_TEMPLATE)?;
    Some(set_image(run, &of, BAD))
}

fn strategy(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["Deployment", "StatefulSet"])?;
    let body = match &*of.kind.kind {
        "Deployment" => json!({"strategy": workloads::strategy(run)}),
        _ => json!({"updateStrategy": workloads::ordered_strategy(run)}),
    };
    Some(run.patch(&of, json!({"spec": body})))
}

fn pause(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["Deployment"])?;
    let paused = run.chance(50);
    Some(run.patch(&of, json!({"spec": {"paused": paused}})))
}

fn suspend(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["Job", "CronJob"])?;
    let suspended = run.chance(50);
    Some(run.patch(&of, json!({"spec": {"suspend": suspended}})))
}

fn parallelism(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["Job"])?;
    let parallelism = run.below(4);
    Some(run.patch(&of, json!({"spec": {"parallelism": parallelism}})))
}

fn delete_owner(run: &mut Run, propagation: Option<Propagation>) -> Option<String> {
    let of = run.pick_object(&OWNERS)?;
    Some(run.delete(&of, propagation, None))
}

fn delete_in_background(run: &mut Run) -> Option<String> {
    let how = run.one(&[None, Some(Propagation::Background)]);
    delete_owner(run, how)
}

fn delete_in_foreground(run: &mut Run) -> Option<String> {
    delete_owner(run, Some(Propagation::Foreground))
}

fn delete_and_orphan(run: &mut Run) -> Option<String> {
    delete_owner(run, Some(Propagation::Orphan))
}

fn delete_pod(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["Pod"])?;
    let grace = run.one(&[None, Some(1), Some(10)]);
    Some(run.delete(&of, None, grace))
}

fn delete_pod_by_force(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["Pod"])?;
    Some(run.delete(&of, None, Some(0)))
}

/// Anything that is neither a workload nor a pod.
fn delete_something(run: &mut Run) -> Option<String> {
    let kinds = [
        "Service",
        "PodDisruptionBudget",
        "ConfigMap",
        "ResourceQuota",
        "NetworkPolicy",
        "EndpointSlice",
        "Endpoints",
        "ControllerRevision",
        "ServiceAccount",
    ];
    let of = run.pick_object(&kinds).filter(|of| &*of.key.name != "kubernetes")?;
    Some(run.delete(&of, None, None))
}

fn delete_namespace(run: &mut Run) -> Option<String> {
    let namespace = run.kind("Namespace");
    let request = Request::delete(&"".into(), &namespace, Key::cluster("team"));
    Some(run.kubectl(request))
}

fn delete_definition(run: &mut Run) -> Option<String> {
    let kind = run.kind("CustomResourceDefinition");
    let of = run.cluster.list_of(&kind, "").next()?.clone();
    Some(run.delete(&of, None, None))
}

/// A pod's owner no longer knows it by its label.
fn release_pod(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["Pod"])?;
    Some(run.patch(&of, json!({"metadata": {"labels": {"app": "aside"}}})))
}

/// A pod that somebody's selector takes for its own.
fn adoptable_pod(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"])?;
    let body = of.to_json();
    let template = body.pointer("/spec/template")?;
    let name = run.name("stray");
    let pod =
        json!({"metadata": {"name": name, "labels": template.pointer("/metadata/labels")}, "spec": template["spec"]});
    Some(run.create("Pod", &of.key.namespace, pod))
}

/// A Deployment no longer knows one of its ReplicaSets, or knows it again.
fn relabel_set(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["ReplicaSet", "ControllerRevision"])?;
    let owner = of.controller().map(|owner| owner.name.clone());
    let label = if run.chance(60) { "aside".to_owned() } else { owner? };
    Some(run.patch(&of, json!({"metadata": {"labels": {"app": label}}})))
}

fn hold(run: &mut Run) -> Option<String> {
    let kinds =
        ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "Job", "Service", "ConfigMap", "PersistentVolumeClaim"];
    let of = run.pick_object(&kinds)?;
    let mut finalizers = of.metadata().finalizers.clone().unwrap_or_default();
    finalizers.push(HOLD.to_owned());
    Some(run.patch(&of, json!({"metadata": {"finalizers": finalizers}})))
}

/// Everything that the user holds.
fn held(run: &Run) -> Vec<Object> {
    let kinds: Vec<_> = run.cluster.kinds().cloned().collect();
    let is_held = |object: &&Object| object.metadata().finalizers.iter().flatten().any(|name| name == HOLD);
    let mut held = Vec::new();
    let mut slots = std::collections::BTreeSet::new();
    for kind in kinds.iter().filter(|kind| slots.insert(kind.slot)) {
        held.extend(run.cluster.list_of(kind, "").filter(is_held).cloned());
    }
    held
}

fn release(run: &mut Run, object: &Object) -> String {
    let mut finalizers = object.metadata().finalizers.clone().unwrap_or_default();
    finalizers.retain(|name| name != HOLD);
    run.patch(object, json!({"metadata": {"finalizers": finalizers}}))
}

fn let_go(run: &mut Run) -> Option<String> {
    let held = held(run);
    let of = run.pick(&held)?;
    Some(release(run, &of))
}

fn evict_pod(run: &mut Run, pod: &Key) -> String {
    let kind = run.kind("Pod");
    let mut request = Request::new(&"".into(), Verb::Create, &kind, pod.clone());
    request.subresource = "eviction";
    let metadata = json!({"name": &*pod.name, "namespace": &*pod.namespace});
    request.body = Body::Json(json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}));
    run.kubectl(request)
}

fn evict(run: &mut Run) -> Option<String> {
    let pod = run.pick_object(&["Pod"])?.key.clone();
    Some(evict_pod(run, &pod))
}

fn nodes(run: &Run) -> Vec<Object> {
    run.cluster.list::<Node>("").cloned().collect()
}

fn a_node(run: &mut Run) -> Option<Object> {
    let nodes = nodes(run);
    run.pick(&nodes)
}

fn cordon(run: &mut Run) -> Option<String> {
    let node = a_node(run)?;
    let cordoned = node.spec::<Node>().unschedulable == Some(true);
    Some(run.patch(&node, json!({"spec": {"unschedulable": !cordoned}})))
}

fn drain(run: &mut Run) -> Option<String> {
    let node = a_node(run)?;
    let mut told = run.patch(&node, json!({"spec": {"unschedulable": true}}));
    let on_it = |pod: &&Object| pod.spec::<Pod>().node_name.as_deref() == Some(&*node.key.name);
    let is_agent = |pod: &Object| pod.controller().is_some_and(|owner| owner.kind == "DaemonSet");
    let pods: Vec<Key> =
        run.cluster.list::<Pod>("").filter(on_it).filter(|pod| !is_agent(pod)).map(|pod| pod.key.clone()).collect();
    for pod in pods {
        told = format!("{told}; {}", evict_pod(run, &pod));
    }
    Some(told)
}

fn taint(run: &mut Run) -> Option<String> {
    let node = a_node(run)?;
    let effect = run.one(&["NoSchedule", "NoExecute", "PreferNoSchedule"]);
    let told = run.edit(&node, |body| {
        let taint = json!({"key": "example.com/taint", "value": "yes", "effect": effect});
        match body["spec"]["taints"].as_array_mut() {
            Some(taints) => taints.push(taint),
            None => body["spec"]["taints"] = json!([taint]),
        }
    });
    Some(format!("{told} {effect}"))
}

fn label_node(run: &mut Run) -> Option<String> {
    let node = a_node(run)?;
    let disk = run.one(&["fast", "slow"]);
    Some(run.patch(&node, json!({"metadata": {"labels": {"disk": disk}}})))
}

fn add_node(run: &mut Run) -> Option<String> {
    let count = run.cluster.machines().count();
    if count >= 6 {
        return None;
    }
    let name = format!("node-{}", count + 1);
    run.cluster.add_node(&name);
    Some(name)
}

fn delete_node(run: &mut Run) -> Option<String> {
    let node = a_node(run)?;
    Some(run.delete(&node, None, None))
}

fn service_selector(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["Service"]).filter(|of| &*of.key.name != "kubernetes")?;
    let pod = run.pick_object(&["Pod"])?;
    let app = pod.label("app").unwrap_or("none").to_owned();
    Some(run.patch(&of, json!({"spec": {"selector": {"app": app}}})))
}

fn service_type(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["Service"]).filter(|of| &*of.key.name != "kubernetes")?;
    let to = run.one(&["ClusterIP", "NodePort"]);
    Some(run.patch(&of, json!({"spec": {"type": to}})))
}

fn change_budget(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["PodDisruptionBudget"])?;
    let amount = crate::manifests::amount(run);
    Some(run.patch(&of, json!({"spec": {"minAvailable": amount, "maxUnavailable": null}})))
}

/// Server-side apply by one of two managers.
fn apply(run: &mut Run) -> Option<String> {
    use cluster_core::api::request::PatchType;
    let of = run.pick_object(&["Deployment", "ConfigMap", "StatefulSet", "Service"])?;
    let manager = run.one(&["gitops", "operator"]);
    let mut body = json!({
        "apiVersion": of.kind.api_version(), "kind": &*of.kind.kind,
        "metadata": {"name": &*of.key.name, "labels": {manager: "yes"}},
    });
    if WITH_REPLICAS.contains(&&*of.kind.kind) && run.chance(50) {
        body["spec"] = json!({"replicas": run.below(4)});
    }
    let mut request = Request::patch(&"".into(), &of.kind, of.key.clone(), PatchType::Apply, body);
    request.options.force = run.chance(50);
    request.options.field_manager = manager.into();
    Some(run.kubectl(request))
}

/// A PUT of what was read before somebody else wrote.
fn stale_update(run: &mut Run) -> Option<String> {
    let of = run.pick_object(&["Deployment", "ReplicaSet", "Pod", "Service"])?;
    run.patch(&of, json!({"metadata": {"annotations": {TOUCHED: run.now().to_string()}}}));
    let stored = run.cluster.store().get(&of.kind, &of.key).map(|stored| stored.revision);
    if stored == Some(of.revision) {
        return None;
    }
    let told = run.edit(&of, |body| body["metadata"]["labels"]["stale"] = json!("yes"));
    assert!(told.contains(": 409 "), "a stale update is refused: {told}");
    Some(told)
}

/// The user wants nothing any more that can't be: images that don't exist, nodes that nobody may use, what is held.
pub fn make_possible(run: &mut Run) {
    for node in nodes(run) {
        let mut body = node.to_json();
        let of_user = |taint: &Value| taint["key"] == "example.com/taint";
        let tainted = body["spec"]["taints"].as_array().is_some_and(|taints| taints.iter().any(of_user));
        if tainted || node.spec::<Node>().unschedulable == Some(true) {
            run.edit(&node, |known| {
                if let Some(taints) = body["spec"]["taints"].as_array_mut() {
                    taints.retain(|taint| !of_user(taint));
                }
                known["spec"]["taints"] = body["spec"]["taints"].take();
                known["spec"]["unschedulable"] = json!(false);
            });
        }
    }
    for object in held(run) {
        release(run, &object);
    }
    let template_image = |of: &Object| of.to_json().pointer("/spec/template/spec/containers/0/image").cloned();
    for of in run.objects(&WITH_TEMPLATE) {
        if template_image(&of) == Some(json!(BAD)) {
            set_image(run, &of, GOOD[0]);
        }
    }
    for of in run.objects(&["Deployment"]) {
        if of.spec::<k8s_openapi::api::apps::v1::Deployment>().paused == Some(true) {
            run.patch(&of, json!({"spec": {"paused": false}}));
        }
    }
    // A pod that was released keeps its name from a StatefulSet that wants it again.
    for pod in run.objects(&["Pod"]).iter().filter(|pod| pod.controller().is_none() && pod.key.name.starts_with("db-"))
    {
        if !pod.is_terminating() {
            run.delete(pod, None, None);
        }
    }
    // Undoing a template does not repair a pod that is stuck with it, and a StatefulSet may make it again as it was.
    for pod in run.objects(&["Pod"]) {
        let bad = pod.spec::<Pod>().containers.iter().any(|container| container.image.as_deref() == Some(BAD));
        if !bad || pod.is_terminating() {
            continue;
        }
        match pod.controller().map(|owner| owner.kind.as_str()) {
            Some("ReplicaSet") => {}
            Some("StatefulSet") => {
                run.edit(&pod, |body| body["spec"]["containers"][0]["image"] = json!(GOOD[0]));
            }
            _ => {
                run.delete(&pod, None, None);
            }
        }
    }
    // The controller does not hear that a pod has left a budget: somebody has to touch it.
    for budget in run.objects(&["PodDisruptionBudget"]) {
        if budget.annotation(TOUCHED).is_none() {
            run.patch(&budget, json!({"metadata": {"annotations": {TOUCHED: "yes"}}}));
        }
    }
    for of in run.objects(&["ReplicaSet"]) {
        if of.controller().is_none() && template_image(&of) == Some(json!(BAD)) {
            run.delete(&of, None, None);
        }
    }
}
