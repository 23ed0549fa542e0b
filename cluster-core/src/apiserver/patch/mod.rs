//! Patches: from an old object and a patch to the new object.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>

pub mod apply;
pub mod json;
pub mod strategic;

use serde_json::Value;

use super::decode::text;
use super::managed::go;
use super::{ApiServer, decode, managed, versions, write};
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::{Body, FieldValidation, Options, PatchType, Request, Verb};
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
    let options = Options { strict_errors: strict_errors(request, patch), ..request.options.clone() };
    let decoded = match other_kind(server, request, &value) {
        Some(problem) => Err(problem),
        None => read(&request.kind, &value, &options),
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

/// Reads what a patch has made. The error is only what is wrong.
fn read(kind: &KindRef, value: &Value, options: &Options) -> Result<(Object, Vec<String>), String> {
    decode::json(kind, value, options).map_err(|status| {
        let prefix = format!("cannot be handled as a {}: ", kind.kind);
        status.message.split_once(&prefix).map_or(status.message.clone(), |(_, problem)| problem.to_owned())
    })
}

/// What a strict reader says of the patch itself.
fn strict_errors(request: &Request, patch: &Value) -> Vec<String> {
    let said = &request.options.strict_errors;
    if request.verb != Verb::Patch(PatchType::Json) {
        return said.clone();
    }
    said.iter().cloned().chain(json::unknown_fields(patch)).map(|problem| format!("json patch {problem}")).collect()
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
    let lenient = Options { field_validation: FieldValidation::Ignore, ..Options::default() };
    let problem = read(other, value, &lenient).err();
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;
    use crate::api::kind::Resource;
    use crate::api::request::Response;
    use crate::{Cluster, Config, api::Key};

    /// A patch of a ConfigMap, of whose text a strict reader said this.
    fn patched(
        patch_type: PatchType,
        validation: FieldValidation,
        patch: Value,
        strict_error: &str,
    ) -> Result<Vec<String>, String> {
        let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        let mut ask = |verb, name, body| {
            let mut request = Request::new(&"kubectl".into(), verb, ConfigMap::kind(), Key::new("default", name));
            request.options.field_validation = validation;
            if name == "c" {
                request.options.strict_errors.push(strict_error.into());
                request.options.field_manager = "test".into();
            }
            request.body = Body::Json(body);
            cluster.request(request)
        };
        ask(Verb::Create, "", json!({"metadata": {"name": "c"}, "data": {"k": "v"}})).unwrap();
        match ask(Verb::Patch(patch_type), "c", patch) {
            Ok(Response::Object(answer)) => Ok(answer.warnings.to_vec()),
            Ok(Response::List(_)) => unreachable!("a patch answers with an object"),
            Err(status) => Err(status.message),
        }
    }

    #[test]
    fn what_a_strict_reader_finds_comes_before_unknown_fields() {
        let twice = r#"duplicate field "data.k""#;
        let patch = json!({"data": {"k": "2"}, "spec": {}});
        let warnings = patched(PatchType::Merge, FieldValidation::Warn, patch.clone(), twice).unwrap();
        assert_eq!(warnings, [twice, r#"unknown field "spec""#]);
        let none = patched(PatchType::Merge, FieldValidation::Ignore, patch.clone(), twice);
        assert_eq!(none, Ok(vec![]));
        let refused = patched(PatchType::StrategicMerge, FieldValidation::Strict, patch, twice).unwrap_err();
        let expected =
            "\"map[data:map[k:2] spec:map[]]\": strict decoding error: duplicate field \"data.k\", unknown field";
        assert!(refused.contains(expected), "{refused}");
    }

    #[test]
    fn what_becomes_another_kind_is_read_as_that() {
        let refused = |patch| patched(PatchType::Merge, FieldValidation::Warn, patch, "").unwrap_err();
        let secret = refused(json!({"kind": "Secret"}));
        assert!(secret.ends_with(": illegal base64 data at input byte 0"), "{secret}");
        let pod = refused(json!({"kind": "Pod"}));
        assert!(pod.ends_with(": unable to decode /v1, Kind=Pod into *core.ConfigMap"), "{pod}");
    }

    #[test]
    fn operations_of_a_json_patch_have_fields_of_their_own() {
        let patch = json!([{"op": "add", "path": "/data/a", "value": "b", "why": "?"}]);
        let twice = r#"duplicate field "[0].op""#;
        let warnings = patched(PatchType::Json, FieldValidation::Warn, patch, twice).unwrap();
        assert_eq!(warnings, [r#"json patch duplicate field "[0].op""#, r#"json patch unknown field "[0].why""#]);
    }

    #[test]
    fn a_strict_apply_refuses_keys_that_stand_twice() {
        let twice = "yaml: unmarshal errors:\n  line 5: key \"data\" already set in map";
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}});
        let refused = patched(PatchType::Apply, FieldValidation::Strict, config.clone(), twice).unwrap_err();
        assert_eq!(refused, format!("error strict decoding YAML: error converting YAML to JSON: {twice}"));
        patched(PatchType::Apply, FieldValidation::Warn, config, twice).unwrap();
    }
}
