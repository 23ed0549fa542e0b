//! `pods: {labels: app=web, ready: 3}`: so many Pods with these labels and no more, all of them Ready.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::{Labelled, is_ready, listed};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pods {
    labels: Labelled,
    ready: usize,
}

impl Property for Pods {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let pods = self.labels.pods(cluster);
        if pods.len() == self.ready && pods.iter().all(|pod| is_ready(pod)) {
            return Ok(());
        }
        let (count, labels) = (pods.len(), &self.labels);
        let leaving = self.labels.leaving(cluster);
        let leaving = leaving.iter().map(|pod| format!("{} Terminating", pod.key.name));
        let states: Vec<String> =
            pods.iter().map(|pod| format!("{} {}", pod.key.name, state(pod))).chain(leaving).collect();
        let states = listed(states.into_iter());
        Err(Words::new(format!("{labels} のPodが{count}個{states}"), format!("{count} Pods {labels}{states}")))
    }
}

/// As kubectl's column STATUS, and whether it is Ready.
fn state(pod: &Object) -> String {
    let status = pod.status::<Pod>();
    let waiting = status
        .container_statuses
        .iter()
        .flatten()
        .find_map(|container| container.state.as_ref()?.waiting.as_ref()?.reason.clone());
    let state = waiting.or_else(|| status.phase.clone()).unwrap_or_default();
    match is_ready(pod) {
        true => "Ready".to_owned(),
        false if state == "Running" => "Running, not Ready".to_owned(),
        false => state,
    }
}
