//! Request bodies: from bytes to the value that the apiserver reads.

use axum::body::Bytes;
use cluster_core::api::kind::Kind;
use cluster_core::api::request::{Options, PatchType};
use cluster_core::api::status::{Cause, Status};
use cluster_core::apiserver::decode::text::{self, Parsed};
use serde_json::Value;

use super::protobuf;
use super::query::{dry_run_cause, of_orphan, propagation, propagation_causes};

/// So much of a body that can't be read is shown.
const SUMMARY_BYTES_MAX: usize = 30;

/// The patch type that a content type names.
pub fn patch_type(content_type: &str) -> Option<PatchType> {
    match media_type(content_type) {
        "application/json-patch+json" => Some(PatchType::Json),
        "application/merge-patch+json" => Some(PatchType::Merge),
        "application/strategic-merge-patch+json" => Some(PatchType::StrategicMerge),
        "application/apply-patch+yaml" => Some(PatchType::Apply),
        _ => None,
    }
}

fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Why a body can't be read. Some refusals name the kind that was expected, which only the cluster knows.
pub enum Unreadable {
    Refused(Status),
    Unrecognized { problem: String, body: String },
}

impl Unreadable {
    pub fn of_kind(self, kind: &Kind) -> Status {
        match self {
            Unreadable::Refused(status) => status,
            Unreadable::Unrecognized { problem, body } => Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): {problem} ({body})",
                kind.kind
            )),
        }
    }
}

/// The object of a create or an update, and the keys that it gives twice.
pub fn object(content_type: &str, bytes: &Bytes) -> Result<Parsed, Unreadable> {
    let plain = |value| Parsed { value, duplicates: Vec::new() };
    match media_type(content_type) {
        "" | "application/json" | "*/*" => recognized(bytes),
        "application/yaml" => {
            yaml(bytes).map(plain).map_err(|problem| Unreadable::Refused(Status::bad_request(problem)))
        }
        "application/vnd.kubernetes.protobuf" => {
            protobuf::decode(bytes).map(plain).map_err(|problem| Unreadable::Refused(Status::bad_request(problem)))
        }
        _ => Err(Unreadable::Refused(unsupported())),
    }
}

/// What kube-apiserver must find in a body before it looks at the fields of its kind.
fn recognized(bytes: &Bytes) -> Result<Parsed, Unreadable> {
    const TYPE_META: &str =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let problem = match text::parse(bytes) {
        Ok(parsed) if parsed.value.is_object() || parsed.value.is_null() => return Ok(parsed),
        Ok(parsed) => text::misfit(text::json_type(&parsed.value), TYPE_META),
        Err(problem) => problem,
    };
    let problem = format!("couldn't get version/kind; json parse error: {problem}");
    Err(Unreadable::Unrecognized { problem, body: summary(bytes) })
}

/// The beginning of a body: as text if it may be an object, else in hexadecimal digits.
fn summary(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SUMMARY_BYTES_MAX)];
    let text = match bytes.first() {
        None => return "<empty>".into(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if shown.len() < bytes.len() { format!("{text} ...") } else { text }
}

/// The body of a patch of any type.
pub fn patch(patch_type: PatchType, bytes: &Bytes) -> Result<Parsed, Status> {
    if patch_type == PatchType::Apply {
        let value = yaml(bytes).map_err(|problem| Status::bad_request(format!("error decoding YAML: {problem}")))?;
        return Ok(Parsed { value, duplicates: Vec::new() });
    }
    text::parse(bytes).map_err(|problem| Status::bad_request(format!("error decoding patch: {problem}")))
}

/// Reads `DeleteOptions` from the body of a DELETE into the options that the URL gave.
pub fn delete_options(content_type: &str, bytes: &Bytes, options: &mut Options) -> Result<(), Status> {
    if bytes.is_empty() {
        return Ok(());
    }
    let value = match object(content_type, bytes) {
        Ok(parsed) => parsed.value,
        Err(Unreadable::Refused(status)) => return Err(status),
        Err(Unreadable::Unrecognized { problem, .. }) => return Err(Status::bad_request(problem)),
    };
    let word = |name: &str| value.get(name).and_then(Value::as_str);
    if let (Some(kind), version) = (word("kind"), word("apiVersion").unwrap_or("v1"))
        && kind != "DeleteOptions"
    {
        let scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";
        return Err(Status::bad_request(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{scheme}\""
        )));
    }
    let dry_run: Vec<&str> = value["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let orphan = value.get("orphanDependents").and_then(Value::as_bool);
    let mut causes: Vec<Cause> = propagation_causes(word("propagationPolicy"), orphan).into_iter().collect();
    causes.extend(dry_run_cause(&dry_run));
    if !causes.is_empty() {
        return Err(Status::invalid_options("DeleteOptions", causes));
    }
    if let Some(seconds) = value.get("gracePeriodSeconds").and_then(Value::as_i64) {
        options.grace_period_seconds = Some(seconds);
    }
    if let Some(policy) = word("propagationPolicy").and_then(propagation).or(orphan.map(of_orphan)) {
        options.propagation = Some(policy);
    }
    options.dry_run |= !dry_run.is_empty();
    let precondition = |name: &str| value.pointer(&format!("/preconditions/{name}")).and_then(Value::as_str);
    options.precondition_uid = precondition("uid").map(str::to_owned);
    options.precondition_revision = precondition("resourceVersion").and_then(|text| text.parse().ok());
    Ok(())
}

fn yaml(bytes: &Bytes) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let documents = crate::yaml::read(text).map_err(|error| error.to_string())?;
    Ok(documents.into_iter().next().map_or(Value::Null, |document| document.value))
}

fn unsupported() -> Status {
    Status::unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    )
}
