//! `sed`, as far as people use it in a pipe: `s/old/new/g`, and `/lines/p` or `/lines/d`.

use regex::{Regex, RegexBuilder};

use super::Context;
use super::filters::{Filter, input};

pub const SED: Filter = Filter { name: "sed", about: "replaces what matches in each line", run };

enum Command {
    Replace { pattern: Regex, with: String, all: bool },
    Print(Regex),
    Delete(Regex),
}

fn run(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (mut extended, mut quiet, mut scripts, mut rest) = (false, false, Vec::new(), Vec::new());
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-E" | "-r" => extended = true,
            "-n" => quiet = true,
            "-e" => scripts.push(words.next().ok_or("option requires an argument -- 'e'")?),
            flag if flag.len() > 1 && flag.starts_with('-') => {
                return Err(format!("`{flag}` is not known here; there are -E, -n and -e SCRIPT"));
            }
            _ => rest.push(word),
        }
    }
    if scripts.is_empty() {
        let (script, files) = rest.split_first().ok_or("usage: sed [-En] SCRIPT [FILE]...")?;
        scripts = vec![*script];
        rest = files.to_vec();
    }
    let commands = scripts.iter().map(|script| read(script, extended)).collect::<Result<Vec<_>, _>>()?;
    for line in input(&rest, context)?.lines() {
        let mut line = line.to_owned();
        let (mut kept, mut printed) = (true, 0);
        for command in &commands {
            match command {
                Command::Replace { pattern, with, all } => {
                    line = pattern.replacen(&line, usize::from(!all), with.as_str()).into_owned();
                }
                Command::Print(pattern) => printed += usize::from(pattern.is_match(&line)),
                Command::Delete(pattern) => kept &= !pattern.is_match(&line),
            }
        }
        if kept {
            (0..printed + usize::from(!quiet)).for_each(|_| context.line(line.clone()));
        }
    }
    Ok(0)
}

fn read(script: &str, extended: bool) -> Result<Command, String> {
    let unknown = || format!("`{script}` is not understood here; expected s/OLD/NEW/, /LINES/p or /LINES/d");
    let script = script.trim();
    let body = script.strip_prefix('s').unwrap_or(script);
    let delimiter = body.chars().next().filter(|char| !char.is_alphanumeric()).ok_or_else(unknown)?;
    let parts = split(&body[delimiter.len_utf8()..], delimiter);
    let pattern = |source: &str, flags: &str| {
        let source = if extended { source.to_owned() } else { basic(source) };
        let built = RegexBuilder::new(&source).case_insensitive(flags.contains(['i', 'I'])).build();
        built.map_err(|_| format!("invalid regular expression: {source}"))
    };
    match (parts.as_slice(), body.len() < script.len()) {
        ([old, new, flags], true) if flags.chars().all(|flag| "giI".contains(flag)) => {
            Ok(Command::Replace { pattern: pattern(old, flags)?, with: replacement(new), all: flags.contains('g') })
        }
        ([lines, end], false) if delimiter == '/' && end == "p" => Ok(Command::Print(pattern(lines, "")?)),
        ([lines, end], false) if delimiter == '/' && end == "d" => Ok(Command::Delete(pattern(lines, "")?)),
        _ => Err(unknown()),
    }
}

/// The parts between delimiters; behind a backslash one is only a character.
fn split(text: &str, delimiter: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let escaped = if char == '\\' { chars.next() } else { None };
        let last = parts.len() - 1;
        match escaped {
            Some(next) if next == delimiter => parts[last].push(next),
            Some(next) => parts[last].extend(['\\', next]),
            None if char == delimiter => parts.push(String::new()),
            None => parts[last].push(char),
        }
    }
    parts
}

/// A basic regular expression as an extended one: what groups and counts there does so behind a backslash.
fn basic(source: &str) -> String {
    let special = |char: char| "(){}+?|".contains(char);
    let mut extended = String::new();
    let mut chars = source.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(next) if special(next) => extended.push(next),
                next => extended.extend(std::iter::once('\\').chain(next)),
            },
            char if special(char) => extended.extend(['\\', char]),
            char => extended.push(char),
        }
    }
    extended
}

/// `\1` and `&` as the regex crate writes them.
fn replacement(new: &str) -> String {
    let mut with = String::new();
    let mut chars = new.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some(group) if group.is_ascii_digit() => with.push_str(&format!("${{{group}}}")),
                Some('n') => with.push('\n'),
                next => with.extend(next),
            },
            '&' => with.push_str("${0}"),
            '$' => with.push_str("$$"),
            char => with.push(char),
        }
    }
    with
}

#[cfg(test)]
mod tests {
    use cluster_core::{Cluster, Config};

    use super::*;
    use crate::commands::Program;
    use crate::commands::files::Memory;

    fn piped(args: &[&str], stdin: &str) -> String {
        let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        let mut files = Memory::default();
        let mut context = Context::new(&mut cluster, &mut files);
        context.stdin = stdin.to_owned();
        SED.run(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>(), &mut context);
        context.take_stdout()
    }

    #[test]
    fn each_line_is_replaced_in() {
        assert_eq!(piped(&["s/wbe/web/"], "app: wbe wbe\n"), "app: web wbe\n");
        assert_eq!(piped(&["s|/a/b|$1|g"], "/a/b /a/b\n"), "$1 $1\n");
        assert_eq!(piped(&["s/\\(n\\)ginx(x+)/\\1-&/"], "nginx(x+)\n"), "n-nginx(x+)\n");
        assert_eq!(piped(&["-E", "s/(a+)b/\\1/"], "aab\n"), "aa\n");
        assert_eq!(piped(&["-e", "s/a/b/", "-e", "s/b/c/"], "a\n"), "c\n");
    }

    #[test]
    fn what_is_not_known_is_told() {
        let told = read("y/a/b/", false).err().unwrap();
        assert_eq!(told, "`y/a/b/` is not understood here; expected s/OLD/NEW/, /LINES/p or /LINES/d");
        assert!(read("s/a/b", false).is_err());
    }

    #[test]
    fn lines_are_chosen() {
        assert_eq!(piped(&["-n", "/b/p"], "a\nb\n"), "b\n");
        assert_eq!(piped(&["/b/d"], "a\nb\n"), "a\n");
    }
}
