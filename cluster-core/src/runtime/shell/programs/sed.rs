//! `sed`: `s/old/new/g`, `p`, `d`, `q`, with lines chosen by number, `$` or a pattern.

use regex_lite::{Regex, RegexBuilder};

use super::{Call, Outcome, pattern};

enum Address {
    Line(usize),
    Last,
    Match(Regex),
}

enum Action {
    Replace { pattern: Regex, with: String, all: bool, prints: bool },
    Print,
    Delete,
    Quit,
    Append(String),
    Insert(String),
    Change(String),
}

struct Command {
    from: Option<Address>,
    to: Option<Address>,
    turned: bool,
    action: Action,
    /// It stands within its range.
    inside: bool,
}

pub fn run(call: &mut Call<'_, '_>) -> Outcome {
    let (mut extended, mut quiet, mut in_place, mut scripts, mut rest) = (false, false, false, Vec::new(), Vec::new());
    let mut words = call.args.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-e" | "--expression" => scripts.extend(words.next()),
            flag if flag.len() > 1 && flag.starts_with('-') => {
                extended |= flag.contains(['E', 'r']);
                quiet |= flag.contains('n') && !flag.starts_with("--");
                in_place |= flag.starts_with("-i") || flag.ends_with('i');
            }
            _ => rest.push(word),
        }
    }
    if scripts.is_empty() {
        if rest.is_empty() {
            return call.fail(1, "usage: sed [-i] [-nE] [-e CMD]... [FILE]...");
        }
        scripts.push(rest.remove(0));
    }
    let mut commands = Vec::new();
    for script in scripts {
        match read(script, extended) {
            Ok(read) => commands.extend(read),
            Err(problem) => return call.fail(1, &problem),
        }
    }
    if in_place {
        for path in rest {
            let changed = match call.read(path) {
                Ok(text) => edit(&text, &mut commands, quiet),
                Err(why) => return call.fail(1, &format!("{path}: {why}")),
            };
            let place = super::files::absolute(&call.script.folder, path);
            if let Err(why) = call.around.files.write(&place, changed, call.around.now) {
                return call.fail(4, &format!("{path}: {why}"));
            }
        }
        return Outcome::Done(0);
    }
    match call.text(&rest) {
        Ok(text) => {
            call.out.text(edit(&text, &mut commands, quiet));
            Outcome::Done(0)
        }
        Err(outcome) => outcome,
    }
}

fn edit(text: &str, commands: &mut [Command], quiet: bool) -> String {
    let total = text.lines().count();
    let mut out = String::new();
    'lines: for (index, line) in text.lines().enumerate() {
        let mut line = line.to_owned();
        let (mut behind, mut ends) = (String::new(), false);
        for command in commands.iter_mut() {
            if command.chooses(index + 1, total, &line) == command.turned {
                continue;
            }
            match &command.action {
                Action::Replace { pattern, with, all, prints } => {
                    let changed = pattern.replacen(&line, usize::from(!all), with.as_str()).into_owned();
                    if *prints && changed != line {
                        out.push_str(&format!("{changed}\n"));
                    }
                    line = changed;
                }
                Action::Print => out.push_str(&format!("{line}\n")),
                Action::Delete => continue 'lines,
                Action::Quit => ends = true,
                Action::Append(text) => behind.push_str(&format!("{text}\n")),
                Action::Insert(text) => out.push_str(&format!("{text}\n")),
                Action::Change(text) => {
                    out.push_str(&format!("{text}\n"));
                    continue 'lines;
                }
            }
        }
        if !quiet {
            out.push_str(&line);
            // A last line without an end keeps none.
            if index + 1 < total || text.ends_with('\n') || !behind.is_empty() {
                out.push('\n');
            }
        }
        out.push_str(&behind);
        if ends {
            break;
        }
    }
    out
}

impl Command {
    fn chooses(&mut self, number: usize, total: usize, line: &str) -> bool {
        let is_at = |address: &Address| match address {
            Address::Line(wanted) => *wanted == number,
            Address::Last => number == total,
            Address::Match(regex) => regex.is_match(line),
        };
        match (&self.from, &self.to) {
            (None, _) => true,
            (Some(from), None) => is_at(from),
            (Some(from), Some(to)) => {
                let was_inside = self.inside;
                let begins = !was_inside && is_at(from);
                let ends = match to {
                    Address::Line(last) => number >= *last,
                    to => (was_inside || matches!(to, Address::Last)) && is_at(to),
                };
                self.inside = (was_inside || begins) && !ends;
                was_inside || begins
            }
        }
    }
}

