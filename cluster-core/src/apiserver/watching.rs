//! How a watch begins and what it tells: the state it starts from, then each change, and marks of how far it has come.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>

use std::collections::VecDeque;

use crate::Cluster;
use crate::api::object::Object;
use crate::api::request::{Options, Request};
use crate::api::status::{Cause, Status};
use crate::apiserver::{ApiServer, access, fields, read, versions};
use crate::watch::{EventType, Watcher};

/// What a client hears of.
#[derive(Clone, Debug)]
pub enum Told {
    Event(EventType, Object),
    /// Everything up to this revision has been told. `initial` ends the state that the watch began with.
    Bookmark {
        revision: u64,
        initial: bool,
    },
}

/// What a watch has at a moment.
#[derive(Clone, Debug)]
pub enum Batch {
    /// Maybe none.
    Events(Vec<Told>),
    /// The watch is over: its history has been compacted.
    End(Status),
}

/// A watch of a client from outside, as far as it has read.
#[derive(Clone, Debug)]
pub struct OpenWatch {
    pub watcher: Watcher,
    pub bookmarks: bool,
    initial: VecDeque<Told>,
    /// The newest revision that the client has heard of.
    told: u64,
}

impl ApiServer {
    /// Opens a watch: from the state as it is if no revision (or `0`) is asked for, else from the changes after it.
    ///
    /// # Errors
    /// Options that do not go together (422), a revision that is no number (500), a field that can't be selected on.
    pub fn open_watch(&self, request: &Request) -> Result<OpenWatch, Status> {
        access::check(self, request)?;
        let options = &request.options;
        check(options)?;
        read::check_labels(&options.labels)?;
        fields::check(&request.kind, &options.fields)?;
        let revision = match options.resource_version.as_str() {
            "" => 0,
            text => read::revision(text)?,
        };
        let current = self.store.revision();
        let mut watcher = Watcher::new(&request.kind, current);
        watcher.namespace = request.key.namespace.clone();
        watcher.labels = options.labels.clone();
        watcher.fields = options.fields.clone();
        let mut initial = VecDeque::new();
        read::reached(revision, &self.store)?;
        if options.send_initial_events.unwrap_or(revision == 0) {
            for object in self.store.list(&request.kind, &request.key.namespace) {
                if watcher.selects(object) {
                    let object = versions::present(object.clone(), &request.kind);
                    initial.push_back(Told::Event(EventType::Added, object));
                }
            }
            if options.send_initial_events == Some(true) {
                initial.push_back(Told::Bookmark { revision: current, initial: true });
            }
        } else if revision > 0 {
            watcher.revision = revision;
        }
        let told = watcher.revision;
        Ok(OpenWatch { watcher, bookmarks: options.bookmarks, initial, told })
    }
}

impl OpenWatch {
    /// What there is to tell now, at most `events_max`.
    pub fn next_batch(&mut self, cluster: &Cluster, events_max: usize) -> Batch {
        let mut events = Vec::new();
        while events.len() < events_max
            && let Some(told) = self.initial.pop_front()
        {
            events.push(told);
        }
        while events.len() < events_max {
            match self.watcher.next(cluster.store()) {
                Ok(Some(event)) => {
                    let object = versions::present(event.object, &self.watcher.kind);
                    self.told = object.revision;
                    events.push(Told::Event(event.event_type, object));
                }
                Ok(None) => break,
                Err(_) if !events.is_empty() => break,
                Err(too_old) => {
                    let message = format!("too old resource version: {} ({})", too_old.requested, too_old.compacted);
                    return Batch::End(Status::expired(message));
                }
            }
        }
        Batch::Events(events)
    }

    /// How far the watch has come, if everything that concerns it has been told and it is further than it was known.
    pub fn bookmark(&mut self, cluster: &Cluster) -> Option<Told> {
        let revision = cluster.store().revision();
        // A copy reads ahead: what it finds is for the next batch to tell.
        let mut ahead = self.watcher.clone();
        if !self.initial.is_empty() || revision <= self.told || !matches!(ahead.next(cluster.store()), Ok(None)) {
            return None;
        }
        ahead.revision = revision;
        (self.watcher, self.told) = (ahead, revision);
        Some(Told::Bookmark { revision, initial: false })
    }
}

fn check(options: &Options) -> Result<(), Status> {
    let matching = options.resource_version_match.as_str();
    let mut causes = Vec::new();
    let mut forbid = |detail| causes.push(Cause::forbidden("resourceVersionMatch", detail));
    match options.send_initial_events {
        Some(_) if matching != "NotOlderThan" => {
            forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        None if !matching.is_empty() => {
            forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        }
        _ => {}
    }
    if options.send_initial_events.is_some() && !matches!(matching, "" | "NotOlderThan") {
        causes.push(Cause::unsupported("resourceVersionMatch", matching, &["NotOlderThan"]));
    }
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid_options("ListOptions", causes)) }
}
