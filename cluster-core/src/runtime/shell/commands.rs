//! The commands that the shell of a container knows.

use std::time::Duration;

use super::super::programs;
use super::{Files, Outcome, Script, files as file_commands};
use crate::clock::Time;

const KNOWN: &[&str] = &[
    "[", ":", "cd", "date", "echo", "env", "exec", "exit", "export", "expr", "false", "grep", "hostname", "kill",
    "node", "perl", "printenv", "printf", "pwd", "python", "python3", "seq", "set", "sleep", "tail", "test", "trap",
    "true", "wait", "wget", "curl", "nc", "nslookup",
];

pub fn is_shell(word: &str) -> bool {
    matches!(base(word), "sh" | "bash" | "ash" | "dash")
}

/// A command that this shell can run.
pub fn is_known(word: &str) -> bool {
    is_shell(word) || KNOWN.contains(&base(word)) || file_commands::KNOWN.contains(&base(word))
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
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

/// Sums and differences, products, remainders, from left to right.
pub fn sum(text: &str, variables: &imbl::OrdMap<String, String>) -> i64 {
    let mut total = 0_i64;
    let mut operator = '+';
    let mut term = String::new();
    let spaced: String = text.chars().filter(|c| !c.is_whitespace() && *c != '$').collect();
    for c in spaced.chars().chain(['+']) {
        if !"+-*/%".contains(c) || term.is_empty() && c == '-' {
            term.push(c);
            continue;
        }
        let value = term.parse().ok().or_else(|| variables.get(&term)?.trim().parse().ok()).unwrap_or(0);
        total = match operator {
            '+' => total.wrapping_add(value),
            '-' => total.wrapping_sub(value),
            '*' => total.wrapping_mul(value),
            '/' => total.checked_div(value).unwrap_or(0),
            _ => total.checked_rem(value).unwrap_or(0),
        };
        operator = c;
        term.clear();
    }
    total
}

fn test(words: &[&str], folder: &str, files: &Files) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    match words {
        [] => false,
        ["!", rest @ ..] if rest.len() <= 4 => !test(rest, folder, files),
        ["-n", text] => !text.is_empty(),
        ["-z", text] => text.is_empty(),
        ["-d", path] => files.is_folder(&file_commands::absolute(folder, path)),
        ["-e" | "-r", path] => files.exists(&file_commands::absolute(folder, path)),
        ["-f", path] => files.read(&file_commands::absolute(folder, path)).is_some(),
        ["-s", path] => files.target(&file_commands::absolute(folder, path)).is_some_and(|node| node.size_bytes() > 0),
        [text] => !text.is_empty(),
        [a, "=" | "==", b] => a == b,
        [a, "!=", b] => a != b,
        [a, operator, b] => match (number(a), number(b)) {
            (Some(a), Some(b)) => match *operator {
                "-eq" => a == b,
                "-ne" => a != b,
                "-lt" => a < b,
                "-le" => a <= b,
                "-gt" => a > b,
                "-ge" => a >= b,
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}

impl Script {
    /// Runs one command.
    pub(super) fn execute(
        &mut self,
        line: &[String],
        now: Time,
        files: &mut Files,
        print: &mut dyn FnMut(String),
    ) -> Outcome {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let Some((&command, args)) = words.split_first() else { return Outcome::Done(0) };
        let code = |text: Option<&&str>, or: i32| text.map_or(or, |text| text.parse::<i32>().unwrap_or(2) & 255);
        match base(command) {
            ":" | "true" | "set" | "wait" => Outcome::Done(0),
            "cd" => {
                let to = args.first().copied().unwrap_or("/root");
                self.folder = file_commands::absolute(&self.folder, to);
                Outcome::Done(0)
            }
            "false" => Outcome::Done(1),
            "exit" => Outcome::Exits(code(args.first(), self.status)),
            "echo" => {
                let text = match args {
                    ["-e" | "-n" | "-ne" | "-en", rest @ ..] => unescape(&rest.join(" ")),
                    rest => rest.join(" "),
                };
                text.split('\n').for_each(|line| print(line.to_owned()));
                Outcome::Done(0)
            }
            "printf" => {
                let mut rest = args.iter().skip(1);
                let format = unescape(args.first().unwrap_or(&""));
                let mut parts = format.split("%s");
                let mut text = parts.next().unwrap_or_default().to_owned();
                for part in parts {
                    text.push_str(rest.next().unwrap_or(&""));
                    text.push_str(part);
                }
                text.lines().for_each(|line| print(line.to_owned()));
                Outcome::Done(0)
            }
            "sleep" => match args.first().and_then(|text| duration(text)) {
                Some(time) => Outcome::Sleeps(time),
                None => {
                    print(format!("sleep: invalid number '{}'", args.first().unwrap_or(&"")));
                    Outcome::Done(1)
                }
            },
            "exec" if args.first().is_some_and(|next| *next != "exec") => {
                if let Some(program) = programs::by_binary(args[0]) {
                    return Outcome::Becomes(program.binary);
                }
                match self.execute(&line[1..], now, files, print) {
                    Outcome::Done(status) => Outcome::Exits(status),
                    Outcome::Sleeps(time) => {
                        self.ends_after = true;
                        Outcome::Sleeps(time)
                    }
                    other => other,
                }
            }
            "expr" => {
                let value = sum(&args.join(" ").replace('\\', ""), &self.variables);
                print(value.to_string());
                Outcome::Done(i32::from(value == 0))
            }
            "test" => Outcome::Done(i32::from(!test(args, &self.folder, files))),
            "[" => {
                let inner = args.strip_suffix(&["]"]).unwrap_or(args);
                Outcome::Done(i32::from(!test(inner, &self.folder, files)))
            }
            "cat" if args.is_empty() => Outcome::Done(0),
            "tail" if args.iter().any(|arg| matches!(*arg, "-f" | "-F")) => Outcome::Waits,
            "seq" => {
                let numbers: Vec<i64> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
                let (first, last) = match numbers.as_slice() {
                    [last] => (1, *last),
                    [first, .., last] => (*first, *last),
                    [] => return Outcome::Done(1),
                };
                (first..=last).take(10_000).for_each(|number| print(number.to_string()));
                Outcome::Done(0)
            }
            "date" => {
                print(now.timestamp().strftime("%a %b %e %H:%M:%S UTC %Y").to_string());
                Outcome::Done(0)
            }
            "hostname" => {
                print(self.hostname.clone());
                Outcome::Done(0)
            }
            "pwd" => {
                print(if self.folder.is_empty() { "/".into() } else { self.folder.clone() });
                Outcome::Done(0)
            }
            "env" | "printenv" => {
                match args.first() {
                    Some(name) => match self.variables.get(*name) {
                        Some(value) => print(value.clone()),
                        None => return Outcome::Done(1),
                    },
                    None => self.variables.iter().for_each(|(name, value)| print(format!("{name}={value}"))),
                }
                Outcome::Done(0)
            }
            "export" => {
                for (name, value) in args.iter().filter_map(|arg| arg.split_once('=')) {
                    self.variables.insert(name.to_owned(), value.to_owned());
                }
                Outcome::Done(0)
            }
            "trap" => {
                if let [handler, signals @ ..] = args
                    && signals.iter().any(|signal| matches!(*signal, "TERM" | "SIGTERM" | "15"))
                {
                    self.trap = Some((*handler).to_owned());
                }
                Outcome::Done(0)
            }
            "kill" if args.contains(&"1") => Outcome::Exits(143),
            // Programs in a language of their own work for a while and are done.
            "perl" | "python" | "python3" | "node" => {
                self.ends_after = self.ops.len() == 1;
                Outcome::Sleeps(Duration::from_secs(2))
            }
            "wget" | "curl" | "nc" | "nslookup" => {
                print(format!("{}: network is unreachable", base(command)));
                Outcome::Done(1)
            }
            name if file_commands::KNOWN.contains(&name) => {
                file_commands::run(name, args, file_commands::Turn { files, folder: &self.folder, now, print })
            }
            _ if is_shell(command) && args.is_empty() => Outcome::Done(0),
            _ if is_shell(command) => {
                let inner = Script::new(line, &[], &self.hostname, "");
                self.ops = inner.ops;
                self.at = 0;
                Outcome::Done(0)
            }
            name => {
                print(format!("sh: {name}: not found"));
                Outcome::Done(127)
            }
        }
    }
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")
}
