//! Connections to the ports of a pod, in one of two protocols: two channels a port, the even one for what travels and the
//! odd one for what fails; or SPDY in the WebSocket, with two such streams for each connection, as kubectl speaks.
//! <https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4006-transition-spdy-to-websockets>

use std::collections::BTreeMap;
use std::io;

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
use super::spdy::{self, Frame, Spdy};

/// The protocol of a WebSocket that carries SPDY.
pub const SPDY_PROTOCOL: &str = "SPDY/3.1+portforward.k8s.io";

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

/// What comes back over a connection to a port.
enum Said {
    Bytes(Vec<u8>),
    Failed(String),
    Ended,
}

/// The number of a connection, and what came over it.
type Telling = (u32, Said);

/// Carries bytes between the client and the pod until the client leaves, over channels.
pub async fn serve(mut socket: WebSocket, live: Live, pod: Key, ports: Vec<u16>) {
    let (tell, mut told) = mpsc::channel::<Telling>(MESSAGES_MAX);
    let mut ways: BTreeMap<u32, WriteHalf<DuplexStream>> = BTreeMap::new();
    for (index, port) in ports.into_iter().enumerate() {
        let Ok(data) = u8::try_from(index * 2) else { break };
        // Each channel begins with the port that it is for.
        for channel in [data, data + 1] {
            let [low, high] = port.to_le_bytes();
            if socket.send(Message::Binary(vec![channel, low, high].into())).await.is_err() {
                return;
            }
        }
        ways.insert(data.into(), connect(data.into(), port, &live, &pod, &tell));
    }
    let mut open = ways.len();
    loop {
        tokio::select! {
            Some((data, said)) = told.recv() => {
                let (channel, bytes) = match said {
                    Said::Bytes(bytes) => (data, bytes),
                    Said::Failed(text) => (data + 1, text.into_bytes()),
                    Said::Ended => {
                        open -= 1;
                        if open > 0 {
                            continue;
                        }
                        // With the last connection ends what the client came for.
                        return close(&mut socket, close_code::NORMAL, "").await;
                    }
                };
                let message = [&[channel as u8], bytes.as_slice()].concat();
                if socket.send(Message::Binary(message.into())).await.is_err() {
                    return;
                }
            }
            received = socket.recv() => {
                let Some(Ok(message)) = received else { return };
                let Message::Binary(bytes) = message else { continue };
                if let Some((channel, bytes)) = bytes.split_first() {
                    write(&mut ways, u32::from(*channel), bytes).await;
                }
            }
        }
    }
}

async fn close(socket: &mut WebSocket, code: u16, reason: &str) {
    let _ = socket.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await;
}

/// Writes to a connection; one that takes nothing more is dropped.
async fn write(ways: &mut BTreeMap<u32, WriteHalf<DuplexStream>>, way: u32, bytes: &[u8]) {
    if let Some(open) = ways.get_mut(&way)
        && open.write_all(bytes).await.is_err()
    {
        ways.remove(&way);
    }
}

