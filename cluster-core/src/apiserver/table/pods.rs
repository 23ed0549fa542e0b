//! Pods and pod templates.

use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodTemplate,
};
use serde_json::{Value, json};

use super::age::{age, human_duration};
use super::{cells, containers, labels_text, or_none, printers};
use crate::api::object::Object;
use crate::clock::Time;

/// That a pod has ended, and how.
pub fn conditions(object: &Object) -> Vec<Value> {
    let phase = object.is::<Pod>().then(|| object.status::<Pod>().phase.as_deref()).flatten();
    let (reason, message) = match phase {
        Some("Succeeded") => ("Succeeded", "The pod has completed successfully."),
        Some("Failed") => ("Failed", "The pod failed."),
        _ => return Vec::new(),
    };
    vec![json!({"type": "Completed", "status": "True", "reason": reason, "message": message})]
}

printers! {
    Pod: "Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*" => pod,
    PodTemplate: "Name, Containers, Images, Pod Labels" => pod_template,
}

/// What the containers' statuses add up to.
#[derive(Default)]
struct Summary {
    reason: String,
    ready: usize,
    restarts: i32,
    last_restart: Option<Time>,
}

impl Summary {
    fn count_restarts(&mut self, status: &ContainerStatus) {
        self.restarts += status.restart_count;
        let finished = status.last_state.as_ref().and_then(|state| state.terminated.as_ref()?.finished_at.as_ref());
        self.last_restart = self.last_restart.max(finished.map(Time::from));
    }
}

fn pod(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<Pod>(), object.status::<Pod>());
    let init_containers = spec.init_containers.as_deref().unwrap_or_default();
    let total = spec.containers.len() + init_containers.iter().filter(|container| is_sidecar(container)).count();
    let summary = summarize(object);
    let restarts = match summary.last_restart {
        Some(at) if summary.restarts > 0 => format!("{} ({} ago)", summary.restarts, human_duration(since(at, now))),
        _ => summary.restarts.to_string(),
    };
    let first_ip = status.pod_ips.iter().flatten().next().map(|ip| ip.ip.as_str());
    let gates = spec.readiness_gates.as_deref().unwrap_or_default();
    let passed = gates.iter().filter(|gate| has_condition(object, &gate.condition_type)).count();
    let gates = if gates.is_empty() { "<none>".to_owned() } else { format!("{passed}/{}", gates.len()) };
    cells![
        &*object.key.name,
        format!("{}/{total}", summary.ready),
        summary.reason,
        restarts,
        age(object, now),
        or_none(first_ip.or(status.pod_ip.as_deref())),
        or_none(spec.node_name.as_deref()),
        or_none(status.nominated_node_name.as_deref()),
        gates,
    ]
}

fn since(at: Time, now: Time) -> Duration {
    now.since(at)
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn has_condition(object: &Object, type_: &str) -> bool {
    let conditions = object.status::<Pod>().conditions.iter().flatten();
    conditions.into_iter().any(|condition| condition.type_ == type_ && condition.status == "True")
}

/// The column STATUS, and what is counted on the way to it.
fn summarize(object: &Object) -> Summary {
    let status = object.status::<Pod>();
    let phase = status.phase.as_deref().unwrap_or_default();
    let gated =
        status.conditions.iter().flatten().any(|condition| {
            condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("SchedulingGated")
        });
    let mut summary = Summary {
        reason: match status.reason.as_deref() {
            _ if gated => "SchedulingGated",
            Some(reason) if !reason.is_empty() => reason,
            _ => phase,
        }
        .to_owned(),
        ..Summary::default()
    };
    let (initializing, sidecars) = init_containers(object, &mut summary);
    if !initializing || has_condition(object, "Initialized") {
        (summary.restarts, summary.last_restart) = (sidecars.restarts, sidecars.last_restart);
        main_containers(object, &mut summary);
    }
    if object.is_terminating() && status.reason.as_deref() == Some("NodeLost") {
        summary.reason = "Unknown".into();
    } else if object.is_terminating() && !matches!(phase, "Succeeded" | "Failed") {
        summary.reason = "Terminating".into();
    }
    summary
}

/// Whether one of them is still to end or to start, and the restarts of sidecars.
fn init_containers(object: &Object, summary: &mut Summary) -> (bool, Summary) {
    let specs = object.spec::<Pod>().init_containers.as_deref().unwrap_or_default();
    let mut sidecars = Summary::default();
    for (index, status) in object.status::<Pod>().init_container_statuses.iter().flatten().enumerate() {
        summary.count_restarts(status);
        let sidecar = specs.iter().any(|container| container.name == status.name && is_sidecar(container));
        if sidecar {
            sidecars.count_restarts(status);
        }
        let state = status.state.clone().unwrap_or_default();
        match state {
            ContainerState { terminated: Some(terminated), .. } if terminated.exit_code == 0 => continue,
            _ if sidecar && status.started == Some(true) => {
                summary.ready += usize::from(status.ready);
                continue;
            }
            ContainerState { terminated: Some(terminated), .. } => {
                summary.reason = format!("Init:{}", end_reason(&terminated));
            }
            ContainerState { waiting: Some(waiting), .. }
                if !matches!(waiting.reason.as_deref(), None | Some("" | "PodInitializing")) =>
            {
                summary.reason = format!("Init:{}", waiting.reason.unwrap_or_default());
            }
            _ => summary.reason = format!("Init:{index}/{}", specs.len()),
        }
        return (true, sidecars);
    }
    (false, sidecars)
}

fn main_containers(object: &Object, summary: &mut Summary) {
    let mut has_running = false;
    let mut failed = None;
    for status in object.status::<Pod>().container_statuses.iter().flatten().rev() {
        summary.count_restarts(status);
        let Some(state) = &status.state else { continue };
        if let Some(reason) = state.waiting.as_ref().and_then(|w| w.reason.as_deref()).filter(|r| !r.is_empty()) {
            summary.reason = reason.to_owned();
        } else if let Some(terminated) = &state.terminated {
            summary.reason = end_reason(terminated);
            if terminated.exit_code != 0 {
                failed = Some(summary.reason.clone());
            }
        } else if status.ready && state.running.is_some() {
            has_running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        summary.reason = match failed {
            _ if has_running && has_condition(object, "Ready") => "Running".into(),
            Some(failed) => failed,
            None if has_running => "NotReady".into(),
            None => return,
        };
    }
}

fn end_reason(terminated: &ContainerStateTerminated) -> String {
    match (terminated.reason.as_deref().unwrap_or_default(), terminated.signal.unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", terminated.exit_code),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn pod_template(object: &Object, _: Time) -> Vec<Value> {
    let template = object.spec::<PodTemplate>().template.as_ref();
    let (names, images) = containers(template.and_then(|template| template.spec.as_ref()));
    let labels = template.and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    cells![&*object.key.name, names, images, labels_text(labels.into_iter().flatten())]
}
