//! `kubectl create configmap`

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::super::super::failure::Outcome;
use super::super::super::flags::switch;
use super::super::super::verb::{Call, Verb};
use super::sources::{self, FROM_ENV_FILE, FROM_FILE, FROM_LITERAL};
use super::{create_flags, generated, name_of};

pub const VERB: Verb = Verb {
    name: "create configmap",
    aliases: &["cm"],
    flags: create_flags![FROM_LITERAL, FROM_FILE, FROM_ENV_FILE, switch("append-hash")],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let data = sources::data(call, "ConfigMap", &name)?;
    let mut map = json!({"metadata": {"name": name}});
    if !data.is_empty() {
        map["data"] = json!(data);
    }
    generated::<ConfigMap>(call, map, "failed to create configmap: ")
}
