//! `%%rust` cells: a controller, or any Rust, in a process of its own.

use super::Language;
use crate::output::{CellError, Completeness, Sink};
use crate::session::Session;

pub struct Rust;

/// The cell without its first line.
fn source(code: &str) -> &str {
    code.trim_start().split_once('\n').map_or("", |(_, rest)| rest)
}

impl Language for Rust {
    fn name(&self) -> &'static str {
        "rust"
    }

    fn claims(&self, code: &str) -> bool {
        code.trim_start().lines().next().is_some_and(|line| line.trim_end() == "%%rust")
    }

    fn run(&self, code: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
        crate::controls::cluster::possible("rust", session)?;
        session.run_rust(source(code), sink)
    }

    fn is_complete(&self, code: &str) -> Completeness {
        let open = source(code).chars().fold(0_i32, |depth, letter| match letter {
            '{' | '(' | '[' => depth + 1,
            '}' | ')' | ']' => depth - 1,
            _ => depth,
        });
        match open {
            0 => Completeness::Complete,
            depth if depth > 0 => Completeness::Incomplete { indent: "    ".into() },
            _ => Completeness::Unknown,
        }
    }
}
