//! Fields that the API shows even where nothing was written into them: Go marshals times and structs that are no
//! pointers whatever they hold, and lists without `omitempty` as null. The types of k8s-openapi leave them out.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::kind::Kind;

/// The time that was never set: Go writes it as null.
pub const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// For each type: a place (`[]` stands for every item of a list) and what stands there when nothing else does.
const ALWAYS_SHOWN: &[(&str, &[(&str, &str)])] = &[
    (
        "io.k8s.api.core.v1.Event",
        &[
            ("eventTime", "null"),
            ("firstTimestamp", "null"),
            ("lastTimestamp", "null"),
            ("reportingComponent", "\"\""),
            ("reportingInstance", "\"\""),
            ("source", "{}"),
            ("series.lastObservedTime", "null"),
        ],
    ),
    (
        "io.k8s.api.events.v1.Event",
        &[
            ("eventTime", "null"),
            ("deprecatedFirstTimestamp", "null"),
            ("deprecatedLastTimestamp", "null"),
            ("deprecatedSource", "{}"),
            ("regarding", "{}"),
        ],
    ),
    ("io.k8s.api.core.v1.Namespace", &[("status.conditions[].lastTransitionTime", "null")]),
    (
        "io.k8s.api.core.v1.Node",
        &[
            ("status.conditions[].lastHeartbeatTime", "null"),
            ("status.conditions[].lastTransitionTime", "null"),
            ("status.daemonEndpoints", "{\"kubeletEndpoint\": {\"Port\": 0}}"),
            (
                "status.nodeInfo",
                "{\"machineID\": \"\", \"systemUUID\": \"\", \"bootID\": \"\", \"kernelVersion\": \"\", \
                 \"osImage\": \"\", \"containerRuntimeVersion\": \"\", \"kubeletVersion\": \"\", \
                 \"kubeProxyVersion\": \"\", \"operatingSystem\": \"\", \"architecture\": \"\"}",
            ),
        ],
    ),
    (
        "io.k8s.api.core.v1.Pod",
        &[
            ("status.conditions[].lastProbeTime", "null"),
            ("status.conditions[].lastTransitionTime", "null"),
            ("status.containerStatuses[].state", "{}"),
            ("status.containerStatuses[].lastState", "{}"),
            ("status.containerStatuses[].state.running.startedAt", "null"),
            ("status.containerStatuses[].state.terminated.startedAt", "null"),
            ("status.containerStatuses[].state.terminated.finishedAt", "null"),
            ("status.containerStatuses[].lastState.terminated.startedAt", "null"),
            ("status.containerStatuses[].lastState.terminated.finishedAt", "null"),
            ("status.initContainerStatuses[].state", "{}"),
            ("status.initContainerStatuses[].lastState", "{}"),
            ("status.initContainerStatuses[].state.running.startedAt", "null"),
            ("status.initContainerStatuses[].state.terminated.startedAt", "null"),
            ("status.initContainerStatuses[].state.terminated.finishedAt", "null"),
        ],
    ),
    (
        "io.k8s.api.core.v1.PersistentVolumeClaim",
        &[
            ("spec.resources", "{}"),
            ("status.conditions[].lastProbeTime", "null"),
            ("status.conditions[].lastTransitionTime", "null"),
        ],
    ),
    ("io.k8s.api.core.v1.ReplicationController", &[("status.conditions[].lastTransitionTime", "null")]),
    (
        "io.k8s.api.core.v1.Service",
        &[("status.loadBalancer", "{}"), ("status.conditions[].lastTransitionTime", "null")],
    ),
    ("io.k8s.api.networking.v1.ServiceCIDR", &[("status.conditions[].lastTransitionTime", "null")]),
    ("io.k8s.api.policy.v1.PodDisruptionBudget", &[("status.conditions[].lastTransitionTime", "null")]),
    ("io.k8s.api.networking.v1.Ingress", &[("status.loadBalancer", "{}")]),
    ("io.k8s.api.networking.v1.NetworkPolicy", &[("spec.podSelector", "{}")]),
    (
        "io.k8s.api.apps.v1.Deployment",
        &[
            ("spec.strategy", "{}"),
            ("status.conditions[].lastUpdateTime", "null"),
            ("status.conditions[].lastTransitionTime", "null"),
        ],
    ),
    ("io.k8s.api.apps.v1.ReplicaSet", &[("status.conditions[].lastTransitionTime", "null")]),
    (
        "io.k8s.api.apps.v1.StatefulSet",
        &[("spec.updateStrategy", "{}"), ("status.conditions[].lastTransitionTime", "null")],
    ),
    (
        "io.k8s.api.apps.v1.DaemonSet",
        &[("spec.updateStrategy", "{}"), ("status.conditions[].lastTransitionTime", "null")],
    ),
    (
        "io.k8s.api.batch.v1.Job",
        &[("status.conditions[].lastProbeTime", "null"), ("status.conditions[].lastTransitionTime", "null")],
    ),
    (
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
        &[("status.currentMetrics", "null"), ("status.conditions[].lastTransitionTime", "null")],
    ),
    (
        "io.k8s.api.certificates.v1.CertificateSigningRequest",
        &[("status.conditions[].lastUpdateTime", "null"), ("status.conditions[].lastTransitionTime", "null")],
    ),
    (
        "io.k8s.api.policy.v1.PodDisruptionBudget",
        &[
            ("status.currentHealthy", "0"),
            ("status.desiredHealthy", "0"),
            ("status.disruptionsAllowed", "0"),
            ("status.expectedPods", "0"),
        ],
    ),
    ("io.k8s.api.rbac.v1.Role", &[("rules", "null"), ("rules[].verbs", "null")]),
    ("io.k8s.api.rbac.v1.ClusterRole", &[("rules", "null"), ("rules[].verbs", "null")]),
    ("io.k8s.api.storage.v1.CSINode", &[("spec.drivers", "null"), ("spec.drivers[].topologyKeys", "null")]),
    (
        "io.k8s.api.storage.v1.VolumeAttachment",
        &[("status.attachError.time", "null"), ("status.detachError.time", "null")],
    ),
    (
        "io.k8s.api.discovery.v1.EndpointSlice",
        &[
            ("endpoints", "null"),
            ("ports", "null"),
            ("endpoints[].addresses", "null"),
            ("endpoints[].conditions", "{}"),
        ],
    ),
    ("io.k8s.api.authentication.v1.TokenRequest", &[("spec.audiences", "null"), ("spec.boundObjectRef", "null")]),
    ("io.k8s.api.core.v1.LimitRange", &[("spec.limits", "null")]),
    ("io.k8s.api.flowcontrol.v1.FlowSchema", &[("status.conditions[].lastTransitionTime", "null")]),
    (
        "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration",
        &[("spec.limited.limitResponse", "{\"type\": \"\"}"), ("status.conditions[].lastTransitionTime", "null")],
    ),
    ("io.k8s.api.resource.v1.ResourceClaim", &[("spec.devices", "{}")]),
    ("io.k8s.api.resource.v1.ResourceClaimTemplate", &[("spec.spec.devices", "{}")]),
    (
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
        &[("status.conditions[].lastTransitionTime", "null")],
    ),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        &[
            ("status.conditions", "null"),
            ("status.conditions[].lastTransitionTime", "null"),
            ("status.storedVersions", "null"),
        ],
    ),
];

