//! `next-revision: {}`: the answer `next` is the revision of the very write that put it there. Heartbeats that came in
//! between are nobody's fault.

use cluster_core::Cluster;
use serde::Deserialize;

use super::Property;
use crate::grading::answer::{answer, is_not_so};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextRevision {}

impl Property for NextRevision {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let (told, _, write) = answer(cluster, "next")?;
        let predicted = told.parse::<u64>().map_err(|_| is_not_so("next", &told))?;
        let between = cluster.trace().writes().map(|(_, write)| write);
        let mut between = between.filter(|other| (predicted..write.revision).contains(&other.revision));
        if predicted <= write.revision && between.all(|other| matches!(&*other.kind.kind, "Lease" | "Node")) {
            return Ok(());
        }
        let revision = write.revision;
        Err(Words::new(
            format!("書き込みのリビジョンは {revision}、予想は {predicted}"),
            format!("that write had the revision {revision}, the prediction was {predicted}"),
        ))
    }
}
