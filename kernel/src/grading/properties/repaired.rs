//! `repaired: {}`: every component that was on runs again, and it took one start, of the right one.

use cluster_core::Cluster;
use cluster_core::trace::What;
use serde::Deserialize;

use super::Property;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repaired {}

impl Property for Repaired {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let components = cluster.components();
        let is_broken = |component: &str| cluster.is_stopped(component) && !cluster.is_off_from_the_start(component);
        if let Some(stopped) = components.iter().find(|component| is_broken(component)) {
            return Err(Words::new(format!("{stopped} が止まっている"), format!("{stopped} is stopped")));
        }
        let (mut tried, mut started, mut ended) = (0, 0, 0);
        for entry in cluster.trace().since(start.trace().next_sequence()) {
            match &entry.what {
                What::Cell(text) => tried += text.lines().filter(|line| line.starts_with("%start ")).count(),
                What::Fault(text) if text.ends_with(" started") => started += 1,
                What::Fault(text) if text.ends_with(" stopped") || text.ends_with(" lost power") => ended += 1,
                _ => {}
            }
        }
        match (tried, started, ended) {
            (1, 1, 0) => Ok(()),
            _ => Err(Words::new(
                format!("起動 {tried}回（うち止まっていたもの{started}回）、停止 {ended}回"),
                format!("{tried} starts ({started} of what was stopped), {ended} stops"),
            )),
        }
    }
}
