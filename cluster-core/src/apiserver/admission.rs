//! Admission: what the server adds to an object, and what it refuses though the object itself is right.
//! <https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/>

use k8s_openapi::api::core::v1::{Namespace, Pod, Toleration};

use super::policy::{self, Attributes, Operation};
use super::{ApiServer, Moment};
use crate::api::Key;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::api::status::Status;

/// Mutating admission, before validation.
pub fn admit(
    server: &mut ApiServer,
    request: &Request,
    old: Option<&Object>,
    object: &mut Object,
    _moment: &mut Moment<'_>,
) -> Result<(), Status> {
    if old.is_none() {
        if let Some(namespace) = existing_namespace(server, request, object)? {
            // All objects of a namespace share its name.
            object.key.namespace = namespace.key.name.clone();
        }
        if object.is::<Pod>() {
            server.pod_specs.tolerating.run(object, default_tolerations);
        }
    }
    policy::admit(server, &attributes(request, old), object)
}

fn attributes<'a>(request: &'a Request, old: Option<&'a Object>) -> Attributes<'a> {
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    Attributes { request, operation, old }
}

/// Validating admission, on the object as it would be written.
pub fn check(
    server: &ApiServer,
    request: &Request,
    old: Option<&Object>,
    object: &Object,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    policy::validate(server, &attributes(request, old), Some(object), warnings)
}

/// NamespaceLifecycle: the namespaces that the cluster itself needs stay.
pub fn check_delete(
    server: &ApiServer,
    request: &Request,
    object: &Object,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    let kept = ["default", "kube-system", "kube-public", "kube-node-lease"];
    if object.is::<Namespace>() && kept.contains(&&*object.key.name) {
        return Err(Status::forbidden(&request.kind, &object.key.name, "this namespace may not be deleted"));
    }
    let attributes = Attributes { request, operation: Operation::Delete, old: Some(object) };
    policy::validate(server, &attributes, None, warnings)
}

/// NamespaceLifecycle: nothing is created in a namespace that does not exist or terminates.
fn existing_namespace<'a>(
    server: &'a ApiServer,
    request: &Request,
    object: &Object,
) -> Result<Option<&'a Object>, Status> {
    if !request.kind.namespaced {
        return Ok(None);
    }
    let name = &object.key.namespace;
    let kind = KindRef::of::<Namespace>();
    match server.store.get(kind, &Key::cluster(name.clone())) {
        None => Err(Status::not_found(kind, name)),
        Some(namespace) if namespace.is_terminating() => {
            let detail = format!("unable to create new content in namespace {name} because it is being terminated");
            let mut status = Status::forbidden(&request.kind, &object.key.name, &detail);
            status.details.get_or_insert_default().causes.push(crate::api::status::Cause {
                reason: "NamespaceTerminating",
                message: format!("namespace {name} is being terminated"),
                field: "metadata.namespace".into(),
            });
            Err(status)
        }
        Some(namespace) => Ok(Some(namespace)),
    }
}

/// DefaultTolerationSeconds: a pod stays 300 s on a node that has become unready or unreachable.
fn default_tolerations(object: &mut Object) {
    let missing = |object: &Object, key: &str| {
        let covers = |toleration: &Toleration| {
            toleration.key.as_deref().is_none_or(|known| known == key || known.is_empty())
                && matches!(toleration.effect.as_deref(), None | Some("") | Some("NoExecute"))
        };
        !object.spec::<Pod>().tolerations.iter().flatten().any(covers)
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if missing(object, key) {
            object.spec_mut::<Pod>().tolerations.get_or_insert_default().push(Toleration {
                key: Some(key.into()),
                operator: Some("Exists".into()),
                effect: Some("NoExecute".into()),
                toleration_seconds: Some(300),
                value: None,
            });
        }
    }
}
