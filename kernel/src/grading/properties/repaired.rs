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
            // Which one it was is what is to be found out.
            return Err(match start.is_stopped(stopped) {
                true => Words::new("止まっていた部品が、まだ止まっている", "what had stopped does not run yet"),
                false => Words::new(format!("{stopped} が止められた"), format!("{stopped} was stopped")),
            });
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
            (0, 0, 0) => {
                Err(Words::new("何も起動されていない別のクラスタ", "another cluster, in which nothing was started"))
            }
            _ => Err(Words::new(
                format!("起動 {tried}回（うち止まっていたもの{started}回）、停止 {ended}回"),
                format!("starts: {tried} (of what did not run: {started}), stops: {ended}"),
            )),
        }
    }
}
