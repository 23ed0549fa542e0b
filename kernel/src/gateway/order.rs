//! The order of fields in answers. kube-apiserver writes them as Go's types declare them, so that what an object is comes
//! before what it says; who reads an answer as text sees its name first.

use std::borrow::Cow;

use cluster_core::go_json::escape_html;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

const OBJECT: &[&str] = &["kind", "apiVersion", "metadata"];

const METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// JSON in one line.
pub fn line(value: &Value) -> String {
    as_go(serde_json::to_string(&InOrder(value)))
}

/// JSON for people.
pub fn pretty(value: &Value) -> String {
    as_go(serde_json::to_string_pretty(&InOrder(value)))
}

fn as_go(json: serde_json::Result<String>) -> String {
    // A value made of maps with string keys serializes without fail.
    let json = json.unwrap_or_default();
    match escape_html(&json) {
        Cow::Borrowed(_) => json,
        Cow::Owned(escaped) => escaped,
    }
}

/// A value whose objects begin with their metadata.
struct InOrder<'a>(&'a Value);

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => serializer.collect_seq(items.iter().map(InOrder)),
            Value::Object(fields) if fields.get("metadata").is_some_and(Value::is_object) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for name in OBJECT {
                    match fields.get(*name) {
                        Some(metadata @ Value::Object(_)) => map.serialize_entry(name, &Metadata(metadata))?,
                        Some(value) => map.serialize_entry(name, value)?,
                        None => {}
                    }
                }
                for (name, value) in fields.iter().filter(|(name, _)| !OBJECT.contains(&name.as_str())) {
                    match name.as_str() {
                        // Those who have written a ControllerRevision compare it byte for byte, keys sorted.
                        "data" => map.serialize_entry(name, value)?,
                        _ => map.serialize_entry(name, &InOrder(value))?,
                    }
                }
                map.end()
            }
            Value::Object(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, InOrder(value)))),
            plain => plain.serialize(serializer),
        }
    }
}

struct Metadata<'a>(&'a Value);

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = || self.0.as_object().into_iter().flatten();
        let known = METADATA.iter().filter_map(|name| Some((*name, self.0.get(name)?)));
        let others = fields().filter(|(name, _)| !METADATA.contains(&name.as_str()));
        serializer.collect_map(known.chain(others.map(|(name, value)| (name.as_str(), value))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As a DaemonSet's controller makes it and finds it again.
    #[test]
    fn the_data_of_a_revision_comes_back_as_go_wrote_it() {
        let data = r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"a":"b"}},"spec":"a \u003e b"}}}"#;
        let revision = json!({"metadata": {}, "data": serde_json::from_str::<Value>(data).unwrap()});
        assert_eq!(line(&revision), format!("{{\"metadata\":{{}},\"data\":{data}}}"));
    }

    #[test]
    fn what_an_object_is_comes_before_what_it_says() {
        let pod = json!({
            "apiVersion": "v1", "data": {"a": 1}, "kind": "Pod",
            "metadata": {"annotations": {}, "uid": "u", "name": "n", "odd": true},
        });
        let list = json!({"items": [pod], "metadata": {}, "kind": "PodList"});
        assert_eq!(
            line(&list),
            "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":\
             {\"name\":\"n\",\"uid\":\"u\",\"annotations\":{},\"odd\":true},\"data\":{\"a\":1}}]}"
        );
    }
}
