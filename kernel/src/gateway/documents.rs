//! What is no resource: health, version, discovery, OpenAPI.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Response as HttpResponse, StatusCode};
use cluster_core::api::status::Status;

use super::answer;
use super::handle::Gateway;
use super::query::Query;

pub async fn respond(_gateway: &Gateway, head: &Parts, _query: &Query) -> Result<HttpResponse<Body>, Status> {
    Ok(match head.uri.path() {
        "/healthz" | "/livez" | "/readyz" => answer::bytes(StatusCode::OK, "text/plain; charset=utf-8", "ok"),
        _ => answer::bytes(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n"),
    })
}
