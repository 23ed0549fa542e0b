//! `unchanged: [deployment/web]`: these objects are there with the spec that they had when the exercise began.

use cluster_core::Cluster;
use serde::Deserialize;
use serde_json::Value;

use super::Property;
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
            let changes = json_patch::diff(&before, &spec(now.to_json()));
            if let Some(change) = changes.first() {
                let path = change.path().to_string().trim_start_matches('/').replace('/', ".");
                let what = format!("{name}: spec.{path}");
                return Err(Words::new(format!("{what} が最初と違う"), format!("{what} differs from the start")));
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
