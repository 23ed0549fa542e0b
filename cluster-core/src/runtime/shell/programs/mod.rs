//! The programs that a container's shell finds: one row each.

mod agnhost;
mod awk;
mod builtins;
pub mod files;
mod grep;
mod net;
mod sed;
mod system;
mod test;
mod text;
mod web;

use std::sync::Arc;
use std::time::Duration;

use super::input::{Input, Output};
use super::jobs::{Job, Role};
use super::parse::{self, Op};
use super::{Outcome, Script, Surroundings, pattern};
use crate::clock::Time;
use crate::network::question::Answer;
use crate::runtime::image_table;
pub use system::sysctl_path;

/// A program that is called, perhaps not for the first time: it is called again until it is done.
pub(super) struct Call<'a, 'b> {
    /// As it is called, and without its folder.
    pub command: &'a str,
    pub name: &'a str,
    pub args: &'a [&'a str],
    pub kept: Kept<'a>,
    pub input: &'a mut Input,
    pub script: &'a mut Script,
    pub around: &'a mut Surroundings<'b>,
    pub out: &'a mut Output,
}

/// What there is from a program's earlier calls.
pub(super) struct Kept<'a> {
    /// The moment of the first.
    pub began: Time,
    pub memory: &'a mut Vec<String>,
    /// What the network has told it.
    pub answers: &'a [Answer],
}

type Run = fn(&mut Call<'_, '_>) -> Outcome;

#[rustfmt::skip]
const PROGRAMS: &[(&str, Run)] = &[
    ("agnhost", agnhost::run), ("agnhost-2", agnhost::run), ("ip", system::ip), ("nnp", system::effective_user),
    (".", builtins::source), (":", |_| Outcome::Done(0)), ("[", test::run), ("[[", test::run),
    ("alias", |_| Outcome::Done(0)), ("awk", awk::run), ("base64", text::base64), ("basename", text::basename),
    ("cat", text::cat), ("cd", builtins::cd), ("chgrp", files::run), ("chmod", files::run), ("chown", files::run),
    ("clear", |_| Outcome::Done(0)), ("command", builtins::command), ("cp", files::run), ("cut", text::cut),
    ("date", system::date), ("dd", files::run), ("df", system::df), ("dirname", text::dirname), ("du", files::run),
    ("echo", builtins::echo), ("egrep", grep::run), ("env", builtins::env), ("eval", builtins::eval),
    ("exec", builtins::exec), ("exit", builtins::exit), ("export", builtins::export), ("expr", builtins::expr),
    ("false", |_| Outcome::Done(1)), ("fgrep", grep::run), ("find", files::run), ("free", system::free),
    ("getconf", system::getconf), ("grep", grep::run), ("groups", system::id), ("head", text::head),
    ("hostname", system::hostname), ("id", system::id), ("jobs", |_| Outcome::Done(0)), ("kill", builtins::kill),
    ("let", builtins::let_), ("ln", files::run), ("local", builtins::export), ("ls", files::run),
    ("md5sum", text::digest), ("mkdir", files::run), ("mktemp", files::run), ("mount", system::mount),
    ("mv", files::run), ("node", language), ("nohup", builtins::command), ("nproc", system::nproc),
    ("perl", language), ("printenv", builtins::env), ("printf", builtins::printf), ("ps", system::ps),
    ("pwd", builtins::pwd), ("python", language), ("python3", language), ("read", builtins::read),
    ("readlink", files::run), ("readonly", builtins::export), ("realpath", files::run),
    ("return", builtins::return_), ("rev", text::rev), ("rm", files::run), ("rmdir", files::run),
    ("sed", sed::run), ("seq", text::seq), ("set", builtins::set), ("sha256sum", text::digest),
    ("shift", builtins::shift), ("sleep", builtins::sleep), ("sort", text::sort), ("source", builtins::source),
    ("stat", files::run), ("sync", |_| Outcome::Done(0)), ("sysctl", system::sysctl), ("tac", text::tac), ("tail", text::tail),
    ("tee", text::tee), ("test", test::run), ("time", builtins::command), ("timeout", builtins::timeout),
    ("touch", files::run), ("tr", text::tr), ("trap", builtins::trap), ("true", |_| Outcome::Done(0)),
    ("truncate", files::run), ("tty", system::tty), ("type", builtins::which), ("ulimit", system::ulimit),
    ("umask", system::umask), ("uname", system::uname), ("uniq", text::uniq), ("unset", builtins::unset),
    ("uptime", system::uptime), ("wait", |_| Outcome::WaitsForJobs), ("wc", text::wc),
    ("wget", web::wget), ("curl", web::curl), ("nc", net::nc), ("nslookup", net::nslookup), ("dig", net::dig),
    ("getent", net::getent), ("ping", net::ping), ("netcat", net::nc),
    ("which", builtins::which), ("whoami", system::id), ("xargs", text::xargs), ("yes", text::yes),
];

