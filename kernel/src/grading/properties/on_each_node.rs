//! `on-each-node: {labels: app=agent}`: one Ready Pod with these labels on every node that has no taint against new Pods, none
//! anywhere else.

use std::collections::BTreeMap;

use cluster_core::Cluster;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde::Deserialize;

use super::Property;
use crate::grading::objects::{Labelled, is_ready};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnEachNode {
    labels: Labelled,
}

impl Property for OnEachNode {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for node in cluster.list::<Node>("") {
            let is_open = node.spec::<Node>().taints.iter().flatten().all(|taint| taint.effect == "PreferNoSchedule");
            counts.insert(node.key.name.to_string(), (usize::from(is_open), 0));
        }
        for pod in self.labels.pods(cluster) {
            let node = pod.spec::<Pod>().node_name.clone().filter(|_| is_ready(pod)).unwrap_or_default();
            counts.entry(node).or_default().1 += 1;
        }
        let Some((node, (wanted, found))) = counts.iter().find(|(_, (wanted, found))| wanted != found) else {
            return Ok(());
        };
        if node.is_empty() {
            let found = found.to_string();
            return Err(Words::new(format!("ReadyでないPodが{found}個"), format!("{found} Pods are not Ready")));
        }
        Err(Words::new(
            format!("{node} に{found}個（いるはずは{wanted}個）"),
            format!("{found} on {node}, where {wanted} should be"),
        ))
    }
}
