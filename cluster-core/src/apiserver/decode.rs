//! From a request's body to an object: apiVersion and kind, types, fields that the kind does not have.

use serde_json::Value;

use crate::api::kind::{DecodeError, KindRef};
use crate::api::object::Object;
use crate::api::request::{Body, FieldValidation, Request};
use crate::api::schema::Schema;
use crate::api::status::Status;
use crate::apiserver::{custom, versions};

/// The object of a body, in the version in which it is kept, and warnings about fields that were dropped.
pub fn body(request: &Request) -> Result<(Object, Vec<String>), Status> {
    match &request.body {
        Body::Object(object) => {
            let kept = versions::to_kept(object.clone());
            let refused = |error: DecodeError| Status::bad_request(format!("{}: {}", error.path, error.message));
            kept.map(|object| (object, Vec::new())).map_err(refused)
        }
        Body::Json(value) => json(&request.kind, value, request.options.field_validation),
        Body::None => json(&request.kind, &Value::Null, request.options.field_validation),
    }
}

/// The same for a body that is JSON, or what a patch made of one.
pub fn json(kind: &KindRef, value: &Value, validation: FieldValidation) -> Result<(Object, Vec<String>), Status> {
    let version = kind.api_version();
    if let Some(found) = value.get("apiVersion").and_then(Value::as_str)
        && (found != version || value.get("kind").and_then(Value::as_str).is_some_and(|found| *found != *kind.kind))
    {
        let found_kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
        let message = format!(
            "the API version in the data ({found}, Kind={found_kind}) does not match the expected API version ({version}, Kind={})",
            kind.kind
        );
        return Err(Status::bad_request(message));
    }
    let mut value = if value.is_null() { Value::Object(Default::default()) } else { value.clone() };
    let mut unknown = Vec::new();
    if let Some(schema) = &kind.schema {
        custom::schema::prune(&mut value, schema, "", &mut unknown);
    }
    if let Some(schema) = Schema::of(kind) {
        drop_empty(&mut value, schema);
    }
    let object = Object::from_json(kind, value.clone()).map_err(|error| {
        let resource = &kind.kind;
        let message = format!("{resource} in version \"{}\" cannot be handled as a {resource}: ", kind.version);
        Status::bad_request(format!("{message}{}: {}", error.path, error.message))
    })?;
    if validation != FieldValidation::Ignore {
        unknown_fields(&value, &object.to_json(), "", &mut unknown);
    }
    if validation == FieldValidation::Ignore {
        unknown.clear();
    }
    let texts: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    match validation {
        FieldValidation::Strict if !texts.is_empty() => {
            let message = format!(
                "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                kind.kind,
                kind.version,
                kind.kind,
                texts.join(", ")
            );
            Err(Status::bad_request(message))
        }
        _ => {
            let kept = versions::to_kept(object);
            let refused = |error: DecodeError| Status::bad_request(format!("{}: {}", error.path, error.message));
            kept.map(|object| (object, texts)).map_err(refused)
        }
    }
}

/// Empty lists and maps are none: protobuf, in which the objects of built-in kinds are kept, knows no difference.
fn drop_empty(value: &mut Value, schema: Schema<'_>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let Some(schema) = schema.property(name) else { return true };
            drop_empty(value, schema);
            match value {
                Value::Array(items) => !items.is_empty(),
                Value::Object(entries) => !(entries.is_empty() && schema.is_map()),
                _ => true,
            }
        }),
        Value::Array(items) => {
            if let Some(schema) = schema.items() {
                items.iter_mut().for_each(|item| drop_empty(item, schema));
            }
        }
        _ => {}
    }
}

/// Fields that were sent but are not there after decoding.
fn unknown_fields(sent: &Value, kept: &Value, path: &str, unknown: &mut Vec<String>) {
    match (sent, kept) {
        (Value::Object(sent), Value::Object(kept)) => {
            for (field, value) in sent {
                let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
                match kept.get(field) {
                    Some(kept) => unknown_fields(value, kept, &path, unknown),
                    None if value.is_null() || is_metadata_detail(&path) => {}
                    None => unknown.push(path),
                }
            }
        }
        (Value::Array(sent), Value::Array(kept)) => {
            for (index, (sent, kept)) in sent.iter().zip(kept).enumerate() {
                unknown_fields(sent, kept, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Known fields that objects in memory keep elsewhere.
fn is_metadata_detail(path: &str) -> bool {
    matches!(path, "metadata.resourceVersion" | "metadata.selfLink" | "apiVersion" | "kind" | "metadata" | "status")
}
