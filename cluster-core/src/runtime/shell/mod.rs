//! The shell of a container: a small interpreter of the sequences that manifests have in `sh -c "…"`.
//!
//! It knows `;`, `&&`, `||`, `!`, newlines, `if`, `while`, `until`, `for`, `( )`, `{ }`, `break`, `continue`, quotes,
//! `$NAME`, `$?`, `$((…))`, `$(…)`, redirections to files, and the commands of [`commands`]. It has no pipes and no
//! background jobs, and says so.

mod commands;
pub mod files;
mod parse;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::files::Files;
use super::programs::{OnTerm, Turn};
use crate::clock::{Class, Time};
pub use commands::{is_known, is_shell};
use parse::{Op, Piece, Word};

/// Instructions that a script may do without waiting, before it is put aside for a moment.
const BURST: usize = 2000;

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How deep `$( )` may be nested.
const DEPTH_MAX: usize = 10;

/// A command line on its way.
#[derive(Clone, Debug)]
pub struct Script {
    ops: Arc<[Op]>,
    at: usize,
    status: i32,
    variables: imbl::OrdMap<String, String>,
    /// What the `for` loops that are open have still to do, by loop.
    lists: Vec<VecDeque<String>>,
    hostname: String,
    /// Where it is: other paths begin there. Empty for the root.
    folder: String,
    /// What a `trap … TERM` does.
    trap: Option<String>,
    /// How many outputs of commands this script is inside of.
    depth: usize,
    /// The exit code after the current wait, if the shell has been replaced by the command that waits.
    ends_after: bool,
}

/// What one command came to.
enum Outcome {
    Done(i32),
    Sleeps(Duration),
    Waits,
    Exits(i32),
    Becomes(&'static str),
}

impl Script {
    /// A command line as a container gets it: `["sh", "-c", "…"]`, or a program with its arguments.
    pub fn new(words: &[String], environment: &[(String, String)], hostname: &str, folder: &str) -> Script {
        let own = [("HOME", "/root"), ("HOSTNAME", hostname), ("PATH", PATH)];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let variables = own.chain(environment.iter().cloned()).collect();
        let ops = match words {
            [shell, flag, text, ..] if commands::is_shell(shell) && flag.starts_with('-') && flag.ends_with('c') => {
                parse::parse(text).unwrap_or_else(|message| parse::refusal(shell, &message))
            }
            [] => Vec::new(),
            [shell] if commands::is_shell(shell) => Vec::new(),
            words => vec![Op::Run { words: words.iter().map(|word| parse::literal(word)).collect(), looped: false }],
        };
        Script {
            ops: ops.into(),
            at: 0,
            status: 0,
            variables,
            lists: Vec::new(),
            hostname: hostname.into(),
            folder: files::absolute("", folder),
            trap: None,
            depth: 0,
            ends_after: false,
        }
    }

    /// Process 1 ignores SIGTERM unless it has set a trap.
    pub fn on_term(&self) -> OnTerm {
        let Some(trap) = &self.trap else { return OnTerm::Ignores };
        let words = ["sh".to_owned(), "-c".to_owned(), trap.clone()];
        let mut handler = Script::new(&words, &[], &self.hostname, "");
        match handler.run(Time::ZERO, &mut Files::default(), &mut |_| ()) {
            Turn::Ends(code) => OnTerm::Exits { code, after: Duration::from_millis(500) },
            _ => OnTerm::Ignores,
        }
    }

    /// Goes on until it waits or ends.
    pub fn run(&mut self, now: Time, files: &mut Files, print: &mut dyn FnMut(String)) -> Turn {
        if self.ends_after {
            return Turn::Ends(self.status);
        }
        let ops = self.ops.clone();
        for _ in 0..BURST {
            let Some(op) = ops.get(self.at) else { return Turn::Ends(self.status) };
            self.at += 1;
            match op {
                Op::Jump(to) => self.at = *to,
                Op::JumpIf(ok, to) if (self.status == 0) == *ok => self.at = *to,
                Op::JumpIf(..) => {}
                Op::Not => self.status = i32::from(self.status == 0),
                Op::ForInit(list, words) => {
                    let values = words.iter().flat_map(|word| self.fields(word, now, files)).collect();
                    self.lists.resize(self.lists.len().max(list + 1), VecDeque::new());
                    self.lists[*list] = values;
                }
                Op::ForNext(list, name, end) => match self.lists.get_mut(*list).and_then(VecDeque::pop_front) {
                    Some(value) => {
                        self.variables.insert(name.clone(), value);
                    }
                    None => self.at = *end,
                },
                Op::Run { words, looped } => match self.command(words, now, files, print) {
                    Outcome::Done(status) => self.status = status,
                    Outcome::Exits(status) => return Turn::Ends(status),
                    Outcome::Waits => return Turn::Serves,
                    Outcome::Becomes(binary) => return Turn::Becomes(binary),
                    Outcome::Sleeps(time) => {
                        self.status = 0;
                        return Turn::Sleeps(time, if *looped { Class::Background } else { Class::Work });
                    }
                },
            }
        }
        // A busy loop: it never waits for anything.
        Turn::Sleeps(Duration::from_secs(1), Class::Background)
    }

