//! Connections: TLS, HTTP/1.1 and HTTP/2, and the limits that keep a slow or hostile client from stopping the others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tower_http::compression::{CompressionLayer, Predicate};

use super::handle::{Gateway, handle};
use super::live::Live;
use super::{kubeconfig, tls};

const CONNECTIONS_MAX: usize = 1000;
/// A client that has not shaken hands, or sent the head of its request, within this time is let go.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
const HEAD_MAX: Duration = Duration::from_secs(30);
/// Requests that one HTTP/2 connection may have open.
const STREAMS_MAX: u32 = 250;
/// Answers beyond this are compressed on request, as kube-apiserver does.
const COMPRESSED_BYTES_MIN: u64 = 128 * 1024;

pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    identity: tls::Identity,
    gateway: Arc<Gateway>,
}

impl Server {
    /// # Errors
    /// The address can't be bound, or no certificate can be made.
    pub async fn bind(listen: SocketAddr, live: Live) -> Result<Server, String> {
        let listener = TcpListener::bind(listen).await.map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let issuer = live.ask(|cluster| cluster.certificate_authority()).await;
        let identity = tls::identity(address.ip(), issuer.ok().flatten())?;
        let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        let gateway = Arc::new(Gateway::new(live, token));
        Ok(Server { listener, address, identity, gateway })
    }

    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() {
                std::net::Ipv4Addr::LOCALHOST.into()
            } else {
                std::net::Ipv6Addr::LOCALHOST.into()
            });
        }
        format!("https://{address}")
    }

    /// The administrator's token.
    pub fn token(&self) -> &str {
        &self.gateway.credentials.token
    }

    pub fn kubeconfig(&self) -> String {
        kubeconfig::text(&self.url(), &self.identity, &self.gateway.credentials.token)
    }

    /// Accepts connections for ever.
    pub async fn run(self) {
        let compression = CompressionLayer::new().compress_when(is_large());
        let router = Router::new()
            .fallback(|State(gateway): State<Arc<Gateway>>, request: Request| handle(gateway, request))
            .layer(compression)
            .with_state(self.gateway);
        let acceptor = TlsAcceptor::from(self.identity.server);
        let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(permit) = permits.clone().acquire_owned().await else { return };
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(_) => {
                    // Out of file handles, most likely: others will be closed.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let (acceptor, router) = (acceptor.clone(), router.clone());
            tokio::spawn(async move {
                converse(stream, &acceptor, router).await;
                drop(permit);
            });
        }
    }
}

async fn converse(stream: TcpStream, acceptor: &TlsAcceptor, router: Router) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await else { return };
    // A certificate that the handshake let pass says who asks, for all of the connection.
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let router = match certificate.and_then(|certificate| tls::user_of(certificate)) {
        Some(user) => router.layer(Extension(Arc::new(user))),
        None => router,
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_MAX).keep_alive_interval(HEAD_MAX);
    // How a connection ends is the client's affair.
    let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}

/// Watches, whose length nobody knows, are never compressed: an event must not wait for others.
fn is_large() -> impl Predicate + Copy {
    #[derive(Clone, Copy)]
    struct Large;
    impl Predicate for Large {
        fn should_compress<B: http_body::Body>(&self, response: &axum::http::Response<B>) -> bool {
            response.body().size_hint().exact().is_some_and(|bytes| bytes > COMPRESSED_BYTES_MIN)
        }
    }
    Large
}
