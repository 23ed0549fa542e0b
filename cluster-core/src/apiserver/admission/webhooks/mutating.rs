//! MutatingAdmissionWebhook: one webhook after the other may change the object.

use super::{Webhook, mutating, review};
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::admission::{Attributes, Operation, Plugin};
use crate::apiserver::custom;
use crate::apiserver::strategy::strategy;

pub struct MutatingAdmissionWebhook;

impl Plugin for MutatingAdmissionWebhook {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        None
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        let server = attributes.server;
        // How many changes there had been when a webhook was asked.
        let mut asked: Vec<(Webhook<'_>, usize)> = Vec::new();
        let mut changes = 0;
        for hook in mutating(server) {
            if hook.matches(attributes, object)? {
                changes += usize::from(change(&hook, attributes, object)?);
                asked.push((hook, changes));
            }
        }
        let seen_by_all = changes;
        for (hook, seen) in asked {
            // Asked once more, if others changed after it what it had seen.
            if hook.is_reinvoked && seen < seen_by_all && hook.matches(attributes, object)? {
                change(&hook, attributes, object)?;
            }
        }
        Ok(())
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        if attributes.operation != Operation::Delete {
            return Ok(());
        }
        for hook in mutating(attributes.server) {
            if hook.matches(attributes, object)? {
                hook.ask(attributes, None)?;
            }
        }
        Ok(())
    }
}

/// Asks a webhook and does what it says. True if that changed the object.
fn change(hook: &Webhook<'_>, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<bool, Status> {
    let answer = hook.ask(attributes, Some(object))?;
    let Some(patch) = answer.and_then(|answer: review::Answer| answer.patch) else { return Ok(false) };
    let failed = |error: &dyn std::fmt::Display| Status::internal(error.to_string());
    let patch: json_patch::Patch = serde_json::from_str(&patch).map_err(|error| failed(&error))?;
    let mut json = object.to_json();
    json_patch::patch(&mut json, &patch).map_err(|error| failed(&error))?;
    custom::prune(&object.kind, &mut json);
    let mut changed = Object::from_json(&object.kind, json).map_err(|error| failed(&error.message))?;
    strategy(&object.kind).default(&mut changed);
    let is_changed = !changed.same(object);
    *object = changed;
    Ok(is_changed)
}
