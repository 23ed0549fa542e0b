//! Field selectors: which fields of which kind can be selected on.
//! <https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/>

use std::borrow::Cow;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod, ReplicationController, Secret, Service};

use crate::api::Name;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::selector::FieldSelector;
use crate::api::status::Status;
use crate::apiserver::custom;

/// The field by which the history of a kind is partitioned, so that a node's kubelet reads only its own pods' changes.
pub fn index_path(kind: &KindRef) -> Option<&'static str> {
    (kind.slot == KindRef::of::<Pod>().slot).then_some("spec.nodeName")
}

/// The value of that field.
pub fn index_value(object: &Object) -> Option<Name> {
    object.is::<Pod>().then(|| object.spec::<Pod>().node_name.as_deref().map(Name::from)).flatten()
}

/// The paths that can be selected on, beside metadata.name and metadata.namespace.
fn paths(kind: &KindRef) -> &'static [&'static str] {
    match (&*kind.group, &*kind.kind) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("events.k8s.io", "Event") => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("", "Node") => &["spec.unschedulable"],
        ("", "Namespace") => &["status.phase"],
        ("", "Secret") => &["type"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("", "ReplicationController") => &["status.replicas"],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["spec.signerName"],
        _ => &[],
    }
}

/// Refuses a selector on a field that the kind does not offer.
pub fn check(kind: &KindRef, selector: &FieldSelector) -> Result<(), Status> {
    for term in &selector.0 {
        let path = term.path.as_str();
        let known = path == "metadata.name"
            || (path == "metadata.namespace" && kind.namespaced)
            || paths(kind).contains(&path)
            || custom::is_selectable(kind, path);
        if !known {
            return Err(Status::bad_request(match paths(kind) {
                [] if kind.schema.is_none() => {
                    format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
                }
                _ if *kind.kind == *"Job" => format!("field label {path:?} not supported for Job"),
                _ => format!("field label not supported: {path}"),
            }));
        }
    }
    Ok(())
}

/// The text of a selectable field.
pub fn field<'a>(object: &'a Object, path: &str) -> Option<Cow<'a, str>> {
    let text = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
    match path {
        "metadata.name" => return Some(Cow::Borrowed(&object.key.name)),
        "metadata.namespace" => return Some(Cow::Borrowed(&object.key.namespace)),
        _ => {}
    }
    if object.kind.definition.is_some() {
        return custom::field(object, path);
    }
    if object.is::<Pod>() {
        let (spec, status) = (object.spec::<Pod>(), object.status::<Pod>());
        return match path {
            "spec.nodeName" => text(&spec.node_name),
            "spec.restartPolicy" => text(&spec.restart_policy),
            "spec.schedulerName" => text(&spec.scheduler_name),
            "spec.serviceAccountName" => text(&spec.service_account_name),
            "spec.hostNetwork" => Some(Cow::Owned(spec.host_network.unwrap_or(false).to_string())),
            "status.phase" => text(&status.phase),
            "status.podIP" => text(&status.pod_ip),
            "status.nominatedNodeName" => text(&status.nominated_node_name),
            _ => None,
        };
    }
    if object.is::<Node>() && path == "spec.unschedulable" {
        return Some(Cow::Owned(object.spec::<Node>().unschedulable.unwrap_or(false).to_string()));
    }
    if object.is::<Service>() {
        let service = object.spec::<Service>();
        return match path {
            "spec.clusterIP" => text(&service.cluster_ip),
            "spec.type" => text(&service.type_),
            _ => None,
        };
    }
    if object.is::<ReplicationController>() && path == "status.replicas" {
        return Some(Cow::Owned(object.status::<ReplicationController>().replicas.to_string()));
    }
    if object.is::<Job>() && path == "status.successful" {
        return Some(Cow::Owned(object.status::<Job>().succeeded.unwrap_or(0).to_string()));
    }
    if object.is::<CertificateSigningRequest>() && path == "spec.signerName" {
        return Some(Cow::Borrowed(&object.spec::<CertificateSigningRequest>().signer_name));
    }
    if object.is::<Namespace>() && path == "status.phase" {
        return text(&object.status::<Namespace>().phase);
    }
    if object.is::<Secret>() && path == "type" {
        return text(&object.spec::<Secret>().type_);
    }
    if object.is::<Event>() {
        let event = object.spec::<Event>();
        let involved = &event.involved_object;
        return match path {
            "involvedObject.kind" | "regarding.kind" => text(&involved.kind),
            "involvedObject.namespace" | "regarding.namespace" => text(&involved.namespace),
            "involvedObject.name" | "regarding.name" => text(&involved.name),
            "involvedObject.uid" | "regarding.uid" => text(&involved.uid),
            "involvedObject.apiVersion" | "regarding.apiVersion" => text(&involved.api_version),
            "involvedObject.resourceVersion" | "regarding.resourceVersion" => text(&involved.resource_version),
            "involvedObject.fieldPath" | "regarding.fieldPath" => text(&involved.field_path),
            "reason" => text(&event.reason),
            "reportingComponent" | "reportingController" => text(&event.reporting_component),
            "source" => match event.source.as_ref().and_then(|source| source.component.as_deref()) {
                None | Some("") => text(&event.reporting_component),
                Some(component) => Some(component.into()),
            },
            "type" => text(&event.type_),
            _ => None,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_found_by_who_reports_in_the_words_of_each_version() {
        let event = json!({"metadata": {"name": "e", "namespace": "default"}, "reportingComponent": "test-controller",
            "involvedObject": {"kind": "Pod", "name": "web"}});
        let event = Object::from_json(KindRef::of::<Event>(), event).unwrap();
        for path in ["source", "reportingComponent", "reportingController"] {
            assert_eq!(field(&event, path).as_deref(), Some("test-controller"), "{path}");
        }
        assert_eq!(field(&event, "involvedObject.name"), field(&event, "regarding.name"));
        let may_select =
            |kind: &KindRef, path: &str| check(kind, &FieldSelector::parse(&format!("{path}=x")).unwrap()).is_ok();
        let (old, new) = (KindRef::of::<Event>(), KindRef::of::<k8s_openapi::api::events::v1::Event>());
        assert_eq!((may_select(old, "source"), may_select(new, "source")), (true, false));
        assert_eq!((may_select(old, "reportingController"), may_select(new, "reportingController")), (false, true));
    }
}
