//! Programs that read text and write text.

use data_encoding::BASE64;
use md5::Digest;

use super::{Call, Outcome, letters};
use crate::runtime::shell::Script;
use crate::runtime::shell::input::Input;
use crate::runtime::shell::jobs::{Job, Role};
use crate::runtime::shell::parse;

/// Lines that `seq` and `yes` print at most.
const LINES_MAX: i64 = 10_000;

pub fn cat(call: &mut Call<'_, '_>) -> Outcome {
    let (_, paths) = letters(call.args);
    if paths.is_empty() || paths == ["-"] {
        let (text, is_end) = call.input.take_lines();
        call.out.text(text);
        return if is_end { Outcome::Done(0) } else { Outcome::Reads };
    }
    let mut status = 0;
    let Some(texts) = call.texts(&paths) else { return Outcome::Reads };
    for (path, text) in texts {
        match text {
            Ok(text) => call.out.text(text),
            Err(why) => {
                let line = match why {
                    "Is a directory" => "cat: read error: Is a directory".to_owned(),
                    why => format!("cat: can't open '{path}': {why}"),
                };
                call.out.error_line(&line);
                status = 1;
            }
        }
    }
    Outcome::Done(status)
}

pub fn tee(call: &mut Call<'_, '_>) -> Outcome {
    let (flags, paths) = letters(call.args);
    let (text, is_end) = call.input.take_lines();
    let begins = call.kept.began == call.around.now || !text.is_empty() || is_end;
    let mut status = 0;
    for path in paths.iter().filter(|_| begins) {
        let place = super::files::absolute(&call.script.folder, path);
        // What is read later comes behind what was read first.
        let first = !call.kept.memory.iter().any(|known| known == path);
        let done = match first && !flags.contains('a') {
            true => call.around.files.write(&place, text.as_str(), call.around.now),
            false => call.around.files.append(&place, &text, call.around.now),
        };
        if first {
            call.kept.memory.push((*path).to_owned());
        }
        if let Err(why) = done {
            call.out.error_line(&format!("tee: {path}: {why}"));
            status = 1;
        }
    }
    call.out.text(text);
    if is_end { Outcome::Done(status) } else { Outcome::Reads }
}

/// `-n 5`, `-n5`, `-5`, `-c 3`: letter, number, paths.
fn count<'a>(args: &[&'a str]) -> Result<(char, &'a str, Vec<&'a str>), String> {
    let (mut letter, mut number, mut paths) = ('n', "10", Vec::new());
    let mut rest = args.iter().copied();
    while let Some(arg) = rest.next() {
        match arg.strip_prefix('-').filter(|flag| !flag.is_empty()) {
            Some(flag @ ("n" | "c")) => {
                letter = if flag == "n" { 'n' } else { 'c' };
                number = rest.next().ok_or_else(|| format!("option requires an argument -- '{flag}'"))?;
            }
            Some(flag) if flag.starts_with(['n', 'c']) && flag.len() > 1 => {
                letter = if flag.starts_with('n') { 'n' } else { 'c' };
                number = &flag[1..];
            }
            Some(flag) if flag.starts_with(|c: char| c.is_ascii_digit()) => number = flag,
            Some(_) => {}
            None => paths.push(arg),
        }
    }
    match number.trim_start_matches(['+', '-']).parse::<usize>() {
        Ok(_) => Ok((letter, number, paths)),
        Err(_) => Err(format!("invalid number '{number}'")),
    }
}

/// The first or last of some parts, as text.
fn part(text: &str, letter: char, from: usize, to: usize) -> String {
    match letter {
        'c' => text.chars().skip(from).take(to.saturating_sub(from)).collect(),
        _ => text.split_inclusive('\n').skip(from).take(to.saturating_sub(from)).collect(),
    }
}

fn parts(text: &str, letter: char) -> usize {
    if letter == 'c' { text.chars().count() } else { text.split_inclusive('\n').count() }
}

