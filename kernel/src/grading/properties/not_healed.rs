//! `not-healed: node-1`: since the exercise began nobody has ended what cuts this node off.

use cluster_core::Cluster;
use cluster_core::trace::What;
use serde::Deserialize;

use super::Property;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct NotHealed {
    node: String,
}

impl Property for NotHealed {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let end = format!("{} reaches the control plane again", self.node);
        let is_end = |what: &What| matches!(what, What::Fault(text) if **text == *end);
        match cluster.trace().since(start.trace().next_sequence()).find(|entry| is_end(&entry.what)) {
            None => Ok(()),
            Some(entry) => {
                let (at, node) = (entry.at, &self.node);
                Err(Words::new(format!("{at}: {node} の分断が解かれた"), format!("{at}: {node} was healed")))
            }
        }
    }
}
