//! NamespaceLifecycle: nothing is created in a namespace that does not exist or terminates; some namespaces stay.

use k8s_openapi::api::authorization::v1::LocalSubjectAccessReview;
use k8s_openapi::api::core::v1::Namespace;

use super::{Attributes, Operation, Plugin};
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::{Cause, Status};

const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

pub struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        None
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        let kind = &object.kind;
        if !kind.namespaced || attributes.operation != Operation::Create || object.is::<LocalSubjectAccessReview>() {
            return Ok(());
        }
        let name = &object.key.namespace;
        match attributes.server.store.get(Namespace::kind(), &Key::cluster(name.clone())) {
            None => Err(Status::not_found(Namespace::kind(), name)),
            Some(namespace) if namespace.is_terminating() => {
                let detail = format!("unable to create new content in namespace {name} because it is being terminated");
                let mut status = Status::forbidden(kind, &object.key.name, &detail);
                status.details.get_or_insert_default().causes.push(Cause {
                    reason: "NamespaceTerminating",
                    message: format!("namespace {name} is being terminated"),
                    field: "metadata.namespace".into(),
                });
                Err(status)
            }
            Some(namespace) => {
                // All objects of a namespace share its name.
                object.key.namespace = namespace.key.name.clone();
                Ok(())
            }
        }
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        let deletes = attributes.operation == Operation::Delete;
        if deletes && object.is::<Namespace>() && IMMORTAL.contains(&&*object.key.name) {
            return Err(Status::forbidden(&object.kind, &object.key.name, "this namespace may not be deleted"));
        }
        Ok(())
    }
}
