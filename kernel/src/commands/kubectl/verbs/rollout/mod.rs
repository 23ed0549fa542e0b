//! `kubectl rollout`: one file a word under it.

pub mod history;
pub mod pause;
pub mod restart;
pub mod status;
pub mod undo;

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use cluster_core::api::selector::Selector;
use k8s_openapi::api::apps::v1::ReplicaSet;
use serde_json::Value;

use super::super::failure::{Failure, message};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::group;

pub const VERB: Verb = Verb { name: "rollout", aliases: &[], flags: &[], run: group::on_stdout };

/// The revision that a template carries.
pub const REVISION: &str = "deployment.kubernetes.io/revision";

/// The objects that the arguments name; some must be named.
fn named(call: &mut Call<'_, '_>) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
    if call.parsed.args.is_empty() && !call.parsed.has("filename") {
        return message("required resource not specified");
    }
    let args = call.parsed.args.clone();
    call.items_or_all_of(&args, true)
}

pub fn annotation<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.pointer("/metadata/annotations")?.get(name)?.as_str()
}

/// The replica sets of a deployment with their revisions, oldest first.
fn replica_sets(call: &mut Call<'_, '_>, deployment: &Item) -> Result<Vec<(i64, Value)>, Failure> {
    let selector = deployment.value.pointer("/spec/selector").cloned().unwrap_or_default();
    let selector = serde_json::from_value(selector).map(|selector| Selector::of(&selector)).unwrap_or_default();
    let options = Options { labels: selector, ..Options::default() };
    let uid = deployment.value.pointer("/metadata/uid");
    let all = call.list(KindRef::of::<ReplicaSet>(), &deployment.namespace, options)?;
    let owned = all.into_iter().filter(|set| set.pointer("/metadata/ownerReferences/0/uid") == uid);
    let mut sets: Vec<(i64, Value)> =
        owned.map(|set| (annotation(&set, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0), set)).collect();
    sets.sort_by_key(|(revision, _)| *revision);
    Ok(sets)
}
