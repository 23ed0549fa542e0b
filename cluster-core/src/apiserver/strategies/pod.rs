//! Pods: what the server adds to a new one, what may change in one that exists, graceful deletion.

use k8s_openapi::api::core::v1::{Container, Pod, PodCondition, PodIP, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::api::object::Object;
use crate::api::quantity;
use crate::api::selector::Labels;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::Causes;
use crate::apiserver::validation::{pod, pod_status, pod_update};
use crate::apiserver::{ApiServer, Moment, defaults, warnings};

pub struct Rules;

impl Strategy for Rules {
    fn returns_deleted(&self) -> bool {
        true
    }

    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<Pod>();
        defaults::pod_spec(spec);
        defaults::pod(spec);
    }

    fn prepare_create(&self, object: &mut Object, _: &ApiServer, moment: &mut Moment<'_>) -> Result<(), Status> {
        merge_label_keys(object);
        let class = qos_class(object.spec::<Pod>());
        let gated = object.spec::<Pod>().scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
        let status = object.status_mut::<Pod>();
        status.phase = Some("Pending".into());
        status.qos_class = Some(class.into());
        if gated {
            status.conditions = Some(vec![PodCondition {
                type_: "PodScheduled".into(),
                status: "False".into(),
                reason: Some("SchedulingGated".into()),
                message: Some("Scheduling is blocked due to non-empty scheduling gates".into()),
                last_transition_time: Some(moment.now.to_meta()),
                ..PodCondition::default()
            }]);
        }
        Ok(())
    }

    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        if new.metadata().owner_references != old.metadata().owner_references {
            new.metadata_mut().owner_references = old.metadata().owner_references.clone();
        }
        let (before, status) = (old.status::<Pod>(), new.status::<Pod>());
        let ips = one_pod_ip(status.pod_ip.as_deref().unwrap_or_default(), status.pod_ips.as_deref());
        if let Some((ip, ips)) = ips {
            let status = new.status_mut::<Pod>();
            (status.pod_ip, status.pod_ips) = (Some(ip), Some(ips));
        }
        if new.status::<Pod>().qos_class.is_none() {
            new.status_mut::<Pod>().qos_class = before.qos_class.clone();
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        pod::pod(&mut causes, object.spec::<Pod>(), object.metadata());
        causes.into()
    }

    fn validate_create(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        pod::create(&mut causes, object.spec::<Pod>(), object.metadata());
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let (before, after) = (old.spec::<Pod>(), new.spec::<Pod>());
        pod_update::update(&mut causes, (before, old.metadata()), (after, new.metadata()));
        causes.into()
    }

    fn validate_status_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        pod_status::update(&mut causes, old, new);
        causes.into()
    }

    fn warnings(&self, old: Option<&Object>, new: &Object) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let mut warnings = warnings::hostname(&new.key.name, "the Pod's hostname");
        warnings.extend(warnings::pod_spec("", new.spec::<Pod>(), new.metadata()));
        warnings
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn grace_period_seconds(&self, object: &Object, requested: Option<i64>) -> Option<i64> {
        let (spec, phase) = (object.spec::<Pod>(), object.status::<Pod>().phase.as_deref());
        // Nobody would confirm the end of a pod that is on no node, or has ended already.
        if spec.node_name.is_none() || matches!(phase, Some("Succeeded" | "Failed")) {
            return Some(0);
        }
        match requested.or(spec.termination_grace_period_seconds).unwrap_or(0) {
            negative if negative < 0 => Some(1),
            seconds => Some(seconds),
        }
    }
}

/// The list of addresses starts with the one address, which decides if they differ. `None` if there is nothing to do.
fn one_pod_ip(ip: &str, ips: Option<&[PodIP]>) -> Option<(String, Vec<PodIP>)> {
    match ips.and_then(<[PodIP]>::first) {
        None if ip.is_empty() => None,
        Some(first) if first.ip == ip => None,
        Some(first) if ip.is_empty() => Some((first.ip.clone(), ips.unwrap_or_default().to_vec())),
        _ => Some((ip.to_owned(), vec![PodIP { ip: ip.to_owned() }])),
    }
}

/// The pod's own labels become part of the selectors that name their keys.
/// <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#matchlabelkeys>
fn merge_label_keys(object: &mut Object) {
    let named = |keys: &Option<Vec<String>>| keys.as_ref().is_some_and(|keys| !keys.is_empty());
    let spec = object.spec::<Pod>();
    let spreads =
        spec.topology_spread_constraints.iter().flatten().any(|constraint| named(&constraint.match_label_keys));
    if !spreads && spec.affinity.is_none() {
        return;
    }
    let labels = object.metadata().labels.clone().unwrap_or_default();
    let spec = object.spec_mut::<Pod>();
    let affinity = spec.affinity.get_or_insert_default();
    let mut terms = Vec::new();
    if let Some(pods) = &mut affinity.pod_affinity {
        terms.extend(pods.required_during_scheduling_ignored_during_execution.iter_mut().flatten());
        let preferred = pods.preferred_during_scheduling_ignored_during_execution.iter_mut().flatten();
        terms.extend(preferred.map(|term| &mut term.pod_affinity_term));
    }
    if let Some(pods) = &mut affinity.pod_anti_affinity {
        terms.extend(pods.required_during_scheduling_ignored_during_execution.iter_mut().flatten());
        let preferred = pods.preferred_during_scheduling_ignored_during_execution.iter_mut().flatten();
        terms.extend(preferred.map(|term| &mut term.pod_affinity_term));
    }
    for term in terms {
        let Some(selector) = &mut term.label_selector else { continue };
        require(selector, "In", term.match_label_keys.as_deref(), &labels);
        require(selector, "NotIn", term.mismatch_label_keys.as_deref(), &labels);
    }
    if *affinity == Default::default() {
        spec.affinity = None;
    }
    for constraint in spec.topology_spread_constraints.iter_mut().flatten() {
        if let Some(selector) = &mut constraint.label_selector {
            require(selector, "In", constraint.match_label_keys.as_deref(), &labels);
        }
    }
}

fn require(selector: &mut LabelSelector, operator: &str, keys: Option<&[String]>, labels: &Labels) {
    for key in keys.unwrap_or_default() {
        let Some(value) = labels.get(key) else { continue };
        selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
            key: key.clone(),
            operator: operator.into(),
            values: Some(vec![value.clone()]),
        });
    }
}

/// <https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/>
pub fn qos_class(spec: &PodSpec) -> &'static str {
    let amount = |resources: Option<&k8s_openapi::api::core::v1::ResourceRequirements>, limits: bool, name: &str| {
        let resources = resources?;
        let map = if limits { &resources.limits } else { &resources.requests };
        map.as_ref()?.get(name).map(quantity::millis).filter(|amount| *amount > 0)
    };
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let whole = spec.resources.as_ref().filter(|whole| whole.limits.is_some() || whole.requests.is_some());
    let all: Vec<_> = match whole {
        Some(whole) => vec![Some(whole)],
        None => containers.map(|container: &Container| container.resources.as_ref()).collect(),
    };
    let (mut any, mut guaranteed) = (false, true);
    for resources in all {
        for name in ["cpu", "memory"] {
            let (request, limit) = (amount(resources, false, name), amount(resources, true, name));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
