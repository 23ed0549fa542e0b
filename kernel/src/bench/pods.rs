//! 10,000 pods on 1,000 nodes, brought to Ready with every component on.

use std::time::Duration;

use cluster_core::api::kind::KindRef;
use cluster_core::api::object::Object;
use cluster_core::api::request::Request;
use cluster_core::{Cluster, Config};
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Map, Value, json};

use super::{peak_rss_mib, rounded, timed};

/// A cluster with a settled Deployment, and how long the Deployment took.
pub fn cluster(nodes: usize, replicas: i32) -> Result<(Cluster, Duration), String> {
    let mut cluster = Cluster::new(Config { nodes, ..Config::default() });
    cluster.settle(Duration::from_secs(60), |_| true);
    let deployment = json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "progressDeadlineSeconds": 36000,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{
                    "name": "web", "image": "nginx:1.27", "ports": [{"containerPort": 80}],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                }]},
            },
        },
    });
    let deployment = Object::from_json(KindRef::of::<Deployment>(), deployment).map_err(|error| error.message)?;
    let (result, wall) = timed(|| {
        cluster.request(Request::create(&"bench".into(), deployment)).map_err(|status| status.message)?;
        let ready = |cluster: &Cluster| {
            let web = cluster.get::<Deployment>("default", "web");
            web.and_then(|web| web.status::<Deployment>().ready_replicas).unwrap_or(0)
        };
        let deadline = cluster.now() + Duration::from_secs(36_000);
        while ready(&cluster) < replicas {
            for _ in 0..64 {
                if !cluster.step_before(deadline) {
                    return Err(format!("{} of {replicas} pods are ready after ten virtual hours", ready(&cluster)));
                }
            }
        }
        Ok(())
    });
    result.map(|()| (cluster, wall))
}

pub fn run() -> Result<Map<String, Value>, String> {
    let replicas = 10_000;
    let (cluster, wall) = cluster(1000, replicas)?;
    Ok(Map::from_iter([
        ("pods_per_s".into(), rounded(f64::from(replicas) / wall.as_secs_f64())),
        ("wall_s".into(), rounded(wall.as_secs_f64())),
        ("virtual_s".into(), rounded(cluster.now().as_secs_f64())),
        ("peak_rss_mib".into(), peak_rss_mib()),
    ]))
}
