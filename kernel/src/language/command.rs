//! Cells of commands: orders, done once, in order, with the text that the real programs print.

use std::cell::RefCell;

use super::caller;
use super::{Language, kubectl, offers, word_at};
use crate::commands::{self, Context, Stream};
use crate::controls;
use crate::output::{CellError, Completeness, Completion, Match, MimeBundle, Output, Sink, text};
use crate::session::Session;

pub struct Command;

impl Language for Command {
    fn name(&self) -> &'static str {
        "command"
    }

    fn claims(&self, _: &str) -> bool {
        true
    }

    fn run(&self, code: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
        run_lines(code, session, sink)
    }

    fn is_complete(&self, code: &str) -> Completeness {
        if commands::line::parse(code).is_ok() && !code.trim_end().ends_with('\\') {
            Completeness::Complete
        } else {
            Completeness::Incomplete { indent: String::new() }
        }
    }

    fn complete(&self, code: &str, cursor: usize, session: &mut Session) -> Completion {
        let (line_start, start) = word_at(code, cursor);
        let typed = &code[start..cursor];
        let before = command_words(&code[line_start..start]);
        let (mut start, mut matches) = (
            start,
            match before.as_slice() {
                [] => programs(),
                ["kubectl", words @ ..] => kubectl::words(words, typed, session),
                [program] => verbs(program).map(|verb| offered(verb, "verb")).collect(),
                _ => Vec::new(),
            },
        );
        // Behind `--name=` only the value is completed.
        let mut typed = typed;
        if let Some((flag, value)) = typed.split_once('=').filter(|_| typed.starts_with('-')) {
            (start, typed) = (start + flag.len() + 1, value);
        }
        matches.retain(|known| known.text.starts_with(typed));
        Completion { start, end: cursor, matches }
    }

    fn inspect(&self, code: &str, cursor: usize, session: &mut Session) -> Option<MimeBundle> {
        let line_start = code[..cursor].rfind('\n').map_or(0, |at| at + 1);
        let line = code[line_start..].lines().next()?;
        let begun = line.get(..cursor - line_start).unwrap_or(line).rfind(SEPARATORS).map_or(0, |at| at + 1);
        let words = command_words(&line[begun..]);
        let (name, rest) = words.split_first()?;
        let program = commands::find(name)?;
        let word = offers::word_around(code, cursor);
        if *name == "kubectl"
            && let Some(told) = kubectl::inspect(rest, word, session)
        {
            return Some(told);
        }
        let verb = rest.first().filter(|word| !word.starts_with('-'));
        let help = verb.map(|verb| vec![(*verb).to_owned(), "--help".into()]).unwrap_or_else(|| vec!["--help".into()]);
        let mut fork = session.cluster.clone();
        let mut files = commands::files::Memory::default();
        let mut context = Context::new(&mut fork, &mut files);
        program.run(&help, &mut context);
        Some(text(context.take_stdout()))
    }
}

/// What ends a command, so that another can follow.
const SEPARATORS: [char; 3] = ['|', ';', '&'];

/// The words of the last command in a part of a line, without the prompt of a shell.
fn command_words(line: &str) -> Vec<&str> {
    let begun = line.rfind(SEPARATORS).map_or(0, |at| at + 1);
    let mut words: Vec<&str> = line[begun..].split_whitespace().collect();
    if words.first().is_some_and(|word| word.ends_with('$')) {
        words.remove(0);
    }
    words
}

fn offered(text: impl Into<String>, kind: &str) -> Match {
    Match { text: text.into(), kind: kind.to_owned() }
}

fn programs() -> Vec<Match> {
    let known = commands::ALL.iter().map(|program| Match { text: program.name().into(), kind: program.about().into() });
    let controls =
        controls::ALL.iter().map(|control| Match { text: format!("%{}", control.name), kind: "control".into() });
    known.chain(controls).collect()
}

/// The words that can follow a program's name.
fn verbs(program: &str) -> Box<dyn Iterator<Item = &'static str>> {
    match program {
        "docker" => Box::new(["run", "ps", "stop", "kill", "rm", "logs", "start"].into_iter()),
        "crictl" => Box::new(["ps", "pods", "images", "logs"].into_iter()),
        "etcdctl" => Box::new(["get"].into_iter()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Runs the lines of a cell: those that begin with `%` are controls, the others commands. The first that fails ends the
/// cell; afterwards time runs until things have settled.
pub fn run_lines(code: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let mut script = String::new();
    let mut ran = false;
    let result = code.split_inclusive('\n').try_for_each(|line| {
        if line.trim_start().starts_with('%') && commands::line::parse(&script).is_ok() {
            run_script(&std::mem::take(&mut script), session, sink)?;
            controls::run(line, session, sink)
        } else {
            ran |= !line.trim().is_empty() && !line.trim_start().starts_with('#');
            script.push_str(line);
            Ok(())
        }
    });
    let result = result.and_then(|()| run_script(&script, session, sink));
    // What a failed line's forerunners began goes on, too.
    if ran && !matches!(&result, Err(error) if error.ename == "Interrupted") {
        session.settle(sink)?;
    }
    result
}

fn run_script(script: &str, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    if script.trim().is_empty() {
        return Ok(());
    }
    let language = session.language();
    let cause = session.cell_sequence();
    let code = {
        // Asked by the programs that wait, and written to between them.
        let sink = RefCell::new(&mut *sink);
        let interrupted = || sink.borrow().interrupted();
        let namespace = session.namespace();
        let mut api = caller::api(&mut session.cluster, session.away.as_mut(), cause, &interrupted);
        let mut context = Context::new(api.as_mut(), session.files.as_mut());
        (context.namespace, context.kubeconfig) = (namespace, Some(&mut session.kubeconfig));
        context.language = language.code().to_owned();
        commands::shell::run(script, &mut context, &mut |stream, written| {
            sink.borrow_mut().put(match stream {
                Stream::Stdout => Output::Stdout(written),
                Stream::Stderr => Output::Stderr(written),
                Stream::Pager => Output::Page(text(written)),
            });
        })
    };
    if sink.interrupted() {
        return Err(session.interrupted());
    }
    let code = code.map_err(|problem| CellError::new("SyntaxError", problem.to_string()))?;
    if code == 0 {
        return Ok(());
    }
    let message = if language.is_japanese() { format!("終了コード {code}") } else { format!("exit code {code}") };
    Err(CellError::new("CommandFailed", message))
}
