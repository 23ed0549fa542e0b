//! `managers: {of: deployment/web, field: [spec, replicas], are: [kube-controller-manager]}`: exactly these manage the field,
//! and whoever applied the object last said nothing about it. `declared: {of: deployment/web, at: /spec/…, is: …}`: the newest
//! manifest of it that was applied says this.

use std::collections::BTreeSet;

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::apiserver::managed;
use serde::Deserialize;
use serde_json::Value;

use super::Property;
use crate::commands::kubectl::LAST_APPLIED;
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Managers {
    of: ObjectName,
    field: Vec<String>,
    are: BTreeSet<String>,
}

/// A field of the first container, which both ways of applying name in their own way.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    of: ObjectName,
    container: String,
    image: String,
}

impl Property for Managers {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let object = self.of.find(cluster).ok_or_else(|| self.of.gone())?;
        let entries = entries(object);
        let has = |entry: &&Value| {
            self.field.iter().try_fold(&entry["fieldsV1"], |fields, name| fields.get(format!("f:{name}"))).is_some()
        };
        let mut found: BTreeSet<String> =
            entries.iter().filter(has).filter_map(|entry| entry["manager"].as_str().map(str::to_owned)).collect();
        // What a client-side apply said last time, it takes back when it says so no more.
        let pointer = format!("/{}", self.field.join("/"));
        if last_applied(object).is_some_and(|manifest| manifest.pointer(&pointer).is_some()) && !is_applied(&entries) {
            found.insert("kubectl-client-side-apply".to_owned());
        }
        if found == self.are {
            return Ok(());
        }
        let found: Vec<String> = found.into_iter().collect();
        Err(Words::same(format!("{}: {} ← {}", self.of, self.field.join("."), found.join(", "))))
    }
}

impl Property for Declared {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let object = self.of.find(cluster).ok_or_else(|| self.of.gone())?;
        let json = object.to_json();
        let image = image(&json, &self.container);
        let container = format!("k:{{\"name\":\"{}\"}}", self.container);
        let path = ["f:spec", "f:template", "f:spec", "f:containers", container.as_str(), "f:image"];
        let by_apply = entries(object).iter().any(|entry| {
            entry["operation"] == "Apply"
                && path.iter().try_fold(&entry["fieldsV1"], |fields, name| fields.get(*name)).is_some()
        });
        let by_client = last_applied(object).and_then(|manifest| self::image(&manifest, &self.container));
        if image.as_deref() == Some(self.image.as_str()) && (by_apply || by_client == image) {
            return Ok(());
        }
        let (of, told) = (&self.of, image.unwrap_or_default());
        Err(match by_client {
            Some(applied) => Words::new(
                format!("{of}: image = {told}、最後にapplyされたのは {applied}"),
                format!("{of}: image = {told}, applied was {applied}"),
            ),
            None => Words::new(
                format!("{of}: image = {told}、applyされたものはない"),
                format!("{of}: image = {told}, nothing was applied"),
            ),
        })
    }
}

fn entries(object: &Object) -> Vec<Value> {
    let metadata = managed::metadata_json(object);
    metadata.get("managedFields").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Somebody has applied it on the server's side.
fn is_applied(entries: &[Value]) -> bool {
    entries.iter().any(|entry| entry["operation"] == "Apply")
}

fn last_applied(object: &Object) -> Option<Value> {
    serde_json::from_str(object.annotation(LAST_APPLIED)?).ok()
}

fn image(workload: &Value, container: &str) -> Option<String> {
    let containers = workload.pointer("/spec/template/spec/containers")?.as_array()?;
    let found = containers.iter().find(|known| known["name"] == *container)?;
    found["image"].as_str().map(str::to_owned)
}
