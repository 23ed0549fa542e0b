//! Requests by method and path without a connection, as `kubectl --raw` sends them: the same reading of paths, parameters
//! and bodies, and the same answers.

use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::http::Method;
use cluster_core::Cluster;
use cluster_core::api::request::{Body, Request, Response, Verb};
use cluster_core::api::status::Status;
use cluster_core::apiserver::watching::{OpenWatch, Told};
use cluster_core::trace::Actor;
use futures_util::FutureExt;

use super::accept::{Form, Syntax, Wanted};
use super::handle::{Reply, request_of, verb};
use super::query::Query;
use super::route::{Route, route};
use super::{answer, body, documents, stream};

const JSON: &str = "application/json";

/// What a method, a URI and a body ask for.
pub struct Asked {
    pub request: Request,
    pub is_watch: bool,
    /// How long a watch may last, if it says so.
    pub timeout: Option<Duration>,
    query: Query,
}

impl Asked {
    /// # Errors
    /// 404 for a path that leads to no resource, 400 and 422 for parameters and bodies that can't be read.
    pub fn new(cluster: &Cluster, method: &Method, uri: &str, text: &str, actor: Actor) -> Result<Asked, Status> {
        let (path, parameters) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
        let query = Query::parse(parameters);
        let Route::Resource(place) = route(path) else { return Err(Status::unknown_path()) };
        let (verb, is_watch) = verb(method, &place, &query, "")?;
        let mut options = query.options(verb)?;
        if options.field_manager.is_empty() {
            options.field_manager = actor.to_string();
        }
        let bytes = Bytes::from(text.to_owned());
        if matches!(verb, Verb::Delete | Verb::DeleteCollection) {
            body::delete_options(JSON, &bytes, &mut options)?;
        }
        let mut request = request_of(cluster, &place, verb, actor, options)?;
        if matches!(verb, Verb::Create | Verb::Update) {
            let parsed = body::object(JSON, bytes).of_kind(&request.kind)?;
            (request.options.strict_errors, request.options.key_order) = (parsed.strict_errors, parsed.key_order);
            request.body = Body::Json(parsed.value);
        }
        Ok(Asked { request, is_watch, timeout: query.timeout()?, query })
    }

    /// The body of the answer.
    pub fn answer(&self, response: Response) -> String {
        let wanted = Wanted { form: Form::Whole, syntax: Syntax::Json, pretty: self.query.is_pretty() };
        let answer = answer::reply(&self.request, Reply::Response(response), wanted, &self.query);
        // The whole body is there already.
        let bytes = to_bytes(answer.into_body(), usize::MAX).now_or_never().and_then(Result::ok).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The answer to a GET whose path leads to no resource: health, version, discovery; `None` if it leads to one.
pub fn document(cluster: &mut Cluster, address: &str, uri: &str) -> Option<Result<String, Status>> {
    let (path, parameters) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
    let is_document = route(path) == Route::Other;
    is_document.then(|| documents::body(cluster, address, path, &Query::parse(parameters)))
}

/// One event of a watch as a line.
pub fn event(watch: &OpenWatch, told: &Told) -> String {
    stream::line(watch, told, Form::Whole, None)
}
