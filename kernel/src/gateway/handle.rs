//! One HTTP request after the other: who asks, what for, in which form; the apiserver decides, this writes it down.

use std::sync::Arc;

use axum::body::Body as HttpBody;
use axum::http::{HeaderMap, Method, Request as HttpRequest, Response as HttpResponse, header};
use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::request::{Body, Options, PatchType, Request, Response, SUBRESOURCES, Verb};
use cluster_core::api::status::Status;
use cluster_core::apiserver::table::{ListMeta, Table};

use super::accept::{Form, Wanted, negotiate};
use super::body::Sent;
use super::live::Live;
use super::query::Query;
use super::route::{Place, Route, route};
use super::{answer, authenticate, authorize, body, channels, documents, metrics, openapi, pods, proxy, stream};

/// Subresources that open a connection.
const CONNECTIONS: &[&str] = &["attach", "exec", "portforward", "proxy"];

/// The front of a live cluster.
pub struct Gateway {
    pub(super) live: Live,
    pub(super) credentials: authenticate::Credentials,
    pub(super) metrics: metrics::Metrics,
    pub(super) openapi: openapi::Documents,
}

impl Gateway {
    /// Whoever shows the token is the administrator.
    pub fn new(live: Live, token: String) -> Gateway {
        let credentials = authenticate::Credentials { token };
        Gateway { live, credentials, metrics: metrics::Metrics::default(), openapi: openapi::Documents::default() }
    }
}

/// An answer that is ready to be written.
pub enum Reply {
    Response(Response),
    Table { table: Table, list: ListMeta },
}

/// Answers anything, a refusal included.
pub async fn handle(gateway: Arc<Gateway>, request: HttpRequest<HttpBody>) -> HttpResponse<HttpBody> {
    let mut asked = metrics::Asked::of(&request);
    let response = match respond(&gateway, request).await {
        Ok(response) => response,
        Err(status) => {
            let nothing_there = status == Status::unknown_path();
            if nothing_there || status == Status::unknown_resource() {
                asked.led_nowhere();
            }
            if nothing_there { documents::nothing_there() } else { answer::status(&status) }
        }
    };
    gateway.metrics.count(asked, response.status());
    response
}

async fn respond(gateway: &Gateway, request: HttpRequest<HttpBody>) -> Result<HttpResponse<HttpBody>, Status> {
    let (mut head, http_body) = request.into_parts();
    let asks = authenticate::user(gateway, &head).await?;
    let query = Query::parse(head.uri.query());
    let route = route(head.uri.path());
    let user = authorize::user(gateway, asks, &head, &route, &query).await?;
    let place = match route {
        Route::Resource(place) => place,
        Route::Other => return documents::respond(gateway, &head, &query).await,
    };
    match pods::stream(&place, &head.method) {
        Some(pods::Stream::Log) => return pods::log(gateway, &place, &query).await,
        Some(pods::Stream::Channels) => return channels::open(gateway, &mut head, &place, &query, user).await,
        None => {}
    }
    if proxy::is_proxied(&place) {
        return proxy::respond(gateway, &head, &place).await;
    }
    let mut wanted = negotiate(text(&head.headers, header::ACCEPT), has_table(&place))?;
    if wanted.form == Form::Table {
        query.check_include_object()?;
    }
    wanted.pretty = query.is_pretty();
    let bytes = body::all(http_body).await?;
    let content_type = text(&head.headers, header::CONTENT_TYPE).unwrap_or_default();

    let (verb, watch) = verb(&head.method, &place, &query, content_type)?;
    let mut options = query.options(verb)?;
    // Whoever applies has to say who applies.
    if options.field_manager.is_empty() && verb != Verb::Patch(PatchType::Apply) {
        options.field_manager = program(&head.headers).to_owned();
    }
    let body = match verb {
        // A connection that is asked for needs no body.
        Verb::Create if bytes.is_empty() && CONNECTIONS.contains(&place.subresource.as_str()) => None,
        Verb::Create | Verb::Update => Some(body::object(content_type, bytes)),
        Verb::Patch(patch_type) => Some(Sent::Patch(body::patch(patch_type, options.field_validation, &bytes)?)),
        Verb::Delete | Verb::DeleteCollection => {
            body::delete_options(content_type, &bytes, &mut options)?;
            None
        }
        _ => None,
    };
    let actor = program(&head.headers).into();
    let timeout = query.timeout()?;
    let ask = move |cluster: &mut Cluster| -> Result<(Request, Option<Reply>), Status> {
        let mut request = Request { user: Some(user), ..request_of(cluster, &place, verb, actor, options)? };
        if let Some(body) = body {
            let parsed = body.of_kind(&request.kind)?;
            (request.options.strict_errors, request.options.key_order) = (parsed.strict_errors, parsed.key_order);
            request.body = Body::Json(parsed.value);
        }
        if watch {
            return Ok((request, None));
        }
        let reply = reply(cluster, request.clone(), wanted)?;
        Ok((request, Some(reply)))
    };
    let (request, reply) = gateway.live.ask(ask).await.map_err(gone)??;
    match reply {
        Some(reply) => Ok(answer::reply(&request, reply, wanted, &query)),
        None => stream::watch(gateway.live.clone(), request, wanted, timeout, &query).await,
    }
}

