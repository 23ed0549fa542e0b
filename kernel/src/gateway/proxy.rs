//! Proxies over HTTP: what a pod or a Service answers to a path behind `proxy/`. Programs in containers are asked with GET,
//! whatever the method is.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Method, Response as HttpResponse, StatusCode, header};
use cluster_core::Cluster;
use cluster_core::api::status::Status;

use super::handle::{Gateway, gone};
use super::route::Place;

/// How many parts a path has before what the proxy passes on: `/api/v1/namespaces/NS/pods/NAME/proxy/`.
const PARTS: usize = 8;

/// True for what pods and Services are asked through the server.
pub fn is_proxied(place: &Place) -> bool {
    place.group.is_empty() && matches!(place.resource.as_str(), "pods" | "services") && place.subresource == "proxy"
}

/// # Errors
/// As of [`Cluster::proxy_to_pod`] and [`Cluster::proxy_to_service`].
pub async fn respond(gateway: &Gateway, head: &Parts, place: &Place) -> Result<HttpResponse<Body>, Status> {
    let path = head.uri.path();
    let query = head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let rest = path.splitn(PARTS + 1, '/').nth(PARTS);
    if rest.is_none() && matches!(head.method, Method::GET | Method::HEAD) {
        let response = HttpResponse::builder()
            .status(StatusCode::MOVED_PERMANENTLY)
            .header(header::LOCATION, format!("{path}/{query}"))
            .body(Body::empty());
        return response.map_err(|error| Status::internal(error.to_string()));
    }
    let (asked, target) = (place.clone(), format!("/{}{query}", rest.unwrap_or_default()));
    let ask = move |cluster: &mut Cluster| match asked.resource.as_str() {
        "pods" => cluster.proxy_to_pod(&asked.namespace, &asked.name, &target),
        _ => cluster.proxy_to_service(&asked.namespace, &asked.name, &target),
    };
    let reply = gateway.live.ask(ask).await.map_err(gone)??;
    let mut response = HttpResponse::builder().status(reply.status);
    for (name, value) in reply.headers.iter().filter(|(name, _)| *name != "Connection") {
        response = response.header(*name, value.as_str());
    }
    response.body(Body::from(reply.body)).map_err(|error| Status::internal(error.to_string()))
}
