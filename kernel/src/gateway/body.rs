//! Request bodies: from bytes to the value that the apiserver reads.

use axum::body::Bytes;
use cluster_core::api::request::{Body, Options, PatchType};
use cluster_core::api::status::Status;
use serde_json::Value;

use super::query::propagation;

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
        other => return Err(unsupported(other)),
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
    if let Some(seconds) = value.get("gracePeriodSeconds").and_then(Value::as_i64) {
        options.grace_period_seconds = Some(seconds);
    }
    if let Some(policy) = value.get("propagationPolicy").and_then(Value::as_str).and_then(propagation) {
        options.propagation = Some(policy);
    }
    if let Some(all) = value.get("dryRun").and_then(Value::as_array) {
        options.dry_run |= all.iter().any(|value| value == "All");
    }
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

fn unsupported(media_type: &str) -> Status {
    let known = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {known} (got {media_type})"
    ))
}
