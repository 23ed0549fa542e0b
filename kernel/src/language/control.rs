//! Cells of `%` controls, one a line; other lines among them are commands.

use super::{Language, first_line, word_at};
use crate::controls;
use crate::output::{CellError, Completeness, Completion, Match, MimeBundle, Sink, text};
use crate::session::Session;

pub struct Control;

impl Language for Control {
    fn name(&self) -> &'static str {
        "control"
    }

    fn claims(&self, code: &str) -> bool {
        first_line(code).starts_with('%')
    }

    fn run(&self, code: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
        super::command::run_lines(code, session, sink)
    }

    fn is_complete(&self, code: &str) -> Completeness {
        super::command::Command.is_complete(code)
    }

    fn complete(&self, code: &str, cursor: usize, session: &mut Session) -> Completion {
        let (line_start, start) = word_at(code, cursor);
        let line = &code[line_start..cursor];
        let Some(typed) = line.strip_prefix('%') else {
            return super::command::Command.complete(code, cursor, session);
        };
        if typed.contains(char::is_whitespace) {
            let name = typed.split_whitespace().next().unwrap_or_default();
            let typed = &code[start..cursor];
            let words = controls::find(name).map(|control| (control.words)(session)).unwrap_or_default();
            let matches = words.into_iter().filter(|word| word.starts_with(typed));
            let matches = matches.map(|text| Match { text, kind: "argument".into() }).collect();
            return Completion { start, end: cursor, matches };
        }
        let known = controls::ALL.iter().filter(|control| control.name.starts_with(typed));
        let matches =
            known.map(|control| Match { text: format!("%{}", control.name), kind: "control".into() }).collect();
        Completion { start: line_start, end: cursor, matches }
    }

    fn inspect(&self, code: &str, cursor: usize, session: &mut Session) -> Option<MimeBundle> {
        let line_start = code[..cursor].rfind('\n').map_or(0, |at| at + 1);
        let line = code[line_start..].lines().next()?;
        let name = line.strip_prefix('%')?.split_whitespace().next()?;
        controls::find(name).map(|control| text(control.help(session.language())))
    }
}
