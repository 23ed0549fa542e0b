//! `answered: {key: busiest, is: "3000", before: [deployment/client, service/web]}`: the first answer of that name is this, and
//! it was written before any of these objects was changed.

use cluster_core::Cluster;
use cluster_core::trace::RequestEntry;
use serde::Deserialize;

use super::Property;
use crate::grading::answer::{first_answer, is_not_so};
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answered {
    key: String,
    is: String,
    before: Vec<ObjectName>,
}

impl Property for Answered {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let (told, written) = first_answer(cluster, &self.key)?;
        let begun = start.trace().next_sequence();
        let is_change = |write: &RequestEntry| match (&write.before, &write.after) {
            (Some(before), Some(after)) => !before.same_spec(after),
            _ => true,
        };
        let mut changes = cluster.trace().writes().filter(|(entry, write)| {
            entry.sequence >= begun
                && is_change(write)
                && self.before.iter().any(|name| name.names(&write.kind, &write.key))
        });
        if changes.next().is_some_and(|(changed, _)| changed.sequence < written.sequence) {
            let key = &self.key;
            let (ja, en) = (format!("{key} は直したあとに書かれた"), format!("{key} was written after the change"));
            return Err(Words::new(ja, en));
        }
        if told == self.is { Ok(()) } else { Err(is_not_so(&self.key, &told)) }
    }
}
