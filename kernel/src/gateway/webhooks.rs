//! Calls webhooks over HTTP and HTTPS, for a cluster that has no network of its own.
//! <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#contacting-the-webhook>

use std::io;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, Uri, header};
use cluster_core::apiserver::callouts::{Call, Webhooks, refused};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A webhook that says more is broken.
const ANSWER_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Makes the calls one by one; each blocks the caller, at most for its timeout. Only certificates of the `caBundle` are
/// trusted.
pub struct Http;

impl Webhooks for Http {
    fn call(&self, call: &Call) -> Result<Value, String> {
        // The caller may be a thread of an event loop, which must not wait in another one.
        std::thread::scope(|scope| scope.spawn(|| post(call)).join()).unwrap_or_else(|_| Err("the call broke".into()))
    }
}

fn post(call: &Call) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let answer = runtime.block_on(async { tokio::time::timeout(call.timeout, send(call)).await });
    answer.unwrap_or_else(|_| Err("context deadline exceeded".into()))
}

async fn send(call: &Call) -> Result<Value, String> {
    let uri: Uri = call.url.parse().map_err(|error| format!("{error}"))?;
    let host = uri.host().ok_or("no Host in request URL")?;
    let is_secure = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
    let bare = host.trim_matches(['[', ']']);
    let stream = TcpStream::connect((bare, port)).await.map_err(|error| dialled(host, port, &error))?;
    if !is_secure {
        return exchange(stream, &uri, call).await;
    }
    let name = ServerName::try_from(bare.to_owned()).map_err(|error| error.to_string())?;
    let secured = connector(&call.ca_bundle)?.connect(name, stream).await;
    let stream = secured.map_err(|error| format!("tls: failed to verify certificate: {error}"))?;
    exchange(stream, &uri, call).await
}

fn connector(ca_bundle: &[u8]) -> Result<TlsConnector, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_bundle) {
        let certificate = certificate.map_err(|error| format!("caBundle: {error}"))?;
        roots.add(certificate).map_err(|error| format!("caBundle: {error}"))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// As Go tells of a connection that was not made.
fn dialled(host: &str, port: u16, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("dial tcp {host}:{port}: connect: connection refused"),
        io::ErrorKind::TimedOut => format!("dial tcp {host}:{port}: i/o timeout"),
        _ if error.raw_os_error().is_none() => format!("dial tcp: lookup {host}: no such host"),
        _ => format!("dial tcp {host}:{port}: {error}"),
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    uri: &Uri,
    call: &Call,
) -> Result<Value, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| told(&error))?;
    tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::post(path)
        .header(header::HOST, uri.authority().map_or("", |authority| authority.as_str()))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .body(Body::from(call.review.to_string()))
        .map_err(|error| told(&error))?;
    let response = sender.send_request(request).await.map_err(|error| told(&error))?;
    let status = response.status();
    let bytes = to_bytes(Body::new(response.into_body()), ANSWER_BYTES_MAX).await.map_err(|error| told(&error))?;
    if status.is_success() {
        return serde_json::from_slice(&bytes).map_err(|error| format!("couldn't read the answer: {error}"));
    }
    Err(refused(status.as_u16(), &String::from_utf8_lossy(&bytes)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn call(url: String) -> Call {
        Call { url, ca_bundle: Vec::new(), timeout: Duration::from_secs(5), review: json!({"question": 1}) }
    }

    #[test]
    fn a_webhook_is_asked_and_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let program = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            while !String::from_utf8_lossy(&asked).contains("\"question\":1}") {
                let mut part = [0; 1024];
                let length = stream.read(&mut part).unwrap();
                asked.extend_from_slice(&part[..length]);
            }
            let answer = r#"{"answer":2}"#;
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        let answer = Http.call(&call(format!("http://127.0.0.1:{port}/check?timeout=5s"))).unwrap();
        assert_eq!(answer, json!({"answer": 2}));
        assert!(program.join().unwrap().starts_with("POST /check?timeout=5s HTTP/1.1\r\n"));
    }

    #[test]
    fn nobody_there_is_told_as_go_tells_it() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let error = Http.call(&call(format!("https://127.0.0.1:{free}/"))).unwrap_err();
        assert_eq!(error, format!("dial tcp 127.0.0.1:{free}: connect: connection refused"));
    }
}