pub fn is_shell(word: &str) -> bool {
    matches!(base(word), "sh" | "bash" | "ash" | "dash")
}

fn find(word: &str) -> Option<Run> {
    let name = base(word);
    PROGRAMS.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}

/// A subcommand of agnhost that is run as a command.
pub fn is_agnhost_tool(subcommand: &str) -> bool {
    agnhost::is_tool(subcommand)
}

/// A command that this shell can run.
pub fn is_known(word: &str) -> bool {
    is_shell(word) || find(word).is_some()
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The instructions of `sh -c TEXT NAME ARGUMENT…`, with the shell's name and its arguments.
pub(super) fn shell_text(words: &[String]) -> Option<(Arc<[Op]>, String, Vec<String>)> {
    let (shell, rest) = words.split_first().filter(|(shell, _)| is_shell(shell))?;
    let count = rest.iter().take_while(|word| word.starts_with('-') && word.len() > 1).count();
    let (flags, rest) = rest.split_at(count);
    let letters: String = flags.iter().filter(|flag| !flag.starts_with("--")).map(|flag| &flag[1..]).collect();
    if !letters.contains('c') {
        return None;
    }
    let (text, rest) = rest.split_first()?;
    let options: String = letters.chars().filter(|letter| "eux".contains(*letter)).collect();
    let text = if options.is_empty() { text.clone() } else { format!("set -{options}\n{text}") };
    let name = rest.first().unwrap_or(shell).clone();
    Some((parse::script(&text), name, rest.iter().skip(1).cloned().collect()))
}

/// Calls a program by the words of its line.
pub(super) fn run(
    words: &[String],
    kept: Kept<'_>,
    input: &mut Input,
    script: &mut Script,
    around: &mut Surroundings<'_>,
    out: &mut Output,
) -> Outcome {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((&command, args)) = words.split_first() else { return Outcome::Done(0) };
    if let Some(body) = script.functions.get(command).cloned() {
        let mut called = script.child(body);
        called.arguments = args.iter().map(|arg| (*arg).to_owned()).collect();
        return here(called);
    }
    let mut call = Call { command, name: base(command), args, kept, input, script, around, out };
    if let Some(program) = find(command) {
        return program(&mut call);
    }
    if is_shell(command) {
        return shell(command, &mut call);
    }
    let path = files::absolute(&call.script.folder, command);
    if command.contains('/') && call.around.files.read(&path).is_some() {
        return file(&path, command, args, &mut call);
    }
    if let Some(program) = image_table::by_binary(command) {
        return Outcome::Becomes(program.binary);
    }
    let shell = call.script.name.clone();
    call.out.error_line(&format!("{shell}: {command}: not found"));
    Outcome::Done(127)
}

/// A script that runs in the place of a command, and shares its variables with the one around.
fn here(script: Script) -> Outcome {
    Outcome::Runs(Job::of(script, Role::Foreground { shares_variables: true }).into())
}

/// A script that runs in the place of a command.
fn apart(script: Script) -> Outcome {
    Outcome::Runs(Job::of(script, Role::Foreground { shares_variables: false }).into())
}

/// `sh -c TEXT`, `sh FILE`, or a shell that reads its commands.
fn shell(command: &str, call: &mut Call<'_, '_>) -> Outcome {
    let words: Vec<String> = std::iter::once(command).chain(call.args.iter().copied()).map(str::to_owned).collect();
    if let Some((ops, name, arguments)) = shell_text(&words) {
        return apart(Script { name, arguments, ..call.script.child(ops) });
    }
    let count = call.args.iter().take_while(|arg| arg.starts_with(['-', '+'])).count();
    match call.args.get(count) {
        Some(path) => file(&files::absolute(&call.script.folder, path), path, &call.args[count + 1..], call),
        None => match call.input.take_all() {
            Some(text) => apart(call.script.child(parse::script(&text))),
            None => Outcome::Reads,
        },
    }
}

/// Runs a file: a shell's script, as far as its first line does not say that it is another's.
fn file(path: &str, shown: &str, args: &[&str], call: &mut Call<'_, '_>) -> Outcome {
    let Some(text) = call.around.files.read(path).map(str::to_owned) else {
        let shell = call.script.name.clone();
        call.out.error_line(&format!("{shell}: can't open '{shown}': No such file or directory"));
        return Outcome::Done(2);
    };
    let first = text.lines().next().and_then(|line| line.strip_prefix("#!")).unwrap_or("sh");
    if !first.split_whitespace().any(is_shell) {
        return language(call);
    }
    let arguments = args.iter().map(|arg| (*arg).to_owned()).collect();
    // A shell that runs a file is the process that signals come to: its trap is known outside.
    here(Script { name: shown.to_owned(), arguments, ..call.script.child(parse::script(&text)) })
}

/// Programs in a language of their own work for a while and are done.
fn language(_: &mut Call<'_, '_>) -> Outcome {
    Outcome::Sleeps(Duration::from_secs(2), 0)
}

impl Call<'_, '_> {
    /// Says what is wrong and ends.
    fn fail(&mut self, status: i32, problem: &str) -> Outcome {
        let line = format!("{}: {problem}", self.name);
        self.out.error_line(&line);
        Outcome::Done(status)
    }

    /// The text of a file.
    fn read(&self, path: &str) -> Result<String, &'static str> {
        let place = files::absolute(&self.script.folder, path);
        match self.around.files.read(&place) {
            Some(text) => Ok(text.to_owned()),
            None if place == "/dev/null" => Ok(String::new()),
            None if self.around.files.is_folder(&place) => Err("Is a directory"),
            None => system::made_up(&place, self).ok_or("No such file or directory"),
        }
    }

    /// The texts of files, or of what there is to read without any; `None` until all of that has come.
    fn texts<'p>(&mut self, paths: &[&'p str]) -> Option<Vec<(&'p str, Result<String, &'static str>)>> {
        let paths = if paths.is_empty() { &["-"] } else { paths };
        let mut all = Vec::new();
        for path in paths {
            let text = match *path {
                "-" | "/dev/stdin" => Ok(self.input.take_all()?),
                path => self.read(path),
            };
            all.push((*path, text));
        }
        Some(all)
    }

    /// The same as one text; what can't be read is said. `Err` has how the program ends then.
    fn text(&mut self, paths: &[&str]) -> Result<String, Outcome> {
        let Some(texts) = self.texts(paths) else { return Err(Outcome::Reads) };
        let mut whole = String::new();
        let mut failed = false;
        for (path, text) in texts {
            match text {
                Ok(text) => whole.push_str(&text),
                Err(why) => {
                    failed = true;
                    self.fail(1, &format!("{path}: {why}"));
                }
            }
        }
        if failed && whole.is_empty() { Err(Outcome::Done(1)) } else { Ok(whole) }
    }
}

/// Letters of flags without values, and the other arguments.
fn letters<'a>(args: &[&'a str]) -> (String, Vec<&'a str>) {
    let mut flags = String::new();
    let mut rest = Vec::new();
    let mut only_arguments = false;
    for arg in args {
        match arg.strip_prefix('-') {
            Some("-") if !only_arguments => only_arguments = true,
            Some(long) if !only_arguments && long.starts_with('-') => {}
            Some(letters) if !only_arguments && !letters.is_empty() => flags.push_str(letters),
            _ => rest.push(*arg),
        }
    }
    (flags, rest)
}

/// `5`, `0.5`, `10s`, `2m`, `infinity`.
fn duration(text: &str) -> Option<Duration> {
    if matches!(text, "infinity" | "inf") {
        return Some(Duration::from_secs(u32::MAX.into()));
    }
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let factor = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * factor;
    (0.0..1e9).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}
