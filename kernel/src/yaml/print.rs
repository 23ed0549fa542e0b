//! YAML as `kubectl get -o yaml` prints it: sigs.k8s.io/yaml over the emitter of go-yaml v2.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::resolve::{go_float, needs_quotes, number_of_float};

/// Prints a value as one YAML document that ends with a newline, without `---`.
pub fn print(value: &Value) -> String {
    let mut printer = Printer { fresh_line: true, ..Printer::default() };
    printer.node(value, 0, false);
    if !printer.out.ends_with('\n') {
        printer.out.push('\n');
    }
    printer.out
}

/// Columns a level.
const INDENT: usize = 2;
/// The column after which a text is broken at its next space.
const LINE_COLUMNS: usize = 80;
/// The length in bytes from which a key is written as `? key`.
const SIMPLE_KEY_BYTES_MAX: usize = 128;

#[derive(Default)]
struct Printer {
    out: String,
    column: usize,
    /// Only indentation, `- `, `? ` and `: ` stand in this line so far: a nested block may start in it.
    fresh_line: bool,
}

impl Printer {
    /// Writes a value whose block, if it makes one, has that indentation. `field` says that it belongs to a key, whose
    /// list is then not indented.
    fn node(&mut self, value: &Value, indent: usize, field: bool) {
        match value {
            Value::Object(map) if map.is_empty() => self.word("{}"),
            Value::Array(items) if items.is_empty() => self.word("[]"),
            Value::Object(map) => {
                for (key, value) in sorted(map) {
                    self.field(key, value, indent);
                }
            }
            Value::Array(items) => {
                let indent = if field && !self.fresh_line { indent.saturating_sub(INDENT) } else { indent };
                for item in items {
                    self.start(indent);
                    self.mark('-');
                    self.node(item, indent + INDENT, false);
                }
            }
            Value::Null => self.word("null"),
            Value::Bool(bool) => self.word(if *bool { "true" } else { "false" }),
            Value::Number(number) => self.word(&go_number(number)),
            Value::String(text) => self.text(text, indent, false),
        }
    }

    fn field(&mut self, key: &str, value: &Value, indent: usize) {
        self.start(indent);
        let is_simple = key.len() <= SIMPLE_KEY_BYTES_MAX && !key.contains(is_break);
        if is_simple {
            self.text(key, indent, true);
            self.put(":");
            self.fresh_line = false;
        } else {
            self.mark('?');
            self.text(key, indent + INDENT, false);
            self.start(indent);
            self.mark(':');
        }
        self.node(value, indent + INDENT, true);
    }

    /// Goes to that column in a line where nothing but marks stand yet.
    fn start(&mut self, indent: usize) {
        if !self.fresh_line || self.column > indent {
            self.line_break('\n');
        }
        self.pad(indent);
        self.fresh_line = true;
    }

    fn pad(&mut self, indent: usize) {
        while self.column < indent {
            self.put(" ");
        }
    }

    fn mark(&mut self, mark: char) {
        self.space();
        self.out.push(mark);
        self.column += 1;
    }

    /// Parts what follows from what stands in the line.
    fn space(&mut self) {
        if self.column > 0 && !self.out.ends_with([' ', '\n']) {
            self.put(" ");
        }
    }

    fn word(&mut self, word: &str) {
        self.space();
        self.put(word);
        self.fresh_line = false;
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn line_break(&mut self, character: char) {
        self.out.push(character);
        self.column = 0;
    }

    fn text(&mut self, text: &str, indent: usize, is_key: bool) {
        let allowed = Styles::of(text);
        let style = if text.contains('\n') {
            if allowed.literal && !is_key { Style::Literal } else { Style::DoubleQuoted }
        } else if needs_quotes(text) {
            Style::DoubleQuoted
        } else if allowed.plain {
            Style::Plain
        } else if allowed.single_quoted {
            Style::SingleQuoted
        } else {
            Style::DoubleQuoted
        };
        // At the root a text stands as deep as a field's.
        let indent = indent.max(INDENT);
        match style {
            Style::Literal => self.literal(text, indent),
            _ => self.flow_text(text, style, (!is_key).then_some(indent)),
        }
        self.fresh_line = style == Style::Literal && self.column == 0;
    }

    /// A text with or without quotes, broken at spaces where a line gets long and `wrap_indent` allows it.
    fn flow_text(&mut self, text: &str, style: Style, wrap_indent: Option<usize>) {
        let quote = match style {
            Style::SingleQuoted => "'",
            Style::DoubleQuoted => "\"",
            Style::Plain | Style::Literal => "",
        };
        self.space();
        self.put(quote);
        // go-yaml takes every character for a byte order mark in a text that starts with one.
        let escapes_all = text.starts_with('\u{feff}');
        let mut after_space = false;
        for (at, character) in text.char_indices() {
            let next_is_space = text[at + character.len_utf8()..].starts_with(' ');
            let is_inside = quote.is_empty() || 0 < at && at < text.len() - 1;
            match wrap_indent {
                Some(indent)
                    if character == ' '
                        && !after_space
                        && self.column > LINE_COLUMNS
                        && is_inside
                        && (style == Style::DoubleQuoted || !next_is_space) =>
                {
                    self.line_break('\n');
                    self.pad(indent);
                    if next_is_space {
                        self.put("\\");
                    }
                }
                _ if style == Style::SingleQuoted && character == '\'' => self.put("''"),
                _ if style == Style::DoubleQuoted && (escapes_all || needs_escape(character)) => {
                    self.put(&escape(character))
                }
                _ => {
                    self.out.push(character);
                    self.column += 1;
                }
            }
            after_space = character == ' ';
        }
        self.put(quote);
    }

    /// `|`, with what tells the reader about spaces at the start and newlines at the end.
    fn literal(&mut self, text: &str, indent: usize) {
        let mut header = "|".to_owned();
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            header += &INDENT.to_string();
        }
        let mut last = text.chars().rev();
        match (last.next().is_some_and(is_break), last.next()) {
            (false, _) => header.push('-'),
            (true, None) => header.push('+'),
            (true, Some(before)) if is_break(before) => header.push('+'),
            (true, Some(_)) => {}
        }
        self.word(&header);
        self.line_break('\n');
        for character in text.chars() {
            if is_break(character) {
                self.line_break(character);
                continue;
            }
            self.pad(indent);
            self.out.push(character);
            self.column += 1;
        }
    }
}

