//! What a learner answers in words: a value in the ConfigMap `answer` of the namespace `default`.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::trace::{Entry, RequestEntry};
use serde_json::Value;

use super::words::Words;

const NAME: &str = "answer";

/// The value under a key, and the write that put it there. The error says that there is none.
pub fn answer<'a>(cluster: &'a Cluster, key: &str) -> Result<(String, &'a Entry, &'a RequestEntry), Words> {
    let written = written(cluster, key).last();
    written.and_then(|(told, entry, request)| Some((told?, entry, request))).ok_or_else(|| is_missing(key))
}

/// The first value that was ever written under a key, and when.
pub fn first_answer<'a>(cluster: &'a Cluster, key: &str) -> Result<(String, &'a Entry), Words> {
    let first = written(cluster, key).find_map(|(told, entry, _)| Some((told?, entry)));
    first.ok_or_else(|| is_missing(key))
}

/// Each write that changed the value under a key, and the value that it left, if any.
fn written<'a>(cluster: &'a Cluster, key: &str) -> impl Iterator<Item = (Option<String>, &'a Entry, &'a RequestEntry)> {
    let is_it = |request: &RequestEntry| {
        &*request.kind.kind == "ConfigMap" && *request.key.namespace == *"default" && *request.key.name == *NAME
    };
    let writes = cluster.trace().writes().filter(move |(_, request)| is_it(request));
    writes.filter_map(move |(entry, request)| {
        let of = |object: Option<&Object>| object.and_then(|object| value(object, key));
        let told = of(request.after.as_ref());
        (told != of(request.before.as_ref())).then_some((told, entry, request))
    })
}

fn is_missing(key: &str) -> Words {
    Words::new(format!("ConfigMap {NAME} に {key} がない"), format!("the ConfigMap {NAME} has no {key}"))
}

fn value(object: &Object, key: &str) -> Option<String> {
    let json = object.to_json();
    json.get("data")?.get(key).and_then(Value::as_str).map(|text| text.trim().to_owned())
}

/// What is told of an answer that is not so. It says nothing of what would be.
pub fn is_not_so(key: &str, value: &str) -> Words {
    Words::same(format!("{NAME}.{key} = {value}"))
}
