use serde_json::{Value, json};

use super::*;
use crate::api::Key;
use crate::api::kind::KindRef;
use crate::api::request::{PatchType, Response, Verb};
use crate::api::status::Status;
use crate::{Cluster, Config};

fn cluster() -> Cluster {
    Cluster::new(Config { nodes: 0, ..Config::default() })
}

fn actor() -> Actor {
    "kubectl".into()
}

fn create(cluster: &mut Cluster, kind: &KindRef, body: Value) -> Result<Value, Status> {
    let namespace = if kind.namespaced { "default" } else { "" };
    let mut request = Request::new(&actor(), Verb::Create, kind, Key::new(namespace, ""));
    request.body = crate::api::request::Body::Json(body);
    cluster.request(request).map(|response| response.object().unwrap().to_json())
}

fn define(cluster: &mut Cluster, plural: &str, kind: &str, versions: Value) -> Result<Value, Status> {
    let body = json!({
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": versions,
        },
    });
    create(cluster, KindRef::of::<CustomResourceDefinition>(), body)
}

fn version(name: &str, storage: bool, spec: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}});
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
}

fn definition(cluster: &Cluster, name: &str) -> Option<Value> {
    cluster.get::<CustomResourceDefinition>("", name).map(|object| object.to_json())
}

fn condition(definition: &Value, name: &str) -> String {
    let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == name).cloned().unwrap_or_default();
    format!("{} {}: {}", found["status"], found["reason"], found["message"]).replace('"', "")
}

#[test]
fn names_are_accepted_after_the_answer() {
    let mut cluster = cluster();
    let answer = define(&mut cluster, "things", "Thing", json!([version("v1", true, json!({}))])).unwrap();
    assert_eq!(answer["status"]["acceptedNames"], json!({"kind": "", "plural": ""}));
    assert_eq!(answer["status"]["storedVersions"], json!(["v1"]));
    let now = definition(&cluster, "things.example.com").unwrap();
    assert_eq!(condition(&now, "NamesAccepted"), "True NoConflicts: no conflicts found");
    assert_eq!(condition(&now, "Established"), "True InitialNamesAccepted: the initial names have been accepted");
    assert_eq!(now["status"]["acceptedNames"]["listKind"], "ThingList");
}

#[test]
fn names_of_others_are_not_accepted_until_they_are_free() {
    let mut cluster = cluster();
    define(&mut cluster, "ones", "One", json!([version("v1", true, json!({}))])).unwrap();
    define(&mut cluster, "twos", "One", json!([version("v1", true, json!({}))])).unwrap();
    let two = definition(&cluster, "twos.example.com").unwrap();
    assert_eq!(condition(&two, "NamesAccepted"), "False ListKindConflict: \\OneList\\ is already in use");
    assert_eq!(condition(&two, "Established"), "False NotAccepted: not all names are accepted");
    let kind = KindRef::of::<CustomResourceDefinition>();
    cluster.request(Request::delete(&actor(), kind, Key::cluster("ones.example.com"))).unwrap();
    let two = definition(&cluster, "twos.example.com").unwrap();
    assert_eq!(condition(&two, "Established"), "True InitialNamesAccepted: the initial names have been accepted");
}

#[test]
fn a_definition_goes_after_its_objects() {
    let mut cluster = cluster();
    define(&mut cluster, "things", "Thing", json!([version("v1", true, json!({}))])).unwrap();
    let thing = cluster.kind("example.com/v1", "Thing").unwrap().clone();
    create(&mut cluster, &thing, json!({"metadata": {"name": "a", "finalizers": ["example.com/wait"]}})).unwrap();
    create(&mut cluster, &thing, json!({"metadata": {"name": "b"}})).unwrap();
    let kind = KindRef::of::<CustomResourceDefinition>();
    let answer = cluster.request(Request::delete(&actor(), kind, Key::cluster("things.example.com"))).unwrap();
    let Response::Object(answer) = answer else { panic!("an object") };
    assert_eq!(answer.object.metadata().finalizers, Some(vec![CLEANUP.to_owned()]));
    let waiting = definition(&cluster, "things.example.com").unwrap();
    assert_eq!(
        condition(&waiting, "Terminating"),
        "True InstanceDeletionInProgress: CustomResource deletion is in progress"
    );
    let refused = create(&mut cluster, &thing, json!({"metadata": {"name": "c"}})).unwrap_err();
    assert_eq!(
        (refused.code, &*refused.message),
        (405, "create not allowed while custom resource definition is terminating")
    );
    let release = json!({"metadata": {"finalizers": null}});
    cluster.request(Request::patch(&actor(), &thing, Key::new("default", "a"), PatchType::Merge, release)).unwrap();
    assert_eq!(definition(&cluster, "things.example.com"), None);
    assert!(cluster.kind("example.com/v1", "Thing").is_none());
}

