//! How exercises name objects, and who belongs to whom.

use std::fmt;

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::object::Object;
use cluster_core::api::selector::Selector;
use k8s_openapi::api::core::v1::Pod;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::words::Words;

const NAMES_MAX: usize = 6;

/// The Pods of the namespace `default` with some labels: `app=web`.
#[derive(Debug)]
pub struct Labelled(Selector);

impl Labelled {
    /// True if this is such a Pod, whatever has become of it.
    pub fn has(&self, object: &Object) -> bool {
        &*object.kind.kind == "Pod"
            && &*object.key.namespace == "default"
            && self.0.matches(object.metadata().labels.as_ref())
    }

    /// Those that are on their way out.
    pub fn leaving<'a>(&'a self, cluster: &'a Cluster) -> Vec<&'a Object> {
        cluster.list::<Pod>("default").filter(|pod| self.has(pod) && pod.is_terminating()).collect()
    }

    /// Those that are neither over nor on their way out, the oldest first.
    pub fn pods<'a>(&'a self, cluster: &'a Cluster) -> Vec<&'a Object> {
        let is_over = |pod: &Object| matches!(pod.status::<Pod>().phase.as_deref(), Some("Succeeded" | "Failed"));
        let mut pods: Vec<&Object> = cluster
            .list::<Pod>("default")
            .filter(|pod| self.has(pod))
            .filter(|pod| !pod.is_terminating() && !is_over(pod))
            .collect();
        pods.sort_by_key(|pod| (pod.metadata().creation_timestamp.clone(), pod.key.clone()));
        pods
    }
}

impl fmt::Display for Labelled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl<'de> Deserialize<'de> for Labelled {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Selector::parse(&text).map(Labelled).map_err(D::Error::custom)
    }
}

fn namespace(kind: &KindRef) -> &'static str {
    if kind.namespaced { "default" } else { "" }
}

/// An object of the namespace `default`, or of none: `deployment/web`, `node/node-3`.
#[derive(Clone, Debug)]
pub struct ObjectName {
    kind: String,
    name: String,
}

impl ObjectName {
    pub fn find<'a>(&self, cluster: &'a Cluster) -> Option<&'a Object> {
        let kind = cluster.kinds().find(|kind| *kind.singular == *self.kind)?;
        cluster.store().get(kind, &Key::new(namespace(kind), self.name.as_str()))
    }

    /// True if this is its kind and key.
    pub fn names(&self, kind: &KindRef, key: &Key) -> bool {
        *kind.singular == *self.kind && &*key.namespace == namespace(kind) && *key.name == *self.name
    }

    /// What is told when it is not there.
    pub fn gone(&self) -> Words {
        Words::new(format!("{self} がない"), format!("{self} is gone"))
    }

    /// True if the object is of this name, or one that its controllers lead up to is.
    pub fn is_above(&self, cluster: &Cluster, object: &Object) -> bool {
        std::iter::successors(Some(object), |object| controller(cluster, object))
            .take(8)
            .any(|object| *object.kind.singular == *self.kind && *object.key.name == *self.name)
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.kind, self.name)
    }
}

impl<'de> Deserialize<'de> for ObjectName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (kind, name) = text
            .split_once('/')
            .ok_or_else(|| D::Error::custom(format!("`{text}` is no object: expected KIND/NAME, as deployment/web")))?;
        Ok(ObjectName { kind: kind.to_owned(), name: name.to_owned() })
    }
}

/// The controller of an object, if it exists as the reference says, uid included.
pub fn controller<'a>(cluster: &'a Cluster, object: &Object) -> Option<&'a Object> {
    let reference = object.controller()?;
    let kind = cluster.kind(&reference.api_version, &reference.kind)?;
    let namespace = if kind.namespaced { &*object.key.namespace } else { "" };
    let owner = cluster.store().get(kind, &Key::new(namespace, reference.name.as_str()))?;
    (owner.uid() == reference.uid).then_some(owner)
}

pub fn is_ready(pod: &Object) -> bool {
    pod.status::<Pod>().conditions.iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
}

/// ` (a, b, c …)`, or nothing.
pub fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = if names.len() > NAMES_MAX { " …" } else { "" };
    let names: Vec<String> = names.take(NAMES_MAX).collect();
    if names.is_empty() { String::new() } else { format!(" ({}{more})", names.join(", ")) }
}