pub fn head(call: &mut Call<'_, '_>) -> Outcome {
    let (letter, number, paths) = match count(call.args) {
        Ok(found) => found,
        Err(problem) => return call.fail(1, &problem),
    };
    let wanted: usize = number.trim_start_matches(['+', '-']).parse().unwrap_or(0);
    if paths.is_empty() && !number.starts_with('-') && letter == 'n' {
        // As soon as it has enough it ends, and so does who writes to it.
        while call.kept.memory.len() < wanted {
            match call.input.take_line() {
                None => return Outcome::Reads,
                Some(None) => break,
                Some(Some(line)) => {
                    call.out.line(&line);
                    call.kept.memory.push(String::new());
                }
            }
        }
        return Outcome::Done(0);
    }
    each(call, &paths, |text| {
        let shown = if number.starts_with('-') { parts(text, letter).saturating_sub(wanted) } else { wanted };
        part(text, letter, 0, shown)
    })
}

pub fn tail(call: &mut Call<'_, '_>) -> Outcome {
    let follows = call.args.iter().any(|arg| matches!(*arg, "-f" | "-F" | "--follow") || arg.starts_with("-f"));
    let args: Vec<&str> =
        call.args.iter().copied().filter(|arg| !matches!(*arg, "-f" | "-F" | "--follow" | "-q" | "-v")).collect();
    if follows && args.contains(&"/dev/null") {
        return Outcome::Waits;
    }
    let (letter, number, paths) = match count(&args) {
        Ok(found) => found,
        Err(problem) => return call.fail(1, &problem),
    };
    if follows {
        return follow(call, &paths, number);
    }
    let wanted: usize = number.trim_start_matches(['+', '-']).parse().unwrap_or(0);
    each(call, &paths, |text| {
        let total = parts(text, letter);
        let from = if number.starts_with('+') { wanted.saturating_sub(1) } else { total.saturating_sub(wanted) };
        part(text, letter, from, total)
    })
}

/// `tail -f`: looks again every second, as BusyBox does.
fn follow(call: &mut Call<'_, '_>, paths: &[&str], number: &str) -> Outcome {
    let missing = call.kept.memory.is_empty() && paths.iter().all(|path| call.read(path).is_err());
    if missing && call.args.contains(&"-f") {
        let line = format!("can't open '{}': No such file or directory", paths.first().unwrap_or(&"-"));
        call.fail(1, &line);
        return call.fail(1, "no files");
    }
    for (index, path) in paths.iter().enumerate() {
        let text = call.read(path).unwrap_or_default();
        let known: Option<usize> = call.kept.memory.get(index).and_then(|length| length.parse().ok());
        let from = known.unwrap_or_else(|| {
            let wanted: usize = number.trim_start_matches(['+', '-']).parse().unwrap_or(10);
            let total = parts(&text, 'n');
            part(&text, 'n', 0, total.saturating_sub(wanted)).len()
        });
        let from = if from > text.len() { 0 } else { text.floor_char_boundary(from) };
        call.out.text(&text[from..]);
        call.kept.memory.truncate(paths.len());
        match call.kept.memory.get_mut(index) {
            Some(length) => *length = text.len().to_string(),
            None => call.kept.memory.push(text.len().to_string()),
        }
    }
    Outcome::Again(std::time::Duration::from_secs(1))
}

/// What becomes of each file's text, behind its name if there are several.
fn each(call: &mut Call<'_, '_>, paths: &[&str], change: impl Fn(&str) -> String) -> Outcome {
    let Some(texts) = call.texts(paths) else { return Outcome::Reads };
    let (mut status, several) = (0, texts.len() > 1);
    for (index, (path, text)) in texts.into_iter().enumerate() {
        match text {
            Ok(text) => {
                if several {
                    let blank = if index > 0 { "\n" } else { "" };
                    call.out.text(format!("{blank}==> {path} <==\n"));
                }
                call.out.text(change(&text));
            }
            Err(why) => {
                let problem = if call.name == "tail" || call.name == "head" {
                    format!("{path}: {why}")
                } else {
                    format!("can't open '{path}': {why}")
                };
                call.fail(1, &problem);
                status = 1;
            }
        }
    }
    Outcome::Done(status)
}

