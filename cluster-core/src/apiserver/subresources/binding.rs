//! `pods/binding`: a scheduler puts a pod on a node, once. The kind `bindings` is an older way to do the same.

use k8s_openapi::api::core::v1::{Binding, Pod, PodCondition};
use serde_json::Value;

use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::{Request, Response};
use crate::api::status::Status;
use crate::apiserver::{ApiServer, Moment, admission, answer, decode, read, write};

/// A binding that is created as an object says by its own name which pod it binds.
pub fn create(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let name = super::body(request).pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let key = Key::new(request.key.namespace.clone(), name);
    handle(server, &Request { kind: Pod::kind().clone(), key, subresource: "binding", ..request.clone() }, moment)
}

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let body = super::body(request);
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    decode::check_kind(Binding::kind(), &body)?;
    super::check_namespace(&body, request)?;
    let target = text("/target/name");
    if *text("/metadata/name") != *request.key.name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    check_target(text("/target/kind"), target)?;
    let old = read::existing(server, request)?;
    write::check_uid(&old, text("/metadata/uid"))?;
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
    let bound = server.pod_specs.bound.get_or_default(target.into());
    bound.run(&mut pod, |pod| pod.spec_mut::<Pod>().node_name = Some(target.to_owned()));
    pod.status_mut::<Pod>().nominated_node_name = None;
    merge_metadata(&mut pod, &body);
    admission::copy_topology_labels(server, target, &mut pod);
    set_scheduled(&mut pod, moment);
    let pod = server.put(pod, Some(old.revision), request, moment)?;
    Ok(answer(pod))
}

fn check_target(kind: &str, name: &str) -> Result<(), Status> {
    let mut problems = Vec::new();
    if !matches!(kind, "" | "Node") {
        problems.push(format!("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""));
    }
    if name.is_empty() {
        problems.push("target.name: Required value".to_owned());
    }
    match problems.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::unexplained(one.as_str())),
        more => Err(Status::unexplained(format!("[{}]", more.join(", ")))),
    }
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
    let texts = |pointer: &str| {
        let entries = binding.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect::<Vec<_>>()
    };
    let (labels, annotations) = (texts("/metadata/labels"), texts("/metadata/annotations"));
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::request::Verb;
    use crate::apiserver::strategies::testing::{Api, told};

    fn pod(name: &str) -> Value {
        let spec = json!({"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]});
        json!({"metadata": {"name": name}, "spec": spec})
    }

    fn binding(pod: &str, target: Value) -> Value {
        json!({"metadata": {"name": pod}, "target": target})
    }

    #[test]
    fn a_binding_that_is_created_as_an_object_binds_the_pod_of_its_name() {
        let mut pods = Api::new::<Pod>();
        pods.create(pod("a")).unwrap();
        let mut bindings = pods.of::<Binding>();
        bindings.create(binding("a", json!({"kind": "Node", "name": "n"}))).unwrap();
        let again = told(bindings.create(binding("a", json!({"name": "n"}))));
        let refused = "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n\"";
        assert_eq!(again, [refused]);
        assert_eq!(bindings.of::<Pod>().get("a").unwrap()["spec"]["nodeName"], "n");
    }

    #[test]
    fn a_binding_needs_its_pods_name_and_a_node() {
        let mut pods = Api::new::<Pod>();
        pods.create(pod("a")).unwrap();
        let mut refusal = |body| told(pods.send(Verb::Create, "a", "binding", body)).concat();
        assert_eq!(refusal(json!({"target": {"name": "n"}})), "name in URL does not match name in Binding object");
        assert_eq!(
            refusal(binding("a", json!({"kind": "Pod"}))),
            "[target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\", target.name: Required value]"
        );
    }
}
