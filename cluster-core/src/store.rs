//! etcd's part: one revision counter, compare-and-swap, the history of changes, compaction. It knows no kind's meaning.

use std::borrow::Cow;
use std::sync::Arc;

use crate::HashMap;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::{Key, Name};
use crate::trace::Sequence;

/// One committed change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    pub revision: u64,
    /// The trace entry of the write.
    pub sequence: Sequence,
    pub before: Option<Object>,
    /// `None` when the object was deleted.
    pub after: Option<Object>,
}

impl Change {
    /// The object as the change left it, or as it last was.
    pub fn object(&self) -> &Object {
        self.after.as_ref().or(self.before.as_ref()).expect("a change is about an object")
    }

    pub fn key(&self) -> &Key {
        &self.object().key
    }

    /// Neither metadata nor spec were written.
    pub fn is_of_status(&self) -> bool {
        matches!((&self.before, &self.after), (Some(before), Some(after))
            if Arc::ptr_eq(before.metadata_arc(), after.metadata_arc())
                && Arc::ptr_eq(before.spec_part(), after.spec_part()))
    }
}

/// Changes in the order of their revisions. Cloning shares them.
pub type Log = imbl::Vector<Arc<Change>>;

/// Objects and history of one kind.
#[derive(Clone, Default)]
struct Table {
    objects: Objects,
    log: Log,
    /// The part of the log that concerns one value of the kind's index (the node of a pod).
    partitions: HashMap<Name, Log>,
    /// The newest revision at which something happened that the log has lost.
    lost: u64,
}

#[derive(Clone)]
pub struct Store {
    revision: u64,
    compacted: u64,
    tables: imbl::Vector<Table>,
}

/// The objects of one kind.
pub type Objects = imbl::OrdMap<Key, Object>;

/// Why a write was not made.
#[derive(Debug)]
pub enum Refusal {
    Exists(Box<Object>),
    Missing,
    /// The object has another revision than the writer expected.
    Stale,
}

impl Store {
    /// An empty store. Like an etcd that the apiserver has set itself up in, it does not begin at revision 0.
    pub fn new(slots: usize) -> Store {
        Store { revision: 1, compacted: 0, tables: std::iter::repeat_with(Table::default).take(slots).collect() }
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// History up to and including this revision is gone.
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    /// The newest revision at which a kind's history is gone: who has read up to there has missed nothing.
    pub fn lost(&self, kind: &KindRef) -> u64 {
        self.tables[kind.slot].lost
    }

    /// Makes room for one more kind and returns its slot.
    pub fn add_slot(&mut self) -> usize {
        self.tables.push_back(Table::default());
        self.tables.len() - 1
    }

    pub fn get(&self, kind: &KindRef, key: &Key) -> Option<&Object> {
        self.tables.get(kind.slot)?.objects.get(key)
    }

    /// All objects of a kind as they are now, by namespace and name. Cloning the map keeps this moment.
    pub fn objects(&self, kind: &KindRef) -> &Objects {
        &self.tables[kind.slot].objects
    }

    /// All objects of a kind as they were at a revision: what has happened since is undone. `None` if that is history
    /// which has been compacted.
    pub fn objects_at(&self, kind: &KindRef, revision: u64) -> Option<Cow<'_, Objects>> {
        let table = &self.tables[kind.slot];
        if revision < self.compacted {
            return None;
        }
        if table.log.back().is_none_or(|last| last.revision <= revision) {
            return Some(Cow::Borrowed(&table.objects));
        }
        let mut objects = table.objects.clone();
        for change in table.log.iter().rev().take_while(|change| change.revision > revision) {
            match &change.before {
                Some(before) => objects.insert(change.key().clone(), before.clone()),
                None => objects.remove(change.key()),
            };
        }
        Some(Cow::Owned(objects))
    }

    /// The objects of one namespace; of all of them if it is empty.
    pub fn list<'a>(&'a self, kind: &KindRef, namespace: &'a str) -> impl Iterator<Item = &'a Object> {
        in_namespace(&self.tables[kind.slot].objects, namespace)
    }

    pub fn log(&self, slot: usize) -> &Log {
        &self.tables[slot].log
    }

    pub fn partition(&self, slot: usize, value: &str) -> Option<&Log> {
        self.tables[slot].partitions.get(value)
    }

    /// Puts in what was there before anybody watched: an object of the revision at which the store begins.
    pub fn seed(&mut self, mut object: Object) {
        object.revision = self.revision;
        self.tables[object.kind.slot].objects.insert(object.key.clone(), object);
    }

