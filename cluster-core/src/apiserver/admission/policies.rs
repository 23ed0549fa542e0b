//! MutatingAdmissionPolicy and ValidatingAdmissionPolicy: rules in CEL that stand in the API.
//! <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/>

use super::{Attributes, Operation, Plugin};
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::policy;

pub struct MutatingAdmissionPolicy;

impl Plugin for MutatingAdmissionPolicy {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        None
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        policy::admit(attributes.server, &attributes.seen(), object)
    }
}

pub struct ValidatingAdmissionPolicy;

impl Plugin for ValidatingAdmissionPolicy {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        None
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        let written = (attributes.operation != Operation::Delete).then_some(object);
        policy::validate(attributes.server, &attributes.seen(), written, attributes.warnings)
    }
}
