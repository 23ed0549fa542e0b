//! A request as HTTP: method, path, parameters, body.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/>

use axum::http::{Method, Request as HttpRequest};
use cluster_core::api::request::{Body, FieldValidation, Options, PatchType, Propagation, Request, Verb};
use cluster_core::api::selector::{FieldSelector, FieldTerm};
use cluster_core::api::status::Status;
use cluster_core::api::user::User;
use kube::client::Body as HttpBody;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

/// As kubectl names itself; managers of fields are named after the part before the slash.
const USER_AGENT_VERSION: &str = "v1.36.4";
/// What may stand in a path as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// # Errors
/// A name that no header can carry.
pub fn request(request: &Request, accept: &str) -> Result<HttpRequest<HttpBody>, Status> {
    let (method, content_type) = match request.verb {
        Verb::Get | Verb::List | Verb::Watch => ("GET", ""),
        Verb::Create => ("POST", "application/json"),
        Verb::Update => ("PUT", "application/json"),
        Verb::Delete | Verb::DeleteCollection => ("DELETE", "application/json"),
        Verb::Patch(PatchType::Json) => ("PATCH", "application/json-patch+json"),
        Verb::Patch(PatchType::Merge) => ("PATCH", "application/merge-patch+json"),
        Verb::Patch(PatchType::StrategicMerge) => ("PATCH", "application/strategic-merge-patch+json"),
        Verb::Patch(PatchType::Apply) => ("PATCH", "application/apply-patch+yaml"),
    };
    let mut uri = path(request);
    let query = query(request, accept);
    if !query.is_empty() {
        uri = format!("{uri}?{query}");
    }
    let mut builder = HttpRequest::builder()
        .method(method)
        .uri(uri)
        .header("Accept", accept)
        .header("User-Agent", format!("{}/{USER_AGENT_VERSION}", request.actor));
    if !content_type.is_empty() {
        builder = builder.header("Content-Type", content_type);
    }
    for (name, value) in request.user.iter().flat_map(|user| impersonation(user)) {
        builder = builder.header(name, value);
    }
    let body = body(request).map_or_else(HttpBody::empty, |body| HttpBody::from(body.to_string().into_bytes()));
    builder.body(body).map_err(|error| Status::bad_request(error.to_string()))
}

/// A plain read of a path.
pub fn get(path: &str, accept: &str) -> Result<HttpRequest<HttpBody>, Status> {
    let builder = HttpRequest::get(path).header("Accept", accept);
    builder.body(HttpBody::empty()).map_err(|error| Status::bad_request(error.to_string()))
}

/// A request by its path, with a body if there is one.
pub fn raw(method: &Method, uri: &str, body: String) -> Result<HttpRequest<HttpBody>, Status> {
    let mut builder = HttpRequest::builder()
        .method(method)
        .uri(uri)
        .header("Accept", "application/json, */*")
        .header("User-Agent", format!("kubectl/{USER_AGENT_VERSION}"));
    if !body.is_empty() {
        builder = builder.header("Content-Type", "application/json");
    }
    builder.body(HttpBody::from(body.into_bytes())).map_err(|error| Status::bad_request(error.to_string()))
}

fn path(request: &Request) -> String {
    let kind = &request.kind;
    let mut path = match &*kind.group {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    let mut push = |part: &str| {
        path.push('/');
        path.extend(utf8_percent_encode(part, SEGMENT));
    };
    if kind.namespaced && !request.key.namespace.is_empty() {
        push("namespaces");
        push(&request.key.namespace);
    }
    push(&kind.resource);
    for part in [&*request.key.name, request.subresource] {
        if !part.is_empty() {
            push(part);
        }
    }
    path
}

fn query(request: &Request, accept: &str) -> String {
    let Options { labels, fields, limit, continue_token, resource_version, .. } = &request.options;
    let options = &request.options;
    let (reads, writes) = (
        matches!(request.verb, Verb::List | Verb::Watch),
        matches!(request.verb, Verb::Create | Verb::Update | Verb::Patch(_)),
    );
    let (labels, fields) = (labels.to_string(), field_selector(fields));
    let limit = limit.map(|limit| limit.to_string()).unwrap_or_default();
    let validation = match options.field_validation {
        FieldValidation::Ignore => "Ignore",
        FieldValidation::Warn => "",
        FieldValidation::Strict => "Strict",
    };
    let parameters = [
        ("labelSelector", labels.as_str(), reads),
        ("fieldSelector", fields.as_str(), reads),
        ("limit", limit.as_str(), reads),
        ("continue", continue_token.as_str(), reads),
        ("resourceVersion", resource_version.as_str(), reads),
        ("watch", "true", request.verb == Verb::Watch),
        ("dryRun", if options.dry_run { "All" } else { "" }, writes),
        ("fieldManager", options.field_manager.as_str(), writes),
        ("fieldValidation", validation, writes),
        ("force", if options.force { "true" } else { "" }, writes),
        // Columns beside those of the table come from the objects: labels, and what --sort-by names.
        ("includeObject", if accept.contains("as=Table") { "Object" } else { "" }, true),
    ];
    let mut text = form_urlencoded::Serializer::new(String::new());
    for (name, value, fits) in parameters {
        if fits && !value.is_empty() {
            text.append_pair(name, value);
        }
    }
    text.finish()
}

fn field_selector(selector: &FieldSelector) -> String {
    let term = |term: &FieldTerm| format!("{}{}{}", term.path, if term.equals { "=" } else { "!=" }, term.value);
    selector.0.iter().map(term).collect::<Vec<_>>().join(",")
}

fn impersonation(user: &User) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    for (header, text) in [("Impersonate-User", &user.name), ("Impersonate-Uid", &user.uid)] {
        if !text.is_empty() {
            headers.push((header, text.clone()));
        }
    }
    headers.extend(user.groups.iter().map(|group| ("Impersonate-Group", group.clone())));
    headers
}

