//! Who asks, and what led to it: what a request carries for the record.

use std::sync::Arc;

use super::Name;

/// The number of an entry; entries are numbered from 1 without gaps.
pub type Sequence = u64;

/// A component or a person: `kubectl`, `deployment-controller`, `kube-scheduler`, `kubelet/node-1`.
pub type Actor = Name;

/// The entries that led to something. Most things have one cause; a reconcile may merge many.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Causes {
    #[default]
    None,
    One(Sequence),
    Many(Arc<[Sequence]>),
}

impl Causes {
    pub fn as_slice(&self) -> &[Sequence] {
        match self {
            Causes::None => &[],
            Causes::One(sequence) => std::slice::from_ref(sequence),
            Causes::Many(sequences) => sequences,
        }
    }

    /// Adds a cause; a merged cause list keeps the newest 32.
    pub fn add(&mut self, sequence: Sequence) {
        if sequence == 0 || self.as_slice().contains(&sequence) {
            return;
        }
        let known = self.as_slice();
        *self = if known.is_empty() {
            Causes::One(sequence)
        } else {
            let kept = known.len().saturating_sub(31);
            Causes::Many(known[kept..].iter().copied().chain([sequence]).collect())
        };
    }

    pub fn merge(&mut self, other: &Causes) {
        for &sequence in other.as_slice() {
            self.add(sequence);
        }
    }
}

impl From<Sequence> for Causes {
    fn from(sequence: Sequence) -> Causes {
        if sequence == 0 { Causes::None } else { Causes::One(sequence) }
    }
}
