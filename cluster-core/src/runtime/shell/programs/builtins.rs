//! What a shell does itself: variables, control, other programs.

use std::time::Duration;

use super::{Call, Kept, Outcome, apart, duration, files, here, is_known};
use crate::runtime::shell::arithmetic;
use crate::runtime::shell::jobs::{Job, Role};
use crate::runtime::shell::parse::{self, is_name};

fn code(text: Option<&&str>, or: i32) -> i32 {
    text.map_or(or, |text| text.parse::<i32>().unwrap_or(2) & 255)
}

pub fn exit(call: &mut Call<'_, '_>) -> Outcome {
    Outcome::Exits(code(call.args.first(), call.script.status))
}

pub fn return_(call: &mut Call<'_, '_>) -> Outcome {
    Outcome::Returns(code(call.args.first(), call.script.status))
}

pub fn cd(call: &mut Call<'_, '_>) -> Outcome {
    let home = call.script.variables.get("HOME").cloned().unwrap_or_default();
    let to = match call.args.first() {
        None => home,
        Some(&"-") => call.script.variables.get("OLDPWD").cloned().unwrap_or_default(),
        Some(path) => (*path).to_owned(),
    };
    let place = files::absolute(&call.script.folder, &to);
    // Of folders that came with the image nothing is known.
    if call.around.files.read(&place).is_some() {
        return call.fail(2, &format!("can't cd to {to}: Not a directory"));
    }
    let before = std::mem::replace(&mut call.script.folder, place.clone());
    let shown = |path: String| if path.is_empty() { "/".to_owned() } else { path };
    call.script.variables.insert("OLDPWD".into(), shown(before));
    call.script.variables.insert("PWD".into(), shown(place));
    Outcome::Done(0)
}

pub fn pwd(call: &mut Call<'_, '_>) -> Outcome {
    let folder = call.script.folder.clone();
    call.out.line(if folder.is_empty() { "/" } else { &folder });
    Outcome::Done(0)
}

pub fn echo(call: &mut Call<'_, '_>) -> Outcome {
    let count = call.args.iter().take_while(|arg| matches!(**arg, "-n" | "-e" | "-ne" | "-en" | "-E")).count();
    let (flags, rest) = call.args.split_at(count);
    let has = |letter: char| flags.iter().any(|flag| flag.contains(letter));
    let text = rest.join(" ");
    let text = if has('e') { unescape(&text) } else { text };
    call.out.text(if has('n') { text } else { format!("{text}\n") });
    Outcome::Done(0)
}

/// What stands behind backslashes.
pub fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('a') => plain.push('\u{7}'),
            Some('e') => plain.push('\u{1b}'),
            Some('\\') => plain.push('\\'),
            Some('"') => plain.push('"'),
            Some(digit @ '0'..='7') => {
                let mut number = digit.to_digit(8).unwrap_or(0);
                for _ in 0..3 {
                    let Some(next) = chars.peek().and_then(|c| c.to_digit(8)) else { break };
                    number = number * 8 + next;
                    chars.next();
                }
                plain.extend(char::from_u32(number));
            }
            Some(other) => plain.extend(['\\', other]),
            None => plain.push('\\'),
        }
    }
    plain
}

