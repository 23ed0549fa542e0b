//! HorizontalPodAutoscalers. They are kept as autoscaling/v2; `versions` converts from and to v1.
//! <https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/>

mod metrics;

use k8s_openapi::api::autoscaling::v2::{
    CrossVersionObjectReference, HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior, MetricSpec, MetricTarget, ResourceMetricSource,
};

use crate::api::object::Object;
use crate::api::quantity;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;

const CPU_SHARE_PERCENT: i32 = 80;
const WINDOW_SECONDS_MAX: i32 = 3600;
const PERIOD_SECONDS_MAX: i32 = 1800;

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<HorizontalPodAutoscaler>();
        spec.min_replicas.get_or_insert(1);
        if spec.metrics.as_ref().is_none_or(Vec::is_empty) {
            let target = MetricTarget {
                type_: "Utilization".into(),
                average_utilization: Some(CPU_SHARE_PERCENT),
                ..MetricTarget::default()
            };
            let resource = Some(ResourceMetricSource { name: "cpu".into(), target });
            spec.metrics = Some(vec![MetricSpec { type_: "Resource".into(), resource, ..MetricSpec::default() }]);
        }
        if let Some(behavior) = &mut spec.behavior {
            default_behavior(behavior);
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<HorizontalPodAutoscaler>(), Path::new("spec"), Causes::new());
        if let Some(min) = spec.min_replicas.filter(|min| *min < 1) {
            causes.invalid(&path.child("minReplicas"), min, "must be greater than or equal to 1");
        }
        let max_path = path.child("maxReplicas");
        match spec.max_replicas {
            0 => causes.required(&max_path, "must be set and greater than 0"),
            max if max < 0 => causes.invalid(&max_path, max, "must be greater than 0"),
            _ => {}
        }
        if spec.min_replicas.is_some_and(|min| spec.max_replicas < min) {
            causes.invalid(&max_path, spec.max_replicas, "must be greater than or equal to `minReplicas`");
        }
        reference(&mut causes, &path.child("scaleTargetRef"), &spec.scale_target_ref);
        let metric_specs = spec.metrics.as_deref().unwrap_or_default();
        for (index, metric) in metric_specs.iter().enumerate() {
            metrics::validate(&mut causes, &path.child("metrics").index(index), metric);
        }
        let from_outside = |metric: &MetricSpec| matches!(metric.type_.as_str(), "Object" | "External");
        if spec.min_replicas == Some(0) && !metric_specs.iter().any(from_outside) {
            let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
            causes.forbidden(&path.child("metrics"), detail);
        }
        if let Some(HorizontalPodAutoscalerBehavior { scale_up, scale_down }) = &spec.behavior {
            for (field, rules) in [("scaleUp", scale_up), ("scaleDown", scale_down)] {
                if let Some(rules) = rules {
                    scaling_rules(&mut causes, &path.child("behavior").child(field), rules);
                }
            }
        }
        causes.into()
    }

    fn validate_status_update(&self, _: &Object, new: &Object) -> Vec<Cause> {
        let (status, mut causes) = (new.status::<HorizontalPodAutoscaler>(), Causes::new());
        causes.non_negative(&Path::new("status.currentReplicas"), status.current_replicas);
        causes.non_negative(&Path::new("status.desiredReplicas"), Some(status.desired_replicas));
        causes.into()
    }
}

/// What a behavior leaves out: up by 4 pods or 100 % every 15 s at once, down by 100 % every 15 s.
fn default_behavior(behavior: &mut HorizontalPodAutoscalerBehavior) {
    let policy = |kind: &str, value| HPAScalingPolicy { type_: kind.into(), value, period_seconds: 15 };
    let up = behavior.scale_up.get_or_insert_with(HPAScalingRules::default);
    up.stabilization_window_seconds.get_or_insert(0);
    up.select_policy.get_or_insert_with(|| "Max".into());
    up.policies.get_or_insert_with(|| vec![policy("Pods", 4), policy("Percent", 100)]);
    let down = behavior.scale_down.get_or_insert_with(HPAScalingRules::default);
    down.select_policy.get_or_insert_with(|| "Max".into());
    down.policies.get_or_insert_with(|| vec![policy("Percent", 100)]);
}

