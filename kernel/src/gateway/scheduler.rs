//! A second scheduler: a client from outside that does kube-scheduler's work over HTTPS.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/configure-multiple-schedulers/>

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::Request;
use cluster_core::world::Settings;
use cluster_core::{Cluster, Config};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::{Live, server::Server};

/// A client of a cluster without a scheduler of its own.
async fn client() -> Client {
    let settings = Settings::default().with_start_latency(0.0);
    let cluster = Cluster::new(Config { without: vec!["kube-scheduler".into()], settings, ..Config::default() });
    let server = Server::bind(([127, 0, 0, 1], 0).into(), Live::start(cluster, 10.0).unwrap()).await.unwrap();
    let mut config = kube::Config::new(server.url().parse().unwrap());
    config.auth_info.token = Some(server.token().to_owned().into());
    config.accept_invalid_certs = true;
    tokio::spawn(server.run());
    Client::try_from(config).unwrap()
}

/// All of a scheduler: each pod without a node is bound to the node whose turn it is.
async fn take_turns(client: Client) -> kube::Result<()> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    let mut turns = nodes.items.iter().map(ResourceExt::name_any).cycle();
    let pods = Api::<Pod>::all(client.clone());
    let waiting = WatchParams::default().fields("spec.nodeName=");
    let mut events = pods.watch(&waiting, "0").await?.boxed();
    while let Some(event) = events.try_next().await? {
        if let (WatchEvent::Added(pod), Some(node)) = (event, turns.next()) {
            let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
            let binding = json!({
                "apiVersion": "v1", "kind": "Binding",
                "metadata": {"name": name}, "target": {"kind": "Node", "name": node},
            });
            let request = Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/binding"));
            let request = request.header("Content-Type", "application/json").body(binding.to_string().into_bytes());
            client.request::<Value>(request.unwrap()).await?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_from_outside_makes_the_cluster_whole() {
    let client = client().await;
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    let available = || async {
        let deployment = deployments.get("web").await.unwrap();
        deployment.status.and_then(|status| status.available_replicas).unwrap_or(0)
    };
    while pods.list(&ListParams::default()).await.unwrap().items.len() < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(available().await, 0, "nobody has bound them");

    tokio::spawn(take_turns(client));
    let whole = async {
        while available().await < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), whole).await.expect("all pods run within 20 s");
    let pods = pods.list(&ListParams::default()).await.unwrap();
    let nodes: BTreeSet<_> = pods.items.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
    assert_eq!(nodes.into_iter().collect::<Vec<_>>(), ["node-1", "node-2", "node-3"]);
}
