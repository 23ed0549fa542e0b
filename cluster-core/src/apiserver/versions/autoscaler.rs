//! HorizontalPodAutoscalers of autoscaling/v1, which has one metric: what else v2 says stands in annotations.

use serde_json::{Map, Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// What stands in which annotation.
const KEPT: [(&str, &str, &str); 4] = [
    (METRICS, "spec", "metrics"),
    (CURRENT_METRICS, "status", "currentMetrics"),
    (CONDITIONS, "status", "conditions"),
    (BEHAVIOR, "spec", "behavior"),
];

pub(super) fn to_v1(scaler: &mut Value) {
    let share = take_cpu(&mut scaler["spec"]["metrics"], "target");
    let used = take_cpu(&mut scaler["status"]["currentMetrics"], "current");
    for (annotation, part, field) in KEPT {
        let value = scaler[part].as_object_mut().and_then(|fields| fields.remove(field)).unwrap_or_default();
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            scaler["metadata"]["annotations"][annotation] = value.to_string().into();
        }
    }
    if let Some(share) = share {
        scaler["spec"]["targetCPUUtilizationPercentage"] = share;
    }
    if let Some(used) = used {
        scaler["status"]["currentCPUUtilizationPercentage"] = used;
    }
    if let Value::Object(status) = &mut scaler["status"] {
        status.entry("currentReplicas").or_insert(json!(0));
    }
}

pub(super) fn to_v2(scaler: &mut Value) {
    for (annotation, part, field) in KEPT {
        let text = scaler["metadata"]["annotations"].as_object_mut().and_then(|all| all.remove(annotation));
        if let Some(value) = text.and_then(|text| serde_json::from_str::<Value>(text.as_str()?).ok()) {
            scaler[part][field] = value;
        }
    }
    if scaler.pointer("/metadata/annotations").is_some_and(|all| all.as_object().is_none_or(Map::is_empty)) {
        scaler["metadata"].as_object_mut().and_then(|metadata| metadata.remove("annotations"));
    }
    for (part, field, list, side) in [
        ("spec", "targetCPUUtilizationPercentage", "metrics", "target"),
        ("status", "currentCPUUtilizationPercentage", "currentMetrics", "current"),
    ] {
        let share = scaler[part].as_object_mut().and_then(|fields| fields.remove(field));
        if let Some(share) = share.filter(|share| !share.is_null()) {
            let mut value = json!({"averageUtilization": share});
            if side == "target" {
                value["type"] = "Utilization".into();
            }
            let metric = json!({"type": "Resource", "resource": {"name": "cpu", side: value}});
            match &mut scaler[part][list] {
                Value::Array(metrics) => metrics.insert(0, metric),
                other => *other = json!([metric]),
            }
        }
    }
}

/// The share of the CPU among metrics, which v1 has a field for.
fn take_cpu(metrics: &mut Value, side: &str) -> Option<Value> {
    let metrics = metrics.as_array_mut()?;
    let share = |metric: &Value| {
        let resource = metric.get("resource").filter(|resource| resource["name"] == "cpu")?;
        resource.pointer(&format!("/{side}/averageUtilization")).cloned()
    };
    let at = metrics.iter().position(|metric| share(metric).is_some())?;
    share(&metrics.remove(at))
}
