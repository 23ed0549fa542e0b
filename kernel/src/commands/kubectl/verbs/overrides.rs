//! `--overrides`: what is put over an object that flags describe, before it is sent.

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Body, PatchType, Request, Verb};
use cluster_core::api::schema::Schema;
use cluster_core::apiserver::patch;
use serde_json::Value;

use super::super::client;
use super::super::failure::{Failure, message};
use super::super::flags::{Flag, text};
use super::super::verb::Call;

pub const OVERRIDES: Flag = text("overrides");
pub const OVERRIDE_TYPE: Flag = text("override-type");

/// The object with what the flags say over it.
pub fn overridden(call: &Call<'_, '_>, kind: &KindRef, mut object: Value) -> Result<Value, Failure> {
    let Some(text) = call.parsed.text("overrides").filter(|text| !text.is_empty()) else { return Ok(object) };
    let patch_type = match call.parsed.text("override-type").unwrap_or("merge") {
        "merge" => PatchType::Merge,
        "json" => PatchType::Json,
        "strategic" => PatchType::StrategicMerge,
        other => return message(format!("invalid override type: {other}")),
    };
    let body: Value = serde_json::from_str(text).map_err(|_| Failure::Message("Invalid JSON Patch".into()))?;
    let request = Request { body: Body::Json(body), ..client::request(Verb::Patch(patch_type), kind, "", "") };
    patch::change(&mut object, &request, Schema::of(kind)).map_err(|status| Failure::Message(status.message))?;
    Ok(object)
}