/// Carries bytes between the client and the pod until the client leaves, over SPDY.
pub async fn serve_spdy(mut socket: WebSocket, live: Live, pod: Key) {
    let (tell, mut told) = mpsc::channel::<Telling>(MESSAGES_MAX);
    let mut tunnel = Tunnel { live, pod, tell, spdy: Spdy::new(), open: BTreeMap::new(), unpaired: BTreeMap::new() };
    loop {
        let frames = tokio::select! {
            Some((stream, said)) = told.recv() => tunnel.told(stream, said),
            received = socket.recv() => match received {
                Some(Ok(Message::Binary(bytes))) => match tunnel.hear(&bytes).await {
                    Ok(Some(frames)) => frames,
                    Ok(None) => return close(&mut socket, close_code::NORMAL, "").await,
                    Err(fault) => return close(&mut socket, close_code::PROTOCOL, &fault).await,
                },
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
        };
        if !frames.is_empty() && socket.send(Message::Binary(frames.into())).await.is_err() {
            return;
        }
    }
}

/// The connections of one client.
struct Tunnel {
    live: Live,
    pod: Key,
    tell: mpsc::Sender<Telling>,
    spdy: Spdy,
    /// By their streams of data.
    open: BTreeMap<u32, Connection>,
    /// Streams for what fails whose stream of data has not come yet, by the number that the client gives to both.
    unpaired: BTreeMap<String, u32>,
}

struct Connection {
    way: WriteHalf<DuplexStream>,
    failures: Option<u32>,
}

impl Tunnel {
    /// What the client sent; the frames that answer it, or nothing if it leaves.
    ///
    /// # Errors
    /// What is no SPDY.
    async fn hear(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let mut frames = Vec::new();
        self.spdy.receive(bytes);
        while let Some(frame) = self.spdy.next()? {
            match frame {
                Frame::Open { stream, headers } => frames.append(&mut self.connect(stream, &headers)),
                Frame::Data { stream, bytes, is_last } => {
                    if let Some(connection) = self.open.get_mut(&stream) {
                        // What takes nothing more has ended, and says so itself.
                        let _ = connection.way.write_all(&bytes).await;
                        if is_last {
                            let _ = connection.way.shutdown().await;
                        }
                    }
                }
                Frame::Reset { stream } => drop(self.open.remove(&stream)),
                Frame::Ping { id } => frames.append(&mut spdy::pong(id)),
                Frame::GoAway => return Ok(None),
            }
        }
        Ok(Some(frames))
    }

    fn connect(&mut self, stream: u32, headers: &BTreeMap<String, String>) -> Vec<u8> {
        let header = |name: &str| headers.get(name).map(String::as_str).unwrap_or_default();
        let pair = header("requestid");
        match (header("streamtype"), header("port").parse().ok().filter(|port: &u16| *port > 0)) {
            ("error", Some(_)) => drop(self.unpaired.insert(pair.to_owned(), stream)),
            ("data", Some(port)) => {
                let way = connect(stream, port, &self.live, &self.pod, &self.tell);
                self.open.insert(stream, Connection { way, failures: self.unpaired.remove(pair) });
            }
            _ => return spdy::reset(stream),
        }
        self.spdy.reply(stream)
    }

    /// The frames that say what came over a connection.
    fn told(&mut self, stream: u32, said: Said) -> Vec<u8> {
        let failures = self.open.get(&stream).and_then(|connection| connection.failures);
        match said {
            Said::Bytes(bytes) => spdy::data(stream, &bytes),
            Said::Failed(text) => failures.map(|failures| spdy::data(failures, text.as_bytes())).unwrap_or_default(),
            Said::Ended => {
                self.open.remove(&stream);
                [Some(stream), failures].into_iter().flatten().flat_map(spdy::last).collect()
            }
        }
    }
}

/// A connection to a port: what is written to it is answered by the container's program.
fn connect(number: u32, port: u16, live: &Live, pod: &Key, tell: &mpsc::Sender<Telling>) -> WriteHalf<DuplexStream> {
    let (near, far) = tokio::io::duplex(BUFFER_BYTES);
    let (mut read, write) = tokio::io::split(near);
    let (live, pod, failed) = (live.clone(), pod.clone(), tell.clone());
    tokio::spawn(async move {
        let service = service_fn(move |request: Request<hyper::body::Incoming>| {
            let (live, pod, failed) = (live.clone(), pod.clone(), failed.clone());
            async move {
                let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
                match ask(&live, pod, port, path).await {
                    Ok(response) => Ok(response),
                    Err(status) => {
                        let _ = failed.send((number, Said::Failed(status.message.clone()))).await;
                        // Nobody listens: the connection ends without an answer.
                        Err(io::Error::other(status.message))
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
        while let Ok(length @ 1..) = read.read(&mut buffer).await {
            if tell.send((number, Said::Bytes(buffer[..length].to_vec()))).await.is_err() {
                return;
            }
        }
        let _ = tell.send((number, Said::Ended)).await;
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
