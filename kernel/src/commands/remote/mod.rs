//! Any Kubernetes API server, over HTTP: what `kernetes kubectl` speaks to.
//!
//! The way of a request: `connect` (kubeconfig to client) → `discovery` (which kinds there are) → `path` (request to
//! HTTP) → `answer` (JSON to objects, tables and refusals).

mod answer;
pub mod command;
mod connect;
mod discovery;
mod forward;
pub mod observe;
mod path;
mod proxy;

use std::io::{Error as IoError, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, Method, Request as HttpRequest, StatusCode};
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Answer, List, Request, Response, Verb};
use cluster_core::api::status::Status;
use cluster_core::apiserver::table::Table;
use cluster_core::clock::Time;
use cluster_core::runtime::shell::Exec;
use futures_util::io::AsyncBufReadExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{AttachParams, LogParams};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

use super::Api;
use super::api::{Forward, LogOptions, Proxy, Tell, Write, changes_after};

/// As kubectl asks: lists come in pieces of so many.
const CHUNK: usize = 500;
const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

pub use connect::open;

pub struct Remote {
    runtime: Runtime,
    client: Client,
    config: Config,
    /// `https://127.0.0.1:6443`
    address: String,
    /// Empty until somebody asks.
    kinds: Vec<KindRef>,
    /// Where nobody can press Ctrl-C, a watch and a log that is followed end when nothing has come for so long.
    quiet_max: Option<Duration>,
    /// Nobody wants to see more of what comes now.
    stopped: Arc<AtomicBool>,
}

impl Remote {
    /// Watches on all objects of these kinds.
    pub fn observe(&self, kinds: Vec<KindRef>) -> observe::Observer {
        observe::Observer::start(self.config.clone(), kinds)
    }

    /// Asks the server anew which kinds there are, the next time that it matters.
    pub fn forget_kinds(&mut self) {
        self.kinds.clear();
    }

    /// Set it, and a watch or a log that is followed ends with what came last.
    pub fn stopper(&self) -> Arc<AtomicBool> {
        self.stopped.clone()
    }

    /// Waits for something that comes over a connection. `None` if it takes too long.
    async fn patiently<T>(&self, coming: impl Future<Output = T>) -> Option<T> {
        match self.quiet_max {
            Some(limit) => tokio::time::timeout(limit, coming).await.ok(),
            None => Some(coming.await),
        }
    }

    /// Sends a request, a list of several pieces piece by piece, and hands each answer to `take`, which tells where
    /// the list goes on.
    fn ask(
        &mut self,
        mut request: Request,
        accept: &str,
        mut take: impl FnMut(&mut Remote, &Request, HeaderMap, Value) -> Result<String, Status>,
    ) -> Result<(), Status> {
        if request.verb == Verb::List && request.options.limit.is_none() {
            request.options.limit = Some(CHUNK);
        }
        loop {
            let (headers, answer) = self.send(path::request(&request, accept)?)?;
            let goes_on = take(self, &request, headers, answer)?;
            if goes_on.is_empty() {
                return Ok(());
            }
            request.options.continue_token = goes_on;
        }
    }

    /// # Errors
    /// The server's refusal, or why it can't be reached.
    fn send(&self, request: HttpRequest<Body>) -> Result<(HeaderMap, Value), Status> {
        let answer = self.runtime.block_on(async {
            let response = self.client.send(request).await?;
            let (head, body) = response.into_parts();
            let bytes = body.collect().await?.to_bytes();
            Ok::<_, kube::Error>((head.status, head.headers, bytes))
        });
        let (code, headers, bytes) = answer.map_err(|error| self.unreachable(&error))?;
        match serde_json::from_slice(&bytes) {
            Ok(value) if code.is_success() => Ok((headers, value)),
            Ok(value) => Err(answer::refusal(code, &value)),
            Err(_) if code.is_success() => Err(Status::internal("the server's answer is no JSON")),
            Err(_) => Err(answer::refusal(code, &Value::Null)),
        }
    }

