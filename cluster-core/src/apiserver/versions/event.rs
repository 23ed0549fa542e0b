//! Events of core/v1 and of events.k8s.io/v1: the same under other names.

use serde_json::{Value, json};

use super::rename;

const NAMES: [(&str, &str); 8] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("related", "related"),
];

pub(super) fn from_core(event: &mut Value) {
    for (core, newer) in NAMES {
        rename(event, core, newer);
    }
    // Empty texts are not shown here.
    if let Value::Object(fields) = event {
        fields.retain(|_, value| *value != json!(""));
    }
}

pub(super) fn to_core(event: &mut Value) {
    for (core, newer) in NAMES {
        rename(event, newer, core);
    }
}
