//! Patches: from an old object and a patch to the new object.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>

pub mod apply;
pub mod json;
pub mod strategic;

use serde_json::Value;

use super::decode::text;
use super::managed::go;
use super::{ApiServer, decode, managed, versions, write};
use crate::api::object::Object;
use crate::api::request::{Body, PatchType, Request, Verb};
use crate::api::schema::Schema;
use crate::api::status::{Cause, Status};

/// The body of a request for a patch.
pub fn body(request: &Request) -> Result<&Value, Status> {
    match &request.body {
        Body::Json(patch) => Ok(patch),
        _ => Err(Status::bad_request("a patch is JSON")),
    }
}

/// The object that a patch makes of `old`, and warnings.
pub fn apply_to(server: &ApiServer, request: &Request, old: &Object) -> Result<(Object, Vec<String>), Status> {
    let patch = body(request)?;
    // Managers are worked out only for a patch that could speak of them.
    let old = &versions::present(old.clone(), &request.kind);
    let mut value = if speaks_of_managers(patch) { managed::to_json(old) } else { old.to_json() };
    change(&mut value, request, Schema::of(&request.kind))?;
    managed::omit_empty(&mut value, &request.kind);
    let decoded = match other_kind(server, request, &value) {
        Some(problem) => Err(problem),
        None => decode::json(&request.kind, &value, request.options.field_validation).map_err(|status| {
            let prefix = format!("cannot be handled as a {}: ", request.kind.kind);
            status.message.split_once(&prefix).map_or(status.message.clone(), |(_, text)| text.to_owned())
        }),
    };
    let (object, warnings) = decoded.map_err(|problem| {
        let invalid = if is_strategic(request) { go::text(patch) } else { value.to_string() };
        let problem = match misfit(&value, request) {
            Some(misfit) if !problem.starts_with("strict decoding error") => misfit,
            _ => problem,
        };
        Status::invalid_patch(Cause::invalid("patch", invalid, problem))
    })?;
    check_place(&object, request)?;
    Ok((object, warnings))
}

fn is_strategic(request: &Request) -> bool {
    request.verb == Verb::Patch(PatchType::StrategicMerge)
}

fn misfit(value: &Value, request: &Request) -> Option<String> {
    is_strategic(request).then(|| managed::misfit(value, &request.kind)).flatten()
}

/// Carries out a patch, other than an apply, on a value of a type.
pub fn change(value: &mut Value, request: &Request, schema: Option<Schema<'_>>) -> Result<(), Status> {
    let patch = body(request)?;
    let must_be_object = |prefix: &str| match patch {
        Value::Object(_) | Value::Null => Ok(()),
        other => Err(Status::bad_request(format!(
            "{prefix}{}",
            text::misfit(text::json_type(other), "map[string]interface {}")
        ))),
    };
    match request.verb {
        Verb::Patch(PatchType::Merge) => {
            must_be_object("error decoding patch: ")?;
            if patch.is_null() {
                return Err(Status::bad_request("Invalid JSON Patch"));
            }
            json_patch::merge(value, patch);
            Ok(())
        }
        Verb::Patch(PatchType::StrategicMerge) => {
            if schema.is_none() {
                return Err(Status::unsupported_media_type(
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                ));
            }
            must_be_object("")?;
            strategic::merge(value, patch, schema)
        }
        Verb::Patch(PatchType::Json) => json::apply(value, patch),
        _ => Err(Status::bad_request("not a patch")),
    }
}

fn speaks_of_managers(patch: &Value) -> bool {
    let is_about = |text: &str| text.contains("managedFields") || text == "/metadata" || text.is_empty();
    match patch {
        Value::Object(_) => patch.pointer("/metadata/managedFields").is_some(),
        Value::Array(operations) => operations.iter().any(|operation| {
            let pointer = |field: &str| operation.get(field).and_then(Value::as_str);
            pointer("path").is_some_and(is_about) || pointer("from").is_some_and(is_about)
        }),
        _ => false,
    }
}

/// A patch that makes an object of another kind.
fn other_kind(server: &ApiServer, request: &Request, value: &Value) -> Option<String> {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let wanted = &request.kind;
    if version == wanted.api_version() && *kind == *wanted.kind || wanted.schema.is_some() {
        return None;
    }
    let Some(other) = server.kind(version, kind) else {
        let scheme = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30";
        return Some(format!("no kind {kind:?} is registered for version {version:?} in scheme {scheme:?}"));
    };
    let problem = Object::from_json(other, value.clone()).err().map(|error| error.message);
    let package = match wanted.group.split('.').next() {
        None | Some("") => "core",
        Some(package) => package,
    };
    let unable =
        || format!("unable to decode {}/{}, Kind={kind} into *{package}.{}", other.group, other.version, wanted.kind);
    Some(problem.unwrap_or_else(unable))
}

/// The object is the one that the URL names.
pub fn check_place(object: &Object, request: &Request) -> Result<(), Status> {
    let wanted = &request.key;
    let namespace = object.metadata().namespace.as_deref().unwrap_or_default();
    if request.kind.namespaced && !namespace.is_empty() && *namespace != *wanted.namespace {
        return Err(Status::bad_request(write::OTHER_NAMESPACE));
    }
    let name = &object.key.name;
    if name.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            wanted.name
        )));
    }
    if *name != wanted.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            wanted.name
        )));
    }
    Ok(())
}
