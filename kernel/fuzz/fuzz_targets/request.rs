//! Any request is answered, and a refusal changes nothing. The first line of an input is method, path and media type, the
//! rest is the body: `POST /api/v1/namespaces/default/pods application/json`.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use cluster_core::{Cluster, Config};
use kernetes::gateway::{Gateway, Live, handle};
use libfuzzer_sys::fuzz_target;

/// Each input meets the same cluster.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let without = ["kube-controller-manager", "kube-scheduler"].map(str::to_owned).to_vec();
    Cluster::new(Config { nodes: 0, without, ..Config::default() })
});

fn request(input: &[u8]) -> Option<Request<Body>> {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let mut words = std::str::from_utf8(&input[..end]).ok()?.split(' ');
    let body = input.get(end + 1..).unwrap_or_default().to_vec();
    let request = Request::builder().method(words.next()?).uri(words.next()?).header("Authorization", "Bearer t");
    request.header("Content-Type", words.next().unwrap_or("application/json")).body(Body::from(body)).ok()
}

async fn answer(request: Request<Body>) {
    let live = Live::start(CLUSTER.clone(), 1.0).expect("a thread");
    let gateway = Arc::new(Gateway::new(live.clone(), "t".into()));
    let before = live.ask(|cluster| cluster.revision()).await.expect("a cluster");
    let answer = tokio::time::timeout(Duration::from_secs(10), handle(gateway, request)).await.expect("an answer");
    let after = live.ask(|cluster| cluster.revision()).await.expect("a cluster that goes on");
    if !answer.status().is_success() {
        assert_ne!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "the request ended in a panic");
        assert_eq!(before, after, "a refusal that changes something");
        to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
    }
}

fuzz_target!(|input: &[u8]| {
    if let Some(request) = request(input) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(answer(request));
    }
});