fn reference(causes: &mut Causes, path: &Path, target: &CrossVersionObjectReference) {
    for (field, text) in [("kind", &target.kind), ("name", &target.name)] {
        if text.is_empty() {
            causes.required(&path.child(field), "");
        } else {
            causes.invalid_each(&path.child(field), text, names::path_segment(text));
        }
    }
    let version = target.api_version.as_deref().unwrap_or_default();
    let detail = match version.split('/').collect::<Vec<_>>()[..] {
        [_, _] => return,
        // The only kind of the core group that has a scale of its own.
        [_] if target.kind == "ReplicationController" => return,
        [_] => "apiVersion must specify API group".to_owned(),
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    causes.invalid(&path.child("apiVersion"), version, detail);
}

fn scaling_rules(causes: &mut Causes, path: &Path, rules: &HPAScalingRules) {
    if let Some(seconds) = rules.stabilization_window_seconds {
        let path = path.child("stabilizationWindowSeconds");
        if seconds < 0 {
            causes.invalid(&path, seconds, "must be greater than or equal to zero");
        }
        if seconds > WINDOW_SECONDS_MAX {
            causes.invalid(&path, seconds, format!("must be less than or equal to {WINDOW_SECONDS_MAX}"));
        }
    }
    if let Some(policy) = &rules.select_policy {
        causes.one_of(&path.child("selectPolicy"), Some(policy), &["Disabled", "Max", "Min"]);
    }
    let policies_path = path.child("policies");
    let policies = rules.policies.as_deref().unwrap_or_default();
    if policies.is_empty() {
        causes.required(&policies_path, "must specify at least one Policy");
    }
    for (index, policy) in policies.iter().enumerate() {
        let path = policies_path.index(index);
        causes.one_of(&path.child("type"), Some(&policy.type_), &["Percent", "Pods"]);
        for (field, number) in [("value", policy.value), ("periodSeconds", policy.period_seconds)] {
            if number <= 0 {
                causes.invalid(&path.child(field), number, "must be greater than zero");
            }
        }
        if policy.period_seconds > PERIOD_SECONDS_MAX {
            let detail = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
            causes.invalid(&path.child("periodSeconds"), policy.period_seconds, detail);
        }
    }
    if let Some(tolerance) = rules.tolerance.as_ref().filter(|tolerance| quantity::millis(tolerance) < 0) {
        causes.invalid(&path.child("tolerance"), tolerance.0.as_str(), "must be greater than or equal to 0");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn it_aims_at_80_percent_of_the_cpu() {
        let mut api = Api::new::<HorizontalPodAutoscaler>();
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let spec =
            json!({"maxReplicas": 5, "scaleTargetRef": target, "behavior": {"scaleUp": {"selectPolicy": "Min"}}});
        let made = api.create(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap();
        assert_eq!(made["spec"]["minReplicas"], 1);
        assert_eq!(made["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);
        assert_eq!(
            made["spec"]["behavior"]["scaleUp"]["policies"][0],
            json!({"type": "Pods", "value": 4, "periodSeconds": 15})
        );
        assert_eq!(made["spec"]["behavior"]["scaleDown"]["selectPolicy"], "Max");
        assert_eq!(made["status"], json!({"desiredReplicas": 0, "currentMetrics": null}));
    }

    #[test]
    fn numbers_targets_and_metrics_are_checked() {
        let mut api = Api::new::<HorizontalPodAutoscaler>();
        let empty =
            json!({"metadata": {"name": "a"}, "spec": {"minReplicas": 0, "scaleTargetRef": {"kind": "Deployment"}}});
        assert_eq!(
            api.refusal(empty),
            [
                "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                "spec.maxReplicas: Required value: must be set and greater than 0",
                "spec.scaleTargetRef.name: Required value",
                "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
                "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero \
                 replicas",
            ]
        );
        let metrics = json!([{"type": "Resource"}, {"type": "Custom"}]);
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let spec = json!({"maxReplicas": 2, "scaleTargetRef": target, "metrics": metrics});
        let unsupported = "spec.metrics[1].type: Unsupported value: \"Custom\": supported values: \"ContainerResource\", \
                           \"External\", \"Object\", \"Pods\", \"Resource\"";
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "a"}, "spec": spec})),
            [
                "spec.metrics[0].resource: Required value: must populate information for the given metric source",
                unsupported,
                unsupported,
            ]
        );
    }
}
