//! Horizontal pod autoscalers, of both versions, and the scale of a workload.

use k8s_openapi::api::autoscaling::{v1, v2};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use super::age::age;
use super::{Column, Row, Table, cells, column, printers};
use crate::api::kind::scale_kind;
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
    let average = |value: Option<&v2::MetricValueStatus>, wanted: &Quantity| {
        format!("{}/{}", quantity(value.and_then(|value| value.average_value.as_ref())), wanted.0)
    };
    // Of a container's resource: an amount, or a share of what it asks for.
    let share = |value: Option<&v2::MetricValueStatus>, target: &v2::MetricTarget| match &target.average_value {
        Some(wanted) => average(value, wanted),
        None => {
            let have = value.and_then(|value| value.average_utilization);
            let wanted = target.average_utilization;
            format!(
                "{}/{}",
                have.map_or("<unknown>".into(), |have| format!("{have}%")),
                wanted.map_or("<auto>".into(), |wanted| format!("{wanted}%"))
            )
        }
    };
    // Of anything else: an average, or the amount itself.
    let amount = |value: Option<&v2::MetricValueStatus>, target: &v2::MetricTarget| match &target.average_value {
        Some(wanted) => format!("{} (avg)", average(value, wanted)),
        None => format!("{}/{}", quantity(value.and_then(|v| v.value.as_ref())), quantity(target.value.as_ref())),
    };
    if let Some(source) = &metric.resource {
        let value = current.and_then(|status| status.resource.as_ref()).map(|status| &status.current);
        return format!("{}: {}", source.name, share(value, &source.target));
    }
    if let Some(source) = &metric.container_resource {
        let value = current.and_then(|status| status.container_resource.as_ref()).map(|status| &status.current);
        return format!("{}: {}", source.name, share(value, &source.target));
    }
    if let Some(source) = &metric.pods {
        let value = current.and_then(|status| status.pods.as_ref()).map(|status| &status.current);
        return average(value, source.target.average_value.as_ref().unwrap_or(&Quantity("0".into())));
    }
    if let Some(source) = &metric.object {
        return amount(current.and_then(|status| status.object.as_ref()).map(|status| &status.current), &source.target);
    }
    if let Some(source) = &metric.external {
        return amount(
            current.and_then(|status| status.external.as_ref()).map(|status| &status.current),
            &source.target,
        );
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

/// Whether an object is the `scale` of a workload, a kind without a collection of its own.
pub(super) fn is_scale(object: &Object) -> bool {
    &*object.kind.kind == "Scale" && &*object.kind.group == "autoscaling"
}

pub(super) fn scales(objects: &[Object], now: Time) -> Table {
    let mut columns: Vec<Column> = ["Name", "Desired#", "Available#", "Age"].map(column).to_vec();
    columns[0].format.clear();
    let row = |object: &Object| {
        let json = object.to_json();
        let count = |path: &str| json.pointer(path).cloned().unwrap_or_else(|| 0.into());
        let cells = cells![&*object.key.name, count("/spec/replicas"), count("/status/replicas"), age(object, now)];
        Row { cells, conditions: Vec::new(), object: object.clone() }
    };
    Table { kind: scale_kind(), columns, rows: objects.iter().map(row).collect() }
}
