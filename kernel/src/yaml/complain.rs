//! Errors of the YAML scanner and parser in plain words.

use libyaml_safer::{Error, ErrorKind, Mark};

use super::SyntaxError;
use super::source::Source;

/// Says what was expected where libyaml stopped.
pub(super) fn complain(error: &Error, source: Source) -> SyntaxError {
    let words = go_yaml(error);
    let mark = error.problem_mark().unwrap_or_default();
    let opened = error.context_mark().unwrap_or(mark);
    let at_end = source.after(mark).trim().is_empty();
    let next = source.after(mark).chars().next().unwrap_or('\n');
    let before = line_before(source, mark);
    let here = source.span(mark, 1);
    // A key that waits for its colon can be typed on, `image:nginx` cannot.
    let lacks_space = error.problem() == "could not find expected ':'" && source.after(opened).trim().contains(':');
    let opened_line = source.span(opened, 1).line;

    let error = match error.problem() {
        "found character that cannot start any token"
        | "found a tab character that violates indentation"
        | "found a tab character where an indentation space is expected"
            if next == '\t'
                || before.ends_with('\t')
                || before.trim().is_empty() && source.after(mark).trim_start_matches(' ').starts_with('\t') =>
        {
            SyntaxError::new(here, "a tab stands where YAML wants spaces").hint("indent with two spaces for each level")
        }
        "found character that cannot start any token" => {
            SyntaxError::new(here, format!("a value cannot start with {next:?}")).hint("put the text in quotes")
        }
        "could not find expected ':'" => {
            let place = source.rest_of_line(opened);
            let line = source.after(opened).lines().next().unwrap_or("").trim_end();
            let error = SyntaxError::new(place, format!("expected `key: value`, found `{}`", shorten(line)));
            match line.split_once(':') {
                Some((key, value)) if !value.starts_with(' ') && !key.contains(['"', '\'']) => {
                    error.hint(format!("a space must follow the colon: `{}: {}`", shorten(key), shorten(value)))
                }
                _ => error.hint("a colon and a space part a key from its value"),
            }
        }
        "mapping values are not allowed in this context" if before.contains(": ") => {
            SyntaxError::new(here, "a second `: ` in one line: one key and one value were expected")
                .hint("put a value that holds `: ` in quotes")
        }
        "mapping values are not allowed in this context" => {
            let length = before.trim_start().chars().count();
            let mut span = source.span(mark, length.max(1));
            span.column = span.column.saturating_sub(u32::try_from(length).unwrap_or(u32::MAX)).max(1);
            let above = source.text.lines().take(mark.line as usize).filter(|line| !line.trim().is_empty()).last();
            if above.is_some_and(|above| !above.contains(':')) {
                SyntaxError::new(span, "the line above has no colon: expected `key: value` there")
            } else {
                SyntaxError::new(span, "a key stands deeper than the line above allows, which has its value already")
                    .hint("indent it like the keys beside it, or leave the value above empty")
            }
        }
        "block sequence entries are not allowed in this context" => {
            SyntaxError::new(here, "a list item (`- `) is not allowed here")
                .hint("start the list in a line of its own, below the key")
        }
        "did not find expected key" if matches!(next, ']' | '}') => {
            SyntaxError::new(here, format!("this `{next}` closes nothing"))
        }
        "did not find expected key" if !before.trim().is_empty() && !at_end => {
            SyntaxError::new(source.rest_of_line(mark), "the value ended before this: a new line was expected")
                .hint("put the whole value in one pair of quotes; within them, write `''` for `'` or `\\\"` for `\"`")
        }
        "did not find expected key" | "did not find expected '-' indicator" => {
            let wanted = if error.problem().ends_with("key") { "a key" } else { "a list item (`- `)" };
            let column = source.span(opened, 1).column;
            let hint = if here.column == column {
                "keys and list items cannot stand side by side".to_owned()
            } else {
                format!("this line starts in column {}: lines of one block start in the same column", here.column)
            };
            SyntaxError::new(
                source.rest_of_line(mark),
                format!("expected {wanted} in column {column}, as in line {opened_line}"),
            )
            .hint(hint)
        }
        "did not find expected ',' or ']'" => open_bracket(source, mark, opened, '[', ']', at_end),
        "did not find expected ',' or '}'" => open_bracket(source, mark, opened, '{', '}', at_end),
        "did not find expected node content" if at_end => {
            SyntaxError::new(here, "the text ends where a value was expected").hint("close every `[` and `{`")
        }
        "did not find expected node content" => SyntaxError::new(here, format!("a value was expected, found `{next}`")),
        "found unexpected end of stream" | "found unexpected document indicator" => {
            let quote = source.after(opened).chars().next().unwrap_or('"');
            SyntaxError::new(source.rest_of_line(opened), format!("this quote is never closed: expected `{quote}`"))
        }
        "found unknown escape character" => {
            SyntaxError::new(source.span(mark, 2), "a backslash in double quotes must start an escape such as `\\n`")
                .hint("double it (`\\\\`), or use single quotes, in which it is a character like any other")
        }
        "did not find expected hexdecimal number" | "found invalid Unicode character escape code" => {
            SyntaxError::new(here, "an escape with the number of a character was expected, such as `\\u3042`")
        }
        "did not find expected <document start>" if source.text.trim_start().starts_with('%') => {
            SyntaxError::new(here, "a `%` directive is not for a manifest: kubectl cuts the text at the `---` after it")
                .hint("leave the line out")
        }
        "did not find expected <document start>" => {
            SyntaxError::new(here, "the document ended before this: `---` was expected")
        }
        "did not find expected comment or line break" => SyntaxError::new(here, "after `|` or `>` the line must end")
            .hint("the text starts in the next line, indented"),
        "did not find expected alphabetic or numeric character" => {
            SyntaxError::new(here, "a name was expected after `&` or `*`")
                .hint("put text that starts with them in quotes")
        }
        "found unexpected ':'" => SyntaxError::new(here, "a space was expected after the colon"),
        problem => {
            let context = error.context().map(|context| format!(" {context}")).unwrap_or_default();
            SyntaxError::new(here, format!("{problem}{context}"))
        }
    };
    SyntaxError { unfinished: at_end && !lacks_space, ..error }.go_yaml(words)
}