    fn command(&mut self, words: &[Word], now: Time, files: &mut Files, print: &mut dyn FnMut(String)) -> Outcome {
        let mut words = words;
        while let Some((name, value)) = words.first().and_then(parse::assignment) {
            let value = self.expand(&value, now, files);
            self.variables.insert(name, value);
            words = &words[1..];
        }
        let (words, target) = parse::redirection(words);
        let mut line: Vec<String> = Vec::new();
        for word in words {
            line.extend(self.fields(word, now, files));
        }
        if line.is_empty() {
            return Outcome::Done(0);
        }
        match target {
            None => self.execute(&line, now, files, print),
            Some((word, appends)) => {
                let path = self.expand(word, now, files);
                let mut text = String::new();
                let outcome = self.execute(&line, now, files, &mut |line| {
                    text.push_str(&line);
                    text.push('\n');
                });
                let place = files::absolute(&self.folder, &path);
                let written = match place.as_str() {
                    "/dev/null" => Ok(()),
                    "/dev/stdout" | "/dev/stderr" | "/proc/1/fd/1" => {
                        text.lines().for_each(|line| print(line.to_owned()));
                        Ok(())
                    }
                    _ if appends => files.append(&place, &text, now),
                    _ => files.write(&place, text, now),
                };
                match written {
                    Ok(()) => outcome,
                    Err(why) => {
                        print(format!("sh: can't create {path}: {why}"));
                        Outcome::Done(1)
                    }
                }
            }
        }
    }

    /// A word's text.
    fn expand(&mut self, word: &Word, now: Time, files: &mut Files) -> String {
        let mut text = String::new();
        for piece in &word.0 {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Variable { name, .. } if name == "?" => text.push_str(&self.status.to_string()),
                Piece::Variable { name, .. } => text.push_str(self.variables.get(name).map_or("", |value| value)),
                Piece::Sum(sum) => text.push_str(&commands::sum(sum, &self.variables).to_string()),
                Piece::Output { .. } if self.depth >= DEPTH_MAX => {}
                Piece::Output { script, .. } => {
                    let mut child = self.clone();
                    let words = ["sh".to_owned(), "-c".to_owned(), script.clone()];
                    child.ops = Script::new(&words, &[], "", "").ops;
                    (child.at, child.depth, child.ends_after) = (0, self.depth + 1, false);
                    let mut lines = Vec::new();
                    child.run(now, files, &mut |line| lines.push(line));
                    text.push_str(&lines.join("\n"));
                }
            }
        }
        text
    }

    /// A word's fields: unquoted variables and outputs are split at blanks.
    fn fields(&mut self, word: &Word, now: Time, files: &mut Files) -> Vec<String> {
        let text = self.expand(word, now, files);
        if word.is_split() { text.split_whitespace().map(str::to_owned).collect() } else { vec![text] }
    }
}

/// How a command ended that was run beside a container's own program.
#[derive(Clone, Debug, PartialEq)]
pub struct Exec {
    pub code: i32,
    pub output: String,
    pub took: Duration,
}

/// The longest that such a command is followed.
const EXEC_MAX: Duration = Duration::from_secs(600);

