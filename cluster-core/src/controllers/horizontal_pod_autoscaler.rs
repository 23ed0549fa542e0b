//! horizontal-pod-autoscaler-controller: gives a workload the size that its metrics ask for, within limits.
//! <https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/>

mod behavior;
mod calculator;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus, MetricSpec, MetricStatus, MetricValueStatus,
    ResourceMetricStatus,
};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::json;

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::{Options, PatchType, Request, Verb};
use crate::api::selector::Selector;
use crate::api::status::Status;
use crate::api::{Key, quantity};
use crate::apiserver::aggregation::pod_metrics;
use crate::clock::{Class, Time};
use behavior::{Memory, Wish};
use calculator::{Proposal, Question, Target, Tolerances};

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
        let looked_up = scalable().into_iter().chain([Pod::kind()]);
        watches.extend(looked_up.map(|kind| Watch::with(kind, |_, _| Vec::new())));
        watches
    }

    /// The metrics of the target's pods, if one is about a resource.
    fn asks(&self, key: &Key, view: &View<'_>) -> Vec<Request> {
        let autoscaler = view.get::<HorizontalPodAutoscaler>(key);
        let is_resource = |metric: &MetricSpec| metric.resource.is_some() || metric.container_resource.is_some();
        let asking = autoscaler.filter(|autoscaler| {
            autoscaler.spec::<HorizontalPodAutoscaler>().metrics.iter().flatten().any(is_resource)
        });
        let target = asking.and_then(|autoscaler| target(autoscaler, view).ok());
        let Some(labels) = target.and_then(selector) else { return Vec::new() };
        let options = Options { labels, ..Options::default() };
        let list = Request::new(&self.name().into(), Verb::List, pod_metrics(), Key::new(key.namespace.clone(), ""));
        vec![Request { options, ..list }]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let Some(autoscaler) = view.get::<HorizontalPodAutoscaler>(key) else { return Plan::done() };
        let (spec, status) =
            (autoscaler.spec::<HorizontalPodAutoscaler>(), autoscaler.status::<HorizontalPodAutoscaler>().clone());
        let mut sync = Sync { autoscaler, spec, status, view, now: view.now, plan: Plan::done() };
        match target(autoscaler, view) {
            Ok(target) => sync.scale(target),
            Err(problem) => sync.miss_target(&problem),
        }
        sync.finish()
    }
}

/// What the autoscaler is about.
fn target<'a>(autoscaler: &Object, view: &View<'a>) -> Result<&'a Object, String> {
    let reference = &autoscaler.spec::<HorizontalPodAutoscaler>().scale_target_ref;
    let api_version = reference.api_version.as_deref().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = scalable().into_iter().find(|kind| *kind.kind == *reference.kind && *kind.group == *group);
    let kind = kind.ok_or_else(|| format!("no matches for kind {:?} in group {group:?}", reference.kind))?;
    let key = Key::new(autoscaler.key.namespace.clone(), reference.name.as_str());
    let dot = if group.is_empty() { "" } else { "." };
    let missing = || format!("{}{dot}{group} {:?} not found", kind.resource, reference.name);
    view.get_of(kind, &key).ok_or_else(missing)
}

/// One look at an autoscaler.
struct Sync<'a> {
    autoscaler: &'a Object,
    spec: &'a HorizontalPodAutoscalerSpec,
    /// As it will be written.
    status: HorizontalPodAutoscalerStatus,
    view: &'a View<'a>,
    now: Time,
    plan: Plan,
}

impl<'a> Sync<'a> {
    fn miss_target(&mut self, problem: &str) {
        self.warn("FailedGetScale", problem.to_owned());
        let message = format!("the HPA controller was unable to get the target's current scale: {problem}");
        self.set_condition("AbleToScale", false, "FailedGetScale", message);
    }

