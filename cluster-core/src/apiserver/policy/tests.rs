use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde_json::{Value, json};

use super::*;
use crate::api::Key;
use crate::api::kind::KindRef;
use crate::api::request::{Body, PatchType, Response, Verb};
use crate::api::status::Status;
use crate::api::user::User;
use crate::{Cluster, Config};

fn cluster() -> Cluster {
    Cluster::new(Config { nodes: 0, ..Config::default() })
}

fn create(cluster: &mut Cluster, kind: &KindRef, body: Value) -> Result<(Value, Vec<String>), Status> {
    let namespace = if kind.namespaced { "default" } else { "" };
    let mut request = Request::new(&"kubectl".into(), Verb::Create, kind, Key::new(namespace, ""));
    request.body = Body::Json(body);
    match cluster.request(request)? {
        Response::Object(answer) => Ok((answer.object.to_json(), answer.warnings.to_vec())),
        Response::List(_) => panic!("one object"),
    }
}

fn config_map(cluster: &mut Cluster, name: &str, data: Value) -> Result<(Value, Vec<String>), Status> {
    create(cluster, KindRef::of::<ConfigMap>(), json!({"metadata": {"name": name}, "data": data}))
}

fn policy(cluster: &mut Cluster, mut spec: Value, binding: Value) {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["configmaps"],
    });
    spec["matchConstraints"] = json!({"resourceRules": [rule]});
    let mut bound = json!({"policyName": "p"});
    json_patch::merge(&mut bound, &binding);
    let (kind, binding_kind) = if spec.get("mutations").is_some() {
        (KindRef::of::<MutatingAdmissionPolicy>(), KindRef::of::<MutatingAdmissionPolicyBinding>())
    } else {
        (KindRef::of::<ValidatingAdmissionPolicy>(), KindRef::of::<ValidatingAdmissionPolicyBinding>())
    };
    create(cluster, kind, json!({"metadata": {"name": "p"}, "spec": spec})).unwrap();
    create(cluster, binding_kind, json!({"metadata": {"name": "b"}, "spec": bound})).unwrap();
}

#[test]
fn the_first_validation_that_fails_is_told() {
    let mut cluster = cluster();
    let validations = json!([
        {"expression": "!has(object.data) || !('a' in object.data)", "message": "a is not allowed"},
        {"expression": "!has(object.data) || !('b' in object.data)", "messageExpression": "'b is ' + object.data.b"},
        {"expression": "!has(object.data) || !('c' in object.data)", "reason": "Forbidden"},
        {"expression": "request.operation != 'CREATE' || object.data.kind != ''"},
        {"expression": "!has(request.subResource)"},
    ]);
    policy(&mut cluster, json!({"validations": validations}), json!({"validationActions": ["Deny"]}));
    let mut denied = |data: Value| {
        let status = config_map(&mut cluster, "m", data).unwrap_err();
        (status.code, status.message)
    };
    let text = |text: &str| {
        format!("configmaps \"m\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {text}")
    };
    assert_eq!(denied(json!({"a": "1", "c": "1"})), (422, text("a is not allowed")));
    assert_eq!(denied(json!({"b": "1"})), (422, text("b is 1")));
    let failed = "failed expression: !has(object.data) || !('c' in object.data)";
    assert_eq!(denied(json!({"c": "1"})), (403, text(failed)));
    let error =
        "expression 'request.operation != 'CREATE' || object.data.kind != ''' resulted in error: no such key: kind";
    assert_eq!(denied(json!({"x": "1"})), (422, text(error)));
    config_map(&mut cluster, "m", json!({"kind": "good"})).unwrap();
}

#[test]
fn variables_conditions_and_old_objects() {
    let mut cluster = cluster();
    let spec = json!({
        "matchConditions": [{"name": "named", "expression": "request.name != 'skipped'"}],
        "variables": [
            {"name": "kind", "expression": "has(object.data) ? object.data.kind : 'none'"},
            {"name": "long", "expression": "variables.kind + '!'"},
        ],
        "validations": [
            {"expression": "request.operation == 'DELETE' || variables.long != 'bad!'",
                "messageExpression": "variables.long + ' in ' + namespaceObject.metadata.name"},
            {"expression": "request.operation != 'UPDATE' || oldObject.data.kind == object.data.kind", "message": "no change"},
            {"expression": "request.operation != 'DELETE' || oldObject.metadata.name != 'keep'", "message": "kept"},
        ],
    });
    policy(&mut cluster, spec, json!({"validationActions": ["Deny"]}));
    let told = |status: Status| status.message.rsplit_once("denied request: ").unwrap().1.to_owned();
    assert_eq!(told(config_map(&mut cluster, "a", json!({"kind": "bad"})).unwrap_err()), "bad! in default");
    config_map(&mut cluster, "skipped", json!({"kind": "bad"})).unwrap();
    config_map(&mut cluster, "keep", json!({"kind": "good"})).unwrap();
    let (kind, key, actor) = (KindRef::of::<ConfigMap>(), Key::new("default", "keep"), "kubectl".into());
    let patch = json!({"data": {"kind": "better"}});
    let refused = cluster.request(Request::patch(&actor, kind, key.clone(), PatchType::Merge, patch)).unwrap_err();
    assert_eq!(told(refused), "no change");
    assert_eq!(told(cluster.request(Request::delete(&actor, kind, key)).unwrap_err()), "kept");
}

