//! `emptied: node-1`: no new Pods come to the node, and only those of DaemonSets are on it.

use cluster_core::Cluster;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde::Deserialize;

use super::Property;
use crate::grading::objects::controller;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Emptied {
    node: String,
}

impl Property for Emptied {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let node = self.node.as_str();
        let is_closed = cluster.get::<Node>("", node).map(|node| node.spec::<Node>().unschedulable == Some(true));
        if is_closed == Some(false) {
            return Err(Words::new(format!("{node} に新しいPodが来られる"), format!("new Pods may come to {node}")));
        }
        let stays = cluster.list::<Pod>("default").find(|pod| {
            let owner = controller(cluster, pod).map(|owner| &*owner.kind.kind);
            pod.spec::<Pod>().node_name.as_deref() == Some(node) && owner != Some("DaemonSet")
        });
        match stays {
            Some(pod) => {
                let name = &pod.key.name;
                Err(Words::new(format!("{node} に pod/{name} がいる"), format!("pod/{name} is on {node}")))
            }
            None => Ok(()),
        }
    }
}
