//! `available: {labels: app=web, min: 3}`: at least so many Pods with these labels are Ready.

use cluster_core::Cluster;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::{Labelled, is_ready};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Available {
    labels: Labelled,
    min: usize,
}

impl Property for Available {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let ready = self.labels.pods(cluster).into_iter().filter(|pod| is_ready(pod)).count();
        if ready >= self.min {
            return Ok(());
        }
        Err(Words::new(format!("ReadyなPodは{ready}個"), format!("Ready Pods: {ready}")))
    }
}
