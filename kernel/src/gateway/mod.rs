//! `kernetes serve`: the Kubernetes API over HTTPS, in front of a cluster that lives by the wall clock. Here bytes
//! become requests and responses bytes; what is granted and what it means the apiserver decides.
//!
//! The way of a request, in the order of the modules: `server` (connections, TLS) → `handle` → `authenticate` →
//! `authorize`, `route`, `query`, `accept`, `body` → `live` (the cluster's thread) → `answer`, or `stream` for a watch.
//! Logs leave it for `pods`, and what a connection is kept open for (exec, attach, port-forward) for `channels`.

mod accept;
mod answer;
mod authenticate;
mod authorize;
mod body;
mod channels;
mod documents;
mod handle;
mod kubeconfig;
mod live;
mod metrics;
mod openapi;
mod order;
mod pods;
mod port_forward;
mod protobuf;
mod proxy;
mod query;
pub mod raw;
mod route;
pub mod server;
mod spdy;
mod stream;
mod terminal;
mod tls;
mod webhooks;

use std::net::SocketAddr;
use std::path::PathBuf;

use cluster_core::world::Settings;
use cluster_core::{Cluster, Config};

use crate::exit::{Answer, Failure, Outcome};
pub use answer::deprecation;
pub use handle::{Gateway, handle};
pub use live::Live;
pub use protobuf::field_order;

const COMPONENTS: &[&str] = &["kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"];

/// Serve the cluster as a Kubernetes API server over HTTPS, live
#[derive(clap::Args)]
pub struct Serve {
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Write a kubeconfig there once the server answers
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    nodes: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Virtual seconds that pass in a second
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// How long sandboxes, images and containers take to start, as a share of what they take in a notebook
    #[arg(long, default_value_t = 0.05, value_name = "SHARE")]
    start_latency: f64,
    /// Components that are not started
    #[arg(long, value_delimiter = ',', value_name = "COMPONENT,…", value_parser = clap::builder::PossibleValuesParser::new(COMPONENTS))]
    without: Vec<String>,
}

impl Serve {
    pub fn start(self) -> Outcome {
        if !(self.speed.is_finite() && self.speed > 0.0) {
            return Err(Failure::Usage(format!("--speed {}: expected a number above 0", self.speed)));
        }
        if !(self.start_latency.is_finite() && self.start_latency >= 0.0) {
            let what = format!("--start-latency {}: expected a number, 0 or above", self.start_latency);
            return Err(Failure::Usage(what));
        }
        let config = Config {
            seed: self.seed,
            nodes: self.nodes,
            settings: Settings::default().with_start_latency(self.start_latency),
            hollow_nodes: true,
            images: false,
            start: crate::wall_clock::now(),
            without: self.without.clone(),
            signer: Some(crate::token_signer::unguessable()),
            authority: Some(crate::token_signer::unguessable()),
        };
        let fault = |what: &str, error: &dyn std::fmt::Display| Failure::Fault(format!("{what}: {error}"));
        let mut cluster = Cluster::new(config);
        cluster.set_webhooks(std::sync::Arc::new(webhooks::Http));
        let live = Live::start(cluster, self.speed).map_err(|error| fault("no thread", &error))?;
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| fault("cannot start the event loop", &error))?
            .block_on(self.serve(live))?;
        Ok(Answer::Yes)
    }

    async fn serve(self, live: Live) -> Result<(), Failure> {
        let server = server::Server::bind(self.listen, live)
            .await
            .map_err(|error| Failure::Fault(format!("cannot listen at {}: {error}", self.listen)))?;
        if let Some(path) = &self.kubeconfig_out {
            kubeconfig::write(path, &server.kubeconfig())
                .map_err(|error| Failure::Fault(format!("cannot write {}: {error}", path.display())))?;
        }
        // Whoever has read this line finds a server that listens, and the kubeconfig.
        println!("{}", server.url());
        tokio::select! {
            () = server.run() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod concurrency;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod scheduler;
