//! Programs that the server asks: admission webhooks, and converters of custom resources. They are reached by a URL, or
//! behind a Service.
//! <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#contacting-the-webhook>

use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1 as admission;
use k8s_openapi::api::core::v1::{Endpoints, Service, ServicePort};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
use serde_json::Value;

use super::ApiServer;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::certificates;
use crate::listeners::TIMED_OUT;
use crate::network::addresses::ready_endpoint;

/// The way out of the cluster, to programs that a URL names. The cluster has no network of its own: whoever runs it makes
/// the calls, and each blocks the request that it is about.
pub trait Webhooks: Send + Sync {
    /// Sends a review and returns the one that comes back.
    ///
    /// # Errors
    /// In words what went wrong, without the URL: `dial tcp 127.0.0.1:9443: connect: connection refused`.
    fn call(&self, call: &Call) -> Result<Value, String>;
}

/// One question to one program.
#[derive(Clone, Debug)]
pub struct Call {
    /// With the timeout as its query, as kube-apiserver sends it.
    pub url: String,
    /// Certificates in PEM by which the program is known; the system's if it is empty.
    pub ca_bundle: Vec<u8>,
    pub timeout: Duration,
    /// An AdmissionReview of admission.k8s.io/v1, or a ConversionReview of apiextensions.k8s.io.
    pub review: Value,
}

/// For a cluster that nobody connects to a network.
pub struct Unreachable;

impl Webhooks for Unreachable {
    fn call(&self, _: &Call) -> Result<Value, String> {
        Err("dial tcp: network is unreachable".into())
    }
}

/// Whom to ask, as a configuration says it.
pub struct Target<'a> {
    url: Option<&'a str>,
    service: Option<Backing<'a>>,
    ca_bundle: &'a [u8],
}

/// A Service's port and a path.
struct Backing<'a> {
    namespace: &'a str,
    name: &'a str,
    path: &'a str,
    port: i32,
}

macro_rules! target {
    ($module:ident) => {
        impl<'a> From<&'a $module::WebhookClientConfig> for Target<'a> {
            fn from(client: &'a $module::WebhookClientConfig) -> Target<'a> {
                let service = client.service.as_ref().map(|service| Backing {
                    namespace: &service.namespace,
                    name: &service.name,
                    path: service.path.as_deref().unwrap_or_default(),
                    port: service.port.unwrap_or(443),
                });
                let ca_bundle = client.ca_bundle.as_ref().map(|bundle| bundle.0.as_slice()).unwrap_or_default();
                Target { url: client.url.as_deref(), service, ca_bundle }
            }
        }
    };
}

target!(admission);
target!(extensions);

impl Target<'_> {
    /// Sends a review and returns the one that comes back.
    ///
    /// # Errors
    /// In Go's words: `Post "https://hook.default.svc:443/?timeout=10s": service "hook" not found`.
    pub fn post(&self, server: &ApiServer, timeout: Duration, review: Value) -> Result<Value, String> {
        let url = self.url(timeout);
        let answer = match &self.service {
            Some(service) if self.url.is_none() => self.ask(service, server, timeout, &review),
            _ => {
                let ca_bundle = self.ca_bundle.to_vec();
                server.webhooks.call(&Call { url: url.clone(), ca_bundle, timeout, review })
            }
        };
        answer.map_err(|why| format!("Post \"{url}\": {why}"))
    }

    fn url(&self, timeout: Duration) -> String {
        let base = match (self.url, &self.service) {
            (Some(url), _) => url.to_owned(),
            (None, Some(service)) => format!("https://{}:{}{}", service.host(), service.port, service.rooted_path()),
            (None, None) => String::new(),
        };
        let sign = if base.contains('?') { '&' } else { '?' };
        format!("{base}{sign}timeout={}s", timeout.as_secs())
    }

    fn ask(
        &self,
        service: &Backing<'_>,
        server: &ApiServer,
        timeout: Duration,
        review: &Value,
    ) -> Result<Value, String> {
        let listener = server.listeners.dial(service.endpoint(server)?)?;
        certificates::check_server(&listener.certificate, self.ca_bundle, &service.host())
            .map_err(|error| format!("tls: failed to verify certificate: {error}"))?;
        let reply = listener.program.answer(&service.rooted_path(), review);
        if reply.took >= timeout {
            return Err(TIMED_OUT.into());
        }
        match reply.status {
            200..300 => Ok(reply.body),
            status => Err(refused(status, reply.body.as_str().unwrap_or_default())),
        }
    }
}

/// What client-go makes of an answer that is an error.
pub fn refused(status: u16, text: &str) -> String {
    match status {
        404 => "the server could not find the requested resource".into(),
        500.. => format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        _ => "the server rejected our request for an unknown reason".into(),
    }
}

impl Backing<'_> {
    fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }

    fn rooted_path(&self) -> String {
        format!("/{}", self.path.trim_start_matches('/'))
    }

    /// A ready endpoint, as kube-apiserver looks it up when it is told to (`--enable-aggregator-routing`): the control plane
    /// has no node, and so no kube-proxy.
    fn endpoint(&self, server: &ApiServer) -> Result<(Ipv4Addr, u16), String> {
        let (key, name) = (Key::new(self.namespace, self.name), self.name);
        let service = server.store.get(Service::kind(), &key).map(|object| object.spec::<Service>());
        let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
        let named = service.ports.iter().flatten().find(|port| port.port == self.port);
        let ServicePort { name: port, .. } =
            named.ok_or_else(|| format!("no service port {} found for service {name:?}", self.port))?;
        if let Some(other @ "ExternalName") = service.type_.as_deref() {
            return Err(format!("unsupported service type {other:?}"));
        }
        let endpoints = server.store.get(Endpoints::kind(), &key);
        let ready = endpoints.and_then(|all| ready_endpoint(all, port.as_deref().unwrap_or_default()));
        ready.ok_or_else(|| format!("no endpoints available for service {name:?}"))
    }
}
