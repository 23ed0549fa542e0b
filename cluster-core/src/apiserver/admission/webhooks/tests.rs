use std::sync::{Arc, Mutex};

use data_encoding::BASE64;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::{Request, Response};
use crate::api::status::Status;
use crate::apiserver::callouts::{Call, Webhooks};
use crate::{Cluster, Config};

/// Answers as it is told, and remembers what it was asked.
struct Program {
    answer: Value,
    asked: Mutex<Vec<Call>>,
}

impl Webhooks for Program {
    fn call(&self, call: &Call) -> Result<Value, String> {
        self.asked.lock().unwrap().push(call.clone());
        let mut response = self.answer.clone();
        response["uid"] = call.review["request"]["uid"].clone();
        Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
    }
}

fn cluster(answer: Value) -> (Cluster, Arc<Program>) {
    let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
    let program = Arc::new(Program { answer, asked: Mutex::default() });
    cluster.set_webhooks(program.clone());
    (cluster, program)
}

fn configure<K: Resource>(cluster: &mut Cluster, more: Value) {
    let mut hook = json!({
        "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:9443/check"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        hook[field] = value.clone();
    }
    let object = Object::from_json(K::kind(), json!({"metadata": {"name": "hooks"}, "webhooks": [hook]})).unwrap();
    cluster.request(Request::create(&"kubectl".into(), object)).unwrap();
}

fn map(cluster: &mut Cluster) -> Result<(Value, Vec<String>), Status> {
    let object = json!({"metadata": {"name": "m", "namespace": "default", "labels": {"app": "web"}}});
    let object = Object::from_json(ConfigMap::kind(), object).unwrap();
    match cluster.request(Request::create(&"kubectl".into(), object))? {
        Response::Object(answer) => Ok((answer.object.to_json(), answer.warnings.to_vec())),
        Response::List(_) => panic!("one object"),
    }
}

#[test]
fn a_webhook_changes_what_is_written() {
    let patch = BASE64.encode(br#"[{"op": "add", "path": "/data", "value": {"added": "yes"}}]"#);
    let (mut cluster, program) =
        cluster(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch, "warnings": ["look out"]}));
    configure::<MutatingWebhookConfiguration>(&mut cluster, json!({}));
    let (made, warnings) = map(&mut cluster).unwrap();
    assert_eq!(made["data"], json!({"added": "yes"}));
    assert_eq!(warnings, ["look out"]);
    let asked = program.asked.lock().unwrap();
    assert_eq!(asked[0].url, "https://127.0.0.1:9443/check?timeout=10s");
    let request = &asked[0].review["request"];
    assert_eq!((&request["operation"], &request["name"]), (&json!("CREATE"), &json!("m")));
    assert_eq!(request["object"]["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(request["oldObject"], Value::Null);
}

#[test]
fn a_webhook_refuses_in_its_own_words() {
    let (mut cluster, _) =
        cluster(json!({"allowed": false, "status": {"message": "no", "code": 403, "reason": "Forbidden"}}));
    configure::<ValidatingWebhookConfiguration>(&mut cluster, json!({}));
    let refused = map(&mut cluster).unwrap_err();
    assert_eq!((refused.code, refused.reason), (403, "Forbidden"));
    assert_eq!(refused.message, "admission webhook \"a.example.com\" denied the request: no");
}

#[test]
fn a_webhook_that_is_not_there_fails_as_its_policy_says() {
    let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
    configure::<ValidatingWebhookConfiguration>(&mut cluster, json!({"timeoutSeconds": 3}));
    let refused = map(&mut cluster).unwrap_err();
    assert_eq!(refused.code, 500);
    assert_eq!(
        refused.message,
        "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: Post \
         \"https://127.0.0.1:9443/check?timeout=3s\": dial tcp: network is unreachable"
    );
    let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
    configure::<ValidatingWebhookConfiguration>(&mut cluster, json!({"failurePolicy": "Ignore"}));
    assert!(map(&mut cluster).is_ok());
}

#[test]
fn a_webhook_is_asked_only_about_what_it_selects() {
    let (mut cluster, program) = cluster(json!({"allowed": false}));
    configure::<ValidatingWebhookConfiguration>(
        &mut cluster,
        json!({"objectSelector": {"matchLabels": {"app": "db"}}}),
    );
    assert!(map(&mut cluster).is_ok());
    assert_eq!(program.asked.lock().unwrap().len(), 0);
}

#[test]
fn a_webhook_is_asked_only_when_its_conditions_are_met() {
    let (mut cluster, program) = cluster(json!({"allowed": true}));
    let asked = || program.asked.lock().unwrap().len();
    let conditions = json!([
        {"name": "by-nobody-special", "expression": "request.userInfo.username != 'system:special'"},
        {"name": "labelled", "expression": "object.metadata.labels['app'] == 'shop'"},
    ]);
    configure::<ValidatingWebhookConfiguration>(&mut cluster, json!({"matchConditions": conditions}));
    map(&mut cluster).unwrap();
    assert_eq!(asked(), 0);
}

#[test]
fn a_condition_that_fails_refuses_unless_the_webhook_may_fail() {
    let condition = json!([{"name": "tier", "expression": "object.metadata.labels['tier'] == 'front'"}]);
    let (mut strict, _) = cluster(json!({"allowed": true}));
    configure::<ValidatingWebhookConfiguration>(&mut strict, json!({"matchConditions": condition}));
    assert_eq!(
        map(&mut strict).unwrap_err().message,
        "configmaps \"m\" is forbidden: expression 'object.metadata.labels['tier'] == 'front'' resulted in error: no \
         such key: tier"
    );
    let (mut lenient, program) = cluster(json!({"allowed": true}));
    configure::<ValidatingWebhookConfiguration>(
        &mut lenient,
        json!({"matchConditions": condition, "failurePolicy": "Ignore"}),
    );
    map(&mut lenient).unwrap();
    assert_eq!(program.asked.lock().unwrap().len(), 0);
}