/// As go-yaml says it: with the line of the problem, or else of what it is part of. In the first line it names none,
/// and what the parser finds it counts one line too low.
fn go_yaml(error: &Error) -> String {
    let line_of = |mark: Option<Mark>| mark.map(|mark| mark.line).filter(|line| *line > 0);
    let line = match line_of(error.problem_mark()) {
        Some(line) if error.kind() == ErrorKind::Scanner => Some(line + 1),
        found => found.or_else(|| line_of(error.context_mark())),
    };
    let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    format!("{place}{}", error.problem())
}

/// Names the opening bracket, which is often lines above the place where the parser stops.
fn open_bracket(source: Source, mark: Mark, opened: Mark, open: char, close: char, at_end: bool) -> SyntaxError {
    let here = source.span(mark, 1);
    let place = source.span(opened, 1);
    if at_end {
        return SyntaxError::new(place, format!("this `{open}` is never closed: expected `{close}`"));
    }
    SyntaxError::new(
        here,
        format!(
            "expected `,` or `{close}` to go on after the `{open}` in line {}, column {}",
            place.line, place.column
        ),
    )
}

/// The first character that YAML does not allow in its text.
pub(super) fn control_character(source: Source) -> Option<SyntaxError> {
    let is_allowed = |c: char| match c {
        '\t' | '\n' | '\r' | '\u{85}' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        c => !c.is_control(),
    };
    let (index, character) = source.text.char_indices().find(|&(_, c)| !is_allowed(c))?;
    let before = &source.text[..index];
    let mut mark = Mark::default();
    mark.line = before.matches('\n').count() as u64;
    mark.column = before.rsplit('\n').next().unwrap_or("").chars().count() as u64;
    let code = u32::from(character);
    Some(
        SyntaxError::new(source.span(mark, 1), format!("the control character U+{code:04X} is not allowed"))
            .hint("write it as an escape in double quotes")
            .go_yaml("control characters are not allowed"),
    )
}

/// What stands before the mark in its line.
fn line_before<'a>(source: Source<'a>, mark: Mark) -> &'a str {
    let index = usize::try_from(mark.index).unwrap_or(usize::MAX).min(source.text.len());
    source.text.get(..index).unwrap_or("").rsplit('\n').next().unwrap_or("")
}

fn shorten(text: &str) -> String {
    const LENGTH_MAX: usize = 40;
    let text = text.trim();
    match text.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
