//! Pods: defaults of containers and probes, what may change in one that exists, graceful deletion.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Container, Pod, PodCondition, PodSecurityContext, PodSpec, Probe, ResourceRequirements,
};

use crate::api::object::Object;
use crate::api::quantity;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::names::dns_label;
use crate::apiserver::{ApiServer, Moment};

const QUANTITY: &str = "quantities must match the regular expression \
     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        default_spec(object.spec_mut::<Pod>());
    }

    fn prepare_create(&self, object: &mut Object, _: &ApiServer, moment: &mut Moment<'_>) -> Result<(), Status> {
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

    fn validate(&self, object: &Object) -> Vec<Cause> {
        validate_spec(object.spec::<Pod>(), "spec")
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        if old.same_spec(new) || mutable_parts_equal(old.spec::<Pod>(), new.spec::<Pod>()) {
            return Vec::new();
        }
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                      existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                      previously negative)";
        vec![Cause::forbidden("spec", detail)]
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn grace_period_seconds(&self, object: &Object, requested: Option<i64>) -> i64 {
        let (spec, phase) = (object.spec::<Pod>(), object.status::<Pod>().phase.as_deref());
        // Nobody would confirm the end of a pod that is on no node, or has ended already.
        if spec.node_name.is_none() || matches!(phase, Some("Succeeded" | "Failed")) {
            return 0;
        }
        requested.or(spec.termination_grace_period_seconds).unwrap_or(30).max(0)
    }
}

/// The defaults of a pod spec, in a Pod or in a template.
pub fn default_spec(spec: &mut PodSpec) {
    spec.restart_policy.get_or_insert_with(|| "Always".into());
    spec.dns_policy.get_or_insert_with(|| "ClusterFirst".into());
    spec.scheduler_name.get_or_insert_with(|| "default-scheduler".into());
    spec.termination_grace_period_seconds.get_or_insert(30);
    spec.security_context.get_or_insert_with(PodSecurityContext::default);
    let containers = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
    containers.for_each(default_container);
}

fn default_container(container: &mut Container) {
    let tagged = container.image.as_deref().and_then(|image| image.rsplit('/').next()?.split_once(':'));
    let pinned = container.image.as_deref().is_some_and(|image| image.contains('@'));
    let policy = if pinned || tagged.is_some_and(|(_, tag)| tag != "latest") { "IfNotPresent" } else { "Always" };
    container.image_pull_policy.get_or_insert_with(|| policy.into());
    container.termination_message_path.get_or_insert_with(|| "/dev/termination-log".into());
    container.termination_message_policy.get_or_insert_with(|| "File".into());
    let resources = container.resources.get_or_insert_with(ResourceRequirements::default);
    if let Some(limits) = resources.limits.clone() {
        let requests = resources.requests.get_or_insert_default();
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
    for port in container.ports.iter_mut().flatten() {
        port.protocol.get_or_insert_with(|| "TCP".into());
    }
    let probes = [&mut container.liveness_probe, &mut container.readiness_probe, &mut container.startup_probe];
    probes.into_iter().flatten().for_each(default_probe);
}

fn default_probe(probe: &mut Probe) {
    probe.timeout_seconds.get_or_insert(1);
    probe.period_seconds.get_or_insert(10);
    probe.success_threshold.get_or_insert(1);
    probe.failure_threshold.get_or_insert(3);
    if let Some(http) = &mut probe.http_get {
        http.scheme.get_or_insert_with(|| "HTTP".into());
        http.path.get_or_insert_with(|| "/".into());
    }
}

/// <https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/>
fn qos_class(spec: &PodSpec) -> &'static str {
    let resources = |container: &Container, limits: bool, name: &str| {
        let resources = container.resources.as_ref()?;
        let map = if limits { &resources.limits } else { &resources.requests };
        map.as_ref()?.get(name).map(quantity::millis).filter(|amount| *amount > 0)
    };
    let mut any = false;
    let mut guaranteed = true;
    for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
        for name in ["cpu", "memory"] {
            let (request, limit) = (resources(container, false, name), resources(container, true, name));
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

/// Checks a pod spec that stands at `path`.
pub fn validate_spec(spec: &PodSpec, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if spec.containers.is_empty() {
        causes.push(Cause::required(format!("{path}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for (list, containers) in
        [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())]
    {
        for (index, container) in containers.into_iter().flatten().enumerate() {
            let path = format!("{path}.{list}[{index}]");
            validate_container(container, &path, &mut causes);
            if !container.name.is_empty() && !names.insert(container.name.as_str()) {
                causes.push(Cause::duplicate(format!("{path}.name"), container.name.as_str()));
            }
        }
    }
    let policies = ["Always", "OnFailure", "Never"];
    if let Some(policy) = spec.restart_policy.as_deref().filter(|policy| !policies.contains(policy)) {
        causes.push(Cause::unsupported(format!("{path}.restartPolicy"), policy, &policies));
    }
    causes
}

fn validate_container(container: &Container, path: &str, causes: &mut Vec<Cause>) {
    if container.name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else {
        let details = dns_label(&container.name).into_iter();
        causes.extend(details.map(|detail| Cause::invalid(format!("{path}.name"), container.name.as_str(), detail)));
    }
    if container.image.as_deref().unwrap_or_default().is_empty() {
        causes.push(Cause::required(format!("{path}.image"), ""));
    }
    for (index, port) in container.ports.iter().flatten().enumerate() {
        if !(1..=65535).contains(&port.container_port) {
            let path = format!("{path}.ports[{index}].containerPort");
            causes.push(Cause::invalid(path, port.container_port, "must be between 1 and 65535, inclusive"));
        }
    }
    if let Some(resources) = &container.resources {
        for (field, map) in [("limits", &resources.limits), ("requests", &resources.requests)] {
            for (name, amount) in map.iter().flatten() {
                let detail = match quantity::parse(&amount.0) {
                    None => QUANTITY,
                    Some(millis) if millis < 0 => "must be greater than or equal to 0",
                    Some(_) => continue,
                };
                let path = format!("{path}.resources.{field}[{name}]");
                causes.push(Cause::invalid(path, amount.0.as_str(), detail));
            }
        }
    }
}

fn mutable_parts_equal(old: &PodSpec, new: &PodSpec) -> bool {
    let mut new = new.clone();
    if new.containers.len() != old.containers.len() {
        return false;
    }
    for (container, before) in new.containers.iter_mut().zip(&old.containers) {
        container.image = before.image.clone();
    }
    if let (Some(new), Some(old)) = (&mut new.init_containers, &old.init_containers) {
        for (container, before) in new.iter_mut().zip(old) {
            container.image = before.image.clone();
        }
    }
    new.active_deadline_seconds = old.active_deadline_seconds;
    let kept =
        old.tolerations.iter().flatten().all(|toleration| new.tolerations.iter().flatten().any(|t| t == toleration));
    if kept {
        new.tolerations = old.tolerations.clone();
    }
    new == *old
}
