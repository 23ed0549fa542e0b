//! What is told of a run: its seed, what could happen in it, what did, and the last entries of the trace with their causes.

use std::fmt::Write;

use cluster_core::Cluster;
use cluster_core::trace::{Entry, What};

use crate::run::Run;

/// The variable that says how many entries of the trace are told.
pub const ASKED: &str = "KERNETES_SWARM_STORY";
/// So many are told if nobody asks for more.
const ENTRIES: u64 = 40;
/// So far back go the causes of the last one.
const DEPTH: usize = 12;

pub fn tell(run: &Run, what: &str) -> String {
    let features: Vec<&str> = run.features().copied().collect();
    let mut text = format!("seed {}\nfeatures: {}\n", run.seed, features.join(", "));
    for action in &run.actions {
        let _ = writeln!(text, "  {action}");
    }
    let _ = writeln!(text, "{} FAILED: {what}", run.now());
    let trace = run.cluster.trace();
    let last = run.last_seen();
    let _ = writeln!(text, "what led to entry {last}:");
    for entry in cluster_core::trace::causes::chain(trace, last, DEPTH) {
        let _ = writeln!(text, "  {}", line(entry));
    }
    let _ = writeln!(text, "the last entries:");
    let asked = std::env::var(ASKED).ok().and_then(|text| text.parse().ok());
    let from = last.saturating_sub(asked.unwrap_or(ENTRIES)).max(1);
    for sequence in from..=last {
        if let Some(entry) = trace.get(sequence) {
            let _ = writeln!(text, "  {}", line(entry));
        }
    }
    text
}

/// An entry in one line.
pub fn line(entry: &Entry) -> String {
    let what = match &entry.what {
        What::Request(write) => {
            let slash = if write.subresource.is_empty() { "" } else { "/" };
            format!(
                "{} {}{slash}{} {}: {} @{} {}",
                write.verb.as_str(),
                write.kind.kind,
                write.subresource,
                write.key,
                write.code,
                write.revision,
                write.reason
            )
        }
        What::Reconcile { key, kind, writes, note } => format!("reconcile {kind} {key}: {writes} writes {note}"),
        What::Container(of) => format!("{} {}/{} {:?}", of.node, of.pod, of.container, of.phase),
        What::Rules { node, service, endpoints } => format!("rules of {service} on {node}: {endpoints} endpoints"),
        What::Connection(of) => format!("{} to {}: {}", of.from, of.to, of.outcome),
        What::Fault(text) | What::Cell(text) => text.to_string(),
        What::Note { about, text } => format!("{about}: {text}"),
    };
    format!("#{} {} {} {what} <- {:?}", entry.sequence, entry.at, entry.actor, entry.causes.as_slice())
}

/// Where the traces of two clusters part, or what differs in the end.
pub fn first_difference(one: &Cluster, other: &Cluster) -> Option<String> {
    for (a, b) in one.trace().iter().zip(other.trace().iter()) {
        let (a_line, b_line) = (line(a), line(b));
        if a_line != b_line {
            return Some(format!("\n  {a_line}\n  {b_line}"));
        }
    }
    if one.trace().len() != other.trace().len() {
        return Some(format!("{} entries, {}", one.trace().len(), other.trace().len()));
    }
    for kind in one.kinds() {
        for (a, b) in one.list_of(kind, "").zip(other.list_of(kind, "")) {
            let (a, b) = (cluster_core::apiserver::managed::to_json(a), cluster_core::apiserver::managed::to_json(b));
            if a != b {
                return Some(format!("\n  {a}\n  {b}"));
            }
        }
    }
    None
}
