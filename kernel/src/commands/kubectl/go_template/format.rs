//! Go's `Sprintf`, for what JSON can hold. <https://pkg.go.dev/fmt>

use serde_json::Value;

use super::super::jsonpath::{go_syntax, go_text, type_name};

/// Nothing is filled up further.
const WIDTH_MAX: usize = 10_000;

/// A verb with what stands before it.
#[derive(Default)]
struct Spec {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

pub fn printf(format: &str, arguments: &[Value]) -> String {
    let mut text = String::new();
    let mut letters = format.chars().peekable();
    let mut used = 0;
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let mut spec = Spec::default();
        while let Some(flag) = letters.next_if(|letter| "-+# 0".contains(*letter)) {
            match flag {
                '-' => spec.minus = true,
                '+' => spec.plus = true,
                '#' => spec.sharp = true,
                ' ' => spec.space = true,
                _ => spec.zero = true,
            }
        }
        let mut number = |letters: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut number = None;
            if letters.next_if_eq(&'*').is_some() {
                number = arguments.get(used).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
                used += 1;
            }
            while let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(10)) {
                letters.next();
                number = Some((number.unwrap_or(0) * 10 + digit as usize).min(WIDTH_MAX));
            }
            number.map(|number| number.min(WIDTH_MAX))
        };
        spec.width = number(&mut letters);
        if letters.next_if_eq(&'.').is_some() {
            spec.precision = Some(number(&mut letters).unwrap_or(0));
        }
        match letters.next() {
            None => text.push_str("%!(NOVERB)"),
            Some('%') => text.push('%'),
            Some(verb) => match arguments.get(used) {
                None => text.push_str(&format!("%!{verb}(MISSING)")),
                Some(value) => {
                    used += 1;
                    text.push_str(&filled(&spec, formatted(&spec, verb, value), value));
                }
            },
        }
    }
    if used < arguments.len() {
        let extra: Vec<String> =
            arguments[used..].iter().map(|value| format!("{}={}", type_name(value), go_text(value))).collect();
        text.push_str(&format!("%!(EXTRA {})", extra.join(", ")));
    }
    text
}

fn filled(spec: &Spec, text: String, value: &Value) -> String {
    let width = spec.width.unwrap_or(0);
    let missing = width.saturating_sub(text.chars().count());
    if spec.minus {
        return text + &" ".repeat(missing);
    }
    if spec.zero && value.is_number() {
        let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
        return format!("{sign}{}{digits}", "0".repeat(missing));
    }
    " ".repeat(missing) + &text
}

fn formatted(spec: &Spec, verb: char, value: &Value) -> String {
    let cut = |text: String| match spec.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text,
    };
    let signed = |text: String, is_negative: bool| match is_negative {
        false if spec.plus => format!("+{text}"),
        false if spec.space => format!(" {text}"),
        _ => text,
    };
    match (verb, value) {
        ('T', value) => type_name(value).into(),
        ('v', value) if spec.sharp => go_syntax(value),
        ('v', Value::Number(number)) => signed(number.to_string(), number.to_string().starts_with('-')),
        ('v', value) => cut(go_text(value)),
        // Lists and maps take a verb item by item.
        (verb, Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(|item| formatted(spec, verb, item)).collect();
            format!("[{}]", items.join(" "))
        }
        (verb, Value::Object(fields)) => {
            let of = |value: &Value| formatted(spec, verb, value);
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}:{}", of(&key.as_str().into()), of(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        ('s', Value::String(text)) => cut(text.clone()),
        ('q', Value::String(text)) => format!("{:?}", cut(text.clone())),
        ('x', Value::String(text)) => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ('X', Value::String(text)) => text.bytes().map(|byte| format!("{byte:02X}")).collect(),
        ('t', Value::Bool(is_true)) => is_true.to_string(),
        (verb, Value::Number(number)) => match (verb, number.as_i64(), number.as_f64()) {
            ('d', Some(integer), _) => signed(integer.to_string(), integer < 0),
            ('b', Some(integer), _) => format!("{integer:b}"),
            ('o', Some(integer), _) => format!("{integer:o}"),
            ('x', Some(integer), _) => format!("{integer:x}"),
            ('X', Some(integer), _) => format!("{integer:X}"),
            ('c', Some(integer), _) => {
                u32::try_from(integer).ok().and_then(char::from_u32).unwrap_or('\u{fffd}').to_string()
            }
            ('f' | 'F', None, Some(float)) => {
                signed(format!("{float:.*}", spec.precision.unwrap_or(6)), float.is_sign_negative())
            }
            ('g' | 'G', None, Some(float)) => signed(float.to_string(), float.is_sign_negative()),
            _ => wrong(verb, value),
        },
        ('s' | 'd' | 'q', Value::Null) => format!("%!{verb}(<nil>)"),
        (verb, value) => wrong(verb, value),
    }
}

fn wrong(verb: char, value: &Value) -> String {
    format!("%!{verb}({}={})", type_name(value), go_text(value))
}
