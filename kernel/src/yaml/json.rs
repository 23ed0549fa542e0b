//! JSON, with places: serde_json decides what is JSON, this finds out where its parts stand.

use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::{Number, Value};

use super::compose::DEPTH_MAX;
use super::fields::{Fields, Name, Remarks};
use super::place::{Inner, Places, Span};
use super::resolve::number_of_float;
use super::{Document, SyntaxError};

/// The JSON objects and lists at the start of the text, one after another, and where the rest begins. Nothing is found in text
/// that is no JSON, such as a YAML flow mapping.
pub(super) fn values(text: &str) -> (Vec<Range<usize>>, usize) {
    let mut found = Vec::new();
    let mut end = 0;
    loop {
        let rest = text[end..].trim_start();
        let start = text.len() - rest.len();
        if !rest.starts_with(['{', '[']) {
            break;
        }
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let Some(Ok(IgnoredAny)) = stream.next() else {
            break;
        };
        end = start + stream.byte_offset();
        found.push(start..end);
    }
    // What follows on the same footing must be JSON too, or a comment: `{"a": 1}: b` is YAML.
    let rest = text[end..].trim_start();
    if rest.is_empty() || rest.starts_with(['{', '[', '#']) { (found, end) } else { (Vec::new(), 0) }
}

/// A place in the text that only moves forward, counting lines and columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    byte: usize,
    line: u32,
    column: u32,
}

impl<'a> Cursor<'a> {
    /// At the start of the text, which is the line of that number (from 1) of the whole.
    pub(super) fn new(text: &'a str, line: u32) -> Self {
        Self { text, byte: 0, line, column: 1 }
    }

    /// Moves on to a later byte, which must be the start of a character.
    pub(super) fn advance_to(&mut self, byte: usize) {
        for character in self.text.get(self.byte..byte).unwrap_or_default().chars() {
            if character == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.byte = self.byte.max(byte);
    }

    pub(super) fn span(&self, length: u32) -> Span {
        Span { line: self.line, column: self.column, length }
    }

    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.byte).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.byte..];
        self.advance_to(self.text.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len());
    }

    /// Takes the one byte character that stands here, and blanks after it.
    fn skip(&mut self) {
        self.advance_to(self.byte + 1);
        self.skip_blanks();
    }

    /// Takes a string, number or word: its text and its place.
    fn token(&mut self) -> (&'a str, Span) {
        let bytes = &self.text.as_bytes()[self.byte..];
        let length = if bytes.first() == Some(&b'"') {
            let mut end = 1;
            while end < bytes.len() && bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            end + 1
        } else {
            bytes.iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count()
        };
        let end = (self.byte + length).min(self.text.len());
        let token = &self.text[self.byte..end];
        let start = *self;
        self.advance_to(end);
        (token, start.span(self.column - start.column))
    }
}

/// Reads one value that [`values`] has found. The cursor ends after it.
pub(super) fn read(cursor: &mut Cursor) -> Result<Document, SyntaxError> {
    let line = cursor.line;
    let mut remarks = Remarks::default();
    let (value, places) = node(cursor, DEPTH_MAX, &mut remarks)?;
    let Remarks { warnings, repeated } = remarks;
    Ok(Document { value, line, warnings, repeated, places })
}

fn node(cursor: &mut Cursor, depth_left: usize, remarks: &mut Remarks) -> Result<(Value, Places), SyntaxError> {
    let start = cursor.span(1);
    if matches!(cursor.peek(), b'{' | b'[') && depth_left == 0 {
        return Err(SyntaxError::too_deep(start));
    }
    let (value, span, inner) = match cursor.peek() {
        b'{' => {
            let mut fields = Fields::default();
            cursor.skip();
            while cursor.peek() != b'}' {
                let (key, key_span) = cursor.token();
                let key = unquote(key, key_span)?;
                cursor.skip_blanks();
                cursor.skip(); // the colon
                let (value, places) = node(cursor, depth_left - 1, remarks)?;
                fields.insert(Name { key, is_text: true }, key_span, value, places, remarks);
                cursor.skip_blanks();
                if cursor.peek() != b',' {
                    break;
                }
                cursor.skip();
            }
            cursor.advance_to(cursor.byte + 1);
            let (map, places) = fields.finish();
            (Value::Object(map), start, places)
        }
        b'[' => {
            let (mut items, mut places) = (Vec::new(), Vec::new());
            cursor.skip();
            while cursor.peek() != b']' {
                let (item, place) = node(cursor, depth_left - 1, remarks)?;
                items.push(item);
                places.push(place);
                cursor.skip_blanks();
                if cursor.peek() != b',' {
                    break;
                }
                cursor.skip();
            }
            cursor.advance_to(cursor.byte + 1);
            (Value::Array(items), start, Inner::Items(places.into()))
        }
        _ => {
            let (token, span) = cursor.token();
            (scalar(token, span)?, span, Inner::Scalar)
        }
    };
    Ok((value, Places { key: None, value: span, inner }))
}

fn scalar(token: &str, span: Span) -> Result<Value, SyntaxError> {
    if token.starts_with('"') {
        return unquote(token, span).map(Value::String);
    }
    match token {
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        "null" => return Ok(Value::Null),
        _ => {}
    }
    // Rust's own parser rounds correctly; serde_json's does not in its default setting.
    let number = match (token.parse::<i64>(), token.parse::<u64>()) {
        (Ok(int), _) => Some(Number::from(int)),
        (_, Ok(int)) => Some(Number::from(int)),
        _ => token.parse().ok().and_then(number_of_float),
    };
    match number {
        Some(number) => Ok(Value::Number(number)),
        None => Err(SyntaxError::new(span, format!("`{token}` is no number that 64 bits can hold"))),
    }
}

fn unquote(token: &str, span: Span) -> Result<String, SyntaxError> {
    serde_json::from_str(token).map_err(|_| {
        SyntaxError::new(span, format!("{token} holds an escape that stands for no character"))
            .hint("write the character itself, or a pair like \\ud83d\\ude00 for one outside of the first 65,536")
    })
}

#[cfg(test)]
mod tests {
    use super::super::read;

    #[test]
    fn json_keeps_its_own_rules_and_its_places() {
        let text = "{\n\t\"a\": \"x\\/\\ud83d\\ude00\",\n\t\"b\"\n: [1.0, 1e3, {\"c\": null}]}";
        let documents = read(text).unwrap();
        assert_eq!(documents[0].value, serde_json::json!({"a": "x/😀", "b": [1, 1000, {"c": null}]}));
        let place = documents[0].place("b[2].c");
        assert_eq!((place.line, place.column, place.length), (4, 20, 4));
        let place = documents[0].place("a");
        assert_eq!((place.line, place.column, place.length), (2, 7, 17));
    }

    #[test]
    fn json_objects_may_follow_each_other() {
        let documents = read("{\"a\":1} {\"b\":2}\n{\"c\":3}\n---\n[4]").unwrap();
        let lines: Vec<u32> = documents.iter().map(|document| document.line).collect();
        assert_eq!(lines, [1, 1, 2, 4]);
        assert_eq!(documents[1].place("b").column, 14);
    }

    #[test]
    fn a_lone_surrogate_is_refused_at_its_place() {
        let error = read("{\"a\": \"\\ud83d\"}").unwrap_err();
        assert_eq!((error.span.line, error.span.column), (1, 7));
    }
}
