//! A port of this machine on which requests come in that go on to the server, as the user of the kubeconfig.

use std::path::{Component, Path};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, Uri, header};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use kube::Client;
use tokio::net::{TcpListener, UnixListener};

use crate::commands::api::{Proxy, Write};

/// What a server takes of one request at most.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Headers that are about one connection alone.
const HOP_BY_HOP: [HeaderName; 4] = [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE, header::HOST];

/// Serves for ever.
///
/// # Errors
/// Why it could not listen.
pub async fn proxy(client: &Client, proxy: &Proxy, write: Write<'_>) -> Result<(), String> {
    let router = Router::new().fallback(answer).with_state(Arc::new((client.clone(), proxy.clone())));
    if let Some(path) = &proxy.socket {
        let listener = UnixListener::bind(path).map_err(|error| format!("listen unix {path}: {}", words(&error)))?;
        write(&format!("Starting to serve on {path}\n"));
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(TokioIo::new(stream), router.clone()));
            }
        }
    }
    let place = format!("{}:{}", proxy.address, proxy.port);
    let listener = TcpListener::bind(&place).await.map_err(|error| format!("listen tcp {place}: {}", words(&error)))?;
    let at = listener.local_addr().map_err(|error| error.to_string())?;
    write(&format!("Starting to serve on {at}\n"));
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(TokioIo::new(stream), router.clone()));
        }
    }
}

/// A fault of the system in Go's words.
fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
    format!("bind: {text}")
}

async fn converse<S>(stream: TokioIo<S>, router: Router)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    // A client that leaves has what it wanted.
    let _ = Builder::new(TokioExecutor::new()).serve_connection(stream, service).await;
}

async fn answer(State(shared): State<Arc<(Client, Proxy)>>, request: Request) -> Response<Body> {
    let (client, proxy) = &*shared;
    let path = request.uri().path().to_owned();
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if proxy.filter.as_ref().is_some_and(|filter| !filter.passes(request.method().as_str(), host, &path)) {
        return told(StatusCode::FORBIDDEN, "Forbidden\n");
    }
    if let Some(folder) = &proxy.folder
        && let Some(rest) = path.strip_prefix(&proxy.folder_prefix)
    {
        return file(Path::new(folder), rest);
    }
    match path.strip_prefix(&proxy.prefix) {
        // What is served under a path of the API itself stays there.
        Some(_) if proxy.prefix.starts_with("/api") => forward(client, request, &path).await,
        Some(rest) => forward(client, request, &format!("/{rest}")).await,
        None => told(StatusCode::NOT_FOUND, "404 page not found\n"),
    }
}

fn told(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn forward(client: &Client, request: Request, path: &str) -> Response<Body> {
    let (mut head, body) = request.into_parts();
    let query = head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let Ok(place) = format!("{path}{query}").parse::<PathAndQuery>() else {
        return told(StatusCode::BAD_REQUEST, "Bad Request\n");
    };
    head.uri = Uri::from(place);
    HOP_BY_HOP.iter().for_each(|name| drop(head.headers.remove(name)));
    let Ok(bytes) = to_bytes(body, BODY_BYTES_MAX).await else {
        return told(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large\n");
    };
    let request = axum::http::Request::from_parts(head, kube::client::Body::from(bytes.to_vec()));
    match client.send(request).await {
        Ok(response) => {
            let mut response = response.map(Body::new);
            HOP_BY_HOP.iter().for_each(|name| drop(response.headers_mut().remove(name)));
            response
        }
        Err(_) => told(StatusCode::BAD_GATEWAY, ""),
    }
}

/// A file of a folder, or its index.
fn file(folder: &Path, rest: &str) -> Response<Body> {
    let missing = || told(StatusCode::NOT_FOUND, "404 page not found\n");
    let rest = Path::new(rest);
    if rest.components().any(|part| !matches!(part, Component::Normal(_))) {
        return missing();
    }
    let mut place = folder.join(rest);
    if place.is_dir() {
        place.push("index.html");
    }
    let Ok(bytes) = std::fs::read(&place) else { return missing() };
    let kind = match place.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        _ => "text/plain; charset=utf-8",
    };
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
