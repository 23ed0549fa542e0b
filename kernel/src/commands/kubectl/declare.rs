//! Client-side apply of one object, for whoever has it as JSON: a manifest cell, `kubectl apply`.

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Answer, Body, Options, PatchType, Request, Response, Verb};
use cluster_core::api::schema::Schema;
use cluster_core::api::status::Status;
use cluster_core::api::{Key, object::Object};
use serde_json::{Value, json};

use super::verbs::apply::{LAST_APPLIED, with_last_applied};
use super::verbs::three_way;
use crate::commands::Api;

/// Brings an object to what its manifest says. Answers with the object and with what was done: `created`, `configured`
/// or `unchanged`.
pub fn apply(
    api: &mut dyn Api,
    kind: &KindRef,
    key: &Key,
    manifest: &Value,
    options: &Options,
) -> Result<(Object, &'static str), Status> {
    let modified = with_last_applied(manifest);
    let request = |verb, key: Key, body| Request {
        body,
        options: options.clone(),
        ..Request::new(&"kubectl".into(), verb, kind, key)
    };
    let written = |response: Response| match response {
        Response::Object(Answer { object, .. }) => Ok(object),
        Response::List(_) => Err(Status::internal("a list came back for one object")),
    };
    let current = match api.request(request(Verb::Get, key.clone(), Body::None)) {
        Err(status) if status.is_not_found() => {
            let collection = Key::new(key.namespace.clone(), "");
            let created = api.request(request(Verb::Create, collection, Body::Json(modified)).because("applied"))?;
            return Ok((written(created)?, "created"));
        }
        found => written(found?)?,
    };
    let Difference { patch, patch_type, .. } = difference(kind, &modified, &current.to_json());
    if patch == json!({}) {
        return Ok((current, "unchanged"));
    }
    let patched = api.request(request(Verb::Patch(patch_type), key.clone(), Body::Json(patch)).because("applied"))?;
    let object = written(patched)?;
    let verb = if object.revision == current.revision { "unchanged" } else { "configured" };
    Ok((object, verb))
}

/// What a client-side apply has to change.
pub struct Difference {
    /// `{}` if nothing.
    pub patch: Value,
    pub patch_type: PatchType,
    /// The object says what was applied last.
    pub tracked: bool,
}

/// From a manifest (with itself in its annotation) and the object that is there to the patch between them.
pub fn difference(kind: &KindRef, modified: &Value, current: &Value) -> Difference {
    let annotations = current.pointer("/metadata/annotations");
    let text = annotations.and_then(|annotations| annotations.get(LAST_APPLIED)).and_then(Value::as_str);
    let original = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let schema = Schema::of(kind);
    Difference {
        tracked: original.is_some(),
        patch: three_way::patch(&original.unwrap_or_default(), modified, current, schema),
        patch_type: if schema.is_some() { PatchType::StrategicMerge } else { PatchType::Merge },
    }
}