fn needs_escape(character: char) -> bool {
    !is_printable(character) || is_break(character) || matches!(character, '"' | '\\')
}

fn escape(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            let code = u32::from(character);
            return match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// The styles in which a text keeps its meaning, by libyaml's analysis.
struct Styles {
    plain: bool,
    single_quoted: bool,
    literal: bool,
}

impl Styles {
    fn of(text: &str) -> Self {
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let mut special = false;
        let mut breaks = false;
        let (mut break_space, mut space_break) = (false, false);
        let mut previous = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let blank_follows = characters.peek().is_none_or(|&next| matches!(next, ' ' | '\t'));
            indicators |= match (previous, character) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
                ) => true,
                (None, '?' | '-') | (_, ':') => blank_follows,
                (Some(before), '#') => matches!(before, ' ' | '\t' | '\0') || is_break(before),
                _ => false,
            };
            special |= !is_printable(character);
            breaks |= is_break(character);
            break_space |= character == ' ' && previous.is_some_and(is_break);
            space_break |= is_break(character) && previous == Some(' ');
            previous = Some(character);
        }
        let is_edge = |c: char| c == ' ' || is_break(c);
        let edges = text.starts_with(is_edge) || text.ends_with(is_edge);
        let quoted_only = space_break || special;
        Self {
            plain: !(indicators || breaks || edges || break_space || quoted_only),
            single_quoted: !(breaks || break_space || quoted_only),
            literal: !(quoted_only || text.is_empty() || text.ends_with(' ')),
        }
    }
}

/// What go-yaml does not escape: nothing outside of the first 65,536 characters, emoji among them, belongs to it.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A number as it leaves Go's JSON encoder and then go-yaml: integers in full, floats with Go's `%g`.
fn go_number(number: &Number) -> String {
    if !number.is_f64() {
        return number.to_string();
    }
    let float = number.as_f64().unwrap_or_default();
    match number_of_float(float) {
        Some(integer) if !integer.is_f64() => integer.to_string(),
        _ => go_float(float),
    }
}

/// The fields in go-yaml's order.
fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = map.iter().collect();
    // Names of letters alone, which most objects have, need no natural order.
    if fields.iter().all(|(key, _)| key.bytes().all(|b| b.is_ascii_alphabetic())) {
        fields.sort_unstable_by_key(|(key, _)| *key);
    } else {
        merge_sort(&mut fields);
    }
    fields
}

/// A stable merge sort. [`natural_order`] can run in circles (`a10` < `a1b` < `a2` < `a10`), at which the standard sort may panic.
fn merge_sort(fields: &mut Vec<(&String, &Value)>) {
    if fields.len() < 2 {
        return;
    }
    let mut right = fields.split_off(fields.len() / 2);
    merge_sort(fields);
    merge_sort(&mut right);
    let mut left = std::mem::take(fields).into_iter().peekable();
    let mut right = right.into_iter().peekable();
    while let (Some((a, _)), Some((b, _))) = (left.peek(), right.peek()) {
        let next = if natural_order(b, a) == Ordering::Less { right.next() } else { left.next() };
        fields.extend(next);
    }
    fields.extend(left);
    fields.extend(right);
}

/// Numbers within keys count as numbers, and letters come after everything else.
fn natural_order(a: &str, b: &str) -> Ordering {
    let common: usize = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let (Some(x), Some(y)) = (a[common..].chars().next(), b[common..].chars().next()) else {
        return a.len().cmp(&b.len());
    };
    if x.is_alphabetic() || y.is_alphabetic() {
        return x.is_alphabetic().cmp(&y.is_alphabetic()).then(x.cmp(&y));
    }
    // A zero within a number is no leading zero.
    let digits_before = a[..common].bytes().rev().take_while(u8::is_ascii_digit);
    let within = (x == '0' || y == '0') && digits_before.into_iter().any(|digit| digit != b'0');
    let number = |text: &str| {
        let length = text.bytes().take_while(u8::is_ascii_digit).count();
        let value = text[..length]
            .bytes()
            .fold(i64::from(within), |value, digit| value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')));
        (value, length)
    };
    number(&a[common..]).cmp(&number(&b[common..])).then(x.cmp(&y))
}