    fn scale(&mut self, target: &'a Object) {
        let message = "the HPA controller was able to get the target's current scale";
        self.set_condition("AbleToScale", true, "SucceededGetScale", message.into());
        let current = replicas(target);
        let remembered = self.view.remembered::<Memory>().cloned();
        let mut memory = remembered.unwrap_or_else(|| Memory::of_size(current, self.now));
        let (least, most) = (self.spec.min_replicas.unwrap_or(1), self.spec.max_replicas);
        if current == 0 && least != 0 {
            let message = "scaling is disabled since the replica count of the target is zero";
            self.set_condition("ScalingActive", false, "ScalingDisabled", message.into());
            self.set_sizes(current, current, None);
        } else if current > most {
            self.rescale(target, most, "Current number of replicas above Spec.MaxReplicas", None, &mut memory);
        } else if current < least {
            self.rescale(target, least, "Current number of replicas below Spec.MinReplicas", None, &mut memory);
        } else {
            self.follow_metrics(target, &mut memory);
        }
        self.plan.remember(memory);
    }

    /// Gives the target the size that the metrics ask for.
    fn follow_metrics(&mut self, target: &'a Object, memory: &mut Memory) {
        let current = replicas(target);
        let Some((metric, wanted, told)) = self.ask_metrics(target) else { return };
        let reason = match wanted {
            wanted if wanted > current => format!("{metric} above target"),
            _ => "All metrics below target".to_owned(),
        };
        let (least, most) = (self.spec.min_replicas.unwrap_or(1), self.spec.max_replicas);
        let wish = Wish { current, desired: wanted, least, most };
        let verdict = memory.judge(wish, self.spec.behavior.as_ref(), self.now);
        self.set_condition("AbleToScale", true, verdict.able.0, verdict.able.1.into());
        self.set_condition("ScalingLimited", verdict.is_limited, verdict.limited.0, verdict.limited.1.into());
        if verdict.replicas == current {
            self.set_sizes(current, current, Some(told));
        } else {
            self.rescale(target, verdict.replicas, &reason, Some(told), memory);
        }
    }

    fn rescale(
        &mut self,
        target: &Object,
        wanted: i32,
        reason: &str,
        metrics: Option<Vec<MetricStatus>>,
        memory: &mut Memory,
    ) {
        let current = replicas(target);
        let told = format!("New size: {wanted}; reason: {reason}");
        let message = format!("the HPA controller was able to update the target scale to {wanted}");
        self.set_condition("AbleToScale", true, "SucceededRescale", message);
        let mut refused = self.autoscaler.clone();
        *refused.status_mut::<HorizontalPodAutoscaler>() = HorizontalPodAutoscalerStatus {
            current_replicas: Some(current),
            current_metrics: metrics.clone(),
            ..self.status.clone()
        };
        self.set_sizes(current, wanted, metrics);
        self.status.last_scale_time = Some(self.now.to_meta());
        memory.scaled(current, wanted, self.spec.behavior.as_ref(), self.now);
        let body = json!({"spec": {"replicas": wanted}});
        let write = self.plan.patch(target, PatchType::Merge, body, "another size is wanted");
        write.request.subresource = "scale";
        write
            .event(EventNote::normal(self.autoscaler, "SuccessfulRescale", told.as_str()).from(SOURCE))
            .on_failure(EventNote::warning(self.autoscaler, "FailedRescale", format!("{told}; error: ")).from(SOURCE))
            .confess(refused, tell_failed_update);
    }

