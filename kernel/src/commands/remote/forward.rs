//! Ports of this machine that lead to those of a pod: a connection through the server for each that comes in.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::commands::api::{Forward, Write};

const WAITING_MAX: usize = 64;

/// Listens until nothing can come in any more.
///
/// # Errors
/// Why not one of the addresses could be listened on.
pub async fn forward(
    pods: &Api<Pod>,
    pod: &str,
    hosts: &[String],
    ways: &[Forward],
    write: Write<'_>,
) -> Result<(), String> {
    let (tell, mut told) = mpsc::channel(WAITING_MAX);
    for way in ways {
        let mut problem = None;
        let mut local = way.local;
        let mut opened = false;
        for host in hosts {
            match TcpListener::bind(format!("{host}:{local}")).await {
                Ok(listener) => {
                    let at = listener.local_addr().map_err(|error| error.to_string())?;
                    (local, opened) = (at.port(), true);
                    write(&format!("Forwarding from {at} -> {}\n", way.remote));
                    tokio::spawn(accept(listener, *way, tell.clone()));
                }
                Err(error) => problem = Some(error),
            }
        }
        if let (false, Some(problem)) = (opened, problem) {
            return Err(format!("unable to listen on port {}: {problem}", way.local));
        }
    }
    drop(tell);
    while let Some((stream, way)) = told.recv().await {
        write(&format!("Handling connection for {}\n", way.local));
        let (pods, pod) = (pods.clone(), pod.to_owned());
        tokio::spawn(async move {
            // A connection that ends ends for both sides; why is theirs to know.
            let _ = carry(&pods, &pod, stream, way.remote).await;
        });
    }
    Ok(())
}

async fn accept(listener: TcpListener, way: Forward, tell: mpsc::Sender<(TcpStream, Forward)>) {
    let local = listener.local_addr().map_or(way.local, |at| at.port());
    while let Ok((stream, _)) = listener.accept().await {
        if tell.send((stream, Forward { local, ..way })).await.is_err() {
            return;
        }
    }
}

async fn carry(pods: &Api<Pod>, pod: &str, mut stream: TcpStream, port: u16) -> Option<()> {
    let mut forwarder = pods.portforward(pod, &[port]).await.ok()?;
    let mut remote = forwarder.take_stream(port)?;
    tokio::io::copy_bidirectional(&mut stream, &mut remote).await.ok()?;
    Some(())
}
