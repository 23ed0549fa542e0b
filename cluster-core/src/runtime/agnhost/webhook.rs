//! The webhooks of agnhost: `webhook` admits, mutates and denies what tests send, `crd-conversion-webhook` converts their
//! custom resources.
//! <https://github.com/kubernetes/kubernetes/tree/master/test/images/agnhost/webhook>

use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::flag;
use crate::listeners::{Reply, Reviews};

/// One of them, as its flags say.
#[derive(Debug, PartialEq)]
pub struct Reviewer {
    converts: bool,
    /// The file with the certificate that it shows.
    pub certificate: String,
    /// What it adds to pods as their sidecar.
    sidecar_image: String,
}

impl Reviewer {
    pub fn new(subcommand: &str, flags: &[String]) -> Reviewer {
        let text = |name: &str| flag(flags, name).unwrap_or_default().to_owned();
        Reviewer {
            converts: subcommand == "crd-conversion-webhook",
            certificate: text("tls-cert-file"),
            sidecar_image: text("sidecar-image"),
        }
    }

    /// What it says to an AdmissionReview's request, and after how long; `None` for a path that is not served.
    fn admit(&self, path: &str, request: &Value) -> Option<(Value, Duration)> {
        let at_once = |response: Value| Some((response, Duration::ZERO));
        match path {
            "/always-allow-delay-5s" => {
                let response = json!({"allowed": true, "status": {"message": "this webhook allows all requests"}});
                Some((response, Duration::from_secs(5)))
            }
            "/always-deny" => at_once(denied("message", "this webhook denies all requests")),
            "/add-label" => at_once(add_label(request)),
            "/pods" => Some(pods(request)),
            "/pods/attach" => at_once(attach(request)),
            "/mutating-pods" => at_once(add_init_container(request)),
            "/mutating-pods-sidecar" => at_once(self.add_sidecar(request)),
            "/configmaps" => at_once(data(request, "configmap", "the configmap contains unwanted key and value")),
            "/custom-resource" => {
                at_once(data(request, "custom resource", "the custom resource contains unwanted data"))
            }
            "/mutating-configmaps" | "/mutating-custom-resource" => at_once(next_stage(request)),
            "/crd" => at_once(definition(request)),
            _ => None,
        }
    }

    fn add_sidecar(&self, request: &Value) -> Value {
        if self.sidecar_image.is_empty() {
            let message = "No image specified by the sidecar-image parameter";
            return json!({"allowed": false, "status": {"status": "Failure", "message": message, "code": 500}});
        }
        const NAME: &str = "webhook-added-sidecar";
        if has_container(request, "containers", NAME) {
            return allowed();
        }
        let container = json!({"image": self.sidecar_image, "name": NAME, "resources": {}});
        patched(json!([{"op": "add", "path": "/spec/containers/-", "value": container}]))
    }
}

impl Reviews for Reviewer {
    fn answer(&self, path: &str, review: &Value) -> Reply {
        let missing = Reply::new(404, "404 page not found\n".into());
        let request = &review["request"];
        let (response, took) = match (self.converts, path) {
            (_, "/readyz") => return Reply::new(200, "ok".into()),
            (true, "/crdconvert") => (convert(request), Duration::ZERO),
            (true, _) => return missing,
            (false, path) => match self.admit(path, request) {
                Some(answer) => answer,
                None => return missing,
            },
        };
        let mut response = response;
        response["uid"] = request["uid"].clone();
        let body = json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response});
        Reply { took, ..Reply::new(200, body) }
    }
}

fn allowed() -> Value {
    json!({"allowed": true})
}

fn denied(field: &str, why: &str) -> Value {
    json!({"allowed": false, "status": {field: why}})
}

