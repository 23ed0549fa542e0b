//! The small programs of a pipe: what they read is the output of the program before, or files.

use base64::prelude::{BASE64_STANDARD, Engine};

use super::{Context, Program};

/// A filter: from its arguments and the text that it reads to what it writes and its exit code.
pub struct Filter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) run: fn(&[String], &mut Context<'_>) -> Result<i32, String>,
}

impl Program for Filter {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn run(&self, args: &[String], context: &mut Context<'_>) -> i32 {
        (self.run)(args, context).unwrap_or_else(|problem| {
            context.error_line(format!("{}: {problem}", self.name));
            2
        })
    }
}

pub const GREP: Filter = Filter { name: "grep", about: "prints lines that match", run: grep };
pub const HEAD: Filter = Filter { name: "head", about: "prints the first lines", run: head };
pub const TAIL: Filter = Filter { name: "tail", about: "prints the last lines", run: tail };
pub const WC: Filter = Filter { name: "wc", about: "counts lines, words and bytes", run: wc };
pub const SORT: Filter = Filter { name: "sort", about: "sorts lines", run: sort };
pub const UNIQ: Filter = Filter { name: "uniq", about: "joins equal lines that follow each other", run: uniq };
pub const CUT: Filter = Filter { name: "cut", about: "prints parts of lines", run: cut };
pub const CAT: Filter = Filter { name: "cat", about: "prints files", run: cat };
pub const LESS: Filter = Filter { name: "less", about: "shows text in the frontend's pager", run: less };
pub const ECHO: Filter = Filter { name: "echo", about: "prints its arguments", run: echo };
pub const BASE64: Filter = Filter { name: "base64", about: "encodes text; -d decodes it", run: base64 };
pub const XARGS: Filter = Filter { name: "xargs", about: "runs a command with the words that it reads", run: xargs };

/// The text of the files, or of standard input without any.
pub(super) fn input(files: &[&String], context: &Context<'_>) -> Result<String, String> {
    if files.is_empty() {
        return Ok(context.stdin.clone());
    }
    let read = |file: &&String| match file.as_str() {
        "-" => Ok(context.stdin.clone()),
        file => context.files.read(file).map_err(|trouble| format!("{file}: {trouble}")),
    };
    files.iter().map(read).collect()
}

/// Letters of flags without values, and the other arguments.
fn letters<'a>(args: &'a [String], known: &str) -> Result<(String, Vec<&'a String>), String> {
    let (mut letters, mut rest) = (String::new(), Vec::new());
    let mut only_arguments = false;
    for arg in args {
        match arg.strip_prefix('-') {
            Some("-") if !only_arguments => only_arguments = true,
            Some(flags) if !only_arguments && !flags.is_empty() => {
                if let Some(unknown) = flags.chars().find(|letter| !known.contains(*letter)) {
                    return Err(format!("invalid option -- '{unknown}'"));
                }
                letters.push_str(flags);
            }
            _ => rest.push(arg),
        }
    }
    Ok((letters, rest))
}

/// As coreutils does it, but for the breaks of long lines.
fn base64(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let decode = |arg: &String| if arg == "--decode" { "-d".to_owned() } else { arg.clone() };
    let args: Vec<String> = args.iter().map(decode).collect();
    let (flags, files) = letters(&args, "d")?;
    let text = input(&files, context)?;
    if !flags.contains('d') {
        context.line(BASE64_STANDARD.encode(text));
        return Ok(0);
    }
    let letters: String = text.split_whitespace().collect();
    let decoded = BASE64_STANDARD.decode(letters).map_err(|_| "invalid input")?;
    context.print(String::from_utf8_lossy(&decoded));
    Ok(0)
}

fn grep(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (flags, rest) = letters(args, "vicEFnowq")?;
    let has = |flag: char| flags.contains(flag);
    let Some((pattern, files)) = rest.split_first() else {
        return Err("usage: grep [-vicEFnowq] PATTERN [FILE]...".into());
    };
    let source = if has('F') { regex::escape(pattern) } else { pattern.to_string() };
    let source = if has('w') { format!(r"\b(?:{source})\b") } else { source };
    let regex = regex::RegexBuilder::new(&source)
        .case_insensitive(has('i'))
        .build()
        .map_err(|_| format!("invalid regular expression: {pattern}"))?;
    let text = input(files, context)?;
    let hits: Vec<(usize, &str)> =
        text.lines().enumerate().filter(|(_, line)| regex.is_match(line) != has('v')).collect();
    if has('c') {
        context.line(hits.len().to_string());
    } else if !has('q') {
        for (index, line) in &hits {
            let number = if has('n') { format!("{}:", index + 1) } else { String::new() };
            if has('o') && !has('v') {
                for found in regex.find_iter(line).filter(|found| !found.is_empty()) {
                    context.line(format!("{number}{}", found.as_str()));
                }
            } else {
                context.line(format!("{number}{line}"));
            }
        }
    }
    Ok(i32::from(hits.is_empty()))
}

