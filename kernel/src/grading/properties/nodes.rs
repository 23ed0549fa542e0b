//! `nodes: {ready: 3}`: so many nodes are Ready and take new Pods, and no machine is off.

use cluster_core::Cluster;
use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;

use super::Property;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    ready: usize,
}

impl Property for Nodes {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        if let Some((name, _)) = cluster.machines().find(|(_, machine)| !machine.powered) {
            return Err(Words::new(format!("{name} の電源が切れている"), format!("{name} has no power")));
        }
        let nodes = cluster.list::<Node>("").filter(|node| {
            node.spec::<Node>().unschedulable != Some(true)
                && node.status::<Node>().conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
        });
        let ready = nodes.count();
        if ready == self.ready {
            return Ok(());
        }
        Err(Words::new(format!("使えるノードは{ready}台"), format!("{ready} nodes can be used")))
    }
}