/// Changes all that there is to read.
fn filter(call: &mut Call<'_, '_>, paths: &[&str], change: impl FnOnce(&str) -> String) -> Outcome {
    match call.text(paths) {
        Ok(text) => {
            call.out.text(change(&text));
            Outcome::Done(0)
        }
        Err(outcome) => outcome,
    }
}

pub fn wc(call: &mut Call<'_, '_>) -> Outcome {
    let (flags, paths) = letters(call.args);
    let from_input = paths.is_empty();
    let Some(texts) = call.texts(&paths) else { return Outcome::Reads };
    let mut status = 0;
    for (path, text) in texts {
        let text = match text {
            Ok(text) => text,
            Err(why) => {
                status = 1;
                call.fail(1, &format!("{path}: {why}"));
                continue;
            }
        };
        let place = super::files::absolute(&call.script.folder, path);
        let size_bytes = match call.around.files.target(&place) {
            Some(node) if !from_input => node.size_bytes(),
            _ => text.len() as u64,
        };
        let counts = [
            ('l', text.matches('\n').count() as u64),
            ('w', text.split_whitespace().count() as u64),
            ('m', text.chars().count() as u64),
            ('c', size_bytes),
        ];
        let wanted = |letter: char| if flags.is_empty() { letter != 'm' } else { flags.contains(letter) };
        let shown: Vec<u64> = counts.iter().filter(|(letter, _)| wanted(*letter)).map(|(_, count)| *count).collect();
        let numbers = match shown.as_slice() {
            [one] => one.to_string(),
            many => many.iter().map(|number| format!("{number:9}")).collect::<Vec<_>>().join(" "),
        };
        call.out.line(&if from_input { numbers } else { format!("{numbers} {path}") });
    }
    Outcome::Done(status)
}

/// `sort -rnuf -k 2 -t : FILE…`
pub fn sort(call: &mut Call<'_, '_>) -> Outcome {
    let (mut flags, mut key, mut separator, mut paths) = (String::new(), 0, None, Vec::new());
    let mut words = call.args.iter().copied();
    while let Some(word) = words.next() {
        match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            Some(short) if short.starts_with(['k', 't']) => {
                let value = if short.len() > 1 { &short[1..] } else { words.next().unwrap_or_default() };
                if short.starts_with('t') {
                    separator = value.chars().next();
                } else {
                    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
                    key = value[..digits].parse().unwrap_or(1);
                    flags.extend(value[digits..].chars().filter(|c| c.is_ascii_alphabetic()));
                }
            }
            Some(short) => flags.push_str(short),
            None => paths.push(word),
        }
    }
    filter(call, &paths, |text| {
        let mut lines: Vec<&str> = text.lines().collect();
        let field = |line: &str| -> String {
            match (key, separator) {
                (0, _) => line.to_owned(),
                (key, Some(separator)) => line.split(separator).skip(key - 1).collect::<Vec<_>>().join(" "),
                (key, None) => line.split_whitespace().skip(key - 1).collect::<Vec<_>>().join(" "),
            }
        };
        let number = |text: &str| {
            let text = text.trim_start();
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '-' && c != '.');
            text[..end.unwrap_or(text.len())].parse::<f64>().unwrap_or(0.0)
        };
        lines.sort_by(|a, b| {
            let (a_field, b_field) = (field(a), field(b));
            let order = if flags.contains('n') {
                number(&a_field).total_cmp(&number(&b_field))
            } else if flags.contains('f') {
                a_field.to_lowercase().cmp(&b_field.to_lowercase())
            } else {
                a_field.cmp(&b_field)
            };
            order.then_with(|| a.cmp(b))
        });
        if flags.contains('r') {
            lines.reverse();
        }
        if flags.contains('u') {
            lines.dedup();
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    })
}

