//! horizontal-pod-autoscaler-controller: keeps the size of a workload within limits. No metrics API is served, so it can
//! say of each metric only that it cannot be had, as in any cluster without one.
//! <https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/>

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus, MetricSpec, MetricStatus, MetricTarget,
};
use k8s_openapi::api::core::v1::ReplicationController;
use serde_json::json;

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::PatchType;
use crate::clock::{Class, Time};

/// `--horizontal-pod-autoscaler-sync-period`.
const SYNC_PERIOD: Duration = Duration::from_secs(15);
/// As what it signs its Events.
const SOURCE: &str = "horizontal-pod-autoscaler";

pub struct HorizontalPodAutoscalerController;

/// The kinds whose size can be changed.
fn scalable() -> [&'static KindRef; 4] {
    [Deployment::kind(), ReplicaSet::kind(), StatefulSet::kind(), ReplicationController::kind()]
}

impl Controller for HorizontalPodAutoscalerController {
    fn name(&self) -> &str {
        "horizontal-pod-autoscaler-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        let autoscalers = HorizontalPodAutoscaler::kind();
        let mut watches = vec![Watch::itself(autoscalers).delayed(|_, _| (SYNC_PERIOD, Class::Background))];
        watches.extend(scalable().map(|kind| Watch::with(kind, |_, _| Vec::new())));
        watches
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let Some(autoscaler) = view.get::<HorizontalPodAutoscaler>(key) else { return Plan::done() };
        let (spec, status) =
            (autoscaler.spec::<HorizontalPodAutoscaler>(), autoscaler.status::<HorizontalPodAutoscaler>().clone());
        let mut sync = Sync { autoscaler, spec, status, now: view.now, plan: Plan::done() };
        match sync.target(view) {
            Ok(target) => sync.scale(target),
            Err(problem) => sync.miss_target(&problem),
        }
        sync.finish()
    }
}

/// One look at an autoscaler.
struct Sync<'a> {
    autoscaler: &'a Object,
    spec: &'a HorizontalPodAutoscalerSpec,
    /// As it will be written.
    status: HorizontalPodAutoscalerStatus,
    now: Time,
    plan: Plan,
}

