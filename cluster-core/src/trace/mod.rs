//! The one record of what happened: who did what to which object at which moment, and because of what.
//!
//! Plots, `%why` and graders read nothing else.

use std::sync::Arc;

use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::Verb;
use crate::api::{Key, Name};
use crate::clock::Time;

pub mod causes;

pub use crate::api::cause::{Actor, Causes, Sequence};

#[derive(Clone, Debug)]
pub struct Entry {
    pub sequence: Sequence,
    pub at: Time,
    pub actor: Actor,
    pub causes: Causes,
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// A request that could change something, granted or refused; or a read that was refused, or spelt out by its path.
    Request(Box<RequestEntry>),
    /// A controller looked at a key, with the number of writes it then wanted and the runner's word on a refusal.
    Reconcile { key: Key, kind: Name, writes: usize, note: Name },
    /// Something happened to a container or its sandbox.
    Container(Box<ContainerEntry>),
    /// A node's kube-proxy has put rules for a Service in place.
    Rules { node: Name, service: Key, endpoints: usize },
    /// A connection travelled, or failed to.
    Connection(Box<ConnectionEntry>),
    /// A fault began or ended, a component stopped or started, a node lost power: in words.
    Fault(Name),
    /// A cell of the notebook was run: its text.
    Cell(Name),
    /// Something a component wants to tell: a scheduling verdict, a probe's result.
    Note { about: Key, text: Name },
}

/// A write and its outcome.
#[derive(Clone, Debug)]
pub struct RequestEntry {
    pub verb: Verb,
    pub kind: KindRef,
    pub key: Key,
    pub subresource: &'static str,
    /// The HTTP code of the answer.
    pub code: u16,
    /// Why the actor did this, in its own words; for a refusal, the server's message. Of kubectl it is the command.
    pub reason: Name,
    /// The store's revision after the write; 0 if nothing changed.
    pub revision: u64,
    pub before: Option<Object>,
    pub after: Option<Object>,
}

impl RequestEntry {
    /// It changed the store.
    pub fn is_write(&self) -> bool {
        self.revision > 0
    }

    /// The object that it was about, as it was last seen.
    pub fn object(&self) -> Option<&Object> {
        self.after.as_ref().or(self.before.as_ref())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ContainerEntry {
    pub node: Name,
    /// The pod; for a plain container host, namespace "" and the container's name.
    pub pod: Key,
    pub pod_uid: Name,
    /// Empty when the entry is about the pod's sandbox.
    pub container: Name,
    pub image: Name,
    pub phase: ContainerPhase,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ContainerPhase {
    SandboxCreated,
    Pulling,
    Pulled,
    PullFailed {
        message: Name,
    },
    Created,
    Started,
    Ready,
    NotReady,
    /// A signal was sent: `SIGTERM`, `SIGKILL`.
    Signalled(&'static str),
    Exited {
        code: i32,
        reason: &'static str,
    },
    /// The kubelet waits before it starts the container again.
    BackingOff {
        seconds: u64,
    },
    SandboxRemoved,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionEntry {
    /// Where it was opened: a pod, a node, `outside`.
    pub from: Name,
    pub to: Name,
    /// The Service that it went through, if any.
    pub service: Option<Key>,
    /// The pod that answered.
    pub backend: Option<Key>,
    /// What the client saw: `200`, or an error in words.
    pub outcome: Name,
    pub ok: bool,
    /// The NetworkPolicies that isolate an end of it, none of which lets it pass.
    pub barred_by: Vec<Key>,
}

/// Entries in order; cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    entries: imbl::Vector<Arc<Entry>>,
    next: Sequence,
}

impl Trace {
    /// Adds an entry and returns its number.
    pub fn record(&mut self, at: Time, actor: &Actor, causes: Causes, what: What) -> Sequence {
        self.next += 1;
        let entry = Entry { sequence: self.next, at, actor: actor.clone(), causes, what };
        self.entries.push_back(Arc::new(entry));
        self.next
    }

    /// The number that the next entry will have.
    pub fn next_sequence(&self) -> Sequence {
        self.next + 1
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter().map(|entry| &**entry)
    }

    /// Entries from that number on.
    pub fn since(&self, sequence: Sequence) -> impl Iterator<Item = &Entry> {
        self.entries.iter().skip(sequence.saturating_sub(1) as usize).map(|entry| &**entry)
    }

    pub fn get(&self, sequence: Sequence) -> Option<&Entry> {
        self.entries.get(usize::try_from(sequence.checked_sub(1)?).ok()?).map(|entry| &**entry)
    }

    /// Writes that changed the store, oldest first.
    pub fn writes(&self) -> impl DoubleEndedIterator<Item = (&Entry, &RequestEntry)> {
        self.iter().filter_map(|entry| match &entry.what {
            What::Request(request) if request.is_write() => Some((entry, &**request)),
            _ => None,
        })
    }
}