/// `%s`, `%d`, `%05d`, `%-10s`, `%x`, `%c`, `%b`; the format is used again while arguments are left.
pub fn printf(call: &mut Call<'_, '_>) -> Outcome {
    let Some((format, args)) = call.args.split_first() else { return call.fail(2, "usage: printf FORMAT [ARG]...") };
    let format = unescape(format);
    let mut rest = args.iter();
    let mut text = String::new();
    loop {
        let before = rest.len();
        let mut chars = format.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            let mut flags = String::new();
            while let Some(c) = chars.next_if(|c| c.is_ascii_digit() || "-+ .#".contains(*c)) {
                flags.push(c);
            }
            let conversion = chars.next().unwrap_or('%');
            if conversion == '%' {
                text.push('%');
                continue;
            }
            let value = rest.next().copied().unwrap_or("");
            let number = value.trim().parse::<i64>().unwrap_or(0);
            let shown = match conversion {
                'd' | 'i' | 'u' => number.to_string(),
                'x' => format!("{number:x}"),
                'o' => format!("{number:o}"),
                'f' => format!("{:.6}", value.parse::<f64>().unwrap_or(0.0)),
                'c' => value.chars().take(1).collect(),
                'b' => unescape(value),
                _ => value.to_owned(),
            };
            let width = flags.trim_start_matches(['-', '+', ' ', '#']).split('.').next().unwrap_or_default();
            let wide = width.parse::<usize>().unwrap_or(0).min(1000);
            text.push_str(&match (flags.starts_with('-'), width.starts_with('0')) {
                (true, _) => format!("{shown:<wide$}"),
                (false, true) => format!("{shown:0>wide$}"),
                _ => format!("{shown:>wide$}"),
            });
        }
        if rest.len() == 0 || rest.len() == before {
            break;
        }
    }
    call.out.text(text);
    Outcome::Done(0)
}

pub fn sleep(call: &mut Call<'_, '_>) -> Outcome {
    let times: Option<Vec<Duration>> = call.args.iter().map(|arg| duration(arg)).collect();
    match times.filter(|times| !times.is_empty()) {
        Some(times) => Outcome::Sleeps(times.iter().sum(), 0),
        None => call.fail(1, &format!("invalid number '{}'", call.args.first().unwrap_or(&""))),
    }
}

pub fn export(call: &mut Call<'_, '_>) -> Outcome {
    for arg in call.args.iter().filter(|arg| !arg.starts_with('-')) {
        let (name, value) = arg.split_once('=').map_or((*arg, None), |(name, value)| (name, Some(value)));
        if !is_name(name) {
            return call.fail(2, &format!("{arg}: bad variable name"));
        }
        if call.name == "export" {
            call.script.private.remove(name);
        } else {
            call.script.private.insert(name.to_owned());
        }
        if let Some(value) = value {
            call.script.variables.insert(name.to_owned(), value.to_owned());
        }
    }
    Outcome::Done(0)
}

pub fn unset(call: &mut Call<'_, '_>) -> Outcome {
    for name in call.args {
        call.script.variables.remove(*name);
        call.script.functions.remove(*name);
    }
    Outcome::Done(0)
}

/// `set -e`, `set +x`, `set -- a b`
pub fn set(call: &mut Call<'_, '_>) -> Outcome {
    let mut rest = call.args.iter();
    while let Some(arg) = rest.next() {
        match (arg.chars().next(), &arg[arg.len().min(1)..]) {
            (Some('-'), "-") => {
                call.script.arguments = rest.map(|arg| (*arg).to_owned()).collect();
                break;
            }
            (Some('-' | '+'), "o") => {
                let letter = match rest.next() {
                    Some(&"errexit") => 'e',
                    Some(&"nounset") => 'u',
                    Some(&"xtrace") => 'x',
                    _ => continue,
                };
                call.script.options.push(letter);
            }
            (Some('-'), letters) => {
                call.script.options.extend(letters.chars().filter(|letter| "eux".contains(*letter)));
                if letters.ends_with('o') {
                    rest.next();
                }
            }
            (Some('+'), letters) => call.script.options.retain(|letter| !letters.contains(letter)),
            _ => {
                call.script.arguments = std::iter::once(arg).chain(rest).map(|arg| (*arg).to_owned()).collect();
                break;
            }
        }
    }
    Outcome::Done(0)
}

pub fn shift(call: &mut Call<'_, '_>) -> Outcome {
    let count = call.args.first().and_then(|arg| arg.parse().ok()).unwrap_or(1);
    if count > call.script.arguments.len() {
        return Outcome::Done(1);
    }
    call.script.arguments.drain(..count);
    Outcome::Done(0)
}