impl<'a> Sync<'a> {
    fn target(&self, view: &View<'a>) -> Result<&'a Object, String> {
        let reference = &self.spec.scale_target_ref;
        let api_version = reference.api_version.as_deref().unwrap_or_default();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = scalable().into_iter().find(|kind| *kind.kind == *reference.kind && *kind.group == *group);
        let kind = kind.ok_or_else(|| format!("no matches for kind {:?} in group {group:?}", reference.kind))?;
        let key = Key::new(self.autoscaler.key.namespace.clone(), reference.name.as_str());
        let dot = if group.is_empty() { "" } else { "." };
        let missing = || format!("{}{dot}{group} {:?} not found", kind.resource, reference.name);
        view.get_of(kind, &key).ok_or_else(missing)
    }

    fn miss_target(&mut self, problem: &str) {
        self.warn("FailedGetScale", problem.to_owned());
        let message = format!("the HPA controller was unable to get the target's current scale: {problem}");
        self.set_condition("AbleToScale", false, "FailedGetScale", message);
    }

    fn scale(&mut self, target: &Object) {
        let message = "the HPA controller was able to get the target's current scale";
        self.set_condition("AbleToScale", true, "SucceededGetScale", message.into());
        let current = replicas(target);
        let (least, most) = (self.spec.min_replicas.unwrap_or(1), self.spec.max_replicas);
        if current == 0 && least != 0 {
            let message = "scaling is disabled since the replica count of the target is zero";
            self.set_condition("ScalingActive", false, "ScalingDisabled", message.into());
            self.set_sizes(current, current, None);
        } else if current > most {
            self.rescale(target, current, most, "Current number of replicas above Spec.MaxReplicas");
        } else if current < least {
            self.rescale(target, current, least, "Current number of replicas below Spec.MinReplicas");
        } else {
            self.miss_metrics(current);
        }
    }

    fn rescale(&mut self, target: &Object, current: i32, wanted: i32, reason: &str) {
        let told = format!("New size: {wanted}; reason: {reason}");
        let body = json!({"spec": {"replicas": wanted}});
        let write = self.plan.patch(target, PatchType::Merge, body, "the size is beyond the limits");
        write.request.subresource = "scale";
        write
            .event(EventNote::normal(self.autoscaler, "SuccessfulRescale", told.as_str()).from(SOURCE))
            .on_failure(EventNote::warning(self.autoscaler, "FailedRescale", format!("{told}; error: ")).from(SOURCE));
        let message = format!("the HPA controller was able to update the target scale to {wanted}");
        self.set_condition("AbleToScale", true, "SucceededRescale", message);
        self.set_sizes(current, wanted, None);
        self.status.last_scale_time = Some(self.now.to_meta());
    }

    /// Tells of each metric why it cannot be had; the first stands in the condition.
    fn miss_metrics(&mut self, current: i32) {
        let namespace = &self.autoscaler.key.namespace;
        let missing: Vec<Missing> =
            self.spec.metrics.iter().flatten().filter_map(|metric| Missing::of(metric, namespace)).collect();
        let Some(first) = missing.first() else { return };
        let message = format!("the HPA was unable to compute the replica count: {}", first.problem);
        self.set_condition("ScalingActive", false, first.reason, message);
        let (count, problem) = (missing.len(), format!("{}: {}", first.what, first.problem));
        let message = format!("invalid metrics ({count} invalid out of {count}), first error is: {problem}");
        missing.into_iter().for_each(|metric| self.warn(metric.reason, metric.problem));
        self.warn("FailedComputeMetricsReplicas", message);
        self.set_sizes(current, self.status.desired_replicas, Some(vec![MetricStatus::default(); count]));
    }

    fn set_sizes(&mut self, current: i32, desired: i32, metrics: Option<Vec<MetricStatus>>) {
        self.status.current_replicas = Some(current);
        self.status.desired_replicas = desired;
        self.status.current_metrics = metrics;
    }

    fn set_condition(&mut self, name: &str, holds: bool, reason: &str, message: String) {
        let value = if holds { "True" } else { "False" };
        let conditions = self.status.conditions.get_or_insert_default();
        let known = conditions.iter().position(|condition| condition.type_ == name);
        let position = known.unwrap_or_else(|| {
            conditions.push(HorizontalPodAutoscalerCondition { type_: name.into(), ..Default::default() });
            conditions.len() - 1
        });
        let condition = &mut conditions[position];
        if condition.status != value {
            condition.status = value.into();
            condition.last_transition_time = Some(self.now.to_meta());
        }
        (condition.reason, condition.message) = (Some(reason.into()), Some(message));
    }

    fn warn(&mut self, reason: &'static str, message: String) {
        self.plan.event(EventNote::warning(self.autoscaler, reason, message).from(SOURCE));
    }

    fn finish(mut self) -> Plan {
        if self.status != *self.autoscaler.status::<HorizontalPodAutoscaler>() {
            let mut autoscaler = self.autoscaler.clone();
            *autoscaler.status_mut::<HorizontalPodAutoscaler>() = self.status;
            self.plan.update_status(autoscaler, "what it found out has changed");
        }
        self.plan.requeue_after(SYNC_PERIOD);
        self.plan
    }
}

fn replicas(target: &Object) -> i32 {
    let wanted = if target.is::<Deployment>() {
        target.spec::<Deployment>().replicas
    } else if target.is::<ReplicaSet>() {
        target.spec::<ReplicaSet>().replicas
    } else if target.is::<StatefulSet>() {
        target.spec::<StatefulSet>().replicas
    } else {
        target.spec::<ReplicationController>().replicas
    };
    wanted.unwrap_or(1)
}

/// A metric that cannot be had.
struct Missing {
    reason: &'static str,
    problem: String,
    what: String,
}

impl Missing {
    fn of(metric: &MetricSpec, namespace: &str) -> Option<Missing> {
        const NO_CUSTOM_API: &str = "unable to fetch metrics from custom metrics API: no custom metrics API \
                                     (custom.metrics.k8s.io) registered";
        if let Some(source) = &metric.resource {
            let what = format!("failed to get {} resource metric value", source.name);
            let problem = no_resource(&source.name, &source.target);
            return Some(Missing { reason: "FailedGetResourceMetric", problem, what });
        }
        if let Some(source) = &metric.container_resource {
            let what = format!("failed to get {} container metric value", source.name);
            let problem = no_resource(&source.name, &source.target);
            return Some(Missing { reason: "FailedGetContainerResourceMetric", problem, what });
        }
        if let Some(source) = &metric.pods {
            let problem = format!("unable to get metric {}: {NO_CUSTOM_API}", source.metric.name);
            return Some(Missing {
                reason: "FailedGetPodsMetric",
                problem,
                what: "failed to get pods metric value".into(),
            });
        }
        if let Some(source) = &metric.object {
            let (name, object) = (&source.metric.name, &source.described_object);
            let problem =
                format!("unable to get metric {name}: {} on {namespace} {}/{NO_CUSTOM_API}", object.kind, object.name);
            let what = "failed to get object metric value".into();
            return Some(Missing { reason: "FailedGetObjectMetric", problem, what });
        }
        let name = &metric.external.as_ref()?.metric.name;
        let problem = format!(
            "unable to get external metric {namespace}/{name}/nil: unable to fetch metrics from external metrics API: \
             the server could not find the requested resource (get {name}.external.metrics.k8s.io)"
        );
        let what = format!("failed to get {name} external metric value");
        Some(Missing { reason: "FailedGetExternalMetric", problem, what })
    }
}

fn no_resource(name: &str, target: &MetricTarget) -> String {
    let measure = if target.average_value.is_some() { "usage" } else { "utilization" };
    format!(
        "failed to get {name} {measure}: unable to get metrics for resource {name}: unable to fetch metrics from \
         resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{control_plane, create, events, patch};
    use super::*;
    use crate::Cluster;

    fn autoscaled(replicas: i32) -> Cluster {
        let mut cluster = control_plane();
        let containers = json!([{"name": "c", "image": "img:1"}]);
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}});
        let selector = json!({"matchLabels": {"app": "web"}});
        let spec = json!({"replicas": replicas, "selector": selector, "template": template});
        create::<Deployment>(&mut cluster, json!({"metadata": {"name": "web"}, "spec": spec}));
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let spec = json!({"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4});
        create::<HorizontalPodAutoscaler>(&mut cluster, json!({"metadata": {"name": "h"}, "spec": spec}));
        cluster.advance(Duration::from_secs(16), |_| true);
        cluster
    }

    fn conditions(cluster: &Cluster) -> Vec<String> {
        let autoscaler = cluster.get::<HorizontalPodAutoscaler>("default", "h").unwrap();
        let conditions = autoscaler.status::<HorizontalPodAutoscaler>().conditions.iter().flatten();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        conditions.map(|known| format!("{}={} {}", known.type_, known.status, text(&known.reason))).collect()
    }

    #[test]
    fn the_size_is_kept_within_the_limits() {
        let mut cluster = autoscaled(7);
        let size = |cluster: &Cluster| replicas(cluster.get::<Deployment>("default", "web").unwrap());
        assert_eq!(size(&cluster), 4);
        let told = "SuccessfulRescale New size: 4; reason: Current number of replicas above Spec.MaxReplicas";
        assert_eq!(events(&cluster, "h"), [told]);
        assert_eq!(conditions(&cluster), ["AbleToScale=True SucceededRescale"]);
        patch::<Deployment>(&mut cluster, "web", json!({"spec": {"replicas": 1}})).unwrap();
        cluster.advance(Duration::from_secs(16), |_| true);
        assert_eq!(size(&cluster), 2);
    }

    #[test]
    fn without_metrics_the_size_stays() {
        let cluster = autoscaled(3);
        let expected = ["AbleToScale=True SucceededGetScale", "ScalingActive=False FailedGetResourceMetric"];
        assert_eq!(conditions(&cluster), expected);
        let told = events(&cluster, "h");
        assert!(told[0].starts_with("FailedGetResourceMetric failed to get cpu utilization: unable to get metrics"));
        let start = "FailedComputeMetricsReplicas invalid metrics (1 invalid out of 1), first error is: failed to get \
                     cpu resource metric value: failed to get cpu utilization: ";
        assert!(told[1].starts_with(start), "{}", told[1]);
    }
}
