//! Patches: from an old object and a patch to the new object.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply>

pub mod strategic;

use serde_json::Value;

use super::{decode, versions};
use crate::api::object::Object;
use crate::api::request::{Body, PatchType, Request, Verb};
use crate::api::schema::Schema;
use crate::api::status::Status;

/// The object that a patch makes of `old`, and warnings.
pub fn apply_to(request: &Request, old: &Object) -> Result<(Object, Vec<String>), Status> {
    let Verb::Patch(patch_type) = request.verb else {
        return Err(Status::bad_request("not a patch"));
    };
    let Body::Json(patch) = &request.body else {
        return Err(Status::bad_request("a patch is JSON"));
    };
    let mut value = versions::present(old.clone(), &request.kind).to_json();
    match patch_type {
        PatchType::Merge => json_patch::merge(&mut value, patch),
        PatchType::StrategicMerge | PatchType::Apply => match Schema::of(&request.kind) {
            Some(schema) => strategic::merge(&mut value, patch, Some(schema)).map_err(Status::internal)?,
            None if patch_type == PatchType::StrategicMerge => {
                return Err(Status::unsupported_media_type(
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                ));
            }
            None => json_patch::merge(&mut value, patch),
        },
        PatchType::Json => {
            let patch: json_patch::Patch =
                serde_json::from_value(patch.clone()).map_err(|error| Status::bad_request(error.to_string()))?;
            json_patch::patch(&mut value, &patch)
                .map_err(|_| Status::unprocessable("the server rejected our request due to an error in our request"))?;
        }
    }
    decode::json(&request.kind, &value, request.options.field_validation)
}

/// Server-side apply of an object that is not there: a create.
pub fn apply_to_nothing(request: &Request) -> Result<Request, Status> {
    let body = match &request.body {
        Body::Json(value) => value.clone(),
        _ => Value::Null,
    };
    Ok(Request { verb: Verb::Create, body: Body::Json(body), ..request.clone() })
}
