//! JSON as kube-apiserver reads it: what is wrong with a text is said in the words of Go's reader, which clients see,
//! and keys that stand twice in one object are noted (the last one counts).

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Deeper than this is refused. Go's reader goes down to 10,000; walks over values here recurse.
const DEPTH_MAX: usize = 500;

/// What Go says where it finds one type and wants another: `array`, `number 1.5`.
pub fn misfit(found: &str, wanted: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// The JSON type of a value, as Go names it.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value, and what a strict reader says of its text: `duplicate field "spec.containers[0].image"`.
#[derive(Debug, Default, PartialEq)]
pub struct Parsed {
    pub value: Value,
    pub strict_errors: Vec<String>,
    /// The paths of all keys as the text has them, if one stands there twice.
    pub key_order: Vec<String>,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    path: String,
    depth: usize,
    duplicates: Vec<String>,
    /// The paths of all keys, if somebody wants to know.
    keys: Option<Vec<String>>,
}

/// # Errors
/// The first fault, in Go's words: `invalid character '}' looking for beginning of value`.
pub fn parse(bytes: &[u8]) -> Result<Parsed, String> {
    let mut reader = Reader::new(bytes);
    let value = reader.value()?;
    if reader.peek().is_some() {
        return Err(reader.invalid("after top-level value"));
    }
    let strict_errors: Vec<String> =
        reader.duplicates.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
    let key_order = if strict_errors.is_empty() { Vec::new() } else { key_order(bytes) };
    Ok(Parsed { value, strict_errors, key_order })
}

fn key_order(bytes: &[u8]) -> Vec<String> {
    let mut reader = Reader { keys: Some(Vec::new()), ..Reader::new(bytes) };
    let _ = reader.value();
    reader.keys.unwrap_or_default()
}

/// Puts faults into the order in which a reader of the text meets them.
pub fn sort_faults(faults: &mut [String], key_order: &[String]) {
    let place = |fault: &String| {
        let (word, path) = fault.split_once(" field \"")?;
        let path = path.strip_suffix('"')?;
        let mut met = key_order.iter().enumerate().filter(|(_, key)| *key == path).map(|(index, _)| index);
        if word == "duplicate" { met.nth(1) } else { met.next() }
    };
    faults.sort_by_cached_key(place);
}

/// The fault of the first value in a text that may go on after it, and how many bytes Go had read when it saw it.
pub fn fault(bytes: &[u8]) -> Option<(usize, String)> {
    let mut reader = Reader::new(bytes);
    let problem = reader.value().err()?;
    Some((reader.at + 1, problem))
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0, path: String::new(), depth: 0, duplicates: Vec::new(), keys: None }
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.next_here(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.next_here()
    }

    fn next_here(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn digit_here(&self) -> bool {
        self.next_here().is_some_and(|byte| byte.is_ascii_digit())
    }

    /// What has been read since a place. Go replaces what is no UTF-8.
    fn since(&self, start: usize) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes[start..self.at])
    }

    /// The fault that the byte here is, or that the text ends here.
    fn invalid(&self, context: &str) -> String {
        match self.next_here() {
            None => "unexpected end of JSON input".into(),
            Some(byte) => format!("invalid character {} {context}", quoted(byte)),
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.invalid("looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: impl Fn(&mut Self) -> Result<Value, String>) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("exceeded max depth ({DEPTH_MAX})"));
        }
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, String> {
        let mut fields = Map::new();
        let parent = self.path.len();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(fields));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.invalid("looking for beginning of object key string"));
            }
            let key = self.string()?;
            if self.peek() != Some(b':') {
                return Err(self.invalid("after object key"));
            }
            self.at += 1;
            if parent > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if let Some(keys) = &mut self.keys {
                keys.push(self.path.clone());
            }
            let value = self.value()?;
            if fields.insert(key, value).is_some() && !self.duplicates.contains(&self.path) {
                self.duplicates.push(self.path.clone());
            }
            self.path.truncate(parent);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(fields));
                }
                _ => return Err(self.invalid("after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        let parent = self.path.len();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.path.push_str(&format!("[{}]", items.len()));
            items.push(self.value()?);
            self.path.truncate(parent);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return Err(self.invalid("after array element")),
            }
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, String> {
        for expected in word.bytes() {
            if self.next_here() != Some(expected) {
                return Err(self.invalid(&format!("in literal {word} (expecting {})", quoted(expected))));
            }
            self.at += 1;
        }
        Ok(value)
    }

    /// A string, whose escapes serde_json reads once its end is known.
    fn string(&mut self) -> Result<String, String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.next_here() {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    match self.next_here() {
                        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
                        Some(b'u') => {
                            self.at += 1;
                            for _ in 0..4 {
                                if !self.next_here().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                                    return Err(self.invalid("in \\u hexadecimal character escape"));
                                }
                                self.at += 1;
                            }
                        }
                        _ => return Err(self.invalid("in string escape code")),
                    }
                }
                Some(..b' ') => return Err(self.invalid("in string literal")),
                Some(_) => self.at += 1,
                None => return Err(self.invalid("")),
            }
        }
        self.at += 1;
        let written = self.since(start);
        // Half of a surrogate pair is a letter that nobody knows.
        Ok(serde_json::from_str(&written).unwrap_or_else(|_| written.trim_matches('"').replace("\\u", "\u{fffd}")))
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        if self.next_here() == Some(b'-') {
            self.at += 1;
        }
        match self.next_here() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.invalid("in numeric literal")),
        }
        if self.next_here() == Some(b'.') {
            self.at += 1;
            if !self.digit_here() {
                return Err(self.invalid("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if matches!(self.next_here(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.next_here(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.digit_here() {
                return Err(self.invalid("in exponent of numeric literal"));
            }
            self.digits();
        }
        let written = self.since(start);
        let out_of_range = format!("json: cannot unmarshal number {written} into Go value of type float64");
        serde_json::from_str(&written).map_err(|_| out_of_range)
    }

    fn digits(&mut self) {
        while self.digit_here() {
            self.at += 1;
        }
    }
}

