//! `never-below: {labels: app=web, min: 2}`: by the record, at least so many Pods with these labels were Ready at every moment
//! since the exercise began.

use std::collections::BTreeSet;

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::{Labelled, is_ready};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeverBelow {
    labels: Labelled,
    min: usize,
}

impl Property for NeverBelow {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let pods = self.labels.pods(start);
        let mut ready: BTreeSet<String> =
            pods.into_iter().filter(|pod| is_ready(pod)).map(|pod| pod.uid().to_owned()).collect();
        let begun = start.trace().next_sequence();
        for (entry, request) in cluster.trace().writes().filter(|(entry, _)| entry.sequence >= begun) {
            let Some(pod) = request.object().filter(|object| self.labels.has(object)) else { continue };
            let counts = |after: &Object| is_ready(after) && !after.is_terminating();
            match request.after.as_ref().is_some_and(counts) {
                true => ready.insert(pod.uid().to_owned()),
                false => ready.remove(pod.uid()),
            };
            let count = ready.len();
            if count < self.min {
                let at = entry.at;
                return Err(Words::new(
                    format!("{at}: ReadyなPodは{count}個"),
                    format!("at {at}, Ready Pods: {count}"),
                ));
            }
        }
        Ok(())
    }
}