pub fn uniq(call: &mut Call<'_, '_>) -> Outcome {
    let (flags, paths) = letters(call.args);
    filter(call, &paths, |text| {
        let mut groups: Vec<(usize, &str)> = Vec::new();
        for line in text.lines() {
            match groups.last_mut() {
                Some((count, known)) if *known == line => *count += 1,
                _ => groups.push((1, line)),
            }
        }
        let wanted = |count: usize| match (flags.contains('d'), flags.contains('u')) {
            (true, _) => count > 1,
            (_, true) => count == 1,
            _ => true,
        };
        let groups = groups.into_iter().filter(|(count, _)| wanted(*count));
        let counts = flags.contains('c');
        groups.map(|(count, line)| if counts { format!("{count:7} {line}\n") } else { format!("{line}\n") }).collect()
    })
}

/// `-d , -f 1,3-` and `-c 1-8`, with the value behind the letter or as a word of its own.
pub fn cut(call: &mut Call<'_, '_>) -> Outcome {
    let (mut delimiter, mut list, mut only_delimited, mut paths) = ("\t", None, false, Vec::new());
    let mut rest = call.args.iter().copied();
    while let Some(arg) = rest.next() {
        let Some(flag @ ("-d" | "-f" | "-c" | "-b" | "-s")) = arg.get(..2) else {
            paths.push(arg);
            continue;
        };
        if flag == "-s" {
            only_delimited = true;
            continue;
        }
        let value = if arg.len() > 2 { &arg[2..] } else { rest.next().unwrap_or_default() };
        match flag {
            "-d" => delimiter = value,
            flag => list = Some((flag, value)),
        }
    }
    let Some((flag, list)) = list else { return call.fail(1, "expected a list of bytes, characters, or fields") };
    let ranges = list.split(',').map(range).collect::<Option<Vec<_>>>();
    let Some(ranges) = ranges else { return call.fail(1, &format!("invalid number '{list}'")) };
    let is_asked = |index: usize| ranges.iter().any(|(first, last)| (*first..=*last).contains(&(index + 1)));
    filter(call, &paths, |text| {
        let mut out = String::new();
        for line in text.lines() {
            if flag != "-f" {
                out.extend(line.chars().enumerate().filter(|(index, _)| is_asked(*index)).map(|(_, c)| c));
            } else if !line.contains(delimiter) {
                // A line without the delimiter is printed whole.
                if only_delimited {
                    continue;
                }
                out.push_str(line);
            } else {
                let fields = line.split(delimiter).enumerate().filter(|(index, _)| is_asked(*index));
                out.push_str(&fields.map(|(_, field)| field).collect::<Vec<_>>().join(delimiter));
            }
            out.push('\n');
        }
        out
    })
}

/// `3`, `3-`, `-3` or `3-5`, counted from 1.
fn range(text: &str) -> Option<(usize, usize)> {
    let number = |text: &str, otherwise| if text.is_empty() { Some(otherwise) } else { text.parse().ok() };
    match text.split_once('-') {
        Some((first, last)) => Some((number(first, 1)?, number(last, usize::MAX)?)),
        None => text.parse().ok().map(|only| (only, only)),
    }
}

/// The characters of a set: `a-z`, `[:upper:]`, `\n`.
fn set(text: &str) -> Vec<char> {
    let classes = [
        ("[:lower:]", "a-z"),
        ("[:upper:]", "A-Z"),
        ("[:digit:]", "0-9"),
        ("[:space:]", " \t\n\r"),
        ("[:alpha:]", "A-Za-z"),
        ("[:alnum:]", "A-Za-z0-9"),
        ("[:punct:]", "!-/:-@[-`{-~"),
    ];
    let text = classes.iter().fold(super::builtins::unescape(text), |text, (name, range)| text.replace(name, range));
    let chars: Vec<char> = text.chars().collect();
    let mut all = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        match chars[at..] {
            [first, '-', last, ..] if first <= last && u32::from(last) - u32::from(first) < 256 => {
                all.extend(first..=last);
                at += 3;
            }
            _ => {
                all.push(chars[at]);
                at += 1;
            }
        }
    }
    all
}

