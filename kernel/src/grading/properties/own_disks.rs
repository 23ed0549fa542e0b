//! `own-disks: [db-0, db-1, db-2]`: these Pods are Ready, each with a claim of its own that is bound and mounted, and each that took a
//! name over from one that is gone has its disk, too.

use std::collections::BTreeSet;

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::trace::RequestEntry;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde::Deserialize;

use super::Property;
use crate::grading::objects::is_ready;
use crate::grading::words::Words;

const NAMESPACE: &str = "default";

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct OwnDisks {
    pods: Vec<String>,
}

impl Property for OwnDisks {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let mut claims = BTreeSet::new();
        for name in &self.pods {
            let pod = cluster.get::<Pod>(NAMESPACE, name).filter(|pod| is_ready(pod) && !pod.is_terminating());
            let Some(pod) = pod else {
                return Err(Words::new(format!("Readyなpod/{name} がない"), format!("there is no Ready pod/{name}")));
            };
            let Some((claim, volume)) = claim(pod).filter(|(claim, _)| is_bound(cluster, claim)) else {
                return Err(Words::new(format!("pod/{name} にディスクがない"), format!("pod/{name} has no disk")));
            };
            if !is_mounted(pod, &volume) {
                return Err(Words::new(
                    format!("pod/{name} のどのコンテナも、ディスク {claim} を使っていない"),
                    format!("no container of pod/{name} mounts its disk {claim}"),
                ));
            }
            if !is_as_before(cluster, start, pod, &claim) {
                return Err(Words::new(
                    format!("pod/{name} のディスクは、前の {name} のものではない"),
                    format!("the disk of pod/{name} is not that of the {name} before it"),
                ));
            }
            if !claims.insert(claim.clone()) {
                let (ja, en) = (
                    format!("ディスク {claim} を2つ以上のPodが使っている"),
                    format!("several Pods use the disk {claim}"),
                );
                return Err(Words::new(ja, en));
            }
        }
        Ok(())
    }
}

/// The first claim of a Pod, and the volume that it is there; one that is made for the Pod alone is named after both.
fn claim(pod: &Object) -> Option<(String, String)> {
    pod.spec::<Pod>().volumes.iter().flatten().find_map(|volume| {
        let claim = match &volume.persistent_volume_claim {
            Some(source) => source.claim_name.clone(),
            None => volume.ephemeral.as_ref().map(|_| format!("{}-{}", pod.key.name, volume.name))?,
        };
        Some((claim, volume.name.clone()))
    })
}

fn is_mounted(pod: &Object, volume: &str) -> bool {
    let mounts = pod.spec::<Pod>().containers.iter().flat_map(|container| container.volume_mounts.iter().flatten());
    mounts.into_iter().any(|mount| mount.name == volume)
}

fn is_bound(cluster: &Cluster, claim: &str) -> bool {
    let phase = cluster.get::<PersistentVolumeClaim>(NAMESPACE, claim);
    phase.is_some_and(|claim| claim.status::<PersistentVolumeClaim>().phase.as_deref() == Some("Bound"))
}

/// The newest Pod of this name that is gone had the same claim, and the claim has not gone since.
fn is_as_before(cluster: &Cluster, start: &Cluster, pod: &Object, claim_name: &str) -> bool {
    let begun = start.trace().next_sequence();
    let writes = || cluster.trace().writes().rev().take_while(|(entry, _)| entry.sequence >= begun);
    let predecessor = writes().find_map(|(entry, request)| {
        let gone = gone(request, "Pod", &pod.key.name).filter(|gone| gone.uid() != pod.uid())?;
        Some((entry.sequence, gone))
    });
    let Some((gone_at, predecessor)) = predecessor else { return true };
    let mut since = writes().take_while(|(entry, _)| entry.sequence > gone_at);
    claim(predecessor).is_some_and(|(claim, _)| claim == claim_name)
        && !since.any(|(_, request)| gone(request, "PersistentVolumeClaim", claim_name).is_some())
}

/// The object of this name that a write has put an end to.
fn gone<'a>(request: &'a RequestEntry, kind: &str, name: &str) -> Option<&'a Object> {
    let is_meant = &*request.kind.kind == kind && *request.key.name == *name && *request.key.namespace == *NAMESPACE;
    request.before.as_ref().filter(|_| is_meant && request.after.is_none())
}