#[test]
fn versions_show_one_stored_object() {
    let mut cluster = cluster();
    let text = json!({"type": "string"});
    let versions = json!([
        version("v1", true, json!({"a": text, "b": text})),
        version("v1beta1", false, json!({"a": text, "c": {"type": "string", "default": "cc"}})),
    ]);
    define(&mut cluster, "docs", "Doc", versions).unwrap();
    let v1 = cluster.kind("example.com/v1", "Doc").unwrap().clone();
    let v1beta1 = cluster.kind("example.com/v1beta1", "Doc").unwrap().clone();
    create(&mut cluster, &v1, json!({"metadata": {"name": "d"}, "spec": {"a": "1", "b": "2"}})).unwrap();
    let key = Key::new("default", "d");
    let get = |cluster: &mut Cluster, kind: &KindRef| {
        let object = cluster.request(Request::new(&actor(), Verb::Get, kind, key.clone())).unwrap().object().unwrap();
        (object.to_json()["apiVersion"].clone(), object.to_json()["spec"].clone())
    };
    assert_eq!(get(&mut cluster, &v1beta1), (json!("example.com/v1beta1"), json!({"a": "1"})));
    let patch = json!({"spec": {"a": "3"}});
    cluster.request(Request::patch(&actor(), &v1beta1, key.clone(), PatchType::Merge, patch)).unwrap();
    assert_eq!(get(&mut cluster, &v1), (json!("example.com/v1"), json!({"a": "3"})));
}

#[test]
fn a_stored_object_gets_defaults_that_came_later() {
    let mut cluster = cluster();
    define(&mut cluster, "docs", "Doc", json!([version("v1", true, json!({"a": {"type": "string"}}))])).unwrap();
    let v1 = cluster.kind("example.com/v1", "Doc").unwrap().clone();
    create(&mut cluster, &v1, json!({"metadata": {"name": "d"}, "spec": {"a": "1"}})).unwrap();
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/later";
    let patch = json!([{"op": "add", "path": path, "value": {"type": "string", "default": "new"}}]);
    let kind = KindRef::of::<CustomResourceDefinition>();
    cluster.request(Request::patch(&actor(), kind, Key::cluster("docs.example.com"), PatchType::Json, patch)).unwrap();
    let v1 = cluster.kind("example.com/v1", "Doc").unwrap().clone();
    let read = cluster.request(Request::new(&actor(), Verb::Get, &v1, Key::new("default", "d"))).unwrap();
    assert_eq!(read.object().unwrap().to_json()["spec"], json!({"a": "1", "later": "new"}));
}

#[test]
fn a_schema_says_its_defaults_in_any_type() {
    let mut cluster = cluster();
    let spec = json!({
        "n": {"type": "integer", "default": 3, "enum": [3, 4]},
        "map": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}},
        "list": {"type": "array", "items": {"type": "string"}, "default": []},
        "open": {"type": "object", "additionalProperties": true},
    });
    define(&mut cluster, "docs", "Doc", json!([version("v1", true, spec)])).unwrap();
    let v1 = cluster.kind("example.com/v1", "Doc").unwrap().clone();
    let doc = create(&mut cluster, &v1, json!({"metadata": {"name": "d"}, "spec": {}})).unwrap();
    assert_eq!(doc["spec"], json!({"n": 3, "map": {}, "list": []}));
}
