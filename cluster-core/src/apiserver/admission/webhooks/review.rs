//! The question to a webhook and its answer: AdmissionReview of admission.k8s.io/v1.
//! <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#webhook-request-and-response>

use serde_json::{Map, Value, json};

use crate::api::object::Object;
use crate::api::request::Verb;
use crate::api::status::{Status, known_reason};
use crate::api::user::User;
use crate::apiserver::admission::{Attributes, Operation};

const API_VERSION: &str = "admission.k8s.io/v1";

/// What a webhook has to say.
#[derive(Debug)]
pub struct Answer {
    allowed: bool,
    status: Map<String, Value>,
    pub warnings: Vec<String>,
    /// A JSON patch.
    pub patch: Option<String>,
}

pub fn question(attributes: &Attributes<'_>, object: Option<&Object>, uid: &str) -> Value {
    let request = attributes.request;
    let about = object.or(attributes.old);
    let kind = match attributes.connects {
        Some(options) => json!({"group": "", "version": "v1", "kind": options["kind"]}),
        None => json!({
            "group": &*request.kind.group, "version": &*request.kind.version, "kind": &*request.kind.kind,
        }),
    };
    let resource = json!({
        "group": &*request.kind.group, "version": &*request.kind.version, "resource": &*request.kind.resource,
    });
    let json_of = |object: Option<&Object>| object.map_or(Value::Null, Object::to_json);
    let mut question = json!({
        "uid": uid,
        "kind": kind.clone(),
        "resource": resource.clone(),
        "requestKind": kind,
        "requestResource": resource,
        "operation": attributes.operation.as_str(),
        "userInfo": user_info(attributes),
        "object": attributes.connects.cloned().unwrap_or_else(|| json_of(object)),
        "oldObject": json_of(attributes.old),
        "dryRun": request.options.dry_run,
        "options": options(attributes),
    });
    if let Some(about) = about {
        question["name"] = (*about.key.name).into();
        if !about.key.namespace.is_empty() {
            question["namespace"] = (*about.key.namespace).into();
        }
    }
    if !request.subresource.is_empty() {
        question["subResource"] = request.subresource.into();
        question["requestSubResource"] = request.subresource.into();
    }
    json!({"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": question})
}

fn user_info(attributes: &Attributes<'_>) -> Value {
    match &attributes.request.user {
        Some(user) => user.to_json(),
        None => User::administrator().to_json(),
    }
}

fn options(attributes: &Attributes<'_>) -> Value {
    let kind = match (attributes.operation, attributes.request.verb) {
        (Operation::Create, _) => "CreateOptions",
        (Operation::Delete, _) => "DeleteOptions",
        (Operation::Update, Verb::Patch(_)) => "PatchOptions",
        (Operation::Update, _) => "UpdateOptions",
        (Operation::Connect, _) => return Value::Null,
    };
    let mut options = json!({"apiVersion": "meta.k8s.io/v1", "kind": kind});
    let sent = &attributes.request.options;
    if !sent.field_manager.is_empty() && attributes.operation != Operation::Delete {
        options["fieldManager"] = sent.field_manager.as_str().into();
    }
    if sent.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    options
}

/// Reads what came back.
///
/// # Errors
/// In kube-apiserver's words what is wrong with it.
pub fn read(review: &Value, uid: &str) -> Result<Answer, String> {
    let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text(review, "apiVersion"), text(review, "kind"));
    if (api_version.as_str(), kind.as_str()) != (API_VERSION, "AdmissionReview") {
        return Err(format!(
            "expected webhook response of {API_VERSION}, Kind=AdmissionReview, got {api_version}, Kind={kind}"
        ));
    }
    let response = review.get("response").filter(|response| response.is_object());
    let response = response.ok_or("webhook response was absent")?;
    let found = text(response, "uid");
    if found != uid {
        return Err(format!("expected response.uid=\"{uid}\", got \"{found}\""));
    }
    let (patch, patch_type) = (text(response, "patch"), text(response, "patchType"));
    let patch = match (patch.as_str(), patch_type.as_str()) {
        ("", "") => None,
        ("", _) => return Err("webhook returned response.patchType but not response.patch".into()),
        (_, "") => return Err("webhook returned response.patch but not response.patchType".into()),
        (patch, "JSONPatch") => {
            let bytes = data_encoding::BASE64.decode(patch.as_bytes()).map_err(|error| error.to_string())?;
            Some(String::from_utf8(bytes).map_err(|error| error.to_string())?)
        }
        (_, other) => {
            return Err(format!("webhook returned invalid response.patchType of \"{other}\", expected \"JSONPatch\""));
        }
    };
    let warnings = response.get("warnings").and_then(Value::as_array);
    let warnings = warnings.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let status = response.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
    Ok(Answer { allowed: response.get("allowed") == Some(&Value::Bool(true)), status, warnings, patch })
}

impl Answer {
    /// The error that a webhook's no becomes.
    pub fn refusal(&self, webhook: &str) -> Option<Status> {
        if self.allowed {
            return None;
        }
        let text = |field: &str| self.status.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let denied = format!("admission webhook \"{webhook}\" denied the request");
        let message = match text("message").or_else(|| text("reason")) {
            Some(why) => format!("{denied}: {why}"),
            None => format!("{denied} without explanation"),
        };
        let code = self.status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let reason = text("reason").and_then(known_reason);
        Some(Status {
            code: code.filter(|code| (400..600).contains(code)).unwrap_or(400),
            reason: reason.unwrap_or_default(),
            ..Status::unexplained(message)
        })
    }
}
