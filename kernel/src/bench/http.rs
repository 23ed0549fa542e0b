//! The API over HTTPS, as real clients use it: against our own server, or any other that is named.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::http::Request;
use cluster_core::{Cluster, Config};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use super::{Server, milliseconds, percentile, rounded};
use crate::gateway::{Live, server};

const CLIENTS: usize = 32;
const GETS: usize = 10_000;
const CREATES: usize = 5_000;
const PATCHES: usize = 5_000;
const LISTS: usize = 20;
const WATCHERS: usize = 100;
const CHANGES: usize = 1_000;
/// A watcher that hears nothing for so long has lost something.
const SILENCE_MAX: Duration = Duration::from_secs(30);

type Figures = Result<Map<String, Value>, String>;

/// A namespace of one's own on the server that is measured.
#[derive(Clone)]
struct Site {
    client: Client,
    namespace: String,
}

pub fn get(server: &Server) -> Figures {
    on(server, |site| async move {
        site.create("one").await?;
        site.many(GETS, |site, _| async move { site.send("GET", "/one", "", None).await }).await
    })
}

pub fn create(server: &Server) -> Figures {
    on(server, |site| async move { site.many(CREATES, |site, at| async move { site.create(&name(at)).await }).await })
}

pub fn patch(server: &Server) -> Figures {
    on(server, |site| async move {
        for at in 0..CLIENTS {
            site.create(&name(at)).await?;
        }
        let patched = |site: Site, at: usize| async move {
            let body = json!({"data": {"text": at.to_string()}});
            site.send("PATCH", &format!("/{}", name(at % CLIENTS)), "application/merge-patch+json", Some(body)).await
        };
        site.many(PATCHES, patched).await
    })
}

pub fn list(server: &Server) -> Figures {
    on(server, |site| async move {
        site.many(CREATES, |site, at| async move { site.create(&name(at)).await }).await?;
        let (mut walls, mut bytes) = (Vec::new(), 0);
        for _ in 0..LISTS {
            let start = Instant::now();
            bytes = site.send("GET", "", "", None).await?;
            walls.push(start.elapsed());
        }
        let total: Duration = walls.iter().sum();
        let mut figures = Map::new();
        figures.insert("objects".into(), json!(CREATES));
        figures.insert("objects_per_s".into(), rounded((CREATES * LISTS) as f64 / total.as_secs_f64()));
        figures.insert("mib".into(), rounded(bytes as f64 / 1024.0 / 1024.0));
        figures.extend(quantiles(walls));
        Ok(figures)
    })
}

pub fn watch(server: &Server) -> Figures {
    on(server, |site| async move {
        site.create("one").await?;
        let (opened, begun) = (Arc::new(AtomicUsize::new(0)), Instant::now());
        let mut watchers: JoinSet<Result<Vec<Duration>, String>> = JoinSet::new();
        for _ in 0..WATCHERS {
            let (site, opened) = (site.clone(), opened.clone());
            watchers.spawn(async move { site.listen(&opened, begun).await });
        }
        while opened.load(Ordering::Acquire) < WATCHERS {
            tokio::task::yield_now().await;
        }
        let start = Instant::now();
        let mut written = Vec::with_capacity(CHANGES);
        for _ in 0..CHANGES {
            written.push(begun.elapsed());
            let body = json!({"data": {"at": written.len().to_string()}});
            site.send("PATCH", "/one", "application/merge-patch+json", Some(body)).await?;
        }
        let mut delays = Vec::with_capacity(CHANGES * WATCHERS);
        while let Some(heard) = watchers.join_next().await {
            let heard = heard.map_err(|error| error.to_string())??;
            delays.extend(heard.iter().zip(&written).map(|(heard, written)| heard.saturating_sub(*written)));
        }
        let wall = start.elapsed().as_secs_f64();
        let mut figures = Map::new();
        figures.insert("watchers".into(), json!(WATCHERS));
        figures.insert("changes_per_s".into(), rounded(CHANGES as f64 / wall));
        figures.insert("events_per_s".into(), rounded((CHANGES * WATCHERS) as f64 / wall));
        figures.extend(quantiles(delays));
        Ok(figures)
    })
}

fn name(at: usize) -> String {
    format!("map-{at}")
}

fn quantiles(walls: Vec<Duration>) -> Map<String, Value> {
    Map::from_iter([
        ("p50_ms".to_owned(), milliseconds(percentile(walls.clone(), 50))),
        ("p99_ms".to_owned(), milliseconds(percentile(walls, 99))),
    ])
}

/// Measures in a namespace that is there for this alone.
fn on<F: Future<Output = Figures>>(server: &Server, measure: impl FnOnce(Site) -> F) -> Figures {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let client = client(server).await?;
        let site = Site { client, namespace: format!("bench-{}", uuid::Uuid::new_v4().simple()) };
        let body = json!({"metadata": {"name": site.namespace}});
        site.ask("POST", "/api/v1/namespaces", "application/json", Some(body)).await?;
        let figures = measure(site.clone()).await;
        site.ask("DELETE", &format!("/api/v1/namespaces/{}", site.namespace), "", None).await?;
        figures
    })
}

