//! A request for a server-side apply: what it must say, and the object that it makes.
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/>

use serde_json::Value;

use super::{body, check_place};
use crate::api::kind::{Kind, KindRef};
use crate::api::managed::Managed;
use crate::api::object::Object;
use crate::api::request::{FieldValidation, Options, Request};
use crate::api::status::Status;
use crate::apiserver::managed::{self, apply::Applied};
use crate::apiserver::{decode, versions};
use crate::clock::Time;

/// The object that the configuration makes of `old`, with its managers.
pub fn apply_to(request: &Request, old: Option<&Object>, now: Time) -> Result<Object, Status> {
    let config = body(request)?;
    check(config, &request.kind)?;
    let applied = applied(request, config, now);
    applied.check()?;
    let live = old.map(|old| versions::present(old.clone(), &request.kind).to_json());
    let (mut value, managers) = applied.apply(live.as_ref(), old.map_or(&[], managed::entries))?;
    managed::omit_empty(&mut value, &request.kind);
    let (mut object, _) = read(&request.kind, &value, &request.options)?;
    if old.is_none() && !object.uid().is_empty() {
        let uid = object.uid();
        let detail = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
        return Err(Status::conflict(&request.kind, &request.key.name, &detail));
    }
    check_place(&object, request)?;
    object.managed = Managed::of(managers);
    Ok(object)
}

/// Reads what applying has made of an object, unless the text that was applied is refused by a strict reader.
pub fn read(kind: &KindRef, value: &Value, options: &Options) -> Result<(Object, Vec<String>), Status> {
    let Options { strict_errors, field_validation, .. } = options;
    if *field_validation == FieldValidation::Strict && !strict_errors.is_empty() {
        let problem = strict_errors.join(", ");
        return Err(Status::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {problem}"
        )));
    }
    let options = Options { field_validation: *field_validation, ..Options::default() };
    decode::json(kind, value, &options).map_err(|status| Status::unexplained(status.message))
}

pub fn applied<'a>(request: &'a Request, config: &'a Value, now: Time) -> Applied<'a> {
    Applied {
        kind: &request.kind,
        config,
        manager: managed::manager(request),
        subresource: request.subresource,
        force: request.options.force,
        time: now.to_meta().0.as_second(),
    }
}

/// The configuration is of the kind, and does not say who manages it.
pub fn check(config: &Value, kind: &Kind) -> Result<(), Status> {
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    let found = text("kind");
    if (group, version, found) != (&*kind.group, &*kind.version, &*kind.kind) {
        return Err(Status::bad_request(format!("invalid object type: {group}/{version}, Kind={found}")));
    }
    if config.pointer("/metadata/managedFields").is_some_and(|managers| !managers.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}
