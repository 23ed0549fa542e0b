//! Walks over causes: why something happened.

use std::collections::BTreeSet;

use super::{Entry, RequestEntry, Sequence, Trace, What};
use crate::api::Key;
use crate::api::kind::KindRef;

/// The newest write to an object.
pub fn last_write<'a>(trace: &'a Trace, kind: &KindRef, key: &Key) -> Option<(&'a Entry, &'a RequestEntry)> {
    trace.writes().rev().find(|(_, write)| write.kind.slot == kind.slot && write.key == *key)
}

/// Everything that led to an entry, oldest first, the entry itself last. Of several causes the earliest one of each is
/// followed, at most `depth` steps back.
pub fn chain(trace: &Trace, of: Sequence, depth: usize) -> Vec<&Entry> {
    let mut seen = BTreeSet::from([of]);
    let mut frontier = vec![of];
    for _ in 0..depth {
        let mut earlier = Vec::new();
        for sequence in frontier {
            let causes = trace.get(sequence).map(|entry| entry.causes.as_slice()).unwrap_or_default();
            earlier.extend(causes.iter().copied().filter(|&cause| seen.insert(cause)));
        }
        if earlier.is_empty() {
            break;
        }
        frontier = earlier;
    }
    seen.into_iter().filter_map(|sequence| trace.get(sequence)).collect()
}

/// True if the entry has to do with that object.
pub fn concerns(entry: &Entry, kind: &KindRef, key: &Key) -> bool {
    match &entry.what {
        What::Request(request) => request.kind.slot == kind.slot && request.key == *key,
        What::Container(container) => &*kind.kind == "Pod" && container.pod == *key,
        What::Note { about, .. } => about == key,
        _ => false,
    }
}
