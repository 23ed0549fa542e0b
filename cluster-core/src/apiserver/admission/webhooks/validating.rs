//! ValidatingAdmissionWebhook: every webhook has to agree.

use super::validating;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::admission::{Attributes, Operation, Plugin};

pub struct ValidatingAdmissionWebhook;

impl Plugin for ValidatingAdmissionWebhook {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        None
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        let shown = (attributes.operation != Operation::Delete).then_some(object);
        for hook in validating(attributes.server) {
            if hook.matches(attributes, object)? {
                hook.ask(attributes, shown)?;
            }
        }
        Ok(())
    }
}
