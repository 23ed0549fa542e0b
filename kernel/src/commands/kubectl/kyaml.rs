//! KYAML: YAML in braces, with quotes around every text and a comma behind every value.
//! <https://kubernetes.io/docs/reference/encodings/kyaml/>

use serde_json::Value;

use crate::yaml;

const FOLD: &str = "\\\n";

/// A document with its mark, and a newline at the end.
pub fn document(value: &Value) -> String {
    let mut text = "---\n".to_owned();
    node(value, 0, &mut text);
    text.push('\n');
    text
}

fn node(value: &Value, level: usize, text: &mut String) {
    match value {
        Value::String(content) => quoted(content, level + 1, text),
        Value::Array(items) if items.is_empty() => text.push_str("[]"),
        Value::Array(items) => list(items, level, text),
        Value::Object(fields) if fields.is_empty() => text.push_str("{}"),
        Value::Object(fields) => {
            text.push_str("{\n");
            for (key, value) in fields {
                indent(level + 1, text);
                match needs_quotes(key) {
                    true => text.push_str(&Value::from(key.as_str()).to_string()),
                    false => text.push_str(key),
                }
                text.push_str(": ");
                node(value, level + 1, text);
                text.push_str(",\n");
            }
            indent(level, text);
            text.push('}');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

/// Maps and lists stand close together in a list, all else one a line.
fn list(items: &[Value], level: usize, text: &mut String) {
    let is_close = items.iter().all(|item| item.is_array() || item.is_object());
    text.push('[');
    for (place, item) in items.iter().enumerate() {
        if is_close {
            text.push_str(if place > 0 { ", " } else { "" });
            node(item, level, text);
        } else {
            text.push('\n');
            indent(level + 1, text);
            node(item, level + 1, text);
            text.push(',');
        }
    }
    if !is_close {
        text.push('\n');
        indent(level, text);
    }
    text.push(']');
}

fn indent(level: usize, text: &mut String) {
    text.push_str(&"  ".repeat(level));
}

/// A text in quotes; one of several lines begins on a line of its own, and is folded at each of its newlines.
fn quoted(content: &str, level: usize, text: &mut String) {
    let is_long = content.contains('\n');
    text.push('"');
    if is_long {
        text.push_str(FOLD);
    }
    for letter in content.chars() {
        if text.ends_with('\n') {
            indent(level, text);
            // Spaces at the start of a line would be lost; other lines keep in line with those that begin with one.
            text.push(if letter.is_whitespace() && letter != '\n' { '\\' } else { ' ' });
        }
        escaped(letter, text);
    }
    if is_long {
        if !text.ends_with('\n') {
            text.push_str(FOLD);
        }
        indent(level, text);
    }
    text.push('"');
}

fn escaped(letter: char, text: &mut String) {
    match letter {
        '\n' => {
            text.push_str("\\n");
            text.push_str(FOLD);
        }
        '\t' => text.push('\t'),
        '"' | '\\' => text.extend(['\\', letter]),
        '\0' => text.push_str("\\0"),
        '\u{7}' => text.push_str("\\a"),
        '\u{8}' => text.push_str("\\b"),
        '\u{b}' => text.push_str("\\v"),
        '\u{c}' => text.push_str("\\f"),
        '\r' => text.push_str("\\r"),
        '\u{1b}' => text.push_str("\\e"),
        '\u{85}' => text.push_str("\\N"),
        '\u{a0}' => text.push_str("\\_"),
        '\u{2028}' => text.push_str("\\L"),
        '\u{2029}' => text.push_str("\\P"),
        control if control.is_control() => text.push_str(&format!("\\x{:02x}", u32::from(control))),
        plain => text.push(plain),
    }
}

/// Whether a key could be taken for something else than a text.
fn needs_quotes(key: &str) -> bool {
    let last = key.chars().count().saturating_sub(1);
    let is_plain = |(place, letter): (usize, char)| {
        letter.is_alphanumeric() || letter == '_' || matches!(letter, '-' | '.' | '/') && place > 0 && place < last
    };
    let is_word = matches!(
        key.to_lowercase().as_str(),
        "" | "null" | "~" | "true" | "t" | "y" | "yes" | "on" | "false" | "f" | "n" | "no" | "off"
    );
    is_word || !key.chars().enumerate().all(is_plain) || is_other(key)
}

/// Whether YAML reads a word as a number or a date.
fn is_other(word: &str) -> bool {
    let bare = word.replace('_', "");
    let read = yaml::read(&bare).ok().and_then(|documents| documents.into_iter().next());
    let is_date = || {
        let parts: Vec<&str> = word.splitn(3, '-').collect();
        parts.len() == 3 && parts[0].len() == 4 && word.starts_with(|letter: char| letter.is_ascii_digit())
    };
    read.is_some_and(|document| !document.value.is_string()) || bare.parse::<f64>().is_ok() || is_date()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_is_quoted_but_plain_keys() {
        let value = json!({
            "data": {"note": "line one\n  two\n", "no": "x", "a.b/c": "\"q\"", "1.5": ""},
            "list": ["a", 1], "maps": [{"k": true}, {"k": null}], "empty": {},
        });
        let expected = "---\n{\n  data: {\n    \"1.5\": \"\",\n    a.b/c: \"\\\"q\\\"\",\n    \"no\": \"x\",\n    note: \"\\\n       line one\\n\\\n      \\  two\\n\\\n      \",\n  },\n  empty: {},\n  list: [\n    \"a\",\n    1,\n  ],\n  maps: [{\n    k: true,\n  }, {\n    k: null,\n  }],\n}\n";
        assert_eq!(document(&value), expected);
    }
}
