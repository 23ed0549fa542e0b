//! `same-content: [deployment/web, deployment/web-json]`: all these objects say the same but for their names, and each but the
//! first was written down in JSON.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::trace::{RequestEntry, What};
use serde::Deserialize;
use serde_json::Value;

use super::Property;
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct SameContent {
    objects: Vec<ObjectName>,
}

impl Property for SameContent {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let Some((first, others)) = self.objects.split_first() else { return Ok(()) };
        let content = |name: &ObjectName| match name.find(cluster) {
            Some(object) => Ok(content(object)),
            None => Err(name.gone()),
        };
        let model = content(first)?;
        for other in others {
            let copy = content(other)?;
            if let Some(change) = json_patch::diff(&model, &copy).first() {
                let path = change.path().to_string();
                // What should be there is what is to be found out.
                let found = copy.pointer(&path).map_or("-".to_owned(), Value::to_string);
                let field = format!("{other}: {} = {found}", path.trim_start_matches('/').replace('/', "."));
                return Err(Words::new(
                    format!("{field}（{first} とは違う）"),
                    format!("{field}, which {first} has otherwise"),
                ));
            }
            if other.find(cluster).is_some_and(|object| !is_from_json(cluster, object)) {
                let (ja, en) = (format!("{other} はJSONで書かれていない"), format!("{other} was not written as JSON"));
                return Err(Words::new(ja, en));
            }
        }
        Ok(())
    }
}

/// What its author said: all but its name and what the cluster has added.
fn content(object: &Object) -> Value {
    let mut json = object.to_json();
    let labels = json["metadata"]["labels"].take();
    if let Some(parts) = json.as_object_mut() {
        parts.remove("metadata");
        parts.remove("status");
        parts.insert("labels".to_owned(), labels);
    }
    json
}

/// The newest write of the object that a cell caused came of a cell that holds JSON.
fn is_from_json(cluster: &Cluster, object: &Object) -> bool {
    let is_about = |request: &RequestEntry| request.object().is_some_and(|written| written.uid() == object.uid());
    let trace = cluster.trace();
    let cells = trace.writes().rev().filter(|(_, request)| is_about(request)).find_map(|(entry, _)| {
        entry.causes.as_slice().iter().find_map(|&cause| match &trace.get(cause)?.what {
            What::Cell(text) => Some(text.clone()),
            _ => None,
        })
    });
    cells.is_some_and(|text| text.lines().any(|line| line.trim_start().starts_with('{')))
}
