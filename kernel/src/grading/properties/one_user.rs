//! `one-user: {claim: data-db-0}`: by the record, never have containers of two Pods that mount this claim run at the same time.

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::trace::{ContainerPhase, What};
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::Property;
use crate::grading::words::Words;

const NAMESPACE: &str = "default";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneUser {
    claim: String,
}

impl Property for OneUser {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let mut users: BTreeSet<&str> = BTreeSet::new();
        // Of each Pod that runs, its node and how many of its containers.
        let mut running: BTreeMap<&str, (&str, i32)> = BTreeMap::new();
        for entry in cluster.trace().iter() {
            match &entry.what {
                What::Request(request) => {
                    users.extend(request.after.as_ref().filter(|pod| self.mounts(pod)).map(|pod| pod.uid()));
                }
                What::Container(of) if users.contains(&*of.pod_uid) && !of.container.is_empty() => {
                    let (_, count) = running.entry(&of.pod_uid).or_insert((&*of.node, 0));
                    match of.phase {
                        ContainerPhase::Started => *count += 1,
                        ContainerPhase::Exited { .. } => *count -= 1,
                        _ => {}
                    }
                    running.retain(|_, (_, count)| *count > 0);
                }
                What::Fault(text) => {
                    if let Some(node) = text.strip_suffix(" lost power") {
                        running.retain(|_, (on, _)| *on != node);
                    }
                }
                _ => {}
            }
            if running.len() > 1 {
                let nodes: Vec<&str> = running.values().map(|(node, _)| *node).collect();
                let (at, nodes) = (entry.at, nodes.join(", "));
                return Err(Words::new(
                    format!("{at}: {nodes} で同時に動いていた"),
                    format!("{at}: it ran on {nodes} at the same time"),
                ));
            }
        }
        Ok(())
    }
}

impl OneUser {
    fn mounts(&self, object: &Object) -> bool {
        object.is::<Pod>()
            && *object.key.namespace == *NAMESPACE
            && object.spec::<Pod>().volumes.iter().flatten().any(|volume| {
                let claim = volume.persistent_volume_claim.as_ref();
                claim.is_some_and(|claim| claim.claim_name == self.claim)
            })
    }
}
