//! `fits: {}`: the Pods of no node request more cores together than it has.

use std::collections::BTreeMap;

use cluster_core::Cluster;
use cluster_core::api::quantity;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use serde::Deserialize;

use super::Property;
use super::requests::millis;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fits {}

impl Property for Fits {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let mut asked: BTreeMap<&str, i64> = BTreeMap::new();
        for namespace in cluster.list::<Namespace>("") {
            for pod in cluster.list::<Pod>(&namespace.key.name) {
                let is_over = matches!(pod.status::<Pod>().phase.as_deref(), Some("Succeeded" | "Failed"));
                if let Some(node) = pod.spec::<Pod>().node_name.as_deref().filter(|_| !is_over) {
                    *asked.entry(node).or_default() += millis(pod);
                }
            }
        }
        for (node, asked) in asked {
            let status = cluster.get::<Node>("", node).and_then(|node| node.status::<Node>().allocatable.as_ref());
            let has = status.and_then(|all| all.get("cpu")).map_or(0, quantity::millis);
            if asked > has {
                return Err(Words::same(format!("{node}: requests.cpu {asked}m > allocatable {has}m")));
            }
        }
        Ok(())
    }
}