    /// The highest number that a metric asks for, with that metric's name, and what is told of each; `None` if too few of
    /// them can be had.
    fn ask_metrics(&mut self, target: &'a Object) -> Option<(String, i32, Vec<MetricStatus>)> {
        let current = replicas(target);
        let Some(selector) = selector(target) else {
            self.warn("SelectorRequired", "selector is required".into());
            let message = "the HPA target's scale is missing a selector";
            return self.give_up(current, "InvalidSelector", message.into(), "selector is required".into(), None);
        };
        let pods: Vec<&Object> = self.view.select::<Pod>(&self.autoscaler.key.namespace, &selector).collect();
        let rivals = self.rivals(&pods);
        if rivals.len() > 1 {
            let rivals: Vec<String> = rivals.iter().map(|key| format!("{{{} {}}}", key.name, key.namespace)).collect();
            let message =
                format!("pods by selector {selector} are controlled by multiple HPAs: [{}]", rivals.join(" "));
            self.warn("AmbiguousSelector", message.clone());
            return self.give_up(current, "AmbiguousSelector", message.clone(), message, None);
        }
        let specs = self.spec.metrics.as_deref().unwrap_or_default();
        let mut told = vec![MetricStatus::default(); specs.len()];
        let (mut best, mut missing): (Option<(String, i32)>, Vec<Missing>) = (None, Vec::new());
        for (spec, told) in specs.iter().zip(&mut told) {
            match self.ask_metric(spec, &pods, current) {
                Ok((metric, wanted, status)) => {
                    *told = status;
                    if best.as_ref().is_none_or(|(_, known)| *known == 0 || wanted > *known) {
                        best = Some((metric, wanted));
                    }
                }
                Err(problem) => {
                    self.warn(problem.reason, problem.problem.clone());
                    missing.push(problem);
                }
            }
        }
        // A metric that is not known could be one that forbids to shrink.
        let is_enough = |(_, wanted): &(String, i32)| missing.is_empty() || *wanted >= current;
        let Some((metric, wanted)) = best.filter(is_enough) else {
            let Some(first) = missing.first() else {
                self.set_sizes(current, current, Some(told));
                return None;
            };
            let message = format!("the HPA was unable to compute the replica count: {}", first.problem);
            let (count, all, problem) = (missing.len(), specs.len(), format!("{}: {}", first.what, first.problem));
            let error = format!("invalid metrics ({count} invalid out of {all}), first error is: {problem}");
            return self.give_up(current, first.reason, message, error, Some(told));
        };
        let message = format!("the HPA was able to successfully calculate a replica count from {metric}");
        self.set_condition("ScalingActive", true, "ValidMetricFound", message);
        Some((metric, wanted, told))
    }

    fn give_up<T>(
        &mut self,
        current: i32,
        reason: &str,
        message: String,
        error: String,
        metrics: Option<Vec<MetricStatus>>,
    ) -> Option<T> {
        self.set_condition("ScalingActive", false, reason, message);
        self.warn("FailedComputeMetricsReplicas", error);
        self.set_sizes(current, self.status.desired_replicas, metrics);
        None
    }

