//! `by-path: {verb: list, kind: pod}`, with `name` for one object: since the exercise began somebody has asked for this by its
//! path, as `kubectl --raw` does, and it was granted. `watch-by-path: {kind: pod, removal-of: old}`: a watch that was opened
//! so on the collection has told of the removal of that object.

use cluster_core::Cluster;
use cluster_core::trace::{Entry, RequestEntry, What};
use serde::Deserialize;

use super::Property;
use crate::grading::objects::listed;
use crate::grading::words::Words;

const NAMESPACE: &str = "default";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByPath {
    verb: String,
    kind: String,
    #[serde(default)]
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WatchByPath {
    kind: String,
    removal_of: String,
}

impl Property for ByPath {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let is_it = |asked: &RequestEntry| {
            asked.verb.as_str() == self.verb && *asked.kind.singular == *self.kind && *asked.key.name == *self.name
        };
        if asked(cluster, start).any(|(_, asked, path)| is_here(asked) && is_it(asked) && !narrowed(path)) {
            return Ok(());
        }
        let mut paths: Vec<String> = Vec::new();
        for (_, asked, path) in asked(cluster, start) {
            let told = format!("{} {path}", asked.verb.as_str());
            if !paths.contains(&told) {
                paths.push(told);
            }
        }
        Err(match paths.is_empty() {
            true => Words::new("パスで書かれたリクエストはない", "no request was spelt out by its path"),
            false => {
                let paths = listed(paths.into_iter());
                Words::new(format!("パスで書かれたリクエスト{paths}"), format!("requests that were spelt out{paths}"))
            }
        })
    }
}

impl Property for WatchByPath {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let is_removal = |write: &RequestEntry| {
            *write.kind.singular == *self.kind
                && *write.key.namespace == *NAMESPACE
                && *write.key.name == *self.removal_of
                && write.after.is_none()
        };
        let removal = cluster.trace().writes().rev().find(|(_, write)| is_removal(write));
        let removed = removal.map(|(entry, write)| (entry.sequence, write.revision));
        let is_watch = |asked: &RequestEntry| asked.verb.as_str() == "watch" && *asked.kind.singular == *self.kind;
        let watches: Vec<_> = asked(cluster, start).filter(|(_, asked, _)| is_here(asked) && is_watch(asked)).collect();
        if watches.is_empty() {
            return Err(Words::new("パスによる watch の記録がない", "no record of a watch by its path"));
        }
        // A watch is recorded at its end; it has told what came after the revision that it began at.
        let told = |(entry, _, path): &(&Entry, &RequestEntry, &str)| {
            let begun = parameter(path, "resourceVersion").and_then(|text| text.parse::<u64>().ok());
            let selects = !narrowed(path) || path.contains(self.removal_of.as_str());
            removed.is_some_and(|(sequence, revision)| {
                sequence < entry.sequence && begun.is_some_and(|begun| 0 < begun && begun < revision) && selects
            })
        };
        if watches.iter().any(told) {
            return Ok(());
        }
        let paths = listed(watches.iter().map(|(_, _, path)| (*path).to_owned()));
        let name = format!("{}/{}", self.kind, self.removal_of);
        Err(Words::new(
            format!("{name} がなくなったことを伝えない watch{paths}"),
            format!("watches that have not told of the removal of {name}{paths}"),
        ))
    }
}

/// What was asked for by its path and granted, with the path.
fn asked<'a>(
    cluster: &'a Cluster,
    start: &Cluster,
) -> impl Iterator<Item = (&'a Entry, &'a RequestEntry, &'a str)> + use<'a> {
    cluster.trace().since(start.trace().next_sequence()).filter_map(|entry| match &entry.what {
        What::Request(asked) if asked.code < 400 => {
            let (_, rest) = asked.reason.split_once("--raw")?;
            let path = rest.trim_start_matches(['=', ' ', '\'', '"']);
            Some((entry, &**asked, path.split([' ', '\'', '"']).next().unwrap_or_default()))
        }
        _ => None,
    })
}

fn is_here(asked: &RequestEntry) -> bool {
    *asked.key.namespace == *NAMESPACE
}

/// It asks for some of the collection only.
fn narrowed(path: &str) -> bool {
    ["labelSelector", "fieldSelector"].iter().any(|name| parameter(path, name).is_some())
}

fn parameter<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = path.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).filter(|value| !value.is_empty())
}
