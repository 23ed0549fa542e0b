//! The languages of cells: one file each, one line in [`ALL`].

mod caller;
mod cluster;
mod command;
mod control;
mod fields;
mod kubectl;
mod manifest;
mod offers;
mod rust;
mod static_pod;

use crate::output::{CellError, Completeness, Completion, MimeBundle, Sink};
use crate::session::Session;

/// A language that cells can be written in.
pub trait Language: Sync {
    fn name(&self) -> &'static str;

    /// True if a cell is written in this language, by how it begins.
    fn claims(&self, code: &str) -> bool;

    fn run(&self, code: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError>;

    fn is_complete(&self, code: &str) -> Completeness;

    /// Completions at a cursor (a byte offset); positions of the answer are byte offsets, too.
    fn complete(&self, _code: &str, cursor: usize, _session: &mut Session) -> Completion {
        Completion { start: cursor, end: cursor, matches: Vec::new() }
    }

    /// Help for what stands at a cursor (a byte offset).
    fn inspect(&self, _code: &str, _cursor: usize, _session: &mut Session) -> Option<MimeBundle> {
        None
    }
}

/// In the order in which they are asked; the last one takes whatever is left.
pub const ALL: &[&dyn Language] = &[
    &rust::Rust,
    &cluster::Cluster,
    &static_pod::StaticPod,
    &control::Control,
    &manifest::Manifest,
    &command::Command,
];

pub fn of(code: &str) -> &'static dyn Language {
    *ALL.iter().find(|language| language.claims(code)).unwrap_or(&ALL[ALL.len() - 1])
}

/// Where the word begins that ends at a cursor, and the line in which it stands: byte offsets.
fn word_at(code: &str, cursor: usize) -> (usize, usize) {
    let line = code[..cursor].rfind('\n').map_or(0, |at| at + 1);
    // A Japanese keyboard's space is wider than a byte.
    let word = code[line..cursor].trim_end_matches(|letter: char| !letter.is_whitespace());
    (line, line + word.len())
}

/// The first line that says something.
fn first_line(code: &str) -> &str {
    code.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_known_by_how_it_begins() {
        for (code, name) in [
            ("%%rust\nfn main() {}", "rust"),
            ("# wait a little\n%advance 3s", "control"),
            ("apiVersion: v1\nkind: Pod", "manifest"),
            ("---\nkind: Pod", "manifest"),
            ("{\"kind\": \"Pod\"}", "manifest"),
            ("kubectl get pods", "command"),
            ("node-1$ crictl ps", "command"),
        ] {
            assert_eq!(of(code).name(), name, "{code}");
        }
    }
}
