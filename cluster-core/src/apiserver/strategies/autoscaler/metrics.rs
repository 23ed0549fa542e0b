//! The metrics of an autoscaler: one source each, and a target that the source can have.

use k8s_openapi::api::autoscaling::v2::{MetricIdentifier, MetricSpec, MetricTarget};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::reference;
use crate::api::quantity;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;

const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

pub(super) fn validate(causes: &mut Causes, path: &Path, metric: &MetricSpec) {
    let type_path = path.child("type");
    if metric.type_.is_empty() {
        causes.required(&type_path, "must specify a metric source type");
    }
    causes.one_of(&type_path, Some(&metric.type_), &TYPES);
    let present = [
        ("object", metric.object.is_some()),
        ("external", metric.external.is_some()),
        ("pods", metric.pods.is_some()),
        ("resource", metric.resource.is_some()),
        ("containerResource", metric.container_resource.is_some()),
    ];
    let sources: Vec<&str> = present.iter().filter(|(_, present)| *present).map(|(field, _)| *field).collect();
    if let Some(first) = sources.first() {
        source(causes, &path.child(first), metric, first);
    }
    let expected = match metric.type_.as_str() {
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "External" => "external",
        "ContainerResource" => "containerResource",
        other => {
            causes.not_supported(&type_path, other, &TYPES);
            ""
        }
    };
    if !expected.is_empty() && !sources.contains(&expected) {
        causes.required(&path.child(expected), "must populate information for the given metric source");
    }
    if sources.len() != 1 {
        for other in sources.iter().filter(|source| **source != expected) {
            causes.forbidden(&path.child(other), "must populate the given metric source only");
        }
    }
}

fn source(causes: &mut Causes, path: &Path, metric: &MetricSpec, field: &str) {
    match field {
        "object" => {
            let Some(object) = &metric.object else { return };
            reference(causes, &path.child("describedObject"), &object.described_object);
            identifier(causes, &path.child("metric"), &object.metric);
            target(causes, &path.child("target"), &object.target);
            if object.target.value.is_none() && object.target.average_value.is_none() {
                causes.required(&path.child("target.averageValue"), "must set either a target value or averageValue");
            }
        }
        "external" => {
            let Some(external) = &metric.external else { return };
            identifier(causes, &path.child("metric"), &external.metric);
            target(causes, &path.child("target"), &external.target);
            match (&external.target.value, &external.target.average_value) {
                (None, None) => {
                    let detail = "must set either a target value for metric or a per-pod target";
                    causes.required(&path.child("target.averageValue"), detail);
                }
                (Some(_), Some(_)) => {
                    let detail = "may not set both a target value for metric and a per-pod target";
                    causes.forbidden(&path.child("target.value"), detail);
                }
                _ => {}
            }
        }
        "pods" => {
            let Some(pods) = &metric.pods else { return };
            identifier(causes, &path.child("metric"), &pods.metric);
            target(causes, &path.child("target"), &pods.target);
            if pods.target.average_value.as_ref().is_none_or(|amount| !is_positive(amount)) {
                causes.required(&path.child("target.averageValue"), "must specify a positive target averageValue");
            }
        }
        "resource" => {
            let Some(resource) = &metric.resource else { return };
            resource_source(causes, path, &resource.name, None, &resource.target);
        }
        _ => {
            let Some(resource) = &metric.container_resource else { return };
            resource_source(causes, path, &resource.name, Some(&resource.container), &resource.target);
        }
    }
}

fn resource_source(causes: &mut Causes, path: &Path, name: &str, container: Option<&str>, aim: &MetricTarget) {
    if name.is_empty() {
        causes.required(&path.child("name"), "must specify a resource name");
    }
    if container == Some("") {
        causes.required(&path.child("container"), "must specify a container");
    }
    target(causes, &path.child("target"), aim);
    match (aim.average_utilization, &aim.average_value) {
        (None, None) => {
            let detail = "must set either a target raw value or a target utilization";
            causes.required(&path.child("target.averageUtilization"), detail);
        }
        (Some(_), Some(_)) => {
            let detail = "may not set both a target raw value and a target utilization";
            causes.forbidden(&path.child("target.averageValue"), detail);
        }
        _ => {}
    }
}

fn identifier(causes: &mut Causes, path: &Path, metric: &MetricIdentifier) {
    if metric.name.is_empty() {
        causes.required(&path.child("name"), "must specify a metric name");
    } else {
        causes.invalid_each(&path.child("name"), &metric.name, names::path_segment(&metric.name));
    }
}

fn target(causes: &mut Causes, path: &Path, target: &MetricTarget) {
    if target.type_.is_empty() {
        causes.required(&path.child("type"), "must specify a metric target type");
    }
    if !["Utilization", "Value", "AverageValue"].contains(&target.type_.as_str()) {
        let detail = "must be either Utilization, Value, or AverageValue";
        causes.invalid(&path.child("type"), target.type_.as_str(), detail);
    }
    for (field, amount) in [("value", &target.value), ("averageValue", &target.average_value)] {
        if let Some(amount) = amount.as_ref().filter(|amount| !is_positive(amount)) {
            causes.invalid(&path.child(field), amount.0.as_str(), "must be positive");
        }
    }
    if let Some(percent) = target.average_utilization.filter(|percent| *percent < 1) {
        causes.invalid(&path.child("averageUtilization"), percent, "must be greater than 0");
    }
}

fn is_positive(amount: &Quantity) -> bool {
    quantity::parse(&amount.0).is_some_and(|millis| millis > 0)
}