    /// Sends a request and takes its answer line by line, as it comes.
    ///
    /// # Errors
    /// The server's refusal, why it can't be reached, or what `take` has against a line.
    fn stream(
        &self,
        request: HttpRequest<Body>,
        mut take: impl FnMut(&[u8]) -> Result<(), Status>,
    ) -> Result<(), Status> {
        self.runtime.block_on(async {
            let response = self.client.send(request).await.map_err(|error| self.unreachable(&error))?;
            let (head, mut body) = response.into_parts();
            if !head.status.is_success() {
                let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                return Err(answer::refusal(head.status, &serde_json::from_slice(&bytes).unwrap_or_default()));
            }
            let mut rest = Vec::new();
            self.stopped.store(false, Ordering::Relaxed);
            while let Some(Some(frame)) = self.patiently(body.frame()).await {
                let frame = match frame {
                    // Whoever set a time for requests wants to see what came until then.
                    Err(error) if self.config.read_timeout.is_some() && is_late(&error) => return Ok(()),
                    frame => frame.map_err(|error| self.unreachable(&error))?,
                };
                rest.extend_from_slice(frame.data_ref().map(|bytes| &bytes[..]).unwrap_or_default());
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    take(&line)?;
                    if self.stopped.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                }
            }
            if rest.is_empty() { Ok(()) } else { take(&rest) }
        })
    }

    /// Why a request never got an answer, in the words of kubectl.
    fn unreachable(&self, error: &kube::Error) -> Status {
        let mut deepest: &dyn std::error::Error = error;
        let mut refused = false;
        while let Some(source) = deepest.source() {
            refused |= source.downcast_ref::<IoError>().is_some_and(|e| e.kind() == ErrorKind::ConnectionRefused);
            deepest = source;
        }
        let host = self.address.split_once("://").map_or(self.address.as_str(), |(_, host)| host);
        Status::unavailable(match refused {
            true => {
                format!("The connection to the server {host} was refused - did you specify the right host or port?")
            }
            false => format!("Unable to connect to the server: {deepest}"),
        })
    }

    /// What kube's own calls return as an error.
    fn failure(&self, error: &kube::Error) -> Status {
        match error {
            kube::Error::Api(status) => {
                let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                answer::refusal(code, &serde_json::to_value(status).unwrap_or_default())
            }
            other => self.unreachable(other),
        }
    }

    fn pods(&self, namespace: &str) -> kube::Api<Pod> {
        kube::Api::namespaced(self.client.clone(), namespace)
    }
}

fn is_late(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .any(|error| error.downcast_ref::<IoError>().is_some_and(|error| error.kind() == ErrorKind::TimedOut))
}

impl Api for Remote {
    fn request(&mut self, request: Request) -> Result<Response, Status> {
        let (mut list, mut one) = (Vec::new(), None);
        let mut revision = 0;
        self.ask(request.clone(), JSON, |remote, request, headers, value| {
            if request.verb != Verb::List {
                let object = answer::object(&request.kind, &remote.kinds, request, value)?;
                one = Some(Answer { warnings: answer::warnings(&headers), ..object });
                return Ok(String::new());
            }
            let (goes_on, number) = answer::list_metadata(&value);
            revision = number;
            list.extend(answer::items(&request.kind, value)?);
            Ok(goes_on)
        })?;
        Ok(match one {
            Some(answer) => Response::Object(answer),
            None => Response::List(List {
                kind: request.kind,
                revision,
                items: list,
                continue_token: String::new(),
                remaining: None,
            }),
        })
    }

    fn table(&mut self, request: Request) -> Result<Table, Status> {
        let mut table = Table { kind: request.kind.clone(), columns: Vec::new(), rows: Vec::new() };
        self.ask(request, TABLE, |_, request, _, value| {
            let (goes_on, _) = answer::list_metadata(&value);
            answer::table(&request.kind, value, &mut table)?;
            Ok(if request.verb == Verb::List { goes_on } else { String::new() })
        })?;
        Ok(table)
    }

    fn watch(&mut self, request: Request, tell: Tell<'_>) -> Result<(), Status> {
        let mut revision = String::new();
        let mut table = Table { kind: request.kind.clone(), columns: Vec::new(), rows: Vec::new() };
        self.ask(request.clone(), TABLE, |_, request, _, value| {
            let (goes_on, number) = answer::list_metadata(&value);
            revision = number.to_string();
            answer::table(&request.kind, value, &mut table)?;
            Ok(if request.verb == Verb::List { goes_on } else { String::new() })
        })?;
        let named = request.key.name.clone();
        let mut changes = changes_after(request);
        // The watch of a single object begins with its state, which is known.
        let mut is_known = !named.is_empty();
        changes.options.resource_version = if is_known { "0".into() } else { revision };
        let mut columns = table.columns.clone();
        tell(None, table);
        self.stream(path::request(&changes, TABLE)?, |line| {
            let (event, value) = answer::event(line)?;
            let mut table = Table { kind: changes.kind.clone(), columns: columns.clone(), rows: Vec::new() };
            answer::table(&changes.kind, value, &mut table)?;
            columns.clone_from(&table.columns);
            if !std::mem::take(&mut is_known) {
                tell(Some(event), table);
            }
            Ok(())
        })
    }