    /// The autoscalers whose targets have some of these pods.
    fn rivals(&self, pods: &[&Object]) -> Vec<&'a Key> {
        let has_some = |autoscaler: &&Object| {
            let selector = target(autoscaler, self.view).ok().and_then(selector);
            selector.is_some_and(|selector| pods.iter().any(|pod| selector.matches(pod.metadata().labels.as_ref())))
        };
        let all = self.view.list::<HorizontalPodAutoscaler>(&self.autoscaler.key.namespace);
        all.filter(has_some).map(|autoscaler| &autoscaler.key).collect()
    }

    fn ask_metric(
        &self,
        spec: &MetricSpec,
        pods: &[&Object],
        current: i32,
    ) -> Result<(String, i32, MetricStatus), Missing> {
        let (resource, container, wanted, reason) = if let Some(source) = &spec.resource {
            (&source.name, "", &source.target, "FailedGetResourceMetric")
        } else if let Some(source) = &spec.container_resource {
            (&source.name, source.container.as_str(), &source.target, "FailedGetContainerResourceMetric")
        } else {
            return Err(Missing::of(spec, &self.autoscaler.key.namespace));
        };
        let what = match container {
            "" => format!("failed to get {resource} resource metric value"),
            container => format!("failed to get {container} container metric value"),
        };
        let missing = |problem: String| Missing { reason, problem, what: what.clone() };
        let (target, measure, metric) = match (&wanted.average_value, wanted.average_utilization) {
            (Some(amount), _) => (Target::Average(quantity::millis(amount)), "usage", format!("{resource} resource")),
            (None, Some(percent)) => {
                let metric = format!("{resource} resource utilization (percentage of request)");
                (Target::Utilization(percent), "utilization", metric)
            }
            (None, None) => {
                let problem = "invalid resource metric source: neither an average utilization target nor an average \
                               value (usage) target was set";
                return Err(missing(problem.into()));
            }
        };
        let question =
            Question { resource, container, pods, current, tolerances: Tolerances::of(self.spec), now: self.now };
        let unanswered = Err(Status::unknown_resource());
        let answer = question.answer(target, self.view.answers().first().unwrap_or(&unanswered));
        let proposal = answer.map_err(|why| missing(format!("failed to get {resource} {measure}: {why}")))?;
        Ok((metric, proposal.replicas, status_of(spec, &proposal)))
    }

    fn set_sizes(&mut self, current: i32, desired: i32, metrics: Option<Vec<MetricStatus>>) {
        self.status.current_replicas = Some(current);
        self.status.desired_replicas = desired;
        self.status.current_metrics = metrics;
    }

    fn set_condition(&mut self, name: &str, holds: bool, reason: &str, message: String) {
        set_condition(&mut self.status, name, holds, reason, message, self.now);
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

fn set_condition(
    status: &mut HorizontalPodAutoscalerStatus,
    name: &str,
    holds: bool,
    reason: &str,
    message: String,
    now: Time,
) {
    let value = if holds { "True" } else { "False" };
    let conditions = status.conditions.get_or_insert_default();
    let known = conditions.iter().position(|condition| condition.type_ == name);
    let position = known.unwrap_or_else(|| {
        conditions.push(HorizontalPodAutoscalerCondition { type_: name.into(), ..Default::default() });
        conditions.len() - 1
    });
    let condition = &mut conditions[position];
    if condition.status != value {
        condition.status = value.into();
        condition.last_transition_time = Some(now.to_meta());
    }
    (condition.reason, condition.message) = (Some(reason.into()), Some(message));
}

fn tell_failed_update(autoscaler: &mut Object, refusal: &Status, now: Time) {
    let message = format!("the HPA controller was unable to update the target scale: {}", refusal.message);
    let status = autoscaler.status_mut::<HorizontalPodAutoscaler>();
    set_condition(status, "AbleToScale", false, "FailedUpdateScale", message, now);
}

/// What the status tells of a metric.
fn status_of(spec: &MetricSpec, proposal: &Proposal) -> MetricStatus {
    let text = format!("{}m", proposal.average);
    let current = MetricValueStatus {
        average_utilization: proposal.utilization,
        average_value: Some(Quantity(quantity::canonical(&text).unwrap_or(text))),
        value: None,
    };
    let mut status = MetricStatus { type_: spec.type_.clone(), ..MetricStatus::default() };
    if let Some(source) = &spec.resource {
        status.resource = Some(ResourceMetricStatus { name: source.name.clone(), current });
    } else if let Some(source) = &spec.container_resource {
        let (container, name) = (source.container.clone(), source.name.clone());
        status.container_resource = Some(ContainerResourceMetricStatus { container, current, name });
    }
    status
}

/// Which pods are the target's; `None` if it selects none.
fn selector(target: &Object) -> Option<Selector> {
    if target.is::<Deployment>() {
        Some(Selector::of(&target.spec::<Deployment>().selector))
    } else if target.is::<ReplicaSet>() {
        Some(Selector::of(&target.spec::<ReplicaSet>().selector))
    } else if target.is::<StatefulSet>() {
        Some(Selector::of(&target.spec::<StatefulSet>().selector))
    } else {
        target.spec::<ReplicationController>().selector.as_ref().map(Selector::of_labels)
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
    /// Of what only other APIs would tell.
    fn of(metric: &MetricSpec, namespace: &str) -> Missing {
        const NO_CUSTOM_API: &str = "unable to fetch metrics from custom metrics API: no custom metrics API \
                                     (custom.metrics.k8s.io) registered";
        if let Some(source) = &metric.pods {
            let problem = format!("unable to get metric {}: {NO_CUSTOM_API}", source.metric.name);
            return Missing { reason: "FailedGetPodsMetric", problem, what: "failed to get pods metric value".into() };
        }
        if let Some(source) = &metric.object {
            let (name, object) = (&source.metric.name, &source.described_object);
            let problem =
                format!("unable to get metric {name}: {} on {namespace} {}/{NO_CUSTOM_API}", object.kind, object.name);
            let what = "failed to get object metric value".into();
            return Missing { reason: "FailedGetObjectMetric", problem, what };
        }
        let name = metric.external.as_ref().map_or("", |source| source.metric.name.as_str());
        let problem = format!(
            "unable to get external metric {namespace}/{name}/nil: unable to fetch metrics from external metrics API: \
             the server could not find the requested resource (get {name}.external.metrics.k8s.io)"
        );
        let what = format!("failed to get {name} external metric value");
        Missing { reason: "FailedGetExternalMetric", problem, what }
    }
}
