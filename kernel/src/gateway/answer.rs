//! Answers as bytes: objects, lists, tables and statuses in the form that was asked for.

use axum::body::Body;
use axum::http::{HeaderValue, Response as HttpResponse, StatusCode, header};
use cluster_core::api::kind::{KindRef, Resource};
use cluster_core::api::object::Object;
use cluster_core::api::request::{Answer, List, Request, Response, Verb};
use cluster_core::api::status::Status;
use cluster_core::apiserver::managed;
use cluster_core::apiserver::table::ListMeta;
use k8s_openapi::api::core::v1::Binding;
use serde_json::{Map, Value, json};

use super::accept::{Form, Syntax, Wanted};
use super::handle::Reply;
use super::order;
use super::query::Query;

pub fn reply(request: &Request, reply: Reply, wanted: Wanted, query: &Query) -> HttpResponse<Body> {
    let mut response = without_deprecation(request, reply, wanted, query);
    warn(&mut response, &request.kind.warning);
    deprecation(&request.kind).into_iter().for_each(|warning| warn(&mut response, warning));
    response
}

/// What the server says of a built-in kind that it would rather not be asked for.
/// <https://kubernetes.io/docs/reference/using-api/deprecation-policy/>
pub fn deprecation(kind: &KindRef) -> Option<&'static str> {
    match (&*kind.group, &*kind.resource) {
        ("", "endpoints") => Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        _ => None,
    }
}

/// A text with control characters, which no header can hold, is not told at all, as kube-apiserver has it.
fn warn(response: &mut HttpResponse<Body>, warning: &str) {
    if !warning.is_empty()
        && !warning.contains(char::is_control)
        && let Ok(header) = HeaderValue::from_str(&format!("299 - {}", quoted(warning)))
    {
        response.headers_mut().append(header::WARNING, header);
    }
}

fn without_deprecation(request: &Request, reply: Reply, wanted: Wanted, query: &Query) -> HttpResponse<Body> {
    match reply {
        Reply::Table { table, list } => {
            value(StatusCode::OK, &table.to_json(&list, |object| row_object(object, query)), wanted)
        }
        Reply::Response(Response::List(list)) => value(StatusCode::OK, &list_json(&list, wanted.form), wanted),
        Reply::Response(Response::Object(answer)) => {
            let orders = request.verb == Verb::Create && (!request.subresource.is_empty() || is_order(request));
            let code = if answer.created || orders { StatusCode::CREATED } else { StatusCode::OK };
            let body = match request.verb {
                Verb::Delete if answer.deleted => deleted(request, &answer),
                Verb::Create if is_order(request) => success(code),
                _ => object(&answer.object, wanted.form),
            };
            let mut response = value(code, &body, wanted);
            for warning in answer.warnings.iter() {
                warn(&mut response, warning);
            }
            response
        }
    }
}

/// A warning's text as a quoted string of HTTP.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// An object in a form other than a table.
pub fn object(object: &Object, form: Form) -> Value {
    match form {
        Form::One | Form::Metadata => {
            let mut partial = Map::new();
            partial.insert("kind".into(), "PartialObjectMetadata".into());
            partial.insert("apiVersion".into(), "meta.k8s.io/v1".into());
            partial.insert("metadata".into(), managed::metadata_json(object));
            Value::Object(partial)
        }
        Form::Whole | Form::Table => managed::to_json(object),
    }
}

/// What a table's row carries of its object (`includeObject`).
pub fn row_object(object: &Object, query: &Query) -> Value {
    match query.get("includeObject") {
        Some("None") => Value::Null,
        Some("Object") => managed::to_json(object),
        _ => self::object(object, Form::Metadata),
    }
}

fn list_json(list: &List, form: Form) -> Value {
    let items: Vec<Value> = list
        .items
        .iter()
        .map(|item| {
            let mut item = object(item, form);
            // The list says what its items are; items of custom kinds say it again.
            if form == Form::Whole
                && list.kind.schema.is_none()
                && let Value::Object(fields) = &mut item
            {
                fields.remove("kind");
                fields.remove("apiVersion");
            }
            item
        })
        .collect();
    let (kind, version) = match form {
        Form::One | Form::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        _ => (format!("{}List", list.kind.kind), list.kind.api_version()),
    };
    json!({"kind": kind, "apiVersion": version, "metadata": ListMeta::of(list).to_json(), "items": items})
}

/// A create that leaves no object of its own.
fn is_order(request: &Request) -> bool {
    matches!(request.subresource, "binding" | "eviction") || request.kind.slot == Binding::kind().slot
}

/// `Success` of an order that has no object to show.
fn success(code: StatusCode) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code.as_u16()})
}

/// `Success`, about an object that is gone.
fn deleted(request: &Request, answer: &Answer) -> Value {
    let mut details = Map::new();
    details.insert("name".into(), Value::String(answer.object.key.name.to_string()));
    if !request.kind.group.is_empty() {
        details.insert("group".into(), Value::String(request.kind.group.to_string()));
    }
    details.insert("kind".into(), Value::String(request.kind.resource.to_string()));
    details.insert("uid".into(), answer.object.uid().into());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

pub fn status(status: &Status) -> HttpResponse<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let wanted = Wanted { form: Form::Whole, syntax: Syntax::Json, pretty: false };
    let mut response = value(code, &status.to_json(), wanted);
    let retry = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry));
    }
    response
}

pub fn value(code: StatusCode, value: &Value, wanted: Wanted) -> HttpResponse<Body> {
    let (content_type, text) = match (wanted.syntax, wanted.pretty) {
        (Syntax::Yaml, _) => ("application/yaml", crate::yaml::print(value)),
        (Syntax::Json, true) => ("application/json", order::pretty(value)),
        (Syntax::Json, false) => ("application/json", order::line(value)),
    };
    bytes(code, content_type, text)
}

pub fn bytes(code: StatusCode, content_type: &'static str, body: impl Into<Body>) -> HttpResponse<Body> {
    let mut response = HttpResponse::new(body.into());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Ok(id) = HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()) {
        headers.insert("Audit-Id", id);
    }
    response
}