/// `tr a-z A-Z`, `tr -d '\n'`, `tr -s ' '`
pub fn tr(call: &mut Call<'_, '_>) -> Outcome {
    let (flags, sets) = letters(call.args);
    let Some((from, to)) = sets.split_first() else { return call.fail(1, "usage: tr [-cds] STRING1 [STRING2]") };
    let (from, to) = (set(from), to.first().map(|to| set(to)));
    let is_meant = |c: char| from.contains(&c) != (flags.contains('c') || flags.contains('C'));
    let (text, is_end) = call.input.take_lines();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let changed = match &to {
            _ if !is_meant(c) => c,
            _ if flags.contains('d') => continue,
            Some(to) => {
                let at = from.iter().position(|known| *known == c).unwrap_or(usize::MAX);
                to.get(at).or(to.last()).copied().unwrap_or(c)
            }
            None => c,
        };
        if flags.contains('s') && is_meant(c) && out.ends_with(changed) {
            continue;
        }
        out.push(changed);
    }
    call.out.text(out);
    if is_end { Outcome::Done(0) } else { Outcome::Reads }
}

pub fn rev(call: &mut Call<'_, '_>) -> Outcome {
    let paths = call.args.to_vec();
    filter(call, &paths, |text| text.lines().map(|line| line.chars().rev().chain(['\n']).collect::<String>()).collect())
}

pub fn tac(call: &mut Call<'_, '_>) -> Outcome {
    let paths = call.args.to_vec();
    filter(call, &paths, |text| text.lines().rev().map(|line| format!("{line}\n")).collect())
}

pub fn base64(call: &mut Call<'_, '_>) -> Outcome {
    let decodes = call.args.contains(&"--decode");
    let (flags, paths) = letters(call.args);
    let paths: Vec<&str> = paths.into_iter().filter(|path| !(flags.contains('w') && *path == "0")).collect();
    let text = match call.text(&paths) {
        Ok(text) => text,
        Err(outcome) => return outcome,
    };
    if flags.contains('d') || decodes {
        let letters: String = text.split_whitespace().collect();
        let Ok(bytes) = BASE64.decode(letters.as_bytes()) else { return call.fail(1, "truncated input") };
        call.out.text(String::from_utf8_lossy(&bytes));
        return Outcome::Done(0);
    }
    let code = BASE64.encode(text.as_bytes());
    if flags.contains('w') {
        call.out.text(code);
    } else {
        let lines = code.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned());
        lines.for_each(|line| call.out.line(&line));
    }
    Outcome::Done(0)
}

pub fn digest(call: &mut Call<'_, '_>) -> Outcome {
    let (_, paths) = letters(call.args);
    let Some(texts) = call.texts(&paths) else { return Outcome::Reads };
    let mut status = 0;
    for (path, text) in texts {
        match text {
            Ok(text) => {
                let sum = match call.name {
                    "md5sum" => data_encoding::HEXLOWER.encode(&md5::Md5::digest(text.as_bytes())),
                    _ => data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(text.as_bytes())),
                };
                call.out.line(&format!("{sum}  {path}"));
            }
            Err(why) => {
                call.fail(1, &format!("can't open '{path}': {why}"));
                status = 1;
            }
        }
    }
    Outcome::Done(status)
}

pub fn basename(call: &mut Call<'_, '_>) -> Outcome {
    let path = call.args.first().copied().unwrap_or_default().trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let suffix = call.args.get(1).copied().unwrap_or_default();
    let name = name.strip_suffix(suffix).filter(|name| !name.is_empty()).unwrap_or(name).to_owned();
    call.out.line(if name.is_empty() { "/" } else { &name });
    Outcome::Done(0)
}