/// Questions and orders are answered, but no row can be made of them.
fn has_table(place: &Place) -> bool {
    let is_order = matches!(place.subresource.as_str(), "binding" | "eviction" | "token");
    !is_order && place.resource != "bindings" && !place.resource.ends_with("reviews")
}

pub fn gone(_: super::live::Gone) -> Status {
    Status::unavailable("the cluster is shutting down")
}

pub fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The program that asks, by its user agent: `kubectl` of `kubectl/v1.36.4 (linux/amd64) …`.
fn program(headers: &HeaderMap) -> &str {
    let agent = text(headers, header::USER_AGENT).unwrap_or_default();
    match agent.split('/').next().unwrap_or_default().trim() {
        "" => "unknown",
        program => program,
    }
}

/// What a method asks for at a place, and whether it is a watch.
pub(super) fn verb(method: &Method, place: &Place, query: &Query, content_type: &str) -> Result<(Verb, bool), Status> {
    let collection = place.name.is_empty();
    let verb = match method.as_str() {
        "GET" | "HEAD" if place.watch => return Ok((Verb::Watch, true)),
        "GET" | "HEAD" if collection && query.is_true("watch") => return Ok((Verb::Watch, true)),
        "GET" | "HEAD" if collection => Verb::List,
        "GET" | "HEAD" => Verb::Get,
        "POST" if collection || !place.subresource.is_empty() => Verb::Create,
        "PUT" if !collection => Verb::Update,
        "PATCH" if !collection => match body::patch_type(content_type) {
            Some(patch_type) => Verb::Patch(patch_type),
            None => return Err(Status::unknown_patch()),
        },
        "DELETE" if collection => Verb::DeleteCollection,
        "DELETE" => Verb::Delete,
        _ => return Err(Status::unknown_method()),
    };
    Ok((verb, false))
}

/// The request that a place means, if it is served.
pub(super) fn request_of(
    cluster: &Cluster,
    place: &Place,
    verb: Verb,
    actor: cluster_core::trace::Actor,
    options: Options,
) -> Result<Request, Status> {
    let kind = cluster.resource(&place.group, &place.version, &place.resource).cloned();
    // Nothing handles what no definition has brought to a group of custom kinds.
    let is_built_in = || cluster_core::api::kinds::built_in().iter().any(|kind| *kind.group == *place.group);
    let kind = kind.ok_or_else(|| match cluster.apiserver().serves_group(&place.group) && is_built_in() {
        true => Status::unknown_resource(),
        false => Status::unknown_path(),
    })?;
    if !kind.namespaced && !place.namespace.is_empty() {
        return Err(Status::unknown_resource());
    }
    let mut request = Request::new(&actor, verb, &kind, Key::new(place.namespace.as_str(), place.name.as_str()));
    if !place.subresource.is_empty() {
        let known = SUBRESOURCES.iter().find(|known| **known == place.subresource);
        request.subresource =
            known.filter(|subresource| kind.has_subresource(subresource)).ok_or_else(Status::unknown_resource)?;
        if matches!(verb, Verb::Delete | Verb::DeleteCollection) && request.subresource != "proxy" {
            return Err(Status::unknown_method());
        }
    } else if !kind.allows(verb.as_str()) {
        return Err(Status::unknown_method());
    }
    if kind.namespaced && place.namespace.is_empty() && !matches!(verb, Verb::List | Verb::Watch) {
        return Err(Status::unknown_method());
    }
    if place.watch && !place.name.is_empty() {
        request.key.name = Default::default();
    }
    request.options = options;
    Ok(request)
}

fn reply(cluster: &mut Cluster, request: Request, wanted: Wanted) -> Result<Reply, Status> {
    let kind = request.kind.clone();
    if let (Verb::List, Form::One) = (request.verb, wanted.form) {
        let message = format!(
            "you requested PartialObjectMetadata, but the requested object is a list (*core.{}List)",
            kind.kind
        );
        return Err(Status::not_acceptable(message));
    }
    let response = cluster.request(request)?;
    if wanted.form != Form::Table {
        return Ok(Reply::Response(response));
    }
    Ok(match response {
        Response::Object(answer) if answer.deleted => Reply::Response(Response::Object(answer)),
        Response::Object(answer) => {
            let list = ListMeta { revision: answer.object.revision, ..ListMeta::default() };
            Reply::Table { table: cluster.table(&kind, &[answer.object]), list }
        }
        Response::List(list) => Reply::Table { table: cluster.table(&kind, &list.items), list: ListMeta::of(&list) },
    })
}
