//! Where everything in a document stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use unicode_width::UnicodeWidthChar;

/// A stretch of one line of the text. Line and column count from 1, the column and the length in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub line: u32,
    pub column: u32,
    /// Zero where nothing is written, as for the value of `key:`.
    pub length: u32,
}

/// The places of a value, of the key before it and of everything in it.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) key: Option<Span>,
    pub(super) value: Span,
    pub(super) inner: Inner,
}

/// Shared, so that an alias costs nothing.
#[derive(Debug, Clone)]
pub(super) enum Inner {
    Scalar,
    Items(Arc<Vec<Places>>),
    Fields(Arc<BTreeMap<String, Places>>),
}

impl Places {
    /// What to point at: a scalar itself, a collection by its key, which says more than its first line.
    fn shown(&self) -> Span {
        match (&self.inner, self.key) {
            (Inner::Scalar, _) if self.value.length > 0 => self.value,
            (_, Some(key)) => key,
            _ => self.value,
        }
    }
}

/// Finds the node that a field path names, or the nearest parent that exists.
///
/// The path is written as Kubernetes' validation writes it (`spec.containers[0].image`, `metadata.labels[a.b/c]`) or as
/// server-side apply does (`.spec.containers[name="app"].image`).
pub(super) fn nearest<'a>(root: &'a Places, value: &'a Value, path: &str) -> &'a Places {
    let (mut place, mut value) = (root, value);
    for step in steps(path) {
        let found = match &place.inner {
            Inner::Scalar => None,
            Inner::Fields(fields) => fields.get(step).zip(value.get(step)),
            Inner::Items(items) => item_index(step, value).and_then(|index| items.get(index).zip(value.get(index))),
        };
        match found {
            Some(found) => (place, value) = found,
            None => break,
        }
    }
    place
}

/// The place to show for a field path.
pub(super) fn shown(root: &Places, value: &Value, path: &str) -> Span {
    nearest(root, value, path).shown()
}

/// Cuts a field path into keys and indices, without copying.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = path;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches('.');
        if rest.is_empty() {
            return None;
        }
        if let Some(bracketed) = rest.strip_prefix('[') {
            let (step, after) = bracketed.split_once(']').unwrap_or((bracketed, ""));
            rest = after;
            return Some(step.trim_matches('"'));
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (step, after) = rest.split_at(end);
        rest = after;
        Some(step)
    })
}

/// `0`, or the keys of a list entry as server-side apply writes them: `containerPort=80,protocol="TCP"`.
fn item_index(step: &str, items: &Value) -> Option<usize> {
    if let Ok(index) = step.parse() {
        return Some(index);
    }
    let wanted: Vec<(&str, &str)> = step.split(',').filter_map(|pair| pair.split_once('=')).collect();
    let holds = |item: &Value, key: &str, wanted: &str| match item.get(key) {
        Some(Value::String(text)) => text == wanted.trim_matches('"'),
        Some(other) => serde_json::from_str(wanted).is_ok_and(|wanted: Value| wanted == *other),
        None => false,
    };
    let items = items.as_array()?;
    items.iter().position(|item| !wanted.is_empty() && wanted.iter().all(|(key, text)| holds(item, key, text)))
}

/// The columns that a shown line may take before it is cut around the place.
const SHOWN_WIDTH_MAX: usize = 120;

/// The line of the text that holds the place, with its number, and carets under the place:
///
/// ```text
/// 3 |   image: ngnix
///   |          ^^^^^
/// ```
///
/// Characters that take two columns, as Japanese ones do, get two carets; tabs are shown as four spaces.
pub fn underline(text: &str, span: Span) -> String {
    let line = text.split('\n').nth(span.line.saturating_sub(1) as usize).unwrap_or("");
    let characters: Vec<char> = line.trim_end_matches('\r').chars().collect();
    let start = (span.column.saturating_sub(1) as usize).min(characters.len());
    let end = (start + span.length.max(1) as usize).min(characters.len());
    let first = start.saturating_sub(SHOWN_WIDTH_MAX / 2);
    let last = characters.len().min(first + SHOWN_WIDTH_MAX);
    let end = end.min(last);

    let width = |characters: &[char]| -> usize {
        characters.iter().map(|&c| if c == '\t' { 4 } else { c.width().unwrap_or(0) }).sum()
    };
    let mut shown: String = if first > 0 { "…" } else { "" }.to_owned();
    for &c in &characters[first..last] {
        match c {
            '\t' => shown.push_str("    "),
            c if c.is_control() => {}
            c => shown.push(c),
        }
    }
    if last < characters.len() {
        shown.push('…');
    }
    let indent = usize::from(first > 0) + width(&characters[first..start]);
    let carets = width(&characters[start..end.max(start)]).max(1);
    let number = span.line.to_string();
    let margin = " ".repeat(number.len());
    format!("{number} | {shown}\n{margin} | {:indent$}{}", "", "^".repeat(carets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(line: u32, column: u32, length: u32) -> Span {
        Span { line, column, length }
    }

    #[test]
    fn carets_stand_under_the_place() {
        let text = "kind: Pod\nspec:\n  image: ngnix # web\n";
        assert_eq!(underline(text, span(3, 10, 5)), "3 |   image: ngnix # web\n  |          ^^^^^");
    }

    #[test]
    fn wide_characters_and_tabs_keep_the_carets_in_line() {
        assert_eq!(underline("名前: 日本語x", span(1, 5, 3)), "1 | 名前: 日本語x\n  |       ^^^^^^");
        assert_eq!(underline("\ta: b", span(1, 1, 1)), "1 |     a: b\n  | ^^^^");
    }

    #[test]
    fn a_place_past_the_end_gets_one_caret_after_the_line() {
        assert_eq!(underline("a: [1", span(1, 6, 1)), "1 | a: [1\n  |      ^");
        assert_eq!(underline("a", span(7, 3, 2)), "7 | \n  | ^");
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("a: {}!{}", "x".repeat(500), "y".repeat(500));
        let shown = underline(&text, span(1, 504, 1));
        let lines: Vec<&str> = shown.lines().collect();
        let caret = lines[1].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[0].chars().nth(caret), Some('!'));
        assert!(lines[0].chars().count() < 130);
    }

    #[test]
    fn paths_are_cut_at_dots_and_brackets() {
        let cut = |path| steps(path).collect::<Vec<_>>();
        assert_eq!(cut("spec.ports[1].port"), ["spec", "ports", "1", "port"]);
        assert_eq!(cut("metadata.labels[a.b/c]"), ["metadata", "labels", "a.b/c"]);
        assert_eq!(cut(".data[\"a.b\"].x"), ["data", "a.b", "x"]);
        assert_eq!(cut("a[[[.."), ["a", "[[.."]);
    }
}
