//! Kinds that are served in two versions and kept in one: HorizontalPodAutoscalers as autoscaling/v2, Events as core/v1.
//! The version that stands first in the table of kinds is the one that is kept.
//! <https://kubernetes.io/docs/reference/using-api/#api-versioning>

mod autoscaler;
mod event;

use serde_json::Value;

use crate::api::kind::{DecodeError, KindRef};
use crate::api::kinds;
use crate::api::object::Object;
use crate::api::request::{Request, Response};
use crate::api::status::Status;
use crate::apiserver::ApiServer;
use crate::apiserver::custom;
use crate::apiserver::strategies;
use crate::apiserver::validation::field::Causes;

/// The kind under which the objects of `kind` are kept.
pub fn kept(kind: &KindRef) -> &KindRef {
    kinds::built_in().get(kind.slot).unwrap_or(kind)
}

/// A written object as it is kept.
pub fn to_kept(object: Object) -> Result<Object, DecodeError> {
    let hub = kept(&object.kind);
    if object.kind == *hub {
        return Ok(object);
    }
    let convert = match &*object.kind.kind {
        "Event" => event::to_core,
        _ => autoscaler::to_v2,
    };
    through_json(&object, hub, convert)
}

/// A kept object as a client sees it that asked for `kind`.
pub fn present(object: Object, kind: &KindRef) -> Object {
    if kind.definition.is_some() && object.kind.slot == kind.slot {
        return custom::as_kind(object, kind);
    }
    if object.kind == *kind || object.kind.slot != kind.slot {
        return object;
    }
    let convert = match &*object.kind.kind {
        "Event" => event::from_core,
        _ => autoscaler::to_v1,
    };
    // What was valid in one version reads in the other.
    through_json(&object, kind, convert).unwrap_or(object)
}

/// The same for an answer.
///
/// # Errors
/// 500 if a program that has to convert custom resources does not.
pub fn present_response(server: &ApiServer, response: Response, kind: &KindRef) -> Result<Response, Status> {
    if kept(kind) == kind && kind.definition.is_none() {
        return Ok(response);
    }
    Ok(match response {
        Response::Object(mut answer) => {
            answer.object = present(answer.object, kind);
            Response::Object(answer)
        }
        Response::List(mut list) if kind.definition.is_some() => {
            list.items = server.in_version_of(kind, list.items)?;
            Response::List(list)
        }
        Response::List(mut list) => {
            list.items = list.items.into_iter().map(|object| present(object, kind)).collect();
            Response::List(list)
        }
    })
}

/// What is wrong with an object by the rules of a version that has some of its own.
pub fn validate(request: &Request, old: Option<&Object>, new: &Object) -> Option<Causes> {
    (&*request.kind.group == "events.k8s.io").then(|| strategies::event::validate_new_style(old, new))
}

fn through_json(object: &Object, kind: &KindRef, convert: fn(&mut Value)) -> Result<Object, DecodeError> {
    let mut json = object.to_json();
    convert(&mut json);
    let mut converted = Object::from_json(kind, json)?;
    converted.revision = object.revision;
    converted.key = object.key.clone();
    converted.managed = object.managed.clone();
    Ok(converted)
}

/// Moves a field to another name of the same object.
fn rename(value: &mut Value, from: &str, to: &str) {
    if let Value::Object(fields) = value
        && let Some(moved) = fields.remove(from)
    {
        fields.insert(to.to_owned(), moved);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::autoscaling::{v1, v2};
    use k8s_openapi::api::{core, events};
    use serde_json::json;

    use crate::apiserver::strategies::testing::{Api, told};

    #[test]
    fn an_autoscaler_is_one_in_both_versions() {
        let mut api = Api::new::<v1::HorizontalPodAutoscaler>();
        let target = json!({"kind": "ReplicationController", "name": "rc"});
        let spec = json!({"maxReplicas": 5, "targetCPUUtilizationPercentage": 50, "scaleTargetRef": target});
        let made = api.create(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap();
        assert_eq!(made["apiVersion"], "autoscaling/v1");
        assert_eq!(made["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(made["status"], json!({"currentReplicas": 0, "desiredReplicas": 0}));
        let mut api = api.of::<v2::HorizontalPodAutoscaler>();
        let newer = api.get("web").unwrap();
        assert_eq!(newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
        let memory = json!({"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}});
        let metrics = json!([{"type": "Resource", "resource": memory}]);
        api.merge("web", json!({"spec": {"metrics": metrics}})).unwrap();
        let mut api = api.of::<v1::HorizontalPodAutoscaler>();
        let older = api.merge("web", json!({"spec": {"maxReplicas": 6}})).unwrap();
        assert_eq!(older["spec"].get("targetCPUUtilizationPercentage"), None);
        let newer = api.of::<v2::HorizontalPodAutoscaler>().get("web").unwrap();
        assert_eq!((&newer["spec"]["maxReplicas"], &newer["spec"]["metrics"]), (&json!(6), &metrics));
    }

    #[test]
    fn an_event_is_one_in_both_groups() {
        let mut api = Api::new::<core::v1::Event>();
        let involved = json!({"kind": "Pod", "namespace": "default", "name": "a"});
        let event =
            json!({"metadata": {"name": "e"}, "involvedObject": involved, "reason": "Started", "message": "hello"});
        api.create(event).unwrap();
        let mut api = api.of::<events::v1::Event>();
        let newer = api.get("e").unwrap();
        assert_eq!((&newer["note"], &newer["regarding"]), (&json!("hello"), &involved));
        assert_eq!(newer["deprecatedSource"], json!({}));
        let incomplete = json!({
            "metadata": {"name": "f"}, "eventTime": "2024-01-02T03:04:05.000006Z", "regarding": involved,
            "reportingController": "c", "reportingInstance": "i", "action": "a",
        });
        assert_eq!(
            told(api.create(incomplete)),
            ["reason: Required value", "type: Invalid value: \"\": has invalid value: "]
        );
    }
}
