//! What a server answers, from JSON: objects, lists, tables and refusals.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use cluster_core::api::kind::{KindRef, Resource, scale_kind};
use cluster_core::api::object::Object;
use cluster_core::api::request::{Answer, Request};
use cluster_core::api::status::{Cause, Details, Status, known_reason};
use cluster_core::apiserver::table::{Column, Row, Table};
use cluster_core::watch::EventType;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde_json::{Value, json};

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

/// A reason that nobody knows is shown as the one that its code has.
fn reason(value: &Value) -> &'static str {
    value["reason"].as_str().and_then(known_reason).unwrap_or_default()
}

/// The refusal that a body tells of, or, if it is no `Status`, the code alone.
pub fn refusal(code: StatusCode, body: &Value) -> Status {
    if body["kind"] != "Status" && body["message"].is_null() {
        let (reason, message) = match code {
            StatusCode::UNAUTHORIZED => ("Unauthorized", "the server has asked for the client to provide credentials"),
            StatusCode::FORBIDDEN => ("Forbidden", "unknown"),
            StatusCode::NOT_FOUND => ("NotFound", "the server could not find the requested resource"),
            StatusCode::METHOD_NOT_ALLOWED => {
                ("MethodNotAllowed", "the server does not allow this method on the requested resource")
            }
            StatusCode::TOO_MANY_REQUESTS => {
                ("TooManyRequests", "the server has received too many requests and has asked us to try again later")
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                ("ServiceUnavailable", "the server is currently unable to handle the request")
            }
            StatusCode::GATEWAY_TIMEOUT => {
                ("Timeout", "the server was unable to return a response in the time allotted")
            }
            _ => ("InternalError", "an error on the server has prevented the request from succeeding"),
        };
        return Status { code: code.as_u16(), reason, ..Status::bad_request(message) };
    }
    let details = body.get("details").filter(|details| details.is_object()).map(|details| {
        let causes = details["causes"].as_array().into_iter().flatten();
        let cause = |cause: &Value| Cause {
            reason: reason(cause),
            message: text(cause, "message"),
            field: text(cause, "field"),
        };
        Box::new(Details {
            name: text(details, "name"),
            group: text(details, "group"),
            kind: text(details, "kind"),
            uid: text(details, "uid"),
            causes: causes.map(cause).collect(),
            retry_after_seconds: details["retryAfterSeconds"].as_u64().and_then(|s| s.try_into().ok()).unwrap_or(0),
        })
    });
    let continue_token = body.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default().to_owned();
    Status { code: code.as_u16(), reason: reason(body), message: text(body, "message"), details, continue_token }
}

/// The warnings beside an answer (RFC 7234, 5.5): `299 - "text"`.
pub fn warnings(headers: &HeaderMap) -> Arc<[String]> {
    let texts = headers.get_all(header::WARNING).iter().filter_map(|value| {
        let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let quoted = text.splitn(3, ' ').nth(2)?.trim().strip_prefix('"')?.strip_suffix('"')?.to_owned();
        Some(quoted.replace("\\\"", "\"").replace("\\\\", "\\"))
    });
    texts.collect()
}

/// Where a list goes on, and the revision that it shows.
pub fn list_metadata(list: &Value) -> (String, u64) {
    let field = |name: &str| list.pointer(&format!("/metadata/{name}")).and_then(Value::as_str).unwrap_or_default();
    (field("continue").to_owned(), field("resourceVersion").parse().unwrap_or(0))
}

pub fn items(kind: &KindRef, mut list: Value) -> Result<Vec<Object>, Status> {
    let Value::Array(items) = list["items"].take() else { return Ok(Vec::new()) };
    items.into_iter().map(|item| read(kind, item)).collect()
}

