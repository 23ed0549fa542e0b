//! `kubectl create namespace`

use k8s_openapi::api::core::v1::Namespace;
use serde_json::json;

use super::super::super::failure::Outcome;
use super::super::super::verb::{Call, Verb};
use super::{create_flags, generated, name_of};

pub const VERB: Verb = Verb { name: "create namespace", aliases: &["ns"], flags: create_flags![], run };

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    generated::<Namespace>(call, json!({"metadata": {"name": name}, "spec": {}, "status": {}}), "")
}
