//! What is no resource: discovery, version, health, metrics; OpenAPI has a module of its own.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response as HttpResponse, StatusCode, header};
use cluster_core::Cluster;
use cluster_core::api::status::Status;
use cluster_core::apiserver::access::tokens;
use cluster_core::apiserver::discovery::{self, aggregated, groups, health};
use serde_json::{Value, json};

use super::accept::{Wanted, negotiate, negotiate_discovery};
use super::handle::{Gateway, gone, text};
use super::query::Query;
use super::{answer, openapi};

const PLAIN: &str = "text/plain; charset=utf-8";

pub async fn respond(gateway: &Gateway, head: &Parts, query: &Query) -> Result<HttpResponse<Body>, Status> {
    let path = head.uri.path();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let live = &gateway.live;
    Ok(match parts.as_slice() {
        [""] => document(&live.ask(paths).await.map_err(gone)?, wanted(head, query)?),
        ["api" | "apis" | "version", ..] if !matches!(head.method, Method::GET | Method::HEAD) => {
            return Err(Status::unknown_method());
        }
        [root @ ("api" | "apis")] => groups_of(gateway, head, query, *root == "api").await?,
        ["api", version] => resources(gateway, head, query, "", version).await?,
        ["apis", group] => {
            let (wanted, name) = (wanted(head, query)?, (*group).to_owned());
            let group = live.ask(move |cluster| groups::group(cluster.apiserver(), &name)).await.map_err(gone)?;
            document(&group.ok_or_else(Status::unknown_path)?, wanted)
        }
        ["apis", group, version] => resources(gateway, head, query, group, version).await?,
        [".well-known", "openid-configuration"] => {
            let host = text(&head.headers, header::HOST).or(head.uri.authority().map(|host| host.as_str()));
            let url = format!("https://{}/openid/v1/jwks", host.unwrap_or("kubernetes.default.svc"));
            let document = move |cluster: &mut Cluster| tokens::openid_configuration(cluster.apiserver(), &url);
            json("application/json", &live.ask(document).await.map_err(gone)?)
        }
        ["openid", "v1", "jwks"] => {
            let keys = |cluster: &mut Cluster| tokens::keys(cluster.apiserver());
            json("application/jwk-set+json", &live.ask(keys).await.map_err(gone)?)
        }
        ["version"] => document(&discovery::version(), wanted(head, query)?),
        [root, check @ ..] if health::ROOTS.contains(root) => healthy(root, &check.join("/"), query)?,
        ["openapi", path @ ..] => openapi::respond(gateway, head, query, path).await?,
        ["metrics"] => {
            let objects = live.ask(|cluster| counts(cluster)).await.map_err(gone)?;
            answer::bytes(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", gateway.metrics.text(&objects))
        }
        _ => return Err(Status::unknown_path()),
    })
}

/// The answer of a web server that has no page there.
pub fn nothing_there() -> HttpResponse<Body> {
    let mut response = answer::bytes(StatusCode::NOT_FOUND, PLAIN, "404 page not found\n");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn wanted(head: &Parts, query: &Query) -> Result<Wanted, Status> {
    let mut wanted = negotiate(text(&head.headers, header::ACCEPT), true)?;
    wanted.pretty = query.is_pretty();
    Ok(wanted)
}

/// A document that other programs than clients of Kubernetes read.
fn json(content_type: &'static str, value: &Value) -> HttpResponse<Body> {
    answer::bytes(StatusCode::OK, content_type, value.to_string())
}

fn document(value: &Value, wanted: Wanted) -> HttpResponse<Body> {
    answer::value(StatusCode::OK, value, wanted)
}

/// `/api` or `/apis`: as a list, or with all resources in one document.
async fn groups_of(gateway: &Gateway, head: &Parts, query: &Query, core: bool) -> Result<HttpResponse<Body>, Status> {
    let (mut wanted, in_one) = negotiate_discovery(text(&head.headers, header::ACCEPT))?;
    wanted.pretty = query.is_pretty();
    let address =
        text(&head.headers, header::HOST).or_else(|| head.uri.authority().map(|authority| authority.as_str()));
    let address = address.unwrap_or_default().to_owned();
    let value = gateway.live.ask(move |cluster| match (in_one, core) {
        (true, _) => aggregated::list(cluster.apiserver(), core),
        (false, true) => groups::core_versions(&address),
        (false, false) => groups::list(cluster.apiserver()),
    });
    let mut response = document(&value.await.map_err(gone)?, wanted);
    if in_one {
        let (_, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        let kind = format!("application/{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", wanted.syntax.name());
        response = tagged(&head.headers, &kind, &discovery::digest(&bytes), bytes);
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

/// A document with an ETag; a client that has it already is told so.
pub fn tagged(headers: &HeaderMap, content_type: &str, digest: &str, body: impl Into<Body>) -> HttpResponse<Body> {
    let tag = format!("\"{digest}\"");
    let known = text(headers, header::IF_NONE_MATCH);
    let known = known.is_some_and(|known| known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag));
    let mut response = match known {
        true => answer::bytes(StatusCode::NOT_MODIFIED, "", Body::empty()),
        false => answer::bytes(StatusCode::OK, "", body),
    };
    let values = [(header::ETAG, tag.as_str()), (header::CONTENT_TYPE, content_type)];
    for (name, value) in values {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    if known {
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    response
}

async fn resources(
    gateway: &Gateway,
    head: &Parts,
    query: &Query,
    group: &str,
    version: &str,
) -> Result<HttpResponse<Body>, Status> {
    let wanted = wanted(head, query)?;
    let (group, version) = (group.to_owned(), version.to_owned());
    let list = gateway.live.ask(move |cluster: &mut Cluster| resources_of(cluster, &group, &version));
    Ok(document(&list.await.map_err(gone)??, wanted))
}

fn resources_of(cluster: &Cluster, group: &str, version: &str) -> Result<Value, Status> {
    let server = cluster.apiserver();
    groups::resources(server, group, version).ok_or_else(|| match server.serves_group(group) {
        true => Status::unknown_resource(),
        false => Status::unknown_path(),
    })
}

/// The body of the answer to a GET that comes over no connection.
pub fn body(cluster: &mut Cluster, address: &str, path: &str, query: &Query) -> Result<String, Status> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let value = match parts.as_slice() {
        [""] => paths(cluster),
        ["api"] => groups::core_versions(address),
        ["apis"] => groups::list(cluster.apiserver()),
        ["api", version] => resources_of(cluster, "", version)?,
        ["apis", group] => groups::group(cluster.apiserver(), group).ok_or_else(Status::unknown_path)?,
        ["apis", group, version] => resources_of(cluster, group, version)?,
        ["version"] => discovery::version(),
        [root, check @ ..] if health::ROOTS.contains(root) => return report(root, &check.join("/"), query),
        _ => return Err(Status::unknown_path()),
    };
    // For a person to read, as kube-apiserver answers these two.
    let is_pretty = query.is_pretty() || matches!(parts.as_slice(), [""] | ["version"]);
    Ok(if is_pretty { format!("{value:#}") } else { format!("{value}\n") })
}

fn report(root: &str, check: &str, query: &Query) -> Result<String, Status> {
    Ok(match check {
        "" => {
            let excluded: Vec<&str> = query.all("exclude").collect();
            health::report(root, query.get("verbose").is_some(), &excluded)
        }
        check if health::checks(root).any(|known| known == check) => "ok".into(),
        _ => return Err(Status::unknown_path()),
    })
}

fn healthy(root: &str, check: &str, query: &Query) -> Result<HttpResponse<Body>, Status> {
    let mut response = answer::bytes(StatusCode::OK, PLAIN, report(root, check, query)?);
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

/// Every path that is not a resource, sorted.
fn paths(cluster: &mut Cluster) -> Value {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/apis/", "/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version"]
            .map(String::from)
            .into();
    for group in discovery::groups(cluster.kinds()) {
        let root = if group.name.is_empty() { "/api".to_owned() } else { format!("/apis/{}", group.name) };
        paths.extend(group.versions.iter().map(|version| format!("{root}/{}", version.name)));
        if !group.name.is_empty() {
            paths.push(root);
        }
    }
    for root in health::ROOTS {
        paths.push(format!("/{root}"));
        paths.extend(health::checks(root).map(|check| format!("/{root}/{check}")));
    }
    paths.sort();
    json!({"paths": paths})
}

fn counts(cluster: &Cluster) -> Vec<(String, usize)> {
    let stored = cluster.kinds().filter(|kind| kind.allows("list"));
    let counted = stored.map(|kind| (kind.qualified_resource(), cluster.list_of(kind, "").count()));
    counted.filter(|(_, count)| *count > 0).collect()
}
