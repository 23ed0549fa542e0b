//! What an Event says, in little room: there are several of them for every pod.
//! <https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/>

use k8s_openapi::api::core::v1::{EventSeries, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde::{Deserialize, Deserializer, Serialize};

/// The fields of an `Event` of the core group, without the metadata that its k8s-openapi type has among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EventFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_time: Option<MicroTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_timestamp: Option<Time>,
    #[serde(deserialize_with = "null_is_nothing")]
    pub involved_object: ObjectReference,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_timestamp: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related: Option<Box<ObjectReference>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reporting_component: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reporting_instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<EventSeries>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<EventSource>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}

fn null_is_nothing<'de, D: Deserializer<'de>>(value: D) -> Result<ObjectReference, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Event;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_fields_are_those_of_an_event() {
        let time = "2026-01-01T00:00:01.000001Z";
        let pod = json!({"kind": "Pod", "name": "web", "uid": "u"});
        let full = json!({
            "action": "a", "count": 2, "eventTime": time, "firstTimestamp": "2026-01-01T00:00:00Z",
            "involvedObject": pod, "lastTimestamp": "2026-01-01T00:00:00Z", "message": "m", "reason": "r", "related": pod,
            "reportingComponent": "c", "reportingInstance": "i", "series": {"count": 1, "lastObservedTime": time},
            "source": {"component": "c", "host": "h"}, "type": "Normal",
        });
        for sent in [full, json!({}), json!({"involvedObject": null, "reason": null, "count": null})] {
            let fields: EventFields = serde_json::from_value(sent.clone()).unwrap();
            let mut whole = sent;
            for (field, value) in [("apiVersion", "v1".into()), ("kind", "Event".into()), ("metadata", json!({}))] {
                whole[field] = value;
            }
            let event: Event = serde_json::from_value(whole).unwrap();
            let mut expected = serde_json::to_value(event).unwrap();
            expected
                .as_object_mut()
                .unwrap()
                .retain(|field, _| !["apiVersion", "kind", "metadata"].contains(&&**field));
            assert_eq!(serde_json::to_value(fields).unwrap(), expected);
        }
        let wrong = serde_json::from_value::<EventFields>(Value::from_iter([("count", "two")])).unwrap_err();
        assert!(wrong.to_string().contains("invalid type: string \"two\", expected i32"));
    }
}
