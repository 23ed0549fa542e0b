//! Several streams over one WebSocket, each message behind the number of its channel: exec, attach, port-forward.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/> and KEP-4006 (`v5.channel.k8s.io`).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::Response as HttpResponse;
use axum::http::request::Parts;
use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::request::{Options, Request, Verb};
use cluster_core::api::status::Status;
use cluster_core::api::user::User;
use cluster_core::cluster::containers::LogOptions;
use cluster_core::runtime::shell::exec::Progress;
use cluster_core::runtime::shell::input::{Input, Stream};
use serde_json::{Value, json};

use super::handle::{Gateway, gone, request_of};
use super::live::Live;
use super::query::Query;
use super::route::Place;
use super::terminal::{Step, Terminal};
use super::{pods, port_forward};

/// The protocols that are spoken, the newest first. The fifth also says when a client closes a channel.
const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
/// How it ended, as a `Status`.
const ERROR: u8 = 3;
const CLOSE: u8 = 255;
/// A command that waits is looked at so often: it may go on sooner than the wall clock says.
const LOOK_AGAIN_MAX: std::time::Duration = std::time::Duration::from_millis(50);
/// What a command may be given to read.
const INPUT_BYTES_MAX: usize = 16 << 20;

/// Opens the connection that a subresource of a pod is.
///
/// # Errors
/// 400 if the client does not want a WebSocket of a protocol that is spoken, or the pod has no such container.
pub async fn open(
    gateway: &Gateway,
    head: &mut Parts,
    place: &Place,
    query: &Query,
    user: Arc<User>,
) -> Result<HttpResponse<Body>, Status> {
    let pod = pods::key(place);
    let live = gateway.live.clone();
    let (asked, wanted) = (place.clone(), wanted(place, query));
    let admit = move |cluster: &mut Cluster| {
        let request = request_of(cluster, &asked, Verb::Create, "kube-apiserver".into(), Options::default())?;
        cluster.admit_connection(&Request { user: Some(user), ..request }, &wanted)
    };
    live.ask(admit).await.map_err(gone)??;
    if place.subresource == "portforward" {
        let asked = pod.clone();
        let exists = move |cluster: &mut Cluster| cluster.running_pod(&asked).map(|_| ());
        live.ask(exists).await.map_err(gone)??;
        let upgrade = upgrade(head, &[port_forward::SPDY_PROTOCOL, PROTOCOLS[0], PROTOCOLS[1]]).await?;
        if upgrade.selected_protocol().is_some_and(|protocol| protocol == port_forward::SPDY_PROTOCOL) {
            return Ok(upgrade.on_upgrade(move |socket| port_forward::serve_spdy(socket, live, pod)));
        }
        let ports = port_forward::ports(query)?;
        return Ok(upgrade.on_upgrade(move |socket| port_forward::serve(socket, live, pod, ports)));
    }
    let container = query.get("container").unwrap_or_default().to_owned();
    let asked = (pod.clone(), container.clone());
    let known = move |cluster: &mut Cluster| cluster.container_of(&asked.0, &asked.1).map(|(_, name)| name);
    let container = live.ask(known).await.map_err(gone)??;
    let order = Order {
        pod,
        container,
        command: query.all("command").map(str::to_owned).collect(),
        stdin: query.is_true("stdin"),
        tty: query.is_true("tty"),
    };
    if place.subresource == "exec" && order.command.is_empty() {
        return Err(Status::bad_request("you must specify at least one command for the container"));
    }
    let attach = place.subresource == "attach";
    Ok(upgrade(head, &PROTOCOLS).await?.on_upgrade(move |socket| async move {
        if attach { self::attach(socket, &live, order).await } else { exec(socket, &live, order).await }
    }))
}

/// What the connection is to be, as an object that webhooks are shown.
fn wanted(place: &Place, query: &Query) -> Value {
    if place.subresource == "portforward" {
        // A client that tunnels SPDY names them later.
        let ports = port_forward::ports(query).unwrap_or_default();
        return json!({"kind": "PodPortForwardOptions", "apiVersion": "v1", "ports": ports});
    }
    let kind = if place.subresource == "attach" { "PodAttachOptions" } else { "PodExecOptions" };
    let mut wanted = json!({"kind": kind, "apiVersion": "v1"});
    for flag in ["stdin", "stdout", "stderr", "tty"] {
        if query.is_true(flag) {
            wanted[flag] = true.into();
        }
    }
    if let Some(container) = query.get("container") {
        wanted["container"] = container.into();
    }
    if kind == "PodExecOptions" {
        wanted["command"] = query.all("command").collect();
    }
    wanted
}