/// `-n 5`, `-n5`, `-5`, and the files.
fn count(args: &[String]) -> Result<(String, Vec<&String>), String> {
    let (mut count, mut files) = ("10".to_owned(), Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.strip_prefix('-') {
            Some("n") => count = rest.next().cloned().ok_or("option requires an argument -- 'n'")?,
            Some(flag) if flag.starts_with('n') => count = flag[1..].to_owned(),
            Some(flag) if !flag.is_empty() => count = flag.to_owned(),
            _ => files.push(arg),
        }
    }
    match count.trim_start_matches(['+', '-']).parse::<usize>() {
        Ok(_) => Ok((count, files)),
        Err(_) => Err(format!("invalid number of lines: '{count}'")),
    }
}

fn head(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (count, files) = count(args)?;
    let text = input(&files, context)?;
    let number: usize = count.trim_start_matches(['+', '-']).parse().unwrap_or(0);
    let total = text.lines().count();
    let shown = if count.starts_with('-') { total.saturating_sub(number) } else { number };
    text.lines().take(shown).for_each(|line| context.line(line));
    Ok(0)
}

fn tail(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (count, files) = count(args)?;
    let text = input(&files, context)?;
    let number: usize = count.trim_start_matches(['+', '-']).parse().unwrap_or(0);
    let total = text.lines().count();
    let skipped = if count.starts_with('+') { number.saturating_sub(1) } else { total.saturating_sub(number) };
    text.lines().skip(skipped).for_each(|line| context.line(line));
    Ok(0)
}

fn wc(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (flags, files) = letters(args, "lwcm")?;
    let text = input(&files, context)?;
    let counts = [
        ('l', text.matches('\n').count()),
        ('w', text.split_whitespace().count()),
        ('m', text.chars().count()),
        ('c', text.len()),
    ];
    let wanted = |letter: char| if flags.is_empty() { letter != 'm' } else { flags.contains(letter) };
    let shown: Vec<String> = counts.iter().filter(|(letter, _)| wanted(*letter)).map(|(_, n)| n.to_string()).collect();
    context.line(match shown.as_slice() {
        [one] => one.clone(),
        many => many.iter().map(|number| format!("{number:>7}")).collect::<Vec<_>>().join(" "),
    });
    Ok(0)
}

fn sort(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (flags, files) = letters(args, "rnu")?;
    let text = input(&files, context)?;
    let mut lines: Vec<&str> = text.lines().collect();
    let number = |line: &str| {
        let text = line.trim_start();
        let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '-' && letter != '.');
        text[..end.unwrap_or(text.len())].parse::<f64>().unwrap_or(0.0)
    };
    match flags.contains('n') {
        true => lines.sort_by(|a, b| number(a).total_cmp(&number(b)).then_with(|| a.cmp(b))),
        false => lines.sort_unstable(),
    }
    if flags.contains('r') {
        lines.reverse();
    }
    if flags.contains('u') {
        lines.dedup();
    }
    lines.into_iter().for_each(|line| context.line(line));
    Ok(0)
}

fn uniq(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (flags, files) = letters(args, "c")?;
    let text = input(&files, context)?;
    let mut groups: Vec<(usize, &str)> = Vec::new();
    for line in text.lines() {
        match groups.last_mut() {
            Some((count, known)) if *known == line => *count += 1,
            _ => groups.push((1, line)),
        }
    }
    for (count, line) in groups {
        context.line(if flags.is_empty() { line.to_owned() } else { format!("{count:>7} {line}") });
    }
    Ok(0)
}

/// `-d , -f 1,3-` and `-c 1-8`, with the value behind the letter or as a word of its own.
fn cut(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (mut delimiter, mut list, mut files) = ("\t", None, Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let Some(flag @ ("-d" | "-f" | "-c")) = arg.get(..2) else {
            files.push(arg);
            continue;
        };
        let value = if arg.len() > 2 { &arg[2..] } else { rest.next().map_or("", String::as_str) };
        match flag {
            "-d" => delimiter = value,
            flag => list = Some((flag, value)),
        }
    }
    let (flag, list) = list.ok_or("you must specify a list of bytes, characters, or fields")?;
    let ranges = list.split(',').map(range).collect::<Option<Vec<_>>>();
    let ranges = ranges.ok_or_else(|| format!("invalid field value '{list}'"))?;
    let is_asked = |index: usize| ranges.iter().any(|(first, last)| (*first..=*last).contains(&(index + 1)));
    for line in input(&files, context)?.lines() {
        let chosen = match flag {
            "-c" => line.char_indices().enumerate().filter(|(n, _)| is_asked(*n)).map(|(_, (_, char))| char).collect(),
            // A line without the delimiter is printed whole.
            _ if !line.contains(delimiter) => line.to_owned(),
            _ => {
                let fields = line.split(delimiter).enumerate().filter(|(index, _)| is_asked(*index));
                fields.map(|(_, field)| field).collect::<Vec<_>>().join(delimiter)
            }
        };
        context.line(chosen);
    }
    Ok(0)
}

