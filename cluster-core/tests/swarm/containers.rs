//! Which containers run where: no two machines may run the same pod of a StatefulSet at once.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#deployment-and-scaling-guarantees>

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::Cluster;
use cluster_core::api::{Key, Name};
use cluster_core::trace::{ContainerEntry, ContainerPhase};
use k8s_openapi::api::core::v1::Pod;

/// What lets go of a pod without its kubelet's word.
const FORCED: [&str; 3] = ["delete pod by force", "delete node", "event lost"];

/// The main containers that run, by pod: on which machine, of which uid.
#[derive(Clone, Default)]
pub struct Running(BTreeMap<Key, BTreeSet<(Name, Name)>>);

impl Running {
    pub fn look(
        &mut self,
        of: &ContainerEntry,
        cluster: &Cluster,
        features: &BTreeSet<&'static str>,
    ) -> Result<(), String> {
        let instance = (of.node.clone(), of.pod_uid.clone());
        if &*of.container != "c" {
            return Ok(());
        }
        let running = self.0.entry(of.pod.clone()).or_default();
        match of.phase {
            ContainerPhase::Started => running.insert(instance),
            ContainerPhase::Exited { .. } => running.remove(&instance),
            _ => return Ok(()),
        };
        // What lost its power runs no more, though nobody heard it end.
        running.retain(|(node, uid)| {
            let runtime = cluster.machine(node).map(|machine| &machine.runtime);
            runtime.is_some_and(|runtime| {
                runtime.containers().any(|(_, known)| known.identity.pod_uid == *uid && known.is_running())
            })
        });
        let is_ordinal = cluster
            .get::<Pod>(&of.pod.namespace, &of.pod.name)
            .and_then(|pod| pod.controller())
            .is_some_and(|owner| owner.kind == "StatefulSet");
        if running.len() > 1 && is_ordinal && !FORCED.iter().any(|feature| features.contains(feature)) {
            return Err(format!("one pod of a StatefulSet runs once: {} runs as {running:?}", of.pod));
        }
        Ok(())
    }
}