/// `read [-r] NAME…`: a line, split at blanks; the last name gets the rest.
pub fn read(call: &mut Call<'_, '_>) -> Outcome {
    let Some(line) = call.input.take_line() else { return Outcome::Reads };
    let names: Vec<&str> = call.args.iter().copied().filter(|arg| is_name(arg)).collect();
    let names = if names.is_empty() { vec!["REPLY"] } else { names };
    let separators = call.script.variables.get("IFS").cloned().unwrap_or_else(|| " \t".into());
    let is_end = line.is_none();
    let text = line.unwrap_or_default();
    let mut rest = text.trim_matches(|c| separators.contains(c));
    for (index, name) in names.iter().enumerate() {
        let (value, left) = match rest.find(|c| separators.contains(c)).filter(|_| index + 1 < names.len()) {
            Some(at) => (&rest[..at], rest[at..].trim_start_matches(|c| separators.contains(c))),
            None => (rest, ""),
        };
        call.script.variables.insert((*name).to_owned(), value.to_owned());
        rest = left;
    }
    Outcome::Done(i32::from(is_end))
}

pub fn eval(call: &mut Call<'_, '_>) -> Outcome {
    let script = call.script.child(parse::script(&call.args.join(" ")));
    let arguments = call.script.arguments.clone();
    here(crate::runtime::shell::Script { arguments, ..script })
}

pub fn source(call: &mut Call<'_, '_>) -> Outcome {
    let Some(path) = call.args.first() else { return call.fail(2, "filename argument required") };
    match call.read(path) {
        Ok(text) => here(call.script.child(parse::script(&text))),
        Err(why) => call.fail(2, &format!("can't open '{path}': {why}")),
    }
}

/// The line goes on in the place of the shell.
pub fn exec(call: &mut Call<'_, '_>) -> Outcome {
    let words: Vec<String> = call.args.iter().skip_while(|arg| **arg == "exec").map(|arg| (*arg).to_owned()).collect();
    if words.is_empty() {
        return Outcome::Done(0);
    }
    call.script.ends = true;
    call.script.trap = None;
    let kept = Kept { began: call.kept.began, memory: call.kept.memory, answers: call.kept.answers };
    super::run(&words, kept, call.input, call.script, call.around, call.out)
}

/// `command`, `nohup`, `time`: the program that the other words name.
pub fn command(call: &mut Call<'_, '_>) -> Outcome {
    match call.args {
        ["-v" | "-V", ..] => which(call),
        [] => Outcome::Done(0),
        args => apart(call.script.child(parse::line(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>()))),
    }
}

pub fn which(call: &mut Call<'_, '_>) -> Outcome {
    let mut status = 0;
    for name in call.args.iter().filter(|arg| !arg.starts_with('-')) {
        let found = if call.script.functions.contains_key(*name) {
            Some((*name).to_owned())
        } else if is_known(name) {
            Some(if name.starts_with('/') { (*name).to_owned() } else { format!("/bin/{name}") })
        } else {
            None
        };
        match found {
            Some(path) if call.name == "type" => call.out.line(&format!("{name} is {path}")),
            Some(path) => call.out.line(&path),
            None if call.name == "type" => {
                call.out.error_line(&format!("{name}: not found"));
                status = 127;
            }
            None => status = 1,
        }
    }
    Outcome::Done(status)
}

/// `env`, `env NAME=value … PROGRAM …`, `printenv NAME`
pub fn env(call: &mut Call<'_, '_>) -> Outcome {
    if call.name == "printenv" && !call.args.is_empty() {
        let mut status = 0;
        for name in call.args {
            match call.script.variables.get(*name).cloned() {
                Some(value) => call.out.line(&value),
                None => status = 1,
            }
        }
        return Outcome::Done(status);
    }
    let count = call.args.iter().take_while(|arg| arg.contains('=')).count();
    let (values, rest) = call.args.split_at(count);
    let words: Vec<String> = rest.iter().map(|arg| (*arg).to_owned()).collect();
    let mut child = call.script.child(parse::line(&words));
    for (name, value) in values.iter().filter_map(|value| value.split_once('=')) {
        child.variables.insert(name.to_owned(), value.to_owned());
        child.private.remove(name);
    }
    if words.is_empty() {
        child.environment().for_each(|(name, value)| call.out.line(&format!("{name}={value}")));
        return Outcome::Done(0);
    }
    apart(child)
}