    fn kinds(&mut self) -> Result<Vec<KindRef>, Status> {
        if self.kinds.is_empty() {
            for root in ["/api", "/apis"] {
                let (_, document) = self.send(path::get(root, discovery::ACCEPT)?)?;
                let known = self.kinds.len();
                self.kinds.extend(discovery::kinds(&document, known)?);
            }
        }
        Ok(self.kinds.clone())
    }

    fn now(&self) -> Time {
        crate::wall_clock::now()
    }

    fn logs(&mut self, pod: &Key, container: &str, options: &LogOptions, write: Write<'_>) -> Result<(), Status> {
        let integer = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let params = LogParams {
            container: Some(container.to_owned()),
            follow: options.follow,
            previous: options.previous,
            timestamps: options.timestamps,
            tail_lines: options.tail_lines.map(integer),
            limit_bytes: options.limit_bytes.map(integer),
            since_seconds: options.since.map(|since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX).max(1)),
            ..LogParams::default()
        };
        let pods = self.pods(&pod.namespace);
        let done = self.runtime.block_on(async {
            let mut stream = pods.log_stream(&pod.name, &params).await?;
            let mut line = Vec::new();
            self.stopped.store(false, Ordering::Relaxed);
            while !self.stopped.load(Ordering::Relaxed) {
                let Some(read) = self.patiently(stream.read_until(b'\n', &mut line)).await else { break };
                if read.map_err(kube::Error::ReadEvents)? == 0 {
                    break;
                }
                write(&String::from_utf8_lossy(&line));
                line.clear();
            }
            Ok::<_, kube::Error>(())
        });
        done.map_err(|error| self.failure(&error))
    }

    fn exec(&mut self, pod: &Key, container: &str, command: &[String], stdin: &str) -> Result<Exec, Status> {
        let pods = self.pods(&pod.namespace);
        let params = AttachParams::default().container(container).stdin(!stdin.is_empty());
        let done = self.runtime.block_on(async {
            let mut process = pods.exec(&pod.name, command, &params).await?;
            let (mut output, mut errors) = (Vec::new(), Vec::new());
            if let Some(mut input) = process.stdin() {
                // A command that does not read its input is not waited for.
                let _ = input.write_all(stdin.as_bytes()).await;
                let _ = input.shutdown().await;
            }
            let (stdout, stderr, ended) = (process.stdout(), process.stderr(), process.take_status());
            tokio::join!(
                async {
                    if let Some(mut stdout) = stdout {
                        let _ = stdout.read_to_end(&mut output).await;
                    }
                },
                async {
                    if let Some(mut stderr) = stderr {
                        let _ = stderr.read_to_end(&mut errors).await;
                    }
                },
            );
            let status = match ended {
                Some(ended) => ended.await,
                None => None,
            };
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            Ok::<_, kube::Error>((text(output), text(errors), status))
        });
        let (output, errors, status) = done.map_err(|error| self.failure(&error))?;
        let code = status.as_ref().map_or(Ok(0), answer::exit_code)?;
        Ok(Exec { code, output, errors, took: Duration::ZERO })
    }

    fn raw(&mut self, method: &Method, uri: &str, body: String, write: Write<'_>) -> Result<(), Status> {
        self.stream(path::raw(method, uri, body)?, |bytes| {
            write(&String::from_utf8_lossy(bytes));
            Ok(())
        })
    }

    fn forward(&mut self, pod: &Key, hosts: &[String], ways: &[Forward], write: Write<'_>) -> Result<(), Status> {
        let pods = self.pods(&pod.namespace);
        self.runtime.block_on(forward::forward(&pods, &pod.name, hosts, ways, write)).map_err(Status::internal)
    }

    fn proxy(&mut self, proxy: &Proxy, write: Write<'_>) -> Result<(), Status> {
        self.runtime.block_on(proxy::proxy(&self.client, proxy, write)).map_err(Status::unexplained)
    }

    fn wait(&mut self, duration: Duration) -> bool {
        // No shorter than kubectl's own pauses: the server is asked after each.
        std::thread::sleep(duration.max(Duration::from_millis(100)));
        true
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn version(&mut self) -> Result<String, Status> {
        let (_, version) = self.send(path::get("/version", JSON)?)?;
        Ok(version["gitVersion"].as_str().unwrap_or_default().to_owned())
    }
}
