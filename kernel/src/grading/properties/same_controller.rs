//! `same-controller: {labels: app=web}`: all Pods with these labels have one and the same controller, and it exists.

use std::collections::BTreeSet;

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::{Labelled, controller, listed};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SameController {
    labels: Labelled,
}

impl Property for SameController {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let pods = self.labels.pods(cluster);
        let controllers: BTreeSet<Option<&str>> =
            pods.iter().map(|pod| controller(cluster, pod).map(Object::uid)).collect();
        if controllers.len() == 1 && !controllers.contains(&None) {
            return Ok(());
        }
        let told = |nobody: &str| {
            let line = |pod: &&Object| match controller(cluster, pod) {
                Some(owner) => format!("{} ← {}/{}", pod.key.name, owner.kind.kind, owner.key.name),
                None => format!("{} ← {nobody}", pod.key.name),
            };
            let count = pods.len();
            (count, listed(pods.iter().map(line)))
        };
        let ((count, ja), (_, en)) = (told("なし"), told("nobody"));
        Err(Words::new(format!("Pod {count}個{ja}"), format!("{count} Pods{en}")))
    }
}
