//! What a client sees of the managers of an object.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{entries, to_json};
use crate::api::Key;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::{Body, PatchType, Request, Verb};
use crate::api::status::Status;
use crate::{Cluster, Config};

fn cluster() -> Cluster {
    Cluster::new(Config { nodes: 0, ..Config::default() })
}

fn send(cluster: &mut Cluster, manager: &str, request: Request) -> Result<Value, Status> {
    let mut request = request;
    request.options.field_manager = manager.to_owned();
    cluster.request(request).map(|response| response.object().map(|object| to_json(&object)).unwrap_or_default())
}

fn patch(kind: &KindRef, patch_type: PatchType, name: &str, body: Value) -> Request {
    Request::patch(&"test".into(), kind, Key::new("default", name), patch_type, body)
}

fn apply_map(cluster: &mut Cluster, manager: &str, data: Value, force: bool) -> Result<Value, Status> {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data});
    let mut request = patch(KindRef::of::<ConfigMap>(), PatchType::Apply, "c", config);
    request.options.force = force;
    send(cluster, manager, request)
}

fn merge_map(cluster: &mut Cluster, manager: &str, body: Value) -> Result<Value, Status> {
    send(cluster, manager, patch(KindRef::of::<ConfigMap>(), PatchType::Merge, "c", body))
}

fn managers(object: &Value) -> Vec<(String, Value)> {
    let entry = |entry: &Value| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        (format!("{} {}", text("manager"), text("operation")), entry["fieldsV1"].clone())
    };
    object["metadata"]["managedFields"].as_array().into_iter().flatten().map(entry).collect()
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    })
}

#[test]
fn a_field_of_another_manager_is_a_conflict() {
    let mut cluster = cluster();
    let created = apply_map(&mut cluster, "one", json!({"a": "1", "b": "1"}), false).unwrap();
    assert_eq!(managers(&created), [("one Apply".into(), json!({"f:data": {"f:a": {}, "f:b": {}}}))]);

    let refused = apply_map(&mut cluster, "two", json!({"a": "2"}), false).unwrap_err();
    assert_eq!(
        (refused.code, &*refused.message),
        (409, "Apply failed with 1 conflict: conflict with \"one\": .data.a")
    );
    assert_eq!(refused.causes()[0].reason, "FieldManagerConflict");

    let forced = apply_map(&mut cluster, "two", json!({"a": "2"}), true).unwrap();
    assert_eq!(managers(&forced)[0], ("one Apply".into(), json!({"f:data": {"f:b": {}}})));
    merge_map(&mut cluster, "three", json!({"data": {"b": "3"}})).unwrap();
    let refused = apply_map(&mut cluster, "one", json!({"a": "1", "b": "1"}), false).unwrap_err();
    let wanted = "Apply failed with 2 conflicts: conflicts with \"three\" using v1:\n- .data.b\n\
        conflicts with \"two\":\n- .data.a";
    assert_eq!(refused.message, wanted);
}

#[test]
fn a_shared_field_goes_with_its_last_manager() {
    let mut cluster = cluster();
    apply_map(&mut cluster, "one", json!({"k": "v"}), false).unwrap();
    apply_map(&mut cluster, "two", json!({"k": "v"}), false).unwrap();
    let kept = apply_map(&mut cluster, "one", json!({}), false).unwrap();
    assert_eq!(kept["data"], json!({"k": "v"}));
    let gone = apply_map(&mut cluster, "two", json!({}), false).unwrap();
    assert_eq!(gone.get("data"), None);
}

#[test]
fn a_scaler_takes_over_the_replicas() {
    let (mut cluster, kind) = (cluster(), KindRef::of::<Deployment>());
    send(&mut cluster, "one", patch(kind, PatchType::Apply, "web", deployment())).unwrap();
    let mut scale = patch(kind, PatchType::Merge, "web", json!({"spec": {"replicas": 5}}));
    scale.subresource = "scale";
    send(&mut cluster, "scaler", scale).unwrap();
    let refused = send(&mut cluster, "one", patch(kind, PatchType::Apply, "web", deployment())).unwrap_err();
    let wanted = "Apply failed with 1 conflict: conflict with \"scaler\" with subresource \"scale\" using apps/v1: \
        .spec.replicas";
    assert_eq!(refused.message, wanted);
    let mut config = deployment();
    config["spec"].as_object_mut().unwrap().remove("replicas");
    let handed_over = send(&mut cluster, "one", patch(kind, PatchType::Apply, "web", config)).unwrap();
    assert_eq!(handed_over["spec"]["replicas"], 5);
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_client() {
    let (mut cluster, kind) = (cluster(), KindRef::of::<ConfigMap>());
    let config = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": {"a": value}});
    let mut made = config("1");
    made["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": format!("{}\n", config("1"))});
    let create =
        Request { body: Body::Json(made), ..Request::new(&"test".into(), Verb::Create, kind, Key::new("default", "")) };
    send(&mut cluster, "kubectl-client-side-apply", create).unwrap();
    let request = || patch(kind, PatchType::Apply, "c", config("2"));
    assert_eq!(send(&mut cluster, "helm", request()).unwrap_err().code, 409);
    let applied = send(&mut cluster, "kubectl", request()).unwrap();
    let annotation = &applied["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    assert!(annotation.as_str().unwrap().contains("\"a\":\"2\""), "{annotation}");
}

