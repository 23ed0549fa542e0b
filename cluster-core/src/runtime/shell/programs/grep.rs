//! `grep`, `egrep`, `fgrep`.

use regex_lite::{Regex, RegexBuilder};

use super::{Call, Outcome, pattern};

pub fn run(call: &mut Call<'_, '_>) -> Outcome {
    let (mut flags, mut patterns, mut rest) = (String::new(), Vec::new(), Vec::new());
    let mut context = [0_usize; 2];
    let mut words = call.args.iter().copied();
    while let Some(word) = words.next() {
        match word.strip_prefix('-').filter(|letters| !letters.is_empty() && rest.is_empty()) {
            Some("-") => rest.extend(words.by_ref()),
            Some(long) if long.starts_with('-') => match long {
                "-quiet" | "-silent" => flags.push('q'),
                "-count" => flags.push('c'),
                "-ignore-case" => flags.push('i'),
                "-invert-match" => flags.push('v'),
                _ => {}
            },
            Some(short) => {
                for (at, letter) in short.char_indices() {
                    if "eABCm".contains(letter) {
                        let behind = &short[at + 1..];
                        let value = if behind.is_empty() { words.next().unwrap_or_default() } else { behind };
                        let count = value.parse().unwrap_or(0);
                        match letter {
                            'e' => patterns.push(value),
                            'A' => context[1] = count,
                            'B' => context[0] = count,
                            'C' => context = [count; 2],
                            _ => {}
                        }
                        break;
                    }
                    flags.push(letter);
                }
            }
            None if patterns.is_empty() && rest.is_empty() => patterns.push(word),
            None => rest.push(word),
        }
    }
    let has = |flag: char| flags.contains(flag);
    if patterns.is_empty() {
        return call.fail(2, "usage: grep [-HhnlLoqvsrRiwFE] [-e PTRN] PATTERN [FILE]...");
    }
    let source = |wanted: &&str| match () {
        () if has('F') || call.name == "fgrep" => pattern::literal(wanted),
        () if has('E') || has('P') || call.name == "egrep" => format!("(?:{wanted})"),
        () => format!("(?:{})", pattern::extended(wanted)),
    };
    let all: Vec<String> = patterns.iter().map(source).collect();
    let all = all.join("|");
    let all = match () {
        () if has('w') => format!(r"\b(?:{all})\b"),
        () if has('x') => format!("^(?:{all})$"),
        () => all,
    };
    let Ok(regex) = RegexBuilder::new(&all).case_insensitive(has('i')).build() else {
        return call.fail(2, "bad regex");
    };
    let paths = if has('r') || has('R') { below(&rest, call) } else { rest.iter().map(|p| (*p).to_owned()).collect() };
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    // A stream of lines is looked at as it comes, unless something has to be counted.
    if paths.is_empty() && !has('c') && !has('q') && !has('n') && !has('l') && context == [0, 0] {
        let (text, is_end) = call.input.take_lines();
        let hits = print_matches(&text, &regex, &flags, context, "", call);
        if hits > 0 {
            call.script.status = 0;
            call.kept.memory.push(String::new());
        }
        let found = !call.kept.memory.is_empty();
        return if is_end { Outcome::Done(i32::from(!found)) } else { Outcome::Reads };
    }
    let named = (paths.len() > 1 || has('r') || has('R') || has('H')) && !has('h');
    let Some(texts) = call.texts(&paths) else { return Outcome::Reads };
    let (mut hits, mut failed) = (0, false);
    for (path, text) in texts {
        match text {
            Ok(text) => {
                let name = if named { format!("{path}:") } else { String::new() };
                if has('l') {
                    if text.lines().any(|line| regex.is_match(line) != has('v')) {
                        hits += 1;
                        call.out.line(path);
                    }
                    continue;
                }
                hits += print_matches(&text, &regex, &flags, context, &name, call);
            }
            Err(_) if has('s') => failed = true,
            Err(why) => {
                call.fail(2, &format!("{path}: {why}"));
                failed = true;
            }
        }
    }
    Outcome::Done(if failed { 2 } else { i32::from(hits == 0) })
}

/// Prints what matches in a text; how many lines do.
fn print_matches(
    text: &str,
    regex: &Regex,
    flags: &str,
    [before, after]: [usize; 2],
    name: &str,
    call: &mut Call<'_, '_>,
) -> usize {
    let has = |flag: char| flags.contains(flag);
    let lines: Vec<&str> = text.lines().collect();
    let hits: Vec<usize> = (0..lines.len()).filter(|at| regex.is_match(lines[*at]) != has('v')).collect();
    if has('c') {
        call.out.line(&format!("{name}{}", hits.len()));
    } else if !has('q') {
        let shown = |at: usize| hits.iter().any(|hit| (hit.saturating_sub(before)..=hit + after).contains(&at));
        for at in (0..lines.len()).filter(|at| shown(*at)) {
            let number = if has('n') { format!("{}:", at + 1) } else { String::new() };
            if has('o') && !has('v') {
                for found in regex.find_iter(lines[at]).filter(|found| !found.is_empty()) {
                    call.out.line(&format!("{name}{number}{}", found.as_str()));
                }
            } else {
                call.out.line(&format!("{name}{number}{}", lines[at]));
            }
        }
    }
    hits.len()
}

/// The files at and below some paths.
fn below(paths: &[&str], call: &Call<'_, '_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo: Vec<String> =
        if paths.is_empty() { vec![".".into()] } else { paths.iter().rev().map(|p| (*p).to_owned()).collect() };
    while let Some(path) = todo.pop() {
        let place = super::files::absolute(&call.script.folder, &path);
        if call.around.files.is_folder(&place) {
            let inner = call.around.files.list(&place).into_iter().rev();
            todo.extend(inner.map(|(name, _)| format!("{}/{name}", path.trim_end_matches('/'))));
        } else {
            found.push(path);
        }
    }
    found
}
