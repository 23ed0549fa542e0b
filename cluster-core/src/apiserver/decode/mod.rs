//! From a request's body to an object: apiVersion and kind, types, fields that the kind does not have.

mod base64;
pub mod text;
mod walk;

use serde_json::Value;

use crate::api::kind::{Kind, KindRef};
use crate::api::kinds;
use crate::api::object::Object;
use crate::api::request::{Body, FieldValidation, Options, Request};
use crate::api::schema::Schema;
use crate::api::status::{Cause, Status};
use crate::apiserver::{custom, versions};

/// The object of a body, in the version in which it is kept, and warnings about fields that were dropped.
pub fn body(request: &Request) -> Result<(Object, Vec<String>), Status> {
    match &request.body {
        Body::Object(object) => kept(object.clone()).map(|object| (object, Vec::new())),
        Body::Json(value) => json(&request.kind, value, &request.options),
        Body::None => json(&request.kind, &Value::Null, &request.options),
    }
}

/// The same for a value, be it sent or made by a patch.
pub fn json(kind: &KindRef, value: &Value, options: &Options) -> Result<(Object, Vec<String>), Status> {
    check_kind(kind, value)?;
    let mut value = if value.is_null() { Value::Object(Default::default()) } else { value.clone() };
    let mut unknown = Vec::new();
    let custom_schema = custom::version(kind).and_then(|version| version.schema.as_ref());
    match (custom_schema, Schema::of(kind)) {
        (Some(schema), _) => {
            custom::schema::prune_resource(&mut value, schema, &mut unknown);
            unknown.sort();
        }
        (None, Some(schema)) => {
            walk::object(&mut value, schema, &mut unknown).map_err(|error| unreadable(kind, kind, &error))?;
        }
        (None, None) => {}
    }
    check_revision(&value)?;
    let object = Object::from_json(kind, value)
        .map_err(|error| unreadable(kind, kind, &format!("{}: {}", error.path, error.message)))?;
    let mut texts = options.strict_errors.clone();
    texts.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
    if custom_schema.is_none() && !options.key_order.is_empty() {
        text::sort_faults(&mut texts, &options.key_order);
    }
    match options.field_validation {
        FieldValidation::Ignore => kept(object).map(|object| (object, Vec::new())),
        FieldValidation::Strict if !texts.is_empty() => {
            Err(unreadable(kind, kind, &format!("strict decoding error: {}", texts.join(", "))))
        }
        _ => kept(object).map(|object| (object, texts)),
    }
}

fn kept(object: Object) -> Result<Object, Status> {
    versions::to_kept(object).map_err(|error| Status::bad_request(format!("{}: {}", error.path, error.message)))
}

fn unreadable(found: &Kind, wanted: &Kind, problem: &str) -> Status {
    let (kind, version) = (&found.kind, &found.version);
    Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {}: {problem}", wanted.kind))
}

/// apiVersion and kind may be left out; else they are those of the URL.
pub fn check_kind(kind: &KindRef, value: &Value) -> Result<(), Status> {
    if let Some(definition) = custom::versions(kind) {
        return check_custom_kind(kind, definition, value);
    }
    let text = |field: &str| value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let expected = kind.api_version();
    let (version, name) = (text("apiVersion").unwrap_or(&expected), text("kind").unwrap_or(&kind.kind));
    if version == expected && *name == *kind.kind {
        return Ok(());
    }
    let (group, short_version) = version.split_once('/').unwrap_or(("", version));
    if *name == *kind.kind && group == &*kind.group {
        return Err(other_version(version, &expected));
    }
    let known = |known: &&KindRef| *known.kind == *name && *known.group == *group && *known.version == *short_version;
    let problem = match kinds::built_in().iter().find(known) {
        Some(found) => format!(
            "converting ({}.{name}) to ({}.{}): unknown conversion",
            found.version,
            internal_package(kind),
            kind.kind
        ),
        None => {
            let scheme = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30";
            let problem = format!("no kind \"{name}\" is registered for version \"{version}\" in scheme \"{scheme}\"");
            return Err(unreadable(kind, kind, &problem));
        }
    };
    Err(Status::bad_request(format!(
        "{name} in version \"{short_version}\" cannot be handled as a {}: {problem}",
        kind.kind
    )))
}

/// Bodies of custom kinds in process may leave them out, too, but not just one of them: they are converted from the
/// version that they name.
fn check_custom_kind<'a>(
    kind: &KindRef,
    mut versions: impl Iterator<Item = &'a str>,
    value: &Value,
) -> Result<(), Status> {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, name, expected) = (text("apiVersion"), text("kind"), kind.api_version());
    if version.is_empty() && name.is_empty() || version == expected && *name == *kind.kind {
        return Ok(());
    }
    let (group, short_version) = version.split_once('/').unwrap_or(("", version));
    let unsuitable = |problem: String| {
        Err(Status::bad_request(format!(
            "{name} in version \"{short_version}\" cannot be handled as a {}: {problem}",
            kind.kind
        )))
    };
    if group != &*kind.group {
        let found = format!("{group}/{short_version}, Kind={name}");
        return unsuitable(format!("{found} is unstructured and is not suitable for converting to \"{expected}\""));
    }
    if !versions.any(|known| known == short_version) {
        return unsuitable(format!("request to convert CR from an invalid group/version: {version}"));
    }
    if version != expected {
        return Err(other_version(version, &expected));
    }
    let cause = Cause::invalid("kind", name, format!("must be {}", kind.kind));
    let message = format!("{name}.{} \"{}\" is invalid: kind: {}", kind.group, object_name(value), cause.message);
    Err(Status { message, ..Status::invalid(kind, object_name(value), vec![cause]) })
}

fn other_version(found: &str, expected: &str) -> Status {
    Status::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({expected})"
    ))
}

fn object_name(value: &Value) -> &str {
    value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// The API server's own name for the types of a group.
fn internal_package(kind: &Kind) -> &str {
    match &*kind.group {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    }
}

/// A resourceVersion is a number.
fn check_revision(value: &Value) -> Result<(), Status> {
    match value.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
        Some(text) if !text.is_empty() && text.parse::<u64>().is_err() => {
            Err(Status::unexplained(format!("strconv.ParseUint: parsing {text:?}: invalid syntax")))
        }
        _ => Ok(()),
    }
}
