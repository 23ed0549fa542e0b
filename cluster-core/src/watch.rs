//! Watches: cursors over the store's history, filtered by namespace and selectors.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>

use std::sync::Arc;

use crate::api::Name;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::selector::{FieldSelector, Selector};
use crate::apiserver::{custom, fields};
use crate::store::{Change, Log, Store, position_after};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }
}

/// One event of a watch. The object of a deletion is its last state, with the revision of the deletion.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    pub event_type: EventType,
    pub object: Object,
    pub change: Arc<Change>,
}

/// What a watch looks for, and how far it has read.
#[derive(Clone, Debug)]
pub struct Watcher {
    pub kind: KindRef,
    /// Empty for all namespaces.
    pub namespace: Name,
    pub labels: Selector,
    pub fields: FieldSelector,
    /// Everything up to this revision has been seen.
    pub revision: u64,
    /// Where the next change stands in the log, if the log has not been cut since the last one was read.
    pub next: usize,
}

/// The history that a watch would need has been compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    pub requested: u64,
    pub compacted: u64,
}

impl Watcher {
    pub fn new(kind: &KindRef, revision: u64) -> Watcher {
        Watcher {
            kind: kind.clone(),
            namespace: "".into(),
            labels: Selector::everything(),
            fields: FieldSelector::default(),
            revision,
            next: 0,
        }
    }

    /// The value of the index that this watch pins down, so that only changes with that value concern it.
    pub fn partition(&self) -> Option<&str> {
        fields::index_path(&self.kind).and_then(|path| self.fields.exact(path))
    }

    /// The next event that the watch is interested in; skipped changes count as seen. Compaction ends a watch only if it
    /// took a change that the watch has not read.
    pub fn next(&mut self, store: &Store) -> Result<Option<WatchEvent>, TooOld> {
        if self.revision < store.lost(&self.kind) {
            return Err(TooOld { requested: self.revision, compacted: store.compacted() });
        }
        let log: &Log = match self.partition() {
            None => store.log(self.kind.slot),
            Some(value) => match store.partition(self.kind.slot, value) {
                None => return Ok(None),
                Some(log) => log,
            },
        };
        let mut at = match log.back() {
            Some(last) if last.revision > self.revision => self.position(log),
            _ => return Ok(None),
        };
        while let Some(change) = log.get(at) {
            at += 1;
            (self.revision, self.next) = (change.revision, at);
            if let Some(event) = self.event(change) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Where the first change stands that it has not seen.
    fn position(&self, log: &Log) -> usize {
        let last = self.next.checked_sub(1).and_then(|last| log.get(last));
        let is_there = last.is_some_and(|last| last.revision == self.revision);
        if is_there { self.next } else { position_after(log, self.revision) }
    }

    /// True if there is a change that the watch has not read (it may turn out to be of no interest).
    pub fn is_behind(&self, store: &Store) -> bool {
        let last = match self.partition() {
            None => store.log(self.kind.slot).back(),
            Some(value) => store.partition(self.kind.slot, value).and_then(|log| log.back()),
        };
        last.is_some_and(|change| change.revision > self.revision)
    }

    fn event(&self, change: &Arc<Change>) -> Option<WatchEvent> {
        let (event_type, object) = self.passage(change.before.as_ref(), change.after.as_ref(), change.revision)?;
        let object = custom::as_kind(object, &self.kind);
        Some(WatchEvent { event_type, object, change: change.clone() })
    }

    /// An object that enters the selection appears as added, one that leaves it as deleted.
    pub fn passage(
        &self,
        before: Option<&Object>,
        after: Option<&Object>,
        revision: u64,
    ) -> Option<(EventType, Object)> {
        let selected = |object: &&Object| self.selects(object);
        match (before.filter(selected), after.filter(selected)) {
            (None, None) => None,
            (None, Some(after)) => Some((EventType::Added, after.clone())),
            (Some(_), Some(after)) => Some((EventType::Modified, after.clone())),
            (Some(before), None) => {
                let mut last = before.clone();
                last.revision = revision;
                Some((EventType::Deleted, last))
            }
        }
    }

    pub fn selects(&self, object: &Object) -> bool {
        (self.namespace.is_empty() || object.key.namespace == self.namespace)
            && self.labels.matches(object.metadata().labels.as_ref())
            && (self.fields.is_everything() || self.fields.matches(|path| fields::field(object, path)))
    }
}