#[test]
fn what_was_sent_replaces_the_managers_and_an_empty_entry_forgets_them() {
    let mut cluster = cluster();
    apply_map(&mut cluster, "one", json!({"a": "1"}), false).unwrap();
    let reset = merge_map(&mut cluster, "two", json!({"metadata": {"managedFields": [{}]}})).unwrap();
    assert_eq!(managers(&reset), []);
    let untracked = merge_map(&mut cluster, "two", json!({"data": {"b": "2"}})).unwrap();
    assert_eq!(managers(&untracked), []);
    let tracked = apply_map(&mut cluster, "one", json!({"a": "1"}), false).unwrap();
    let before = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}});
    assert_eq!(managers(&tracked)[1], ("before-first-apply Update".into(), before));
}

#[test]
fn only_ten_updaters_are_told_apart() {
    let mut cluster = cluster();
    apply_map(&mut cluster, "one", json!({"k": "v"}), false).unwrap();
    let mut last = Value::Null;
    for number in 0..12 {
        let data = json!({"data": {format!("k{number}"): "v"}});
        last = merge_map(&mut cluster, &format!("updater-{number:02}"), data).unwrap();
    }
    let managers = managers(&last);
    assert_eq!(managers.len(), 11);
    assert_eq!(managers[1].0, "ancient-changes Update");
    assert_eq!(managers[1].1, json!({"f:data": {"f:k0": {}, "f:k1": {}, "f:k2": {}}}));
}

#[test]
fn a_component_that_reports_again_and_again_leaves_one_write() {
    let mut cluster = cluster();
    let kind = KindRef::of::<Lease>();
    let lease = json!({"metadata": {"name": "l", "namespace": "default"}, "spec": {"leaseTransitions": 0}});
    let actor = "kubelet/node-1".into();
    let lease = Object::from_json(kind, lease).unwrap();
    let mut lease = cluster.request(Request::create(&actor, lease)).unwrap().object().unwrap();
    for transitions in 1..100 {
        lease.spec_mut::<Lease>().lease_transitions = Some(transitions);
        lease = cluster.request(Request::update(&actor, lease)).unwrap().object().unwrap();
        assert_eq!(lease.managed.pending(), 1);
    }
    let entries = entries(&lease);
    assert_eq!((entries.len(), &*entries[0].manager), (1, "kubelet"));
    assert_eq!(entries[0].fields.to_json(), json!({"f:spec": {"f:leaseTransitions": {}}}));
}

#[test]
fn what_a_kind_does_not_have_is_refused() {
    let mut cluster = cluster();
    let refused = |cluster: &mut Cluster, change: &dyn Fn(&mut Value)| {
        let mut config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
        change(&mut config);
        let request = patch(KindRef::of::<ConfigMap>(), PatchType::Apply, "c", config);
        let status = send(cluster, "one", request).unwrap_err();
        (status.code, status.message)
    };
    let typed = "failed to create typed patch object (/c; /v1, Kind=ConfigMap): ";
    type Change<'a> = &'a dyn Fn(&mut Value);
    let wrong: [(Change<'_>, u16, String); 6] = [
        (&|config| config["spec"] = json!({}), 500, format!("{typed}.spec: field not declared in schema")),
        (&|config| config["data"] = json!(["x"]), 500, format!("{typed}.data: expected map, got &{{[x]}}")),
        (
            &|config| config["data"] = json!({"k": 5}),
            500,
            format!("{typed}.data.k: expected string, got &value.valueUnstructured{{Value:5}}"),
        ),
        (&|config| config["kind"] = "Secret".into(), 400, "invalid object type: /v1, Kind=Secret".into()),
        (&|config| config["metadata"]["managedFields"] = json!([]), 400, "metadata.managedFields must be nil".into()),
        (
            &|config| config["metadata"] = json!({}),
            400,
            "the name of the object (c based on URL) was undeterminable: name must be provided".into(),
        ),
    ];
    for (change, code, message) in wrong {
        assert_eq!(refused(&mut cluster, change), (code, message));
    }
}

/// An empty map is nothing that the API keeps, so that each apply of one adds it anew.
fn data() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[a-d]", "[xy]", 1..4).prop_map(|data| json!(data))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn applying_again_changes_nothing(configs in proptest::collection::vec(("[mn]", data()), 1..6)) {
        let mut cluster = cluster();
        for (manager, data) in configs {
            let first = apply_map(&mut cluster, &manager, data.clone(), true).unwrap();
            let second = apply_map(&mut cluster, &manager, data.clone(), true).unwrap();
            prop_assert_eq!(&first, &second);
            // What its manager owns is there, with the value that it applied.
            for (key, value) in data.as_object().into_iter().flatten() {
                prop_assert_eq!(&first["data"][key], value);
            }
            for (_, fields) in managers(&first) {
                for key in fields["f:data"].as_object().into_iter().flat_map(|fields| fields.keys()) {
                    let there = key.strip_prefix("f:").is_none_or(|key| first["data"].get(key).is_some());
                    prop_assert!(there, "{} owns what is not there: {}", key, first);
                }
            }
        }
    }
}
