//! `kubectl create serviceaccount`

use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::json;

use super::super::super::failure::Outcome;
use super::super::super::verb::{Call, Verb};
use super::{create_flags, generated, name_of};

pub const VERB: Verb = Verb { name: "create serviceaccount", aliases: &["sa"], flags: create_flags![], run };

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    generated::<ServiceAccount>(call, json!({"metadata": {"name": name}}), "failed to create serviceaccount: ")
}