    /// Writes an object: `expected` is the revision it must have now, `None` if it must not exist. The object gets
    /// the new revision.
    pub fn put(
        &mut self,
        mut object: Object,
        expected: Option<u64>,
        partition: Option<Name>,
        sequence: Sequence,
    ) -> Result<Arc<Change>, Refusal> {
        let table = &mut self.tables[object.kind.slot];
        let known = table.objects.get_mut(&object.key);
        match (&known, expected) {
            (Some(known), None) => return Err(Refusal::Exists(Box::new((**known).clone()))),
            (None, Some(_)) => return Err(Refusal::Missing),
            (Some(known), Some(expected)) if known.revision != expected => return Err(Refusal::Stale),
            _ => {}
        }
        self.revision += 1;
        object.revision = self.revision;
        let before = match known {
            Some(known) => Some(std::mem::replace(known, object.clone())),
            None => table.objects.insert(object.key.clone(), object.clone()),
        };
        let change = Arc::new(Change { revision: self.revision, sequence, before, after: Some(object) });
        table.append(&change, partition);
        Ok(change)
    }

    pub fn delete(
        &mut self,
        kind: &KindRef,
        key: &Key,
        expected: u64,
        partition: Option<Name>,
        sequence: Sequence,
    ) -> Result<Arc<Change>, Refusal> {
        let table = &mut self.tables[kind.slot];
        match table.objects.get(key) {
            None => return Err(Refusal::Missing),
            Some(object) if object.revision != expected => return Err(Refusal::Stale),
            Some(_) => {}
        }
        self.revision += 1;
        let before = table.objects.remove(key);
        let change = Arc::new(Change { revision: self.revision, sequence, before, after: None });
        table.append(&change, partition);
        Ok(change)
    }

    /// Goes on at a revision above all that are known, without history: nobody can watch across this.
    pub fn begin_above(&mut self, revision: u64) {
        self.revision = self.revision.max(revision) + 1;
        self.compact(self.revision);
        for table in self.tables.iter_mut() {
            table.lost = self.revision;
        }
    }

    /// Forgets history up to and including a revision, as etcd does on the apiserver's request every five minutes.
    pub fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        if revision <= self.compacted {
            return;
        }
        self.compacted = revision;
        for table in self.tables.iter_mut() {
            if table.log.front().is_some_and(|change| change.revision <= revision) {
                let left = after(&table.log, revision);
                table.lost = table.log[table.log.len() - left.len() - 1].revision;
                table.log = left;
                let kept = table.partitions.iter().map(|(value, log)| (value.clone(), after(log, revision)));
                table.partitions = kept.filter(|(_, log)| !log.is_empty()).collect();
            }
        }
    }
}

impl Table {
    fn append(&mut self, change: &Arc<Change>, partition: Option<Name>) {
        self.log.push_back(change.clone());
        if let Some(value) = partition {
            self.partitions.get_or_default(value).push_back(change.clone());
        }
    }
}

/// The objects of one namespace of a map; all of them if it is empty.
pub fn in_namespace<'a>(objects: &'a Objects, namespace: &'a str) -> impl Iterator<Item = &'a Object> {
    let first = if objects.is_empty() { Name::default() } else { namespace.into() };
    objects
        .range(Key::new(first, Name::default())..)
        .take_while(move |(key, _)| namespace.is_empty() || *key.namespace == *namespace)
        .map(|(_, object)| object)
}

/// Where the first change after a revision stands.
pub fn position_after(log: &Log, revision: u64) -> usize {
    log.binary_search_by(|change| change.revision.cmp(&revision)).map_or_else(|at| at, |at| at + 1)
}

fn after(log: &Log, revision: u64) -> Log {
    log.clone().split_off(position_after(log, revision))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn map(name: &str) -> Object {
        Object::new::<ConfigMap>("default", name, ConfigMap::default())
    }

    fn store() -> Store {
        Store::new(crate::api::kinds::built_in().len())
    }

    #[test]
    fn a_write_needs_the_revision_it_read() {
        let mut store = store();
        let first = store.put(map("a"), None, None, 1).unwrap().revision;
        assert!(matches!(store.put(map("a"), None, None, 2).unwrap_err(), Refusal::Exists(_)));
        let second = store.put(map("a"), Some(first), None, 3).unwrap().revision;
        assert!(matches!(store.put(map("a"), Some(first), None, 4).unwrap_err(), Refusal::Stale));
        assert_eq!(second, first + 1);
        assert_eq!(store.revision(), second);
        assert!(matches!(store.put(map("b"), Some(second), None, 5).unwrap_err(), Refusal::Missing));
    }

    #[test]
    fn history_ends_where_it_was_compacted() {
        let mut store = store();
        for name in ["a", "b", "c"] {
            store.put(map(name), None, None, 1).unwrap();
        }
        let fork = store.clone();
        store.compact(3);
        let kind = KindRef::of::<ConfigMap>();
        let names = |store: &Store| store.log(kind.slot).iter().map(|c| c.key().name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&store), ["c"]);
        assert_eq!(names(&fork), ["a", "b", "c"]);
        assert_eq!(store.list(kind, "default").count(), 3);
        assert_eq!(store.list(kind, "other").count(), 0);
    }
}