fn read(script: &str, extended: bool) -> Result<Vec<Command>, String> {
    let unknown = |rest: &str| format!("unsupported command {}", rest.chars().next().unwrap_or(' '));
    let mut commands = Vec::new();
    let mut rest = script.trim_start_matches([' ', ';', '\n']);
    while !rest.is_empty() {
        let from = address(&mut rest, extended)?;
        let to = match rest.strip_prefix(',') {
            Some(behind) if from.is_some() => {
                rest = behind;
                address(&mut rest, extended)?
            }
            _ => None,
        };
        rest = rest.trim_start();
        let turned = rest.starts_with('!');
        rest = rest.trim_start_matches('!').trim_start();
        let letter = rest.chars().next().ok_or_else(|| "missing command".to_owned())?;
        rest = &rest[letter.len_utf8()..];
        let action = match letter {
            'p' => Action::Print,
            'd' => Action::Delete,
            'q' => Action::Quit,
            'a' | 'i' | 'c' => {
                let text = rest.trim_start().trim_start_matches('\\').trim_start_matches('\n').to_owned();
                rest = "";
                match letter {
                    'a' => Action::Append(text),
                    'i' => Action::Insert(text),
                    _ => Action::Change(text),
                }
            }
            's' => {
                let delimiter = rest.chars().next().ok_or("bad format in substitution expression")?;
                let mut parts = rest[delimiter.len_utf8()..].char_indices();
                let (old, new) = (part(&mut parts, delimiter), part(&mut parts, delimiter));
                let (Some(old), Some(new)) = (old, new) else {
                    return Err("bad format in substitution expression".into());
                };
                let behind = parts.next().map_or("", |(at, _)| &rest[delimiter.len_utf8() + at..]);
                let count = behind.find(|c: char| !"gipI0123456789".contains(c)).unwrap_or(behind.len());
                let flags = &behind[..count];
                rest = &behind[count..];
                let pattern = regex(&old, extended, flags.contains(['i', 'I']))?;
                let (all, prints) = (flags.contains('g'), flags.contains('p'));
                Action::Replace { pattern, with: replacement(&new), all, prints }
            }
            _ => return Err(unknown(&letter.to_string())),
        };
        commands.push(Command { from, to, turned, action, inside: false });
        let after = rest.trim_start_matches([' ', ';', '\n', '}']);
        if after.len() == rest.len() && !rest.is_empty() {
            return Err(unknown(rest));
        }
        rest = after;
    }
    Ok(commands)
}

fn regex(source: &str, extended: bool, any_case: bool) -> Result<Regex, String> {
    let source = if extended { source.to_owned() } else { pattern::extended(source) };
    RegexBuilder::new(&source).case_insensitive(any_case).build().map_err(|_| format!("bad regex '{source}'"))
}

fn address(rest: &mut &str, extended: bool) -> Result<Option<Address>, String> {
    if let Some(behind) = rest.strip_prefix('$') {
        *rest = behind;
        return Ok(Some(Address::Last));
    }
    if let Some(behind) = rest.strip_prefix('/') {
        let mut chars = behind.char_indices();
        let source = part(&mut chars, '/').ok_or("unterminated address regex")?;
        *rest = chars.next().map_or("", |(at, _)| &behind[at..]);
        return regex(&source, extended, false).map(|regex| Some(Address::Match(regex)));
    }
    let count = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, behind) = rest.split_at(count);
    *rest = behind;
    Ok(digits.parse().ok().map(Address::Line))
}

/// What stands before the next delimiter; behind a backslash one is only a character.
fn part(chars: &mut std::str::CharIndices<'_>, delimiter: char) -> Option<String> {
    let mut text = String::new();
    while let Some((_, c)) = chars.next() {
        match c {
            c if c == delimiter => return Some(text),
            '\\' => match chars.next()?.1 {
                next if next == delimiter => text.push(next),
                next => text.extend(['\\', next]),
            },
            c => text.push(c),
        }
    }
    None
}

/// `\1` and `&` as the library writes them.
fn replacement(new: &str) -> String {
    let mut with = String::new();
    let mut chars = new.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(group) if group.is_ascii_digit() => with.push_str(&format!("${{{group}}}")),
                Some('n') => with.push('\n'),
                Some('t') => with.push('\t'),
                next => with.extend(next),
            },
            '&' => with.push_str("${0}"),
            '$' => with.push_str("$$"),
            c => with.push(c),
        }
    }
    with
}

#[cfg(test)]
mod tests {
    use crate::runtime::shell::tests::prints;

    #[test]
    fn each_line_is_replaced_in() {
        assert_eq!(prints("echo 'app: wbe wbe' | sed s/wbe/web/"), "app: web wbe");
        assert_eq!(prints("echo '/a/b /a/b' | sed 's|/a/b|$1|g'"), "$1 $1");
        assert_eq!(prints("echo 'nginx(x+)' | sed 's/\\(n\\)ginx(x+)/\\1-&/'"), "n-nginx(x+)");
        assert_eq!(prints("echo aab | sed -E 's/(a+)b/\\1/'"), "aa");
        assert_eq!(prints("seq 5 | sed -n '2,3p;$p'"), "2|3|5");
        assert_eq!(prints("seq 5 | sed -e 1d -e '/3/,$d'"), "2");
        assert_eq!(
            prints("echo a > /f; sed -i s/a/b/ /f; cat /f; echo x | sed y/a/b/"),
            "b|sed: unsupported command y"
        );
    }
}
