//! `pods/binding`: a scheduler puts a pod on a node, once.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use serde_json::Value;

use crate::api::object::Object;
use crate::api::request::{Request, Response};
use crate::api::status::Status;
use crate::apiserver::{ApiServer, Moment, answer, read};

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let body = super::body(request);
    let target = body.pointer("/target/name").and_then(Value::as_str).unwrap_or_default();
    let old = read::existing(server, request)?;
    let name = &old.key.name;
    if target.is_empty() {
        return Err(Status::internal("Binding \"\" is invalid: target.name: Required value"));
    }
    if old.is_terminating() {
        let detail = format!("pod {name} is being deleted, cannot be assigned to a host");
        return Err(Status::conflict(&old.kind, name, &detail));
    }
    if let Some(node) = &old.spec::<Pod>().node_name {
        let detail = format!("pod {name} is already assigned to node \"{node}\"");
        return Err(Status::conflict(&old.kind, name, &detail));
    }
    if old.spec::<Pod>().scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        let detail = format!("pod {name} has non-empty .spec.schedulingGates");
        return Err(Status::conflict(&old.kind, name, &detail));
    }
    let mut pod = old.clone();
    pod.spec_mut::<Pod>().node_name = Some(target.to_owned());
    pod.status_mut::<Pod>().nominated_node_name = None;
    set_scheduled(&mut pod, moment);
    let pod = server.put(pod, Some(old.revision), request, moment)?;
    Ok(answer(pod))
}

fn set_scheduled(pod: &mut Object, moment: &Moment<'_>) {
    let generation = pod.metadata().generation;
    let conditions = pod.status_mut::<Pod>().conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != "PodScheduled");
    conditions.push(PodCondition {
        type_: "PodScheduled".into(),
        status: "True".into(),
        observed_generation: generation,
        last_transition_time: Some(moment.now.to_meta()),
        ..PodCondition::default()
    });
}