pub fn dirname(call: &mut Call<'_, '_>) -> Outcome {
    let path = call.args.first().copied().unwrap_or_default().trim_end_matches('/');
    let folder = match path.rfind('/') {
        Some(0) => "/",
        Some(at) => &path[..at],
        None => ".",
    };
    call.out.line(folder);
    Outcome::Done(0)
}

/// `seq LAST`, `seq FIRST LAST`, `seq FIRST STEP LAST`
pub fn seq(call: &mut Call<'_, '_>) -> Outcome {
    let (width, args) = match call.args {
        ["-w", rest @ ..] => (rest.last().map_or(0, |last| last.len()), rest),
        args => (0, args),
    };
    let numbers: Option<Vec<i64>> = args.iter().map(|arg| arg.parse().ok()).collect();
    let (first, step, last) = match numbers.as_deref() {
        Some([last]) => (1, 1, *last),
        Some([first, last]) => (*first, 1, *last),
        Some([first, step, last]) if *step != 0 => (*first, *step, *last),
        _ => return call.fail(1, "expected numbers"),
    };
    let mut text = String::new();
    let mut number = first;
    for _ in 0..LINES_MAX {
        if step > 0 && number > last || step < 0 && number < last {
            break;
        }
        text.push_str(&format!("{number:0width$}\n"));
        let Some(next) = number.checked_add(step) else { break };
        number = next;
    }
    call.out.text(text);
    Outcome::Done(0)
}

/// As much as a pipe takes, and more when that has been read.
pub fn yes(call: &mut Call<'_, '_>) -> Outcome {
    let line = if call.args.is_empty() { "y".to_owned() } else { call.args.join(" ") };
    call.out.text(format!("{line}\n").repeat(1000));
    Outcome::Again(std::time::Duration::from_secs(1))
}

/// The program with all words that it reads behind it; with `-n N` so many at a time, with `-I MARK` each line in the place
/// of the mark.
pub fn xargs(call: &mut Call<'_, '_>) -> Outcome {
    let (mut mark, mut at_once, mut rest) = (None, usize::MAX, call.args);
    while let [flag, after @ ..] = rest {
        match (*flag, after) {
            ("-I", [value, after @ ..]) => (mark, rest) = (Some(*value), after),
            ("-n" | "-L" | "-P", [value, after @ ..]) => {
                if *flag != "-P" {
                    at_once = value.parse().unwrap_or(1).max(1);
                }
                rest = after;
            }
            (flag, after) if flag.starts_with("-I") => (mark, rest) = (Some(&flag[2..]), after),
            (flag, after) if flag.starts_with("-n") => (at_once, rest) = (flag[2..].parse().unwrap_or(1), after),
            (flag, after) if flag.starts_with('-') && flag.len() > 1 => rest = after,
            _ => break,
        }
    }
    let Some(text) = call.input.take_all() else { return Outcome::Reads };
    let command: Vec<String> =
        if rest.is_empty() { vec!["echo".into()] } else { rest.iter().map(|w| (*w).to_owned()).collect() };
    let words: Vec<&str> = match mark {
        Some(_) => text.lines().map(str::trim).filter(|line| !line.is_empty()).collect(),
        None => text.split_whitespace().collect(),
    };
    let lines: Vec<Vec<String>> = match mark {
        Some(mark) => words.iter().map(|word| command.iter().map(|part| part.replace(mark, word)).collect()).collect(),
        None if words.is_empty() && call.args.iter().any(|arg| arg.starts_with("-r")) => Vec::new(),
        None if words.is_empty() => vec![command],
        None => {
            let with = |words: &[&str]| command.iter().cloned().chain(words.iter().map(|w| (*w).to_owned())).collect();
            words.chunks(at_once).map(with).collect()
        }
    };
    let ops: Vec<parse::Op> = lines.iter().flat_map(|line| parse::line(line).to_vec()).collect();
    let script = Script { input: Input::closed(""), ..call.script.child(ops.into()) };
    Outcome::Runs(Job::of(script, Role::Foreground { shares_variables: false }).into())
}