pub fn trap(call: &mut Call<'_, '_>) -> Outcome {
    let Some((handler, signals)) = call.args.split_first() else { return Outcome::Done(0) };
    let handler = (*handler != "-").then(|| (*handler).to_owned());
    for signal in signals {
        match signal.trim_start_matches("SIG") {
            "TERM" | "15" => call.script.trap = handler.clone(),
            "EXIT" | "0" => call.script.exit_trap = handler.clone(),
            _ => {}
        }
    }
    Outcome::Done(0)
}

/// Process 1 can be told to end, and so can the jobs in the background; `kill -0` asks whether a process is there.
pub fn kill(call: &mut Call<'_, '_>) -> Outcome {
    let (flags, targets): (Vec<&str>, Vec<&str>) = call.args.iter().partition(|arg| arg.starts_with('-'));
    let asks = flags.contains(&"-0");
    let mut status = 0;
    for target in targets {
        let number = target.trim_start_matches('%').parse::<usize>().unwrap_or(0);
        let number = if target.starts_with('%') { number + 6 } else { number };
        match number {
            1 if asks => {}
            1 if call.script.depth == 0 && !call.script.signal() => {
                // From inside of its own namespace nothing ends process 1 but a signal that it has a handler for.
            }
            1 => return Outcome::Exits(143),
            _ if asks && call.script.last_job.is_some_and(|last| number <= last) => {}
            _ if !asks && call.script.end_job(number) => {}
            _ => {
                let shell = call.script.name.clone();
                call.out.error_line(&format!("{shell}: can't kill pid {target}: No such process"));
                status = 1;
            }
        }
    }
    Outcome::Done(status)
}

/// `timeout SECONDS PROGRAM …`
pub fn timeout(call: &mut Call<'_, '_>) -> Outcome {
    let mut rest = call.args;
    while let [flag, after @ ..] = rest {
        match *flag {
            "-t" => rest = after,
            "-s" | "-k" => rest = after.get(1..).unwrap_or_default(),
            flag if flag.starts_with('-') => rest = after,
            _ => break,
        }
    }
    let Some((time, words)) = rest.split_first() else { return call.fail(1, "usage: timeout SECS PROG ARGS") };
    let Some(time) = duration(time) else { return call.fail(1, &format!("invalid number '{time}'")) };
    let words: Vec<String> = words.iter().map(|arg| (*arg).to_owned()).collect();
    let mut job = Job::of(call.script.child(parse::line(&words)), Role::Foreground { shares_variables: false });
    job.deadline = Some(call.around.now + time);
    Outcome::Runs(job.into())
}

pub fn let_(call: &mut Call<'_, '_>) -> Outcome {
    let mut last = 0;
    for expression in call.args {
        match arithmetic::evaluate(expression, call.script) {
            Ok(value) => last = value,
            Err(problem) => return call.fail(2, &problem),
        }
    }
    Outcome::Done(i32::from(last == 0))
}

/// Sums and comparisons; a text alone is itself.
pub fn expr(call: &mut Call<'_, '_>) -> Outcome {
    if let [text, ":", pattern] = call.args {
        let source = format!("^(?:{})", super::pattern::extended(pattern));
        let Ok(regex) = regex_lite::Regex::new(&source) else { return call.fail(2, "syntax error") };
        let shown = match regex.captures(text) {
            Some(found) => found.get(1).map_or(found[0].chars().count().to_string(), |group| group.as_str().to_owned()),
            None => "0".to_owned(),
        };
        call.out.line(&shown);
        return Outcome::Done(i32::from(shown.is_empty() || shown == "0"));
    }
    let shown = match call.args {
        [text] => (*text).to_owned(),
        [a, "=" | "==", b] => i32::from(a == b).to_string(),
        [a, "!=", b] => i32::from(a != b).to_string(),
        args => match arithmetic::evaluate(&args.join(" ").replace('\\', ""), call.script) {
            Ok(value) => value.to_string(),
            Err(problem) => {
                return call.fail(2, if problem.starts_with("div") { "division by zero" } else { "syntax error" });
            }
        },
    };
    call.out.line(&shown);
    Outcome::Done(i32::from(shown.is_empty() || shown == "0"))
}
