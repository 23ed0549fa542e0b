//! Who manages which fields of an object. Most objects are never asked, so a write is kept as what it was made of until
//! somebody asks; `cluster_core::apiserver::managed` then works out the entries.
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>

use std::sync::{Arc, OnceLock};

use super::Name;
use super::field_set::FieldSet;
use super::kind::KindRef;
use super::object::Parts;

/// The managers of an object's fields; nobody at first.
#[derive(Clone, Default)]
pub struct Managed(Option<Arc<Node>>);

enum Node {
    Entries(Vec<Entry>),
    Write { write: Write, before: Managed, pending: usize, entries: OnceLock<Vec<Entry>> },
}

/// An entry of `metadata.managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub manager: Name,
    /// By server-side apply; else by another write.
    pub applied: bool,
    pub api_version: Name,
    pub subresource: Name,
    /// In seconds since 1970; none if the manager only shares what others wrote.
    pub time: Option<i64>,
    pub fields: FieldSet,
}

/// A write whose fields nobody has asked for.
#[derive(Clone)]
pub struct Write {
    pub manager: Name,
    pub subresource: &'static str,
    pub kind: KindRef,
    /// In seconds since 1970.
    pub time: i64,
    /// What was stored; none if the write created the object.
    pub before: Option<Parts>,
    /// What the writer wanted, with defaults, before the server's own changes.
    pub after: Parts,
}

impl Managed {
    pub fn of(entries: Vec<Entry>) -> Managed {
        Managed((!entries.is_empty()).then(|| Arc::new(Node::Entries(entries))))
    }

    /// Nobody keeps track of the object.
    pub fn is_nobody(&self) -> bool {
        self.0.is_none()
    }

    /// What these managers manage after one more write.
    pub fn after(self, write: Write) -> Managed {
        let before = match self.0.as_deref() {
            // What is known needs no history.
            Some(Node::Write { entries, .. }) if entries.get().is_some() => {
                Managed::of(entries.get().cloned().unwrap_or_default())
            }
            _ => self,
        };
        let pending = before.pending() + 1;
        Managed(Some(Arc::new(Node::Write { write, before, pending, entries: OnceLock::new() })))
    }

    /// The last write and the managers before it, if nobody has asked since.
    pub fn last_write(&self) -> Option<(&Write, &Managed)> {
        match self.0.as_deref()? {
            Node::Write { write, before, entries, .. } if entries.get().is_none() => Some((write, before)),
            _ => None,
        }
    }

    /// How many writes nobody has asked for.
    pub fn pending(&self) -> usize {
        match self.0.as_deref() {
            Some(Node::Write { pending, entries, .. }) if entries.get().is_none() => *pending,
            _ => 0,
        }
    }

    /// The entries, worked out by `update` from those before a write.
    pub fn entries(&self, update: &dyn Fn(&[Entry], &Write) -> Vec<Entry>) -> &[Entry] {
        match self.0.as_deref() {
            None => &[],
            Some(Node::Entries(entries)) => entries,
            Some(Node::Write { write, before, entries, .. }) => {
                entries.get_or_init(|| update(before.entries(update), write))
            }
        }
    }
}
