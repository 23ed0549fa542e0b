//! `etcd-key: {kind: service, labels: treasure=here}` and `etcd-revision`: the answers `key` and `revision` name the key
//! under which etcd holds the only object with these labels, and the revision at which it was last written.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::api::selector::Selector;
use serde::Deserialize;

use super::Property;
use crate::grading::answer::{answer, is_not_so};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hidden {
    kind: String,
    labels: String,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct EtcdKey {
    of: Hidden,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct EtcdRevision {
    of: Hidden,
}

impl Hidden {
    fn find<'a>(&self, cluster: &'a Cluster) -> Result<&'a Object, Words> {
        let labels = Selector::parse(&self.labels).map_err(Words::same)?;
        let kind = cluster.kinds().find(|kind| *kind.singular == *self.kind);
        let objects = kind.into_iter().flat_map(|kind| cluster.list_of(kind, ""));
        let mut found = objects.filter(|object| labels.matches(object.metadata().labels.as_ref()));
        match (found.next(), found.next()) {
            (Some(object), None) => Ok(object),
            (first, _) => {
                let (labels, count) = (&self.labels, if first.is_some() { "> 1" } else { "0" });
                Err(Words::same(format!("{} {labels}: {count}", self.kind)))
            }
        }
    }
}

impl Property for EtcdKey {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let object = self.of.find(cluster)?;
        let (told, ..) = answer(cluster, "key")?;
        let key = format!("{}/{}", object.kind.registry_prefix(), object.key);
        if told == key { Ok(()) } else { Err(is_not_so("key", &told)) }
    }
}

impl Property for EtcdRevision {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let revision = self.of.find(cluster)?.revision;
        let (told, ..) = answer(cluster, "revision")?;
        if told == revision.to_string() { Ok(()) } else { Err(is_not_so("revision", &told)) }
    }
}
