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
            let before: Vec<&str> = code[line_start..start].split_whitespace().collect();
            let (name, before) = before.split_first().map_or(("", Vec::new()), |(name, rest)| (*name, rest.to_vec()));
            let typed = controls::Typed { before, word: &code[start..cursor] };
            let control = controls::find(name.trim_start_matches('%'));
            let words = control.map(|control| (control.words)(session, &typed)).unwrap_or_default();
            let matches = words.into_iter().filter(|word| word.starts_with(typed.word));
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
        let Some(body) = line.strip_prefix('%') else {
            return super::command::Command.inspect(code, cursor, session);
        };
        let word = super::offers::word_around(code, cursor);
        let object = word.contains('/').then(|| super::offers::object(session, word)).flatten();
        object.or_else(|| {
            let control = controls::find(body.split_whitespace().next()?)?;
            Some(text(control.help(session.language())))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::controls::testing::{run, session};

    #[test]
    fn arguments_fit_the_control_and_its_place() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx");
        let mut words = |code: &str| -> Vec<String> {
            session.complete(code, code.len()).matches.into_iter().map(|found| found.text).collect()
        };
        assert_eq!(words("%plot pack"), ["packing"]);
        assert_eq!(words("%plot queue deployment-"), ["deployment-controller"]);
        assert_eq!(words("%until deployment/w"), ["deployment/web"]);
        assert_eq!(words("%until deploy/w"), ["deploy/web"]);
        assert_eq!(words("%until deployment/web Av"), ["Available"]);
        assert_eq!(words("%rewind --"), ["--dry-run"]);
        assert_eq!(words("%%cluster ma"), ["main"]);
        assert_eq!(words("%%cluster main\nkubectl get deployments w"), ["web"]);
    }

    #[test]
    fn help_is_of_the_control_or_of_the_object_at_the_cursor() {
        let mut session = session();
        run(&mut session, "kubectl create deployment web --image=nginx");
        let mut told = |code: &str, cursor: usize| -> String {
            let told = session.inspect(code, cursor).unwrap_or_default();
            told.get("text/plain").and_then(|text| text.as_str()).unwrap_or_default().to_owned()
        };
        assert!(told("%until deployment/web Available", 2).starts_with("%until KIND/NAME"));
        assert!(told("%until deployment/web Available", 16).starts_with("Name:                   web"));
    }
}