/// Runs a script to its end.
pub fn exec(mut script: Script, files: &mut Files, now: Time) -> Exec {
    let mut output = String::new();
    let mut took = Duration::ZERO;
    let mut print = |line: String| {
        output.push_str(&line);
        output.push('\n');
    };
    let code = loop {
        match script.run(now + took, files, &mut print) {
            Turn::Ends(code) => break code,
            Turn::Sleeps(time, _) if took < EXEC_MAX => took += time.max(Duration::from_millis(1)),
            Turn::Sleeps(..) | Turn::Serves | Turn::Becomes(_) => {
                took = EXEC_MAX;
                break 137;
            }
        }
    };
    Exec { code, output, took }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// What a script prints, how long it sleeps, and how it ends; `None` if it does not.
    fn run(text: &str) -> (Vec<String>, u64, Option<i32>) {
        let words = ["sh", "-c", text].map(str::to_owned);
        let mut script = Script::new(&words, &[("GREETING".into(), "hello".into())], "web-1", "/");
        let (mut lines, mut slept, mut files) = (Vec::new(), Duration::ZERO, Files::default());
        for _ in 0..20 {
            match script.run(Time::ZERO + slept, &mut files, &mut |line| lines.push(line)) {
                Turn::Sleeps(time, _) => slept += time,
                Turn::Ends(code) => return (lines, slept.as_secs(), Some(code)),
                Turn::Serves | Turn::Becomes(_) => break,
            }
        }
        (lines, slept.as_secs(), None)
    }

    pub fn prints(text: &str) -> String {
        run(text).0.join("|")
    }

    #[test]
    fn a_shell_can_become_a_server() {
        let words = ["sh", "-c", "sleep 5; exec nginx -g 'daemon off;'"].map(str::to_owned);
        let mut script = Script::new(&words, &[], "web-1", "/");
        let mut turn = || script.run(Time::ZERO, &mut Files::default(), &mut |_| ());
        assert_eq!(turn(), Turn::Sleeps(Duration::from_secs(5), Class::Work));
        assert_eq!(turn(), Turn::Becomes("nginx"));
    }

    #[test]
    fn sequences_end_with_their_last_status() {
        assert_eq!(run("echo a; sleep 5; exit 3"), (vec!["a".into()], 5, Some(3)));
        assert_eq!(run("true && echo yes || echo no; false"), (vec!["yes".into()], 0, Some(1)));
        assert_eq!(prints("false && echo yes || echo no"), "no");
        assert_eq!(prints("! false && echo turned"), "turned");
    }

    #[test]
    fn an_unknown_command_is_not_found() {
        assert_eq!(run("foo"), (vec!["sh: foo: not found".into()], 0, Some(127)));
    }

    #[test]
    fn loops_and_conditions() {
        assert_eq!(prints("for i in 1 2 3; do echo n$i; done"), "n1|n2|n3");
        assert_eq!(prints("i=0; while [ $i -lt 2 ]; do echo $i; i=$((i+1)); done"), "0|1");
        assert_eq!(prints("if [ -f /x ]; then echo there; else echo gone; fi"), "gone");
        assert_eq!(prints("while true; do echo once; break; done; echo out"), "once|out");
        assert_eq!(prints("for i in $(seq 1 2); do if [ $i = 1 ]; then continue; fi; echo $i; done"), "2");
        let (lines, slept, end) = run("while true; do echo tick; sleep 10; done");
        assert_eq!((lines.len(), slept, end), (20, 200, None));
    }

    #[test]
    fn variables_quotes_and_files() {
        assert_eq!(prints("echo \"$GREETING  from $HOSTNAME\" 'and $X'"), "hello  from web-1 and $X");
        assert_eq!(
            prints("echo one > /tmp/a; echo two >> /tmp/a; cat /tmp/a; rm /tmp/a; cat /tmp/a"),
            "one|two|cat: can't open '/tmp/a': No such file or directory"
        );
    }

    #[test]
    fn expr_reckons() {
        assert_eq!(prints("N=7; if [ $(expr ${N} % 2) -ne 0 ]; then echo odd; fi; expr 2 \\* 3"), "odd|6");
    }

    #[test]
    fn nothing_hangs_or_panics() {
        for text in [
            "while true; do :; done",
            "while",
            "if true",
            "echo 'open",
            "a | b",
            "$(",
            "for",
            "echo $((",
            "&",
            "done",
            "(((",
        ] {
            run(text);
        }
        for part in ["exec ", "$(", "! ", "(", "if true; then ", "[ ! "] {
            run(&part.repeat(5000));
        }
        run(&format!("echo {}date{}", "$(".repeat(5000), ")".repeat(5000)));
        assert_eq!(run("echo a | cat").2, Some(2));
    }

    #[test]
    fn a_trap_answers_sigterm() {
        let words = ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 1; done"].map(str::to_owned);
        let mut script = Script::new(&words, &[], "web", "");
        assert_eq!(script.on_term(), OnTerm::Ignores);
        script.run(Time::ZERO, &mut Files::default(), &mut |_| ());
        assert!(matches!(script.on_term(), OnTerm::Exits { code: 0, .. }));
    }
}