/// `3`, `3-`, `-3` or `3-5`, counted from 1.
fn range(text: &str) -> Option<(usize, usize)> {
    let number = |text: &str, otherwise| if text.is_empty() { Some(otherwise) } else { text.parse().ok() };
    match text.split_once('-') {
        Some((first, last)) => Some((number(first, 1)?, number(last, usize::MAX)?)),
        None => text.parse().ok().map(|only| (only, only)),
    }
}

fn cat(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (_, files) = letters(args, "")?;
    let text = input(&files, context)?;
    context.print(text);
    Ok(0)
}

fn less(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (_, files) = letters(args, "FRSX")?;
    let text = input(&files, context)?;
    context.page(text);
    Ok(0)
}

fn echo(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    match args.split_first() {
        Some((first, rest)) if first == "-n" => context.print(rest.join(" ")),
        _ => context.line(args.join(" ")),
    }
    Ok(0)
}

/// The command with all words of standard input behind it, once; with `-I MARK` once for each line, in the place of the
/// mark.
fn xargs(args: &[String], context: &mut Context<'_>) -> Result<i32, String> {
    let (mark, args) = match args {
        [flag, mark, rest @ ..] if flag == "-I" => (Some(mark.as_str()), rest),
        [flag, rest @ ..] if flag.starts_with("-I") => (Some(&flag[2..]), rest),
        args => (None, args),
    };
    let Some((name, rest)) = args.split_first() else {
        return Err("usage: xargs [-I MARK] COMMAND [ARGUMENT]...".into());
    };
    let program = super::find(name).ok_or_else(|| format!("{name}: No such file or directory"))?;
    let words = std::mem::take(&mut context.stdin);
    if let Some(mark) = mark {
        let mut code = 0;
        for line in words.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let args: Vec<String> = rest.iter().map(|word| word.replace(mark, line)).collect();
            code = code.max(program.run(&args, context));
        }
        return Ok(code);
    }
    let args: Vec<String> = rest.iter().cloned().chain(words.split_whitespace().map(str::to_owned)).collect();
    Ok(program.run(&args, context))
}

#[cfg(test)]
mod tests {
    use cluster_core::{Cluster, Config};

    use super::*;
    use crate::commands::files::Memory;

    fn piped(program: &Filter, args: &str, stdin: &str) -> String {
        let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        let mut files = Memory::default();
        let mut context = Context::new(&mut cluster, &mut files);
        context.stdin = stdin.to_owned();
        let words: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        program.run(&words, &mut context);
        context.take_stdout()
    }

    #[test]
    fn equal_lines_are_counted_where_they_follow_each_other() {
        assert_eq!(piped(&UNIQ, "-c", "a\na\nb\na\n"), "      2 a\n      1 b\n      1 a\n");
        assert_eq!(piped(&UNIQ, "", "a\na\nb\n"), "a\nb\n");
    }

    #[test]
    fn each_does_what_its_name_says() {
        let text = "b 2\na 10\nB 1\n";
        for (program, args, expected) in [
            (&GREP, "b", "b 2\n"),
            (&GREP, "-i b", "b 2\nB 1\n"),
            (&GREP, "-vc a", "2\n"),
            (&GREP, "-E ^(a|B)", "a 10\nB 1\n"),
            (&HEAD, "-n 1", "b 2\n"),
            (&HEAD, "-2", "b 2\na 10\n"),
            (&TAIL, "-n +2", "a 10\nB 1\n"),
            (&TAIL, "-1", "B 1\n"),
            (&WC, "-l", "3\n"),
            (&SORT, "", "B 1\na 10\nb 2\n"),
            (&UNIQ, "", text),
            (&CUT, "-d2 -f1", "b \na 10\nB 1\n"),
            (&CUT, "-c 1,3-", "b2\na10\nB1\n"),
            (&CAT, "", text),
            (&BASE64, "", "YiAyCmEgMTAKQiAxCg==\n"),
            (&XARGS, "echo all:", "all: b 2 a 10 B 1\n"),
            (&XARGS, "-I {} echo <{}>", "<b 2>\n<a 10>\n<B 1>\n"),
            (&XARGS, "-I{} echo {}{}", "b 2b 2\na 10a 10\nB 1B 1\n"),
        ] {
            assert_eq!(piped(program, args, text), expected, "{} {args}", program.name);
        }
        assert_eq!(piped(&BASE64, "-d", "YiAyCmEgMTAKQiAxCg==\n"), text);
    }
}