/// A byte as Go shows it in an error.
fn quoted(byte: u8) -> String {
    match char::from(byte) {
        '\'' => r"'\''".into(),
        '"' => r#"'"'"#.into(),
        '\\' => r"'\\'".into(),
        '\n' => r"'\n'".into(),
        '\t' => r"'\t'".into(),
        '\r' => r"'\r'".into(),
        '\0'..=' ' | '\u{7f}' if byte != b' ' => format!(r"'\x{byte:02x}'"),
        '\u{80}'..='\u{a0}' | '\u{ad}' => format!(r"'\u{byte:04x}'"),
        letter => format!("'{letter}'"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_read_with_the_keys_that_it_repeats() {
        let text = br#" {"a": [1, {"b": true, "b": null}], "c": "\u00e9\n", "a": -1.5e3, "a": 2} "#;
        let parsed = parse(text).unwrap();
        assert_eq!(parsed.value, json!({"a": 2, "c": "\u{e9}\n"}));
        assert_eq!(parsed.strict_errors, ["duplicate field \"a[1].b\"", "duplicate field \"a\""]);
    }

    #[test]
    fn faults_are_told_in_go_s_words() {
        for (text, expected) in [
            ("not json", "invalid character 'o' in literal null (expecting 'u')"),
            ("", "unexpected end of JSON input"),
            (r#"{"a": "b""#, "unexpected end of JSON input"),
            (r#"{"a": "b",}"#, "invalid character '}' looking for beginning of object key string"),
            (r#"{"a" "b"}"#, "invalid character '\"' after object key"),
            (r#"{"a": 1 "b"}"#, "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("01", "invalid character '1' after top-level value"),
            ("-", "unexpected end of JSON input"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("\"a\nb\"", r"invalid character '\n' in string literal"),
            ("\u{e9}", "invalid character '\u{c3}' looking for beginning of value"),
            (r#""\x""#, "invalid character 'x' in string escape code"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err(), expected, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(deep.as_bytes()).unwrap_err(), "exceeded max depth (500)");
    }
}