fn patched(patch: Value) -> Value {
    json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64.encode(patch.to_string().as_bytes())})
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn add_label(request: &Value) -> Value {
    let labels = request.pointer("/object/metadata/labels").and_then(Value::as_object);
    let at = "/metadata/labels/added-label";
    match labels.filter(|labels| !labels.is_empty()).map(|labels| labels.get("added-label")) {
        None => patched(json!([{"op": "add", "path": "/metadata/labels", "value": {"added-label": "yes"}}])),
        Some(None) => patched(json!([{"op": "add", "path": at, "value": "yes"}])),
        Some(Some(value)) if value != "yes" => patched(json!([{"op": "replace", "path": at, "value": "yes"}])),
        Some(Some(_)) => allowed(),
    }
}

/// Pods with an unwanted label or container are denied; some never get an answer.
fn pods(request: &Value) -> (Value, Duration) {
    let mut why = Vec::new();
    let mut took = Duration::ZERO;
    match text(request, "/object/metadata/labels/webhook-e2e-test") {
        "webhook-disallow" => why.push("the pod contains unwanted label;"),
        "wait-forever" => {
            why.push("the pod response should not be sent;");
            took = Duration::MAX;
        }
        _ => {}
    }
    let containers = request.pointer("/object/spec/containers").and_then(Value::as_array);
    let unwanted = containers.into_iter().flatten().filter(|one| text(one, "/name").contains("webhook-disallow"));
    why.extend(unwanted.map(|_| "the pod contains unwanted container name;"));
    let response = if why.is_empty() { allowed() } else { denied("message", &why.join(" ")) };
    (response, took)
}

fn attach(request: &Value) -> Value {
    let interactive = request.pointer("/object/stdin") == Some(&Value::Bool(true));
    let is_denied = text(request, "/name") == "to-be-attached-pod"
        && text(request, "/subResource") == "attach"
        && interactive
        && text(request, "/object/container") == "container1";
    if is_denied { denied("message", "attaching to pod 'to-be-attached-pod' is not allowed") } else { allowed() }
}

fn has_container(request: &Value, list: &str, name: &str) -> bool {
    let containers = request.pointer(&format!("/object/spec/{list}")).and_then(Value::as_array);
    containers.into_iter().flatten().any(|container| text(container, "/name") == name)
}

fn add_init_container(request: &Value) -> Value {
    const NAME: &str = "webhook-added-init-container";
    if text(request, "/object/metadata/name") != "webhook-to-be-mutated"
        || has_container(request, "initContainers", NAME)
    {
        return allowed();
    }
    let container = json!({"image": "webhook-added-image", "name": NAME, "resources": {}});
    patched(json!([{"op": "add", "path": "/spec/initContainers", "value": [container]}]))
}

/// Objects whose data say so may not be written, or not be deleted.
fn data(request: &Value, what: &str, unwanted: &str) -> Value {
    let deletes = text(request, "/operation") == "DELETE";
    let place = if deletes { "/oldObject/data/webhook-e2e-test" } else { "/object/data/webhook-e2e-test" };
    match (text(request, place), deletes) {
        ("webhook-disallow", false) => denied("reason", unwanted),
        ("webhook-nondeletable", true) => {
            let why = format!("the {what} cannot be deleted because it contains unwanted key and value");
            denied("reason", &why)
        }
        _ => allowed(),
    }
}

/// One webhook after the other leaves its mark.
fn next_stage(request: &Value) -> Value {
    let says = |key: &str| text(request, &format!("/object/data/{key}")) == "yes";
    let mark =
        |stage: u8| patched(json!([{"op": "add", "path": format!("/data/mutation-stage-{stage}"), "value": "yes"}]));
    match (says("mutation-stage-1"), says("mutation-start")) {
        (true, _) => mark(2),
        (false, true) => mark(1),
        (false, false) => allowed(),
    }
}

fn definition(request: &Value) -> Value {
    match text(request, "/object/metadata/labels/webhook-e2e-test") {
        "webhook-disallow" => denied("message", "the crd contains unwanted label"),
        _ => allowed(),
    }
}

/// `hostPort` of v1 is `host` and `port` of v2.
fn convert(request: &Value) -> Value {
    let wanted = text(request, "/desiredAPIVersion");
    let objects = request["objects"].as_array();
    let converted: Result<Vec<Value>, String> =
        objects.into_iter().flatten().map(|object| converted(object.clone(), wanted)).collect();
    match converted {
        Ok(objects) => json!({"convertedObjects": objects, "result": {"status": "Success"}}),
        Err(message) => json!({"result": {"status": "Failure", "message": message}}),
    }
}

