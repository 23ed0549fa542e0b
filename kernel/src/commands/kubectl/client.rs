//! Requests as kubectl makes them: JSON in, JSON out, warnings on standard error.

use std::sync::Arc;

use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Body, Options, PatchType, Request, Response, Verb};
use cluster_core::api::selector::{FieldSelector, Selector};
use cluster_core::api::user::User;
use cluster_core::apiserver::access::Attributes;
use cluster_core::trace::Actor;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::Value;

use super::failure::Failure;
use super::verb::Call;
use crate::gateway::deprecation;

/// How the trace names whoever types.
pub fn actor() -> Actor {
    "kubectl".into()
}

/// A request of kubectl's.
pub fn request(verb: Verb, kind: &KindRef, namespace: &str, name: &str) -> Request {
    let namespace = if kind.namespaced { namespace } else { "" };
    Request::new(&actor(), verb, kind, Key::new(namespace, name))
}

impl Call<'_, '_> {
    /// Sends a request; says why, for the trace, with the command itself.
    pub fn send(&mut self, request: Request) -> Result<Response, Failure> {
        let request = self.signed(request)?;
        // Whoever reads says so by [`Call::deprecated`], once for all that is read.
        let known = deprecation(&request.kind);
        let response = self.context.api.request(request)?;
        if let Response::Object(answer) = &response {
            for warning in answer.warnings.iter().filter(|warning| Some(warning.as_str()) != known) {
                self.warn(warning);
            }
        }
        Ok(response)
    }

    /// A request with the command as its reason, of whom `--as` names.
    pub fn signed(&mut self, request: Request) -> Result<Request, Failure> {
        let mut request = request.because(self.command.as_str());
        let text = |flag: &str| self.parsed.text(flag).unwrap_or_default().to_owned();
        let wanted = User {
            name: text("as"),
            uid: text("as-uid"),
            groups: self.parsed.all("as-group").map(str::to_owned).collect(),
            ..User::default()
        };
        if wanted != User::default() {
            request.user = Some(Arc::new(match self.context.api.cluster() {
                Some(cluster) => cluster.impersonate(&User::administrator(), wanted, &Attributes::of(&request))?,
                // The server finds out whether one may.
                None => wanted,
            }));
        }
        Ok(request)
    }

    /// Sends a request about one object.
    pub fn send_for_object(&mut self, request: Request) -> Result<Value, Failure> {
        let object = self.send(request)?.object();
        Ok(object.map(|object| object.to_json()).unwrap_or_default())
    }

    pub fn get(&mut self, kind: &KindRef, namespace: &str, name: &str) -> Result<Value, Failure> {
        if name.is_empty() {
            return Err(Failure::Message("resource name may not be empty".into()));
        }
        self.send_for_object(request(Verb::Get, kind, namespace, name))
    }

    /// As [`Call::get`], for an object that a person names: of a namespace that is not there, that is what is told.
    pub fn get_in_namespace(&mut self, kind: &KindRef, namespace: &str, name: &str) -> Result<Value, Failure> {
        self.get(kind, namespace, name).map_err(|failure| self.missing(kind, namespace, failure))
    }

    /// What is told of an object that could not be read. (`Info.Get` of k8s.io/cli-runtime/pkg/resource)
    pub fn missing(&mut self, kind: &KindRef, namespace: &str, failure: Failure) -> Failure {
        if !kind.namespaced || matches!(namespace, "" | "default") || !failure.is_not_found() {
            return failure;
        }
        match self.get(KindRef::of::<Namespace>(), "", namespace) {
            Err(missing) if missing.is_not_found() => missing,
            _ => failure,
        }
    }

    /// What is told of a list that the server refuses. (`EnhanceListError` of k8s.io/cli-runtime/pkg/resource)
    pub fn list_failure(&self, kind: &KindRef, failure: Failure) -> Failure {
        let mut status = match failure {
            Failure::Server(status) => status,
            other => return other,
        };
        if matches!(status.reason, "BadRequest" | "NotFound") {
            let text = |flag: &str| self.parsed.text(flag).unwrap_or_default();
            let (labels, fields) = (text("selector"), text("field-selector"));
            status.message = unlisted(kind, labels, fields, &status.message);
        }
        Failure::Server(status)
    }

    /// Says so of kinds that the server serves with a warning.
    pub fn deprecated(&mut self, kind: &KindRef) {
        if let Some(warning) = deprecation(kind) {
            self.warn(warning);
        }
    }

    pub fn list(&mut self, kind: &KindRef, namespace: &str, options: Options) -> Result<Vec<Value>, Failure> {
        let request = Request { options, ..request(Verb::List, kind, namespace, "") };
        let listed = self.send(request).map_err(|failure| self.list_failure(kind, failure))?;
        Ok(listed.items().iter().map(|object| object.to_json()).collect())
    }

    pub fn create(&mut self, kind: &KindRef, namespace: &str, body: Value, options: Options) -> Result<Value, Failure> {
        let request = Request { body: Body::Json(body), options, ..request(Verb::Create, kind, namespace, "") };
        self.send_for_object(request)
    }

    pub fn patch(
        &mut self,
        kind: &KindRef,
        namespace: &str,
        name: &str,
        patch: (PatchType, Value),
        options: Options,
    ) -> Result<Value, Failure> {
        let (patch, body) = patch;
        let request = Request { body: Body::Json(body), options, ..request(Verb::Patch(patch), kind, namespace, name) };
        self.send_for_object(request)
    }

    /// The options of a list that `-l` and `--field-selector` ask for.
    pub fn list_options(&self, kind: &KindRef) -> Result<Options, Failure> {
        let (labels, fields) =
            (self.parsed.text("selector").unwrap_or_default(), self.parsed.text("field-selector").unwrap_or_default());
        let refused = |problem: String| {
            let message = unlisted(kind, labels, fields, &problem);
            Failure::Raw(format!("Error from server (BadRequest): {message}"))
        };
        Ok(Options {
            labels: Selector::parse(labels).map_err(refused)?,
            fields: FieldSelector::parse(fields).map_err(refused)?,
            ..Options::default()
        })
    }
}

fn unlisted(kind: &KindRef, labels: &str, fields: &str, problem: &str) -> String {
    let resource = format!("{}/{}, Resource={}", kind.group, kind.version, kind.resource);
    match (labels, fields) {
        ("", "") => format!("Unable to list {resource:?}: {problem}"),
        _ => format!(
            "Unable to find {resource:?} that match label selector {labels:?}, field selector {fields:?}: {problem}"
        ),
    }
}
