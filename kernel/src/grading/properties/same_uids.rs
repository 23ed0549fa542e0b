//! `same-uids: {labels: app=agent}`: the Pods with these labels are the very ones that were there when the exercise began.

use std::collections::BTreeSet;

use cluster_core::Cluster;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::Labelled;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SameUids {
    labels: Labelled,
}

impl Property for SameUids {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let uids = |cluster: &Cluster| -> BTreeSet<String> {
            self.labels.pods(cluster).iter().map(|pod| pod.uid().to_owned()).collect()
        };
        if uids(cluster) == uids(start) {
            return Ok(());
        }
        let labels = &self.labels;
        Err(Words::new(format!("{labels} のPodが入れ替わっている"), format!("the Pods {labels} are others")))
    }
}
