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
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::Attributes;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::ApiServer;

pub use mutating::MutatingAdmissionWebhook;
pub use validating::ValidatingAdmissionWebhook;

/// `timeoutSeconds` of a webhook that says nothing.
const TIMEOUT_SECONDS: i32 = 10;

/// The way to webhooks. The cluster has no network of its own: whoever runs it makes the calls, and each blocks the
/// request that it is about.
pub trait Webhooks: Send + Sync {
    /// Sends an AdmissionReview and returns the one that comes back.
    ///
    /// # Errors
    /// In words what went wrong, without the URL: `dial tcp 127.0.0.1:9443: connect: connection refused`.
    fn call(&self, call: &Call) -> Result<Value, String>;
}

/// One question to one webhook.
#[derive(Clone, Debug)]
pub struct Call {
    /// With the timeout as its query, as kube-apiserver sends it.
    pub url: String,
    /// Certificates in PEM by which the webhook is known; the system's if it is empty.
    pub ca_bundle: Vec<u8>,
    pub timeout: Duration,
    /// An AdmissionReview of admission.k8s.io/v1.
    pub review: Value,
}

/// For a cluster that nobody connects to a network.
pub struct Unreachable;

impl Webhooks for Unreachable {
    fn call(&self, _: &Call) -> Result<Value, String> {
        Err("dial tcp: network is unreachable".into())
    }
}

/// What both kinds of webhooks say of themselves.
struct Webhook<'a> {
    name: &'a str,
    client: &'a WebhookClientConfig,
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
                    client: &hook.client_config,
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
        let url = self.url();
        let failed = |error: String| Failure::Call(format!("failed to call webhook: Post \"{url}\": {error}"));
        self.check_service(attributes.server).map_err(failed)?;
        let call = Call {
            url: url.clone(),
            ca_bundle: self.client.ca_bundle.as_ref().map(|bundle| bundle.0.clone()).unwrap_or_default(),
            timeout: self.timeout,
            review: review::question(attributes, object, &uid),
        };
        let answer = attributes.server.webhooks.call(&call).map_err(failed)?;
        let answer = review::read(&answer, &uid)
            .map_err(|error| Failure::Call(format!("received invalid webhook response: {error}")))?;
        attributes.warnings.extend(answer.warnings.iter().cloned());
        match answer.refusal(self.name) {
            Some(status) => Err(Failure::Refusal(Box::new(status))),
            None => Ok(answer),
        }
    }

    fn url(&self) -> String {
        let base = match (&self.client.url, &self.client.service) {
            (Some(url), _) => url.clone(),
            (None, Some(service)) => {
                let path = service.path.as_deref().unwrap_or_default();
                let slash = if path.starts_with('/') { "" } else { "/" };
                let port = service.port.unwrap_or(443);
                format!("https://{}.{}.svc:{port}{slash}{path}", service.name, service.namespace)
            }
            (None, None) => String::new(),
        };
        let sign = if base.contains('?') { '&' } else { '?' };
        format!("{base}{sign}timeout={}s", self.timeout.as_secs())
    }

    /// Containers of this cluster are no processes: none of them can answer for a Service.
    fn check_service(&self, server: &ApiServer) -> Result<(), String> {
        let (None, Some(service)) = (&self.client.url, &self.client.service) else { return Ok(()) };
        let (key, name) = (Key::new(service.namespace.as_str(), service.name.as_str()), &service.name);
        if server.store.get(Service::kind(), &key).is_none() {
            return Err(format!("service \"{name}\" not found"));
        }
        let subsets =
            server.store.get(Endpoints::kind(), &key).and_then(|all| all.spec::<Endpoints>().subsets.as_ref());
        let address = subsets.into_iter().flatten().find_map(|subset| {
            let address = subset.addresses.as_ref()?.first()?;
            Some(format!("{}:{}", address.ip, subset.ports.as_ref()?.first()?.port))
        });
        match address {
            None => Err(format!("no endpoints available for service \"{name}\"")),
            Some(address) => Err(format!("dial tcp {address}: connect: connection refused")),
        }
    }
}
