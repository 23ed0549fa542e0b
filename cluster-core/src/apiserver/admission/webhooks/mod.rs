//! Admission webhooks: programs of the cluster's users that the server asks about what is written.
//! <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/>

mod matching;
mod mutating;
mod review;
#[cfg(test)]
mod tests;
mod validating;

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::Attributes;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::ApiServer;
use crate::apiserver::callouts::Target;

pub use mutating::MutatingAdmissionWebhook;
pub use validating::ValidatingAdmissionWebhook;

/// `timeoutSeconds` of a webhook that says nothing.
const TIMEOUT_SECONDS: i32 = 10;

/// What both kinds of webhooks say of themselves.
struct Webhook<'a> {
    name: &'a str,
    target: Target<'a>,
    rules: &'a [RuleWithOperations],
    namespace_selector: Option<&'a LabelSelector>,
    object_selector: Option<&'a LabelSelector>,
    conditions: &'a [MatchCondition],
    fails_open: bool,
    has_side_effects: bool,
    timeout: Duration,
    /// Asked again when others changed the object after it.
    is_reinvoked: bool,
}

/// Why a webhook did not let a request pass.
enum Failure {
    /// It could not be asked, or its answer is none.
    Call(String),
    Refusal(Box<Status>),
}

macro_rules! webhook {
    ($type:ident, $reinvoked:expr) => {
        impl<'a> From<&'a $type> for Webhook<'a> {
            fn from(hook: &'a $type) -> Webhook<'a> {
                let seconds = hook.timeout_seconds.unwrap_or(TIMEOUT_SECONDS).clamp(1, 30);
                Webhook {
                    name: &hook.name,
                    target: Target::from(&hook.client_config),
                    rules: hook.rules.as_deref().unwrap_or_default(),
                    namespace_selector: hook.namespace_selector.as_ref(),
                    object_selector: hook.object_selector.as_ref(),
                    conditions: hook.match_conditions.as_deref().unwrap_or_default(),
                    fails_open: hook.failure_policy.as_deref() == Some("Ignore"),
                    has_side_effects: !matches!(hook.side_effects.as_str(), "None" | "NoneOnDryRun"),
                    timeout: Duration::from_secs(seconds.unsigned_abs().into()),
                    is_reinvoked: $reinvoked(hook),
                }
            }
        }
    };
}

webhook!(MutatingWebhook, |hook: &MutatingWebhook| hook.reinvocation_policy.as_deref() == Some("IfNeeded"));
webhook!(ValidatingWebhook, |_| false);

/// The mutating webhooks of the cluster, in the order of their configurations' names.
fn mutating(server: &ApiServer) -> impl Iterator<Item = Webhook<'_>> {
    let configurations = server.store.objects(MutatingWebhookConfiguration::kind()).values();
    let hooks =
        configurations.flat_map(|object| object.spec::<MutatingWebhookConfiguration>().webhooks.iter().flatten());
    hooks.map(Webhook::from)
}

fn validating(server: &ApiServer) -> impl Iterator<Item = Webhook<'_>> {
    let configurations = server.store.objects(ValidatingWebhookConfiguration::kind()).values();
    let hooks =
        configurations.flat_map(|object| object.spec::<ValidatingWebhookConfiguration>().webhooks.iter().flatten());
    hooks.map(Webhook::from)
}

/// Asks about a connection all that want to know of it; what they would change is not heeded.
pub fn connect(attributes: &mut Attributes<'_>) -> Result<(), Status> {
    let key = &attributes.request.key;
    let pod = Object::new::<Pod>(&key.namespace, &key.name, Default::default());
    for hook in mutating(attributes.server).chain(validating(attributes.server)) {
        if hook.matches(attributes, &pod)? {
            hook.ask(attributes, Some(&pod))?;
        }
    }
    Ok(())
}

impl Webhook<'_> {
    /// Asks the webhook; `None` where it may fail and did. `object` is absent when one is deleted.
    fn ask(&self, attributes: &mut Attributes<'_>, object: Option<&Object>) -> Result<Option<review::Answer>, Status> {
        match self.try_ask(attributes, object) {
            Ok(answer) => Ok(Some(answer)),
            Err(Failure::Call(_)) if self.fails_open => Ok(None),
            Err(Failure::Call(error)) => {
                Err(Status::internal(format!("failed calling webhook \"{}\": {error}", self.name)))
            }
            Err(Failure::Refusal(status)) => Err(*status),
        }
    }

    fn try_ask(&self, attributes: &mut Attributes<'_>, object: Option<&Object>) -> Result<review::Answer, Failure> {
        if attributes.request.options.dry_run && self.has_side_effects {
            let message = format!("admission webhook \"{}\" does not support dry run", self.name);
            return Err(Failure::Refusal(Box::new(Status::bad_request(message))));
        }
        let uid = attributes.random.uuid();
        let question = review::question(attributes, object, &uid);
        let answer = self.target.post(attributes.server, self.timeout, question);
        let answer = answer.map_err(|error| Failure::Call(format!("failed to call webhook: {error}")))?;
        let answer = review::read(&answer, &uid)
            .map_err(|error| Failure::Call(format!("received invalid webhook response: {error}")))?;
        attributes.warnings.extend(answer.warnings.iter().cloned());
        match answer.refusal(self.name) {
            Some(status) => Err(Failure::Refusal(Box::new(status))),
            None => Ok(answer),
        }
    }
}
