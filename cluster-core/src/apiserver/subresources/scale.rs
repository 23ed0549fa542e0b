//! `scale`: the number of replicas of a workload, without the rest of it.
//! <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/scale-v1/>

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceSubresourceScale;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use crate::api::kind::{KindRef, scale_kind};
use crate::api::managed::{Entry, Managed};
use crate::api::object::Object;
use crate::api::request::{Answer, PatchType, Request, Response, Verb};
use crate::api::selector::Selector;
use crate::api::status::{Cause, Status};
use crate::apiserver::write::{self, Managers};
use crate::apiserver::{ApiServer, Moment, answer, custom, decode, managed, patch, read};

static SCALE: LazyLock<KindRef> = LazyLock::new(scale_kind);

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let old = read::existing(server, request)?;
    let as_scale = Request { kind: SCALE.clone(), ..request.clone() };
    let mut applied = None;
    if request.verb == Verb::Get
        && let Some(path) = custom_paths(&old).map(|paths| &paths.spec_replicas_path)
        && old.to_json().pointer(&pointer(path)).is_none()
    {
        return Err(Status::internal(format!("the spec replicas field {path:?} does not exist")));
    }
    let (scale, warnings) = match request.verb {
        Verb::Get => return object(scale_of(&old), &old).map(answer),
        Verb::Patch(PatchType::Apply) => {
            let config = patch::body(request)?;
            patch::apply::check(config, &SCALE)?;
            let apply = patch::apply::applied(&as_scale, config, moment.now);
            apply.check()?;
            let managers = managed::scale::of_scale(managed::entries(&old));
            let (value, managers) = apply.apply(Some(&scale_of(&old)), &managers)?;
            applied = Some(managers);
            patch::apply::read(&SCALE, &value, &request.options)?
        }
        Verb::Patch(_) => patch::apply_to(server, &as_scale, &object(scale_of(&old), &old)?)?,
        _ => {
            let (scale, warnings) = decode::body(&as_scale)?;
            patch::check_place(&scale, request)?;
            (scale, warnings)
        }
    };
    let (revision, uid) = (scale.revision, scale.uid());
    let scale = scale.to_json();
    let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
    let is_custom = custom_paths(&old).is_some();
    if !is_custom && replicas < 0 {
        let cause = Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(Status::invalid(&SCALE, &old.key.name, vec![cause]));
    }
    if !is_custom && !uid.is_empty() && uid != old.uid() {
        return Err(of_another(&old, uid));
    }
    let mut json = old.to_json();
    match custom_paths(&old) {
        Some(paths) => set(&mut json, &paths.spec_replicas_path, replicas.into()),
        None => json["spec"]["replicas"] = replicas.into(),
    }
    let mut new = Object::from_json(&old.kind, json).map_err(|error| Status::internal(error.message))?;
    new.revision = if revision == 0 { old.revision } else { revision };
    new.managed = managers(&old, &new, applied, &as_scale);
    let whole = Request { subresource: "", ..request.clone() };
    let written = write::replace(server, &whole, old, new, Managers::Known, warnings, moment)?;
    let Response::Object(written) = written else { return Err(Status::internal("the workload was not written")) };
    let scale = object(scale_of(&written.object), &written.object)?;
    Ok(Response::Object(Answer { object: scale, ..written }))
}

/// The scale is that of another workload of the same name.
fn of_another(old: &Object, uid: &str) -> Status {
    let detail = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.uid());
    let mut refused = Status::conflict(&old.kind, &old.key.name, &detail);
    let resource = format!("{}/scale", old.kind.resource);
    let group = if old.kind.group.is_empty() { String::new() } else { format!(".{}", old.kind.group) };
    refused.message = format!("Operation cannot be fulfilled on {resource}{group} \"{}\": {detail}", old.key.name);
    refused.details.get_or_insert_default().kind = resource;
    refused
}

/// Who manages the workload's fields after a write of its scale.
fn managers(old: &Object, new: &Object, applied: Option<Vec<Entry>>, request: &Request) -> Managed {
    let workload = managed::entries(old);
    let scale = match applied {
        Some(managers) => managers,
        None if new.same_spec(old) || workload.is_empty() => return old.managed.clone(),
        None => vec![Entry {
            manager: managed::manager(request),
            applied: false,
            api_version: SCALE.api_version().into(),
            subresource: "scale".into(),
            time: None,
            fields: managed::scale::replicas(),
        }],
    };
    Managed::of(managed::scale::of_workload(workload, &scale, &old.kind))
}

/// Where a custom resource has its numbers of replicas; `None` for built-in kinds.
fn custom_paths(workload: &Object) -> Option<&CustomResourceSubresourceScale> {
    custom::version(&workload.kind)?.scale.as_ref()
}

/// `.spec.replicas` as a JSON pointer.
fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

