//! Request bodies: from bytes to the value that the apiserver reads.

use axum::body::Bytes;
use cluster_core::api::request::{Body, Options, PatchType};
use cluster_core::api::status::{Cause, Status};
use serde_json::Value;

use super::protobuf;
use super::query::{dry_run_cause, of_orphan, propagation, propagation_causes};

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

/// The object of a create or an update.
pub fn object(content_type: &str, bytes: &Bytes) -> Result<Body, Status> {
    let value = match media_type(content_type) {
        "" | "application/json" | "*/*" => json(bytes)?,
        "application/yaml" => yaml(bytes)?,
        "application/vnd.kubernetes.protobuf" => protobuf::decode(bytes).map_err(Status::bad_request)?,
        _ => return Err(unsupported()),
    };
    Ok(Body::Json(value))
}

/// The body of a patch of any type.
pub fn patch(patch_type: PatchType, bytes: &Bytes) -> Result<Body, Status> {
    let value = match patch_type {
        PatchType::Apply => yaml(bytes)?,
        _ => json(bytes)?,
    };
    Ok(Body::Json(value))
}

/// Reads `DeleteOptions` from the body of a DELETE into the options that the URL gave.
pub fn delete_options(content_type: &str, bytes: &Bytes, options: &mut Options) -> Result<(), Status> {
    if bytes.is_empty() {
        return Ok(());
    }
    let Body::Json(value) = object(content_type, bytes)? else { return Ok(()) };
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    if let (Some(kind), version) = (text("kind"), text("apiVersion").unwrap_or("v1"))
        && kind != "DeleteOptions"
    {
        let scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";
        return Err(Status::bad_request(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{scheme}\""
        )));
    }
    let dry_run: Vec<&str> = value["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let orphan = value.get("orphanDependents").and_then(Value::as_bool);
    let mut causes: Vec<Cause> = propagation_causes(text("propagationPolicy"), orphan).into_iter().collect();
    causes.extend(dry_run_cause(&dry_run));
    if !causes.is_empty() {
        return Err(Status::invalid_options("DeleteOptions", causes));
    }
    if let Some(seconds) = value.get("gracePeriodSeconds").and_then(Value::as_i64) {
        options.grace_period_seconds = Some(seconds);
    }
    if let Some(policy) = text("propagationPolicy").and_then(propagation).or(orphan.map(of_orphan)) {
        options.propagation = Some(policy);
    }
    options.dry_run |= !dry_run.is_empty();
    let precondition = |name: &str| value.pointer(&format!("/preconditions/{name}")).and_then(Value::as_str);
    options.precondition_uid = precondition("uid").map(str::to_owned);
    options.precondition_revision = precondition("resourceVersion").and_then(|text| text.parse().ok());
    Ok(())
}

fn json(bytes: &Bytes) -> Result<Value, Status> {
    serde_json::from_slice(bytes).map_err(|error| Status::bad_request(error.to_string()))
}

fn yaml(bytes: &Bytes) -> Result<Value, Status> {
    let text = std::str::from_utf8(bytes).map_err(|error| Status::bad_request(error.to_string()))?;
    let documents = crate::yaml::read(text).map_err(|error| Status::bad_request(error.to_string()))?;
    Ok(documents.into_iter().next().map_or(Value::Null, |document| document.value))
}

fn unsupported() -> Status {
    Status::unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    )
}
