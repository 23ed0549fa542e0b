//! Horizontal pod autoscalers, of both versions.

use k8s_openapi::api::autoscaling::{v1, v2};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use super::age::age;
use super::{cells, printers};
use crate::api::object::Object;
use crate::clock::Time;

printers! {
    v2::HorizontalPodAutoscaler: "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age" => autoscaler,
    v1::HorizontalPodAutoscaler: "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age" => old_autoscaler,
}

/// How many metrics are shown before the rest is only counted.
const METRICS_SHOWN: usize = 2;

fn autoscaler(object: &Object, now: Time) -> Vec<Value> {
    type Kind = v2::HorizontalPodAutoscaler;
    let (spec, status) = (object.spec::<Kind>(), object.status::<Kind>());
    let target = &spec.scale_target_ref;
    let current = status.current_metrics.as_deref().unwrap_or_default();
    let metrics: Vec<String> =
        spec.metrics.iter().flatten().enumerate().map(|(index, metric)| measured(metric, current.get(index))).collect();
    let targets = match metrics.len() {
        0 => "<none>".to_owned(),
        count if count > METRICS_SHOWN => {
            format!("{} + {} more...", metrics[..METRICS_SHOWN].join(", "), count - METRICS_SHOWN)
        }
        _ => metrics.join(", "),
    };
    cells![
        &*object.key.name,
        format!("{}/{}", target.kind, target.name),
        targets,
        spec.min_replicas.map_or("<unset>".into(), |count| count.to_string()),
        spec.max_replicas,
        status.current_replicas.unwrap_or(0),
        age(object, now),
    ]
}

/// A metric's present value and its target: `cpu: 40%/70%`.
fn measured(metric: &v2::MetricSpec, current: Option<&v2::MetricStatus>) -> String {
    let quantity = |quantity: Option<&Quantity>| quantity.map_or("<unknown>".to_owned(), |quantity| quantity.0.clone());
    let pair = |value: Option<&v2::MetricValueStatus>, target: &v2::MetricTarget| match target.average_utilization {
        Some(wanted) => {
            let have = value.and_then(|value| value.average_utilization);
            format!("{}/{wanted}%", have.map_or("<unknown>".into(), |have| format!("{have}%")))
        }
        None => match &target.average_value {
            Some(wanted) => format!("{}/{}", quantity(value.and_then(|v| v.average_value.as_ref())), wanted.0),
            None => format!("{}/{}", quantity(value.and_then(|v| v.value.as_ref())), quantity(target.value.as_ref())),
        },
    };
    if let Some(source) = &metric.resource {
        let value = current.and_then(|status| status.resource.as_ref()).map(|status| &status.current);
        return format!("{}: {}", source.name, pair(value, &source.target));
    }
    if let Some(source) = &metric.container_resource {
        let value = current.and_then(|status| status.container_resource.as_ref()).map(|status| &status.current);
        return format!("{}: {}", source.name, pair(value, &source.target));
    }
    if let Some(source) = &metric.pods {
        return pair(current.and_then(|status| status.pods.as_ref()).map(|status| &status.current), &source.target);
    }
    if let Some(source) = &metric.object {
        return pair(current.and_then(|status| status.object.as_ref()).map(|status| &status.current), &source.target);
    }
    if let Some(source) = &metric.external {
        return pair(current.and_then(|status| status.external.as_ref()).map(|status| &status.current), &source.target);
    }
    "<unknown type>".into()
}

fn old_autoscaler(object: &Object, now: Time) -> Vec<Value> {
    type Kind = v1::HorizontalPodAutoscaler;
    let (spec, status) = (object.spec::<Kind>(), object.status::<Kind>());
    let target = &spec.scale_target_ref;
    let utilization = spec.target_cpu_utilization_percentage.map_or("<none>".to_owned(), |wanted| {
        let have = status.current_cpu_utilization_percentage;
        format!("cpu: {}/{wanted}%", have.map_or("<unknown>".into(), |have| format!("{have}%")))
    });
    cells![
        &*object.key.name,
        format!("{}/{}", target.kind, target.name),
        utilization,
        spec.min_replicas.map_or("<unset>".into(), |count| count.to_string()),
        spec.max_replicas,
        status.current_replicas,
        age(object, now),
    ]
}
