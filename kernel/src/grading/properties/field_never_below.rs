//! `field-never-below: {of: deployment/web, at: /spec/replicas, min: 4}`: by the record, this number was never smaller since the
//! exercise began.

use cluster_core::Cluster;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldNeverBelow {
    of: ObjectName,
    at: String,
    min: i64,
}

impl Property for FieldNeverBelow {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let begun = start.trace().next_sequence();
        let writes = cluster.trace().writes().filter(|(entry, _)| entry.sequence >= begun);
        for (entry, write) in writes.filter(|(_, write)| self.of.names(&write.kind, &write.key)) {
            let Some(after) = &write.after else { continue };
            let found = after.to_json().pointer(&self.at).and_then(serde_json::Value::as_i64);
            if found.is_none_or(|number| number < self.min) {
                let (at, path) = (entry.at, self.at.trim_start_matches('/').replace('/', "."));
                let found = found.map_or_else(|| "-".to_owned(), |number| number.to_string());
                return Err(Words::same(format!("{at}: {}: {path} = {found} ← {}", self.of, entry.actor)));
            }
        }
        Ok(())
    }
}