async fn upgrade(head: &mut Parts, protocols: &[&'static str]) -> Result<WebSocketUpgrade, Status> {
    let upgrade = WebSocketUpgrade::from_request_parts(head, &()).await;
    let upgrade = upgrade.map_err(|_| Status::bad_request("Upgrade request required"))?;
    let upgrade = upgrade.protocols(protocols.iter().copied());
    if upgrade.selected_protocol().is_none() {
        let asked = upgrade.requested_protocols().filter_map(|protocol| protocol.to_str().ok());
        let asked: Vec<&str> = asked.collect();
        return Err(Status::bad_request(format!(
            "unable to upgrade: unable to negotiate protocol: client supports {asked:?}, server accepts {protocols:?}"
        )));
    }
    Ok(upgrade)
}

/// What a client wants of a container.
struct Order {
    pod: Key,
    container: String,
    command: Vec<String>,
    stdin: bool,
    tty: bool,
}

/// A message, or nothing if the client has left.
async fn send(socket: &mut WebSocket, channel: u8, bytes: &[u8]) -> Option<()> {
    let mut message = Vec::with_capacity(bytes.len() + 1);
    message.push(channel);
    message.extend_from_slice(bytes);
    socket.send(Message::Binary(message.into())).await.ok()
}

/// The next that the client sends on a channel; nothing once it has left.
async fn receive(socket: &mut WebSocket) -> Option<(u8, Vec<u8>)> {
    loop {
        match socket.recv().await?.ok()? {
            Message::Binary(bytes) => {
                let (channel, rest) = bytes.split_first()?;
                return Some((*channel, rest.to_vec()));
            }
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

/// Says how it ended and closes the connection.
async fn end(mut socket: WebSocket, outcome: Result<i32, Status>) {
    let status = match outcome {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(status) => {
            let mut status = status.to_json();
            if let Value::Object(fields) = &mut status {
                fields.remove("kind");
                fields.remove("apiVersion");
            }
            status
        }
    };
    if send(&mut socket, ERROR, status.to_string().as_bytes()).await.is_some() {
        // Clients take an end without this code for a broken connection.
        let normal = CloseFrame { code: close_code::NORMAL, reason: "".into() };
        let _ = socket.send(Message::Close(Some(normal))).await;
        // The client closes first; then nothing is lost on the way.
        let patience = std::time::Duration::from_secs(1);
        let _ = tokio::time::timeout(patience, async { while receive(&mut socket).await.is_some() {} }).await;
    }
}

/// Runs a command in the container; its two outputs come as one, as from a terminal.
async fn run(live: &Live, order: &Order, command: Vec<String>, input: Vec<u8>) -> Result<(String, i32), Status> {
    let (pod, container) = (order.pod.clone(), order.container.clone());
    let run = move |cluster: &mut Cluster| cluster.run_with_input(&pod, &container, &command, &input);
    let exec = live.ask(run).await.map_err(gone)??;
    Ok((exec.output, exec.code))
}

async fn exec(mut socket: WebSocket, live: &Live, order: Order) {
    if order.stdin && Terminal::is_shell(&order.command) {
        return shell(socket, live, order).await;
    }
    let mut input = Vec::new();
    if order.stdin && order.command.first().is_some_and(|program| program == "tar") {
        loop {
            match receive(&mut socket).await {
                Some((STDIN, bytes)) => input.extend(bytes),
                Some((CLOSE, bytes)) if bytes == [STDIN] => break,
                Some(_) => {}
                None => return,
            }
            if input.len() > INPUT_BYTES_MAX {
                return end(socket, Err(Status::bad_request("what is copied into a container is too large"))).await;
            }
        }
    }
    let is_tar = order.command.first().is_some_and(|program| program == "tar");
    if !is_tar {
        return follow(socket, live, order).await;
    }
    let outcome = match run(live, &order, order.command.clone(), input).await {
        Ok((output, code)) => {
            if !output.is_empty() && send(&mut socket, STDOUT, output.as_bytes()).await.is_none() {
                return;
            }
            Ok(code)
        }
        Err(status) => Err(status),
    };
    end(socket, outcome).await;
}

/// Lets a command go on as long as it does, and shows what it prints.
async fn follow(mut socket: WebSocket, live: &Live, order: Order) {
    let (pod, container, command) = (order.pod.clone(), order.container.clone(), order.command.clone());
    let input = if order.stdin { Input::open() } else { Input::closed("") };
    let begin = move |cluster: &mut Cluster| cluster.begin_in_container(&pod, &container, &command, input);
    let mut executing = match live.ask(begin).await.map_err(gone) {
        Ok(Ok(executing)) => executing,
        Ok(Err(status)) | Err(status) => return end(socket, Err(status)).await,
    };
    loop {
        let go_on = move |cluster: &mut Cluster| {
            let progress = cluster.go_on(&mut executing);
            (progress, executing)
        };
        let Ok((progress, moved)) = live.ask(go_on).await else { return };
        executing = moved;
        for (stream, text) in executing.take_printed() {
            let (channel, text) = match stream {
                _ if order.tty => (STDOUT, text.replace('\n', "\r\n")),
                Stream::Error => (STDERR, text),
                _ => (STDOUT, text),
            };
            if send(&mut socket, channel, text.as_bytes()).await.is_none() {
                return;
            }
        }
        let wait = match progress {
            Progress::Ended(code) => return end(socket, Ok(code)).await,
            Progress::Sleeps(time) => time.min(LOOK_AGAIN_MAX),
            Progress::Waits => LOOK_AGAIN_MAX,
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            typed = receive(&mut socket) => match typed {
                Some((STDIN, bytes)) if order.stdin => executing.type_in(&String::from_utf8_lossy(&bytes)),
                Some((CLOSE, bytes)) if bytes == [STDIN] => executing.close_input(),
                Some(_) => {}
                None => return,
            },
        }
    }
}

/// A shell that reads its commands from the client, line by line.
async fn shell(mut socket: WebSocket, live: &Live, order: Order) {
    let mut terminal = Terminal::new(order.tty);
    if send(&mut socket, STDOUT, terminal.prompt().as_bytes()).await.is_none() {
        return;
    }
    let mut last: Result<i32, Status> = Ok(0);
    'session: while let Some((channel, bytes)) = receive(&mut socket).await {
        let steps = match channel {
            STDIN => terminal.typed(&bytes),
            CLOSE if bytes == [STDIN] => vec![Step::End],
            _ => continue,
        };
        for step in steps {
            let text = match step {
                Step::Echo(text) => text,
                Step::End => break 'session,
                Step::Exit(code) => {
                    last = Ok(code.or(last.ok()).unwrap_or(0));
                    break 'session;
                }
                Step::Run(line) => match run(live, &order, vec!["sh".into(), "-c".into(), line], Vec::new()).await {
                    Ok((output, code)) => {
                        last = Ok(code);
                        terminal.shown(&output)
                    }
                    Err(status) => {
                        last = Err(status);
                        break 'session;
                    }
                },
            };
            if !text.is_empty() && send(&mut socket, STDOUT, text.as_bytes()).await.is_none() {
                return;
            }
        }
    }
    end(socket, last).await;
}

/// Shows what the container prints from now on, until it ends.
async fn attach(mut socket: WebSocket, live: &Live, order: Order) {
    let (pod, container) = (order.pod.clone(), order.container.clone());
    let begin = move |cluster: &mut Cluster| cluster.log(&pod, &container, &LogOptions::default());
    let begun = match live.ask(begin).await {
        Ok(begun) => begun,
        Err(lost) => Err(gone(lost)),
    };
    let mut cursor = match begun {
        Ok((_, Some(cursor))) => cursor,
        Ok((_, None)) => return end(socket, Err(Status::bad_request("pod does not have a host assigned"))).await,
        Err(status) => return end(socket, Err(status)).await,
    };
    loop {
        tokio::select! {
            () = tokio::time::sleep(std::time::Duration::from_millis(50)) => {}
            typed = receive(&mut socket) => match typed {
                // Nothing in a container reads what is typed.
                Some(_) => continue,
                None => return,
            },
        }
        let Ok((lines, goes_on, moved)) = pods::read(live, cursor).await else { return };
        cursor = moved;
        let text = LogOptions::default().text(&lines);
        if !text.is_empty() && send(&mut socket, STDOUT, text.as_bytes()).await.is_none() {
            return;
        }
        if !goes_on {
            return end(socket, Ok(0)).await;
        }
    }
}