#[test]
fn parameters_come_from_other_objects() {
    let mut cluster = cluster();
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "Secret"},
        "validations": [{"expression": "object.metadata.name in params.data", "messageExpression": "'not in ' + params.metadata.name"}],
    });
    let reference = json!({"name": "allowed", "parameterNotFoundAction": "Deny"});
    policy(&mut cluster, spec, json!({"validationActions": ["Deny"], "paramRef": reference}));
    let told = |status: Status| status.message.rsplit_once("denied request: ").unwrap().1.to_owned();
    let missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert_eq!(told(config_map(&mut cluster, "a", json!({})).unwrap_err()), missing);
    let secret = json!({"metadata": {"name": "allowed"}, "data": {"a": ""}});
    create(&mut cluster, KindRef::of::<k8s_openapi::api::core::v1::Secret>(), secret).unwrap();
    config_map(&mut cluster, "a", json!({})).unwrap();
    assert_eq!(told(config_map(&mut cluster, "b", json!({})).unwrap_err()), "not in allowed");
}

#[test]
fn a_warning_lets_the_request_pass() {
    let mut cluster = cluster();
    let validations = json!([{"expression": "has(object.data)", "message": "data is missing"}]);
    policy(&mut cluster, json!({"validations": validations}), json!({"validationActions": ["Warn", "Audit"]}));
    let (_, warnings) = create(&mut cluster, KindRef::of::<ConfigMap>(), json!({"metadata": {"name": "a"}})).unwrap();
    assert_eq!(warnings, ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': data is missing"]);
}

#[test]
fn mutations_change_what_is_written() {
    let mut cluster = cluster();
    let apply = "Object{metadata: Object.metadata{labels: {'by': 'policy', 'name': string(object.metadata.name)}}}";
    let patch = "has(object.data) ? [JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('x.y'), \
                 value: object.metadata.labels.by}] : []";
    let mutations = json!([
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": apply}},
        {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}},
    ]);
    policy(
        &mut cluster,
        json!({"mutations": mutations, "failurePolicy": "Fail", "reinvocationPolicy": "Never"}),
        json!({}),
    );
    let (map, _) = config_map(&mut cluster, "a", json!({"k": "v"})).unwrap();
    assert_eq!(map["metadata"]["labels"], json!({"by": "policy", "name": "a"}));
    assert_eq!(map["data"], json!({"k": "v", "x.y": "policy"}));
}

#[test]
fn expressions_that_do_not_compile_are_named() {
    let spec = json!({
        "variables": [{"name": "a", "expression": "1 + 'a'"}],
        "validations": [{"expression": "object.x", "messageExpression": "1"}, {"expression": "size(request.name)"}],
        "matchConditions": [{"name": "c", "expression": "params.x == 1"}],
    });
    let mut causes = crate::apiserver::validation::field::Causes::new();
    check_validating(&mut causes, &serde_json::from_value(spec).unwrap());
    let told: Vec<String> = causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    assert_eq!(told.len(), 4, "{told:#?}");
    assert!(told[0].starts_with(
        "spec.variables[0].expression: Invalid value: \"1 + 'a'\": compilation failed: ERROR: <input>:1:3:"
    ));
    assert!(told[1].contains("undeclared reference to 'params' (in container '')"));
    assert_eq!(told[2], "spec.validations[0].messageExpression: Invalid value: \"1\": must evaluate to string");
    assert_eq!(told[3], "spec.validations[1].expression: Invalid value: \"size(request.name)\": must evaluate to bool");
}

#[test]
fn the_authorizer_answers_for_the_user_and_for_service_accounts() {
    let mut cluster = cluster();
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["own"]},
    ]);
    create(&mut cluster, KindRef::of::<Role>(), json!({"metadata": {"name": "dev"}, "rules": rules})).unwrap();
    let bound = json!({
        "metadata": {"name": "dev"}, "roleRef": {"kind": "Role", "name": "dev"},
        "subjects": [{"kind": "User", "name": "alice"}, {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    });
    create(&mut cluster, KindRef::of::<RoleBinding>(), bound).unwrap();
    let robot = "authorizer.serviceAccount('default', 'robot').group('').resource('configmaps').namespace('default')";
    let validations = json!([
        {"expression": "authorizer.requestResource.check('own').allowed()", "message": "not yours"},
        {"expression": format!("{robot}.check('create').allowed() && !{robot}.check('delete').allowed()")},
        {"expression": "!authorizer.path('/healthz').check('get').allowed()", "message": "sees /healthz"},
    ]);
    policy(&mut cluster, json!({"validations": validations}), json!({"validationActions": ["Deny"]}));
    let mut write = |user: User, name: &str| {
        let mut request =
            Request::new(&"kubectl".into(), Verb::Create, KindRef::of::<ConfigMap>(), Key::new("default", ""));
        request.body = Body::Json(json!({"metadata": {"name": name}}));
        request.user = Some(Arc::new(user));
        let told = |status: Status| status.message.rsplit_once("denied request: ").unwrap().1.to_owned();
        cluster.request(request).map(|_| ()).map_err(told)
    };
    let alice = || User { name: "alice".into(), ..User::default() };
    assert_eq!(write(alice(), "mine"), Ok(()));
    assert_eq!(write(alice(), "yours"), Err("not yours".to_owned()));
    assert_eq!(write(User::administrator(), "any"), Err("sees /healthz".to_owned()));
}
