//! `unchanged: [deployment/web]`: these objects are there with the spec that they had when the exercise began.

use cluster_core::Cluster;
use json_patch::PatchOperation;
use serde::Deserialize;
use serde_json::Value;

use super::{Property, stands_instead};
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Unchanged {
    objects: Vec<ObjectName>,
}

impl Property for Unchanged {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        for name in &self.objects {
            let Some(now) = name.find(cluster) else { return Err(name.gone()) };
            let before = name.find(start).map(|object| spec(object.to_json())).unwrap_or_default();
            let now = spec(now.to_json());
            let changes = json_patch::diff(&before, &now);
            // A value that is another one tells more than what was added because of it.
            let is_replaced = |change: &&PatchOperation| matches!(change, PatchOperation::Replace(_));
            if let Some(change) = changes.iter().find(is_replaced).or(changes.first()) {
                let path = change.path().to_string();
                let at = |spec: &Value| spec.pointer(&path).cloned().unwrap_or_default();
                let field = format!("{name}: spec{}", path.replace('/', "."));
                return Err(stands_instead(&field, &at(&now), &at(&before)));
            }
        }
        Ok(())
    }
}

/// The spec without the mark that `kubectl rollout restart` leaves, which asks for nothing else.
fn spec(mut object: Value) -> Value {
    if let Some(metadata) = object.pointer_mut("/spec/template/metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
    {
        annotations.remove("kubectl.kubernetes.io/restartedAt");
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object["spec"].take()
}
