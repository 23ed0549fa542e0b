//! Connections to the ports of a pod: two channels a port, the even one for what travels, the odd one for what fails.

use std::collections::BTreeMap;
use std::convert::Infallible;

use axum::body::Body;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use axum::http::{Request, Response, StatusCode, header};
use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::status::Status;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, WriteHalf};
use tokio::sync::mpsc;

use super::handle::gone;
use super::live::Live;
use super::query::Query;

/// Bytes that may be on their way to a container, or from it.
const BUFFER_BYTES: usize = 64 * 1024;
const MESSAGES_MAX: usize = 16;

/// The ports that a client names, each once or several with commas between them.
///
/// # Errors
/// 400 if there are none, or one is no port.
pub fn ports(query: &Query) -> Result<Vec<u16>, Status> {
    let words: Vec<&str> =
        query.all("ports").flat_map(|list| list.split(',')).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(Status::bad_request("query parameter \"port\" is required"));
    }
    let port = |word: &&str| word.parse::<u16>().ok().filter(|port| *port > 0);
    let refused = |word: &str| Status::bad_request(format!("port {word:?} must be > 0 and < 65536"));
    words.iter().map(|word| port(word).ok_or_else(|| refused(word))).collect()
}

/// Carries bytes between the client and the pod until the client leaves.
pub async fn serve(mut socket: WebSocket, live: Live, pod: Key, ports: Vec<u16>) {
    let (tell, mut told) = mpsc::channel::<Vec<u8>>(MESSAGES_MAX);
    let mut ways: BTreeMap<u8, WriteHalf<DuplexStream>> = BTreeMap::new();
    for (index, port) in ports.into_iter().enumerate() {
        let Ok(data) = u8::try_from(index * 2) else { break };
        // Each channel begins with the port that it is for.
        for channel in [data, data + 1] {
            let [low, high] = port.to_le_bytes();
            if socket.send(Message::Binary(vec![channel, low, high].into())).await.is_err() {
                return;
            }
        }
        ways.insert(data, connect(data, port, &live, &pod, &tell));
    }
    drop(tell);
    loop {
        tokio::select! {
            message = told.recv() => match message {
                Some(message) => {
                    if socket.send(Message::Binary(message.into())).await.is_err() {
                        return;
                    }
                }
                // Every connection has ended, and with them what the client came for.
                None => {
                    let normal = CloseFrame { code: close_code::NORMAL, reason: "".into() };
                    let _ = socket.send(Message::Close(Some(normal))).await;
                    return;
                }
            },
            received = socket.recv() => {
                let Some(Ok(message)) = received else { return };
                let Message::Binary(bytes) = message else { continue };
                if let Some((channel, bytes)) = bytes.split_first()
                    && let Some(way) = ways.get_mut(channel)
                    && way.write_all(bytes).await.is_err()
                {
                    ways.remove(channel);
                }
            }
        }
    }
}

/// A connection to a port: what is written to it is answered, by the container's program, on a channel.
fn connect(channel: u8, port: u16, live: &Live, pod: &Key, tell: &mpsc::Sender<Vec<u8>>) -> WriteHalf<DuplexStream> {
    let (near, far) = tokio::io::duplex(BUFFER_BYTES);
    let (mut read, write) = tokio::io::split(near);
    let (live, pod, failed) = (live.clone(), pod.clone(), tell.clone());
    tokio::spawn(async move {
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let (live, pod, failed) = (live.clone(), pod.clone(), failed.clone());
            async move {
                let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
                match ask(&live, pod, port, path).await {
                    Ok(response) => Ok::<_, Infallible>(response),
                    Err(status) => {
                        let mut message = vec![channel + 1];
                        message.extend_from_slice(status.message.as_bytes());
                        let _ = failed.send(message).await;
                        let mut response = Response::new(Body::from(status.message));
                        *response.status_mut() = StatusCode::BAD_GATEWAY;
                        Ok(response)
                    }
                }
            }
        });
        // How the connection ends is its client's affair.
        let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(far), service).await;
    });
    let tell = tell.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; BUFFER_BYTES];
        buffer[0] = channel;
        while let Ok(length @ 1..) = read.read(&mut buffer[1..]).await {
            if tell.send(buffer[..=length].to_vec()).await.is_err() {
                return;
            }
        }
    });
    write
}

async fn ask(live: &Live, pod: Key, port: u16, path: String) -> Result<Response<Body>, Status> {
    let ask = move |cluster: &mut Cluster| cluster.ask_port(&pod, port, &path);
    let answer = live.ask(ask).await.map_err(gone)??;
    let mut response = Response::new(Body::from(answer.body));
    // A program that does not speak HTTP has status 0.
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/html"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbers() {
        let ports = |query: &str| super::ports(&Query::parse(Some(query))).map_err(|status| status.message);
        assert_eq!(ports("ports=80,443&ports=8080"), Ok(vec![80, 443, 8080]));
        assert_eq!(ports("ports=http"), Err("port \"http\" must be > 0 and < 65536".into()));
        assert!(ports("").is_err());
    }
}