fn body(request: &Request) -> Option<Value> {
    match (&request.body, request.verb) {
        (Body::Json(value), Verb::Create) if request.subresource.is_empty() => {
            let mut value = value.clone();
            if let Value::Object(fields) = &mut value {
                fields.entry("apiVersion").or_insert_with(|| request.kind.api_version().into());
                fields.entry("kind").or_insert_with(|| Value::from(&*request.kind.kind));
            }
            Some(value)
        }
        (Body::Json(value), _) => Some(value.clone()),
        (Body::Object(object), _) => Some(object.to_json()),
        (Body::None, Verb::Delete | Verb::DeleteCollection) => Some(delete_options(&request.options)),
        (Body::None, _) => None,
    }
}

/// <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/delete-options/>
fn delete_options(options: &Options) -> Value {
    let mut body =
        Map::from_iter([("apiVersion".to_owned(), json!("v1")), ("kind".to_owned(), json!("DeleteOptions"))]);
    if let Some(seconds) = options.grace_period_seconds {
        body.insert("gracePeriodSeconds".into(), seconds.into());
    }
    let policy = options.propagation.map(|propagation| match propagation {
        Propagation::Background => "Background",
        Propagation::Foreground => "Foreground",
        Propagation::Orphan => "Orphan",
    });
    if let Some(policy) = policy {
        body.insert("propagationPolicy".into(), policy.into());
    }
    if options.dry_run {
        body.insert("dryRun".into(), json!(["All"]));
    }
    if let Some(uid) = &options.precondition_uid {
        body.insert("preconditions".into(), json!({"uid": uid}));
    }
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use cluster_core::api::Key;
    use cluster_core::api::kind::KindRef;
    use cluster_core::api::selector::Selector;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn line(request: &Request) -> String {
        let http = self::request(request, "application/json").unwrap();
        format!("{} {}", http.method(), http.uri())
    }

    #[test]
    fn requests_have_their_paths() {
        let pod = KindRef::of::<Pod>();
        let new = |verb, kind, namespace, name| Request::new(&"kubectl".into(), verb, kind, Key::new(namespace, name));
        let mut list = new(Verb::List, pod, "", "");
        list.options.labels = Selector::parse("app in (a,b)").unwrap();
        assert_eq!(line(&list), "GET /api/v1/pods?labelSelector=app+in+%28a%2Cb%29");
        let deployment = KindRef::of::<Deployment>();
        let mut scale = new(Verb::Patch(PatchType::Merge), deployment, "shop", "web");
        scale.subresource = "scale";
        scale.options.dry_run = true;
        assert_eq!(line(&scale), "PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale?dryRun=All");
        assert_eq!(line(&new(Verb::Delete, pod, "a b", "x/y")), "DELETE /api/v1/namespaces/a%20b/pods/x%2Fy");
    }

    #[test]
    fn whoever_is_acted_as_is_named() {
        let user = User { name: "ann".into(), groups: vec!["a".into(), "b".into()], ..User::default() };
        let get = Request::new(&"kubectl".into(), Verb::Get, KindRef::of::<Pod>(), Key::new("default", "web"));
        let http = request(&Request { user: Some(user.into()), ..get }, "application/json").unwrap();
        assert_eq!(http.headers()["impersonate-user"], "ann");
        assert_eq!(http.headers().get_all("impersonate-group").iter().count(), 2);
        assert_eq!(http.headers()["user-agent"], "kubectl/v1.36.4");
    }
}