enum Step {
    Field(&'static str),
    /// The list in this field, each item of it.
    Items(&'static str),
}

struct Shown {
    way: Vec<Step>,
    field: &'static str,
    empty: Value,
}

static BY_TYPE: LazyLock<BTreeMap<&str, Vec<Shown>>> = LazyLock::new(|| {
    let shown = |&(place, empty): &(&'static str, &str)| {
        let (way, field) = place.rsplit_once('.').unwrap_or(("", place));
        let step = |step: &'static str| step.strip_suffix("[]").map_or(Step::Field(step), Step::Items);
        Shown {
            way: way.split('.').filter(|step| !step.is_empty()).map(step).collect(),
            field,
            empty: serde_json::from_str(empty).unwrap_or_default(),
        }
    };
    ALWAYS_SHOWN.iter().map(|(name, places)| (*name, places.iter().map(shown).collect())).collect()
});

/// Adds to the JSON of an object what the API shows of its kind in any case.
pub(super) fn complete(kind: &Kind, object: &mut Map<String, Value>) {
    for shown in BY_TYPE.get(&*kind.type_name).into_iter().flatten() {
        fill(object, &shown.way, shown);
    }
}

fn fill(object: &mut Map<String, Value>, way: &[Step], shown: &Shown) {
    match way.split_first() {
        None => {
            let is_zero = |value: &Value| value == ZERO_TIME || value.as_array().is_some_and(Vec::is_empty);
            if object.get(shown.field).is_none_or(is_zero) {
                object.insert(shown.field.to_owned(), shown.empty.clone());
            }
        }
        Some((Step::Field(field), rest)) => {
            if let Some(Value::Object(inner)) = object.get_mut(*field) {
                fill(inner, rest, shown);
            }
        }
        Some((Step::Items(field), rest)) => {
            let items = object.get_mut(*field).and_then(Value::as_array_mut);
            for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
                fill(item, rest, shown);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::authentication::v1::TokenRequest;
    use k8s_openapi::api::core::v1::Event;
    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use k8s_openapi::api::rbac::v1::Role;
    use serde_json::json;

    use super::*;
    use crate::kind::Resource;
    use crate::kinds;
    use crate::object::Object;

    #[test]
    fn what_go_always_marshals_is_shown() {
        let shown = |object: Object| object.to_json();
        assert_eq!(shown(Object::new::<Role>("a", "r", Default::default()))["rules"], Value::Null);
        let event = shown(Object::new::<Event>("a", "e", Default::default()));
        assert_eq!((event.get("eventTime"), &event["source"]), (Some(&Value::Null), &json!({})));
        let slice = json!({"addressType": "IPv4", "endpoints": [{"addresses": []}], "ports": []});
        let slice = shown(Object::from_json(EndpointSlice::kind(), slice).unwrap());
        assert_eq!(slice["endpoints"], json!([{"addresses": null, "conditions": {}}]));
        assert_eq!(slice.get("ports"), Some(&Value::Null));
    }

    #[test]
    fn every_type_of_the_table_is_served() {
        // TokenRequests are served below their accounts alone.
        for (name, _) in ALWAYS_SHOWN {
            let is_kind = kinds::built_in().iter().any(|kind| *kind.type_name == **name);
            assert!(is_kind || *TokenRequest::kind().type_name == **name, "{name}");
        }
    }
}
