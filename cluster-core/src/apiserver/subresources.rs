//! Subresources beside `status`: one function each.

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{Namespace, Pod, PodCondition};
use serde_json::{Value, json};

use super::{ApiServer, Moment, answer, read, write};
use crate::api::object::Object;
use crate::api::request::{Body, Request, Response, Verb};
use crate::api::status::{Cause, Status};

type Handler = fn(&mut ApiServer, &Request, &mut Moment<'_>) -> Result<Response, Status>;

/// Subresource to handler.
const HANDLERS: &[(&str, Handler)] = &[("binding", binding), ("finalize", finalize)];

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let handler = HANDLERS.iter().find(|(name, _)| *name == request.subresource);
    match handler {
        Some((_, handler)) if request.kind.has_subresource(request.subresource) => handler(server, request, moment),
        _ => Err(Status::not_found(&request.kind, &request.key.name)),
    }
}

fn body(request: &Request) -> Value {
    match &request.body {
        Body::Json(value) => value.clone(),
        Body::Object(object) => object.to_json(),
        Body::None => Value::Null,
    }
}

/// A scheduler binds a pod to a node, once.
fn binding(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let body = body(request);
    let target = body.pointer("/target/name").and_then(Value::as_str).unwrap_or_default();
    let old = read::existing(server, request)?;
    let name = &old.key.name;
    if target.is_empty() {
        return Err(Status::internal("Binding \"\" is invalid: target.name: Required value"));
    }
    if old.is_terminating() {
        return Err(Status::conflict(
            &old.kind,
            name,
            &format!("pod {name} is being deleted, cannot be assigned to a host"),
        ));
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
    let now = moment.now.to_meta();
    set_condition(&mut pod, "PodScheduled", now);
    let pod = server.put(pod, Some(old.revision), request, moment)?;
    Ok(answer(pod))
}

fn set_condition(pod: &mut Object, condition_type: &str, now: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) {
    let conditions = pod.status_mut::<Pod>().conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != condition_type);
    conditions.push(PodCondition {
        type_: condition_type.into(),
        status: "True".into(),
        last_transition_time: Some(now),
        ..PodCondition::default()
    });
}

/// The namespace controller takes `kubernetes` out of `spec.finalizers`.
fn finalize(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let old = read::existing(server, request)?;
    let (wanted, _) = super::decode::body(request)?;
    let mut namespace = old.clone();
    namespace.spec_mut::<Namespace>().finalizers = wanted.spec::<Namespace>().finalizers.clone();
    let unheld = Request { subresource: "", ..request.clone() };
    write::replace(server, &unheld, old, namespace, Vec::new(), moment)
}

/// The `Scale` of a workload.
pub fn scale_of(object: &Object) -> Option<Scale> {
    let json = object.to_json();
    let scale = json!({
        "metadata": {
            "name": &*object.key.name, "namespace": &*object.key.namespace, "uid": object.uid(),
            "resourceVersion": object.revision.to_string(), "creationTimestamp": json.pointer("/metadata/creationTimestamp"),
        },
        "spec": {"replicas": json.pointer("/spec/replicas").cloned().unwrap_or_else(|| json!(0))},
        "status": {"replicas": json.pointer("/status/replicas").cloned().unwrap_or_else(|| json!(0))},
    });
    serde_json::from_value(scale).ok()
}

/// Verbs that a subresource does not have.
pub fn refuse_verb(request: &Request) -> Status {
    let verb = match request.verb {
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch(_) => "PATCH",
        Verb::Delete | Verb::DeleteCollection => "DELETE",
        _ => "GET",
    };
    Status::method_not_allowed(format!("the server does not allow this method on the requested resource ({verb})"))
}

/// A field that a subresource's body must have.
pub fn required(kind: &crate::api::kind::KindRef, name: &str, field: &str) -> Status {
    Status::invalid(kind, name, vec![Cause::required(field, "")])
}
