//! Subresources beside `status`: one file each, one line in [`HANDLERS`].

mod approval;
pub mod binding;
mod eviction;
mod finalize;
mod pod_spec;
pub mod scale;

use std::borrow::Cow;

use serde_json::Value;

use super::{ApiServer, Moment, write};
use crate::api::request::{Body, Request, Response, Verb};
use crate::api::status::Status;

type Handler = fn(&mut ApiServer, &Request, &mut Moment<'_>) -> Result<Response, Status>;

const HANDLERS: &[(&str, Handler)] = &[
    ("approval", approval::handle),
    ("binding", binding::handle),
    ("ephemeralcontainers", pod_spec::ephemeral_containers),
    ("eviction", eviction::handle),
    ("finalize", finalize::handle),
    ("resize", pod_spec::resize),
    ("scale", scale::handle),
    ("token", super::access::tokens::issue),
];

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let served = request.kind.subresources.iter().find(|(name, _)| **name == *request.subresource);
    let handler = HANDLERS.iter().find(|(name, _)| *name == request.subresource);
    match (served, handler) {
        (Some((_, verbs)), _) if !verbs.iter().any(|verb| **verb == *request.verb.as_str()) => {
            Err(refuse_verb(request))
        }
        (Some(_), Some((_, handler))) => handler(server, request, moment),
        _ => Err(Status::not_found(&request.kind, &request.key.name)),
    }
}

fn refuse_verb(request: &Request) -> Status {
    debug_assert!(!matches!(request.verb, Verb::Watch));
    Status::method_not_allowed("the server does not allow this method on the requested resource")
}

/// An order names the namespace of its URL, or none.
fn check_namespace(body: &Value, request: &Request) -> Result<(), Status> {
    match body.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default() {
        "" => Ok(()),
        namespace if *namespace == *request.key.namespace => Ok(()),
        _ => Err(Status::bad_request(write::OTHER_NAMESPACE)),
    }
}

fn body(request: &Request) -> Cow<'_, Value> {
    match &request.body {
        Body::Json(value) => Cow::Borrowed(value),
        Body::Object(object) => Cow::Owned(object.to_json()),
        Body::None => Cow::Owned(Value::Null),
    }
}
