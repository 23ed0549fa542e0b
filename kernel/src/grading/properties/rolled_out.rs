//! `rolled-out: deployment/web`: its controller has seen the newest spec, and all its Pods are of it and available.

use cluster_core::Cluster;
use serde::Deserialize;
use serde_json::Value;

use super::Property;
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

/// What the status of a Deployment counts.
const COUNTS: [&str; 3] = ["replicas", "updatedReplicas", "availableReplicas"];

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct RolledOut {
    of: ObjectName,
}

impl Property for RolledOut {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let Some(object) = self.of.find(cluster).map(|object| object.to_json()) else {
            return Err(self.of.gone());
        };
        let wanted = object["spec"]["replicas"].as_u64();
        let status = &object["status"];
        let is_seen = status["observedGeneration"] == object["metadata"]["generation"];
        let count = |name: &str| status.get(name).and_then(Value::as_u64).unwrap_or(0);
        if is_seen && COUNTS.iter().all(|name| Some(count(name)) == wanted) {
            return Ok(());
        }
        let of = &self.of;
        if !is_seen {
            return Err(Words::new(
                format!("{of} のコントローラーは、新しいspecをまだ見ていない"),
                format!("the controller of {of} has not seen its new spec"),
            ));
        }
        let counts = COUNTS.map(|name| format!("{name} {}", count(name))).join(", ");
        Err(Words::same(format!("{of}: {counts}")))
    }
}
