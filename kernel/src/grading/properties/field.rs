//! `field: {of: deployment/web, at: /spec/replicas, is: 4}`: a field, named by its JSON pointer, holds this value; without
//! `is` it holds none.

use cluster_core::Cluster;
use serde::Deserialize;
use serde_json::Value;

use super::{Property, stands_instead};
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    of: ObjectName,
    at: String,
    #[serde(default)]
    is: Value,
}

impl Property for Field {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let Some(object) = self.of.find(cluster).map(|object| object.to_json()) else {
            return Err(self.of.gone());
        };
        let found = object.pointer(&self.at).unwrap_or(&Value::Null);
        if *found == self.is {
            return Ok(());
        }
        let field = self.at.trim_start_matches('/').replace('/', ".");
        Err(stands_instead(&format!("{}: {field}", self.of), found, &self.is))
    }
}