/// The object of an answer about one. A `Status` of success stands for what the request was about.
pub fn object(kind: &KindRef, known: &[KindRef], request: &Request, value: Value) -> Result<Answer, Status> {
    let deleted = value["kind"] == "Status";
    let object = if deleted {
        let uid = value.pointer("/details/uid").cloned().unwrap_or_default();
        let mut metadata = json!({"name": &*request.key.name, "uid": uid});
        if !request.key.namespace.is_empty() {
            metadata["namespace"] = Value::from(&*request.key.namespace);
        }
        read(kind, json!({"metadata": metadata}))?
    } else {
        let scale = scale_kind();
        let is = |kind: &&KindRef| value["kind"] == *kind.kind && value["apiVersion"] == *kind.api_version();
        let mut all = [kind, &scale, TokenRequest::kind()].into_iter().chain(known);
        let kind = all.find(is).unwrap_or(kind).clone();
        read(&kind, value)?
    };
    Ok(Answer { object, created: false, deleted, warnings: Arc::new([]) })
}

/// One line of a watch: what has happened, and to what.
///
/// # Errors
/// The line tells why the watch is over, or can't be read.
pub fn event(line: &[u8]) -> Result<(EventType, Value), Status> {
    let unread = |what: &str| Status::internal(format!("an event of the server's can't be read: {what}"));
    let mut event: Value = serde_json::from_slice(line).map_err(|problem| unread(&problem.to_string()))?;
    let object = event["object"].take();
    match event["type"].as_str().unwrap_or_default() {
        "ADDED" => Ok((EventType::Added, object)),
        "MODIFIED" => Ok((EventType::Modified, object)),
        "DELETED" => Ok((EventType::Deleted, object)),
        "ERROR" => {
            let code = object["code"].as_u64().and_then(|code| u16::try_from(code).ok());
            let code = code.and_then(|code| StatusCode::from_u16(code).ok());
            Err(refusal(code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &object))
        }
        other => Err(unread(other)),
    }
}

fn read(kind: &KindRef, value: Value) -> Result<Object, Status> {
    Object::from_json(kind, value).map_err(|error| {
        let place = format!("{}.{}", kind.kind, error.path);
        Status::internal(format!("the server's answer can't be read: {place}: {}", error.message))
    })
}

/// Adds the rows of an answer to a table.
pub fn table(kind: &KindRef, mut value: Value, table: &mut Table) -> Result<(), Status> {
    if value["kind"] != "Table" {
        return Err(Status::internal("the server does not answer with tables"));
    }
    if let Some(columns) = value["columnDefinitions"].as_array() {
        let column = |column: &Value| Column {
            name: text(column, "name"),
            type_: text(column, "type"),
            format: text(column, "format"),
            description: text(column, "description"),
            priority: column["priority"].as_i64().and_then(|priority| priority.try_into().ok()).unwrap_or(0),
        };
        table.columns = columns.iter().map(column).collect();
    }
    let Value::Array(rows) = value["rows"].take() else { return Ok(()) };
    for mut row in rows {
        let list = |value: Value| if let Value::Array(items) = value { items } else { Vec::new() };
        let object = match row["object"].take() {
            Value::Null => json!({}),
            object => object,
        };
        table.rows.push(Row {
            object: read(kind, object)?,
            cells: list(row["cells"].take()),
            conditions: list(row["conditions"].take()),
        });
    }
    Ok(())
}

/// How a command in a container ended: the last that its connection tells.
///
/// # Errors
/// It could not be run.
pub fn exit_code(status: &meta::Status) -> Result<i32, Status> {
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    let code = causes
        .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .find_map(|cause| cause.message.as_deref()?.parse().ok());
    code.ok_or_else(|| Status::unexplained(status.message.clone().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_causes() {
        let body = json!({
            "kind": "Status", "status": "Failure", "reason": "Invalid", "message": "no", "code": 422,
            "details": {"name": "web", "kind": "Pod", "causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec"}]},
        });
        let status = refusal(StatusCode::UNPROCESSABLE_ENTITY, &body);
        assert_eq!(status.to_json()["details"], body["details"]);
        assert_eq!(refusal(StatusCode::NOT_FOUND, &Value::Null).reason, "NotFound");
    }

    #[test]
    fn warnings_are_unquoted() {
        let mut headers = HeaderMap::new();
        headers.append(header::WARNING, "299 - \"say \\\"hello\\\"\"".parse().unwrap());
        assert_eq!(*warnings(&headers), ["say \"hello\"".to_owned()]);
    }
}