fn converted(mut object: Value, wanted: &str) -> Result<Value, String> {
    let from = text(&object, "/apiVersion").to_owned();
    if from == wanted {
        return Err(format!("conversion from a version to itself should not call the webhook: {wanted}"));
    }
    let Value::Object(fields) = &mut object else { return Err("failed to unmarshall object".into()) };
    let shown = |value: Option<Value>| match value {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    };
    match (from.as_str(), wanted) {
        ("stable.example.com/v1", "stable.example.com/v2") => {
            if let Some(together) = fields.remove("hostPort") {
                let together = shown(Some(together));
                match together.split(':').collect::<Vec<_>>().as_slice() {
                    [host, port] => {
                        fields.insert("host".into(), (*host).into());
                        fields.insert("port".into(), (*port).into());
                    }
                    _ => return Err(format!("invalid hostPort value `{together}`")),
                }
            }
        }
        ("stable.example.com/v2", "stable.example.com/v1") => {
            let (host, port) = (fields.remove("host"), fields.remove("port"));
            if host.is_some() || port.is_some() {
                fields.insert("hostPort".into(), format!("{}:{}", shown(host), shown(port)).into());
            }
        }
        ("stable.example.com/v1" | "stable.example.com/v2", _) => {
            return Err(format!("unexpected conversion version {wanted:?}"));
        }
        _ => return Err(format!("unexpected conversion version {from:?}")),
    }
    fields.insert("apiVersion".into(), wanted.into());
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str, path: &str, request: Value) -> Reply {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let review = json!({"apiVersion": "v", "kind": "Review", "request": request});
        Reviewer::new(&words[0], &words[1..]).answer(path, &review)
    }

    #[test]
    fn a_review_is_answered_by_its_path() {
        let request =
            json!({"uid": "1", "operation": "CREATE", "object": {"data": {"webhook-e2e-test": "webhook-disallow"}}});
        let reply = ask("webhook", "/configmaps", request.clone());
        let expected = json!({"uid": "1", "allowed": false,
            "status": {"reason": "the configmap contains unwanted key and value"}});
        assert_eq!((reply.status, &reply.body["response"]), (200, &expected));
        assert_eq!(ask("webhook", "/always-allow-delay-5s", json!({})).took, Duration::from_secs(5));
        assert_eq!(ask("webhook", "/nothing", request).status, 404);
        let labelled = ask("webhook", "/add-label", json!({"object": {"metadata": {"labels": {"a": "b"}}}}));
        let patch = BASE64.decode(text(&labelled.body, "/response/patch").as_bytes()).unwrap();
        assert_eq!(patch, br#"[{"op":"add","path":"/metadata/labels/added-label","value":"yes"}]"#);
    }

    #[test]
    fn a_host_and_its_port_are_taken_apart_and_put_together() {
        let object = json!({"apiVersion": "stable.example.com/v1", "hostPort": "localhost:80"});
        let request = json!({"desiredAPIVersion": "stable.example.com/v2", "objects": [object]});
        let reply = ask("crd-conversion-webhook", "/crdconvert", request);
        let converted = reply.body["response"]["convertedObjects"][0].clone();
        assert_eq!(converted, json!({"apiVersion": "stable.example.com/v2", "host": "localhost", "port": "80"}));
        let request = json!({"desiredAPIVersion": "stable.example.com/v1", "objects": [converted]});
        let reply = ask("crd-conversion-webhook", "/crdconvert", request);
        assert_eq!(reply.body["response"]["convertedObjects"][0]["hostPort"], "localhost:80");
        let request = json!({"desiredAPIVersion": "other/v1", "objects": [{"apiVersion": "stable.example.com/v1"}]});
        let reply = ask("crd-conversion-webhook", "/crdconvert", request);
        assert_eq!(text(&reply.body, "/response/result/message"), "unexpected conversion version \"other/v1\"");
    }
}
