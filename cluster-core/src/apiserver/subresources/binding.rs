//! `pods/binding`: a scheduler puts a pod on a node, once.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use serde_json::Value;

use crate::api::object::Object;
use crate::api::request::{Request, Response};
use crate::api::status::Status;
use crate::apiserver::{ApiServer, Moment, admission, answer, read};

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let body = super::body(request);
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let target = text("/target/name");
    let named = text("/metadata/name");
    if !named.is_empty() && *named != *request.key.name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    if !matches!(text("/target/kind"), "" | "Node") {
        let kind = text("/target/kind");
        return Err(Status::unexplained(format!(
            "target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""
        )));
    }
    if target.is_empty() {
        return Err(Status::unexplained("target.name: Required value"));
    }
    let old = read::existing(server, request)?;
    let name = &old.key.name;
    if old.is_terminating() {
        return Err(refused(&old, &format!("pod {name} is being deleted, cannot be assigned to a host")));
    }
    if let Some(node) = &old.spec::<Pod>().node_name {
        return Err(refused(&old, &format!("pod {name} is already assigned to node \"{node}\"")));
    }
    if old.spec::<Pod>().scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        return Err(refused(&old, &format!("pod {name} has non-empty .spec.schedulingGates")));
    }
    let mut pod = old.clone();
    let bound = server.pod_specs.bound.entry(target.into()).or_default();
    bound.run(&mut pod, |pod| pod.spec_mut::<Pod>().node_name = Some(target.to_owned()));
    pod.status_mut::<Pod>().nominated_node_name = None;
    merge_metadata(&mut pod, &body);
    admission::copy_topology_labels(server, target, &mut pod);
    set_scheduled(&mut pod, moment);
    let pod = server.put(pod, Some(old.revision), request, moment)?;
    Ok(answer(pod))
}

fn refused(pod: &Object, detail: &str) -> Status {
    let name = &pod.key.name;
    let mut status = Status::conflict(&pod.kind, name, detail);
    status.message = format!("Operation cannot be fulfilled on pods/binding \"{name}\": {detail}");
    status.details.get_or_insert_default().kind = "pods/binding".into();
    status
}

/// Labels and annotations of a binding become the pod's.
fn merge_metadata(pod: &mut Object, binding: &Value) {
    let map = |field: &str| binding.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
    let texts = |field: &str| {
        let entries = map(field).into_iter().flatten();
        entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect::<Vec<_>>()
    };
    let (labels, annotations) = (texts("labels"), texts("annotations"));
    if !labels.is_empty() {
        pod.metadata_mut().labels.get_or_insert_default().extend(labels);
    }
    if !annotations.is_empty() {
        pod.metadata_mut().annotations.get_or_insert_default().extend(annotations);
    }
}

fn set_scheduled(pod: &mut Object, moment: &Moment<'_>) {
    let conditions = pod.status_mut::<Pod>().conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != "PodScheduled");
    // Most often it is the first, and this version of the pod is kept for the record.
    conditions.reserve_exact(1);
    conditions.push(PodCondition {
        type_: "PodScheduled".into(),
        status: "True".into(),
        last_transition_time: Some(moment.now.to_meta()),
        ..PodCondition::default()
    });
}