/// A client of the server that is named, or of one that is started in this process.
async fn client(server: &Server) -> Result<Client, String> {
    let mut config = match (&server.server, &server.token) {
        (Some(url), token) => {
            let url = url.parse().map_err(|error| format!("--server {url}: {error}"))?;
            let mut config = kube::Config::new(url);
            config.auth_info.token = token.clone().map(Into::into);
            config
        }
        (None, _) => {
            let cluster = Cluster::new(Config {
                nodes: 0,
                without: vec!["kube-controller-manager".into(), "kube-scheduler".into()],
                ..Config::default()
            });
            let live = Live::start(cluster, 1.0).map_err(|error| error.to_string())?;
            let server = server::Server::bind(([127, 0, 0, 1], 0).into(), live).await?;
            let mut config = kube::Config::new(server.url().parse().map_err(|_| "no URL".to_owned())?);
            config.auth_info.token = Some(server.token().to_owned().into());
            tokio::spawn(server.run());
            config
        }
    };
    // What is measured is the server, whoever signed its certificate.
    config.accept_invalid_certs = true;
    Client::try_from(config).map_err(|error| error.to_string())
}

impl Site {
    /// Asks for a path below the namespace's ConfigMaps; returns how many bytes came back.
    async fn send(&self, method: &str, path: &str, media_type: &str, body: Option<Value>) -> Result<usize, String> {
        let path = format!("/api/v1/namespaces/{}/configmaps{path}", self.namespace);
        self.ask(method, &path, media_type, body).await
    }

    async fn ask(&self, method: &str, path: &str, media_type: &str, body: Option<Value>) -> Result<usize, String> {
        let response = self.client.send(request(method, path, media_type, body)?).await.map_err(|e| e.to_string())?;
        let status = response.status();
        let bytes = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        match status.is_success() {
            true => Ok(bytes.len()),
            false => Err(format!("{method} {path}: {status}: {}", String::from_utf8_lossy(&bytes))),
        }
    }

    async fn create(&self, name: &str) -> Result<usize, String> {
        let body = json!({"metadata": {"name": name}, "data": {"text": "a line of configuration"}});
        self.send("POST", "", "application/json", Some(body)).await
    }

    /// Does something `count` times, by so many clients at once.
    async fn many<F: Future<Output = Result<usize, String>> + Send + 'static>(
        &self,
        count: usize,
        each: impl Fn(Site, usize) -> F + Copy + Send + Sync + 'static,
    ) -> Figures {
        let (next, start) = (Arc::new(AtomicUsize::new(0)), Instant::now());
        let mut clients: JoinSet<Result<Vec<Duration>, String>> = JoinSet::new();
        for _ in 0..CLIENTS {
            let (site, next) = (self.clone(), next.clone());
            clients.spawn(async move {
                let mut walls = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return Ok(walls);
                    }
                    let start = Instant::now();
                    each(site.clone(), at).await?;
                    walls.push(start.elapsed());
                }
            });
        }
        let mut walls = Vec::with_capacity(count);
        while let Some(done) = clients.join_next().await {
            walls.extend(done.map_err(|error| error.to_string())??);
        }
        let mut figures = Map::new();
        figures.insert("clients".into(), json!(CLIENTS));
        figures.insert("requests_per_s".into(), rounded(count as f64 / start.elapsed().as_secs_f64()));
        figures.extend(quantiles(walls));
        Ok(figures)
    }

    /// Watches until every change has been heard of; the moments at which they were, since `begun`.
    async fn listen(&self, opened: &AtomicUsize, begun: Instant) -> Result<Vec<Duration>, String> {
        let path = format!("/api/v1/namespaces/{}/configmaps?watch=1", self.namespace);
        let response = self.client.send(request("GET", &path, "", None)?).await.map_err(|error| error.to_string())?;
        let mut body = response.into_body();
        let (mut lines, mut heard) = (0, Vec::with_capacity(CHANGES));
        while heard.len() < CHANGES {
            let frame = tokio::time::timeout(SILENCE_MAX, body.frame()).await.map_err(|_| "a watch fell silent")?;
            let frame = frame.ok_or("a watch ended")?.map_err(|error| error.to_string())?;
            let now = begun.elapsed();
            let ended = frame.data_ref().map_or(0, |data| data.iter().filter(|byte| **byte == b'\n').count());
            if lines == 0 && ended > 0 {
                opened.fetch_add(1, Ordering::Release);
            }
            // The first line is the object as it was.
            let fresh = if lines == 0 { ended.saturating_sub(1) } else { ended };
            lines += ended;
            heard.extend(std::iter::repeat_n(now, fresh));
        }
        Ok(heard)
    }
}

fn request(method: &str, path: &str, media_type: &str, body: Option<Value>) -> Result<Request<Body>, String> {
    let mut request = Request::builder().method(method).uri(path);
    if !media_type.is_empty() {
        request = request.header("Content-Type", media_type);
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string().into_bytes()));
    request.body(body).map_err(|error| error.to_string())
}