/// Sets a field, and the objects around it that are not there.
fn set(json: &mut Value, path: &str, value: Value) {
    let mut place = json;
    for step in path.trim_start_matches('.').split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[step];
    }
    *place = value;
}

/// The `Scale` of a workload, as JSON.
fn scale_of(workload: &Object) -> Value {
    let json = workload.to_json();
    let count = |pointer: &str| json.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let metadata = workload.metadata();
    let paths = custom_paths(workload);
    let spec = paths.map_or("/spec/replicas".to_owned(), |paths| pointer(&paths.spec_replicas_path));
    let status = paths.map_or("/status/replicas".to_owned(), |paths| pointer(&paths.status_replicas_path));
    let mut scale = json!({
        "metadata": {
            "name": &*workload.key.name, "namespace": &*workload.key.namespace, "uid": workload.uid(),
            "resourceVersion": workload.revision.to_string(), "creationTimestamp": metadata.creation_timestamp,
        },
        "spec": {},
        "status": {"replicas": count(&status)},
    });
    let replicas = count(&spec);
    if replicas != 0 {
        scale["spec"]["replicas"] = replicas.into();
    }
    if let Some(paths) = paths {
        let selector = paths.label_selector_path.as_deref().and_then(|path| json.pointer(&pointer(path))?.as_str());
        if let Some(text) = selector.filter(|text| !text.is_empty()) {
            scale["status"]["selector"] = text.into();
        }
        return scale;
    }
    let selector = json.pointer("/spec/selector").cloned().unwrap_or_default();
    let text = match serde_json::from_value::<LabelSelector>(selector.clone()) {
        Ok(parsed) if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() => {
            Selector::of(&parsed).to_string()
        }
        _ => {
            serde_json::from_value(selector).map(|labels| Selector::of_labels(&labels).to_string()).unwrap_or_default()
        }
    };
    if !text.is_empty() {
        scale["status"]["selector"] = text.into();
    }
    scale
}

fn object(scale: Value, workload: &Object) -> Result<Object, Status> {
    let mut object = Object::from_json(&SCALE, scale).map_err(|error| Status::internal(error.message))?;
    object.revision = workload.revision;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::{Value, json};

    use crate::api::Key;
    use crate::api::kind::KindRef;
    use crate::api::request::{Body, PatchType, Request, Verb};
    use crate::{Cluster, Config};

    #[test]
    fn a_scale_changes_replicas_and_nothing_else() {
        let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        let actor = "kubectl".into();
        let kind = KindRef::of::<Deployment>();
        let deployment = json!({
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
                },
            },
        });
        let deployment = crate::api::object::Object::from_json(kind, deployment).unwrap();
        cluster.request(Request::create(&actor, deployment)).unwrap();
        let patch = json!({"spec": {"replicas": 3}});
        let mut request = Request::patch(&actor, kind, Key::new("default", "web"), PatchType::Merge, patch);
        request.subresource = "scale";
        let scale = cluster.request(request.clone()).unwrap().object().unwrap().to_json();
        assert_eq!(scale["kind"], "Scale");
        assert_eq!(scale["spec"]["replicas"], 3);
        assert_eq!(scale["status"]["selector"], "app=web");
        let web = cluster.get::<Deployment>("default", "web").unwrap();
        assert_eq!((web.spec::<Deployment>().replicas, web.metadata().generation), (Some(3), Some(2)));

        request.body = Body::Json(json!({"spec": {"replicas": -1}}));
        let refused = cluster.request(request.clone()).unwrap_err();
        assert_eq!((refused.code, refused.causes()[0].field.as_str()), (422, "spec.replicas"));

        request.verb = Verb::Update;
        let mut put = |body: Value| {
            request.body = Body::Json(body);
            cluster.request(request.clone()).map(|response| response.object().unwrap().to_json())
        };
        let none = put(json!({"metadata": {"name": "web"}})).unwrap();
        assert_eq!((&none["spec"], &none["status"]["replicas"]), (&json!({}), &json!(0)));
        let other = put(json!({"metadata": {"name": "other"}, "spec": {"replicas": 1}})).unwrap_err();
        assert_eq!(other.message, "the name of the object (other) does not match the name on the URL (web)");
        let meant = put(json!({"metadata": {"name": "web", "uid": "x"}, "spec": {"replicas": 1}})).unwrap_err();
        assert!(
            meant.message.starts_with("Operation cannot be fulfilled on deployments/scale.apps"),
            "{}",
            meant.message
        );
        let wrong =
            put(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}})).unwrap_err();
        let expected = "Deployment in version \"v1\" cannot be handled as a Scale: converting (v1.Deployment) to \
                        (autoscaling.Scale): unknown conversion";
        assert_eq!((wrong.code, wrong.message.as_str()), (400, expected));
    }
}
