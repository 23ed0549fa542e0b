//! `%%cluster NAME` cells: whatever stands below, in another of the session's clusters.

use super::{Language, of, word_at};
use crate::controls;
use crate::output::{CellError, Completeness, Completion, Match, MimeBundle, Sink};
use crate::session::Session;

pub struct Cluster;

const USAGE: &str = "usage: %%cluster NAME, and below it a cell of any language (%fork NAME makes a cluster)";

/// The name, and the cell below, on the lines and at the offsets where it stands.
fn parts(code: &str) -> Option<(&str, String)> {
    let from = code.len() - code.trim_start().len();
    let end = code[from..].find('\n').map_or(code.len(), |at| from + at);
    let name = code[from..end].strip_prefix("%%cluster")?;
    let name = Some(name).filter(|name| name.is_empty() || name.starts_with(char::is_whitespace))?;
    let blank = |letter: char| if letter == '\n' { "\n".to_owned() } else { " ".repeat(letter.len_utf8()) };
    Some((name.trim(), code[..end].chars().map(blank).collect::<String>() + &code[end..]))
}

impl Language for Cluster {
    fn name(&self) -> &'static str {
        "cluster"
    }

    fn claims(&self, code: &str) -> bool {
        parts(code).is_some()
    }

    fn run(&self, code: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
        let usage = || CellError::new("UsageError", USAGE);
        let (name, below) = parts(code).filter(|(name, _)| !name.is_empty()).ok_or_else(usage)?;
        controls::cluster::possible("clusters", session)?;
        session.in_cluster(name, code, |session| of(&below).run(&below, session, sink))
    }

    fn is_complete(&self, code: &str) -> Completeness {
        match parts(code) {
            Some((_, below)) if below.trim().is_empty() => Completeness::Incomplete { indent: String::new() },
            Some((_, below)) => of(&below).is_complete(&below),
            None => Completeness::Unknown,
        }
    }

    fn complete(&self, code: &str, cursor: usize, session: &mut Session) -> Completion {
        let nothing = || Completion { start: cursor, end: cursor, matches: Vec::new() };
        let Some((name, below)) = parts(code) else { return nothing() };
        if below[..cursor].trim().is_empty() && !below[..cursor].contains('\n') {
            let (_, start) = word_at(code, cursor);
            let known = session.clusters().filter(|(known, _)| known.starts_with(&code[start..cursor]));
            let matches = known.map(|(name, _)| Match { text: name.to_owned(), kind: "cluster".into() }).collect();
            return Completion { start, end: cursor, matches };
        }
        let complete = |session: &mut Session| of(&below).complete(&below, cursor, session);
        session.as_cluster(name, complete).unwrap_or_else(nothing)
    }

    fn inspect(&self, code: &str, cursor: usize, session: &mut Session) -> Option<MimeBundle> {
        let (name, below) = parts(code)?;
        session.as_cluster(name, |session| of(&below).inspect(&below, cursor, session)).flatten()
    }
}
