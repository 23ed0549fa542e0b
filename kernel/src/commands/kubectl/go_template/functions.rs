//! The functions that templates may call.

use std::cmp::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use super::super::jsonpath::{go_text, type_name};
use super::format::printf;

type Function = fn(&[Value]) -> Result<Value, String>;

/// Name, the fewest and the most arguments, and what it does. `and` and `or` are the engine's own.
const ALL: &[(&str, usize, usize, Function)] = &[
    ("and", 1, usize::MAX, |_| Ok(Value::Null)),
    ("base64decode", 1, 1, base64decode),
    ("eq", 1, usize::MAX, eq),
    ("exists", 1, usize::MAX, |args| Ok(exists(&args[0], &args[1..]).into())),
    ("ge", 2, 2, |args| order(args).map(|order| (order != Some(Ordering::Less) && order.is_some()).into())),
    ("gt", 2, 2, |args| order(args).map(|order| (order == Some(Ordering::Greater)).into())),
    ("html", 0, usize::MAX, |args| Ok(html(&text_of(args)).into())),
    ("index", 1, usize::MAX, index),
    ("js", 0, usize::MAX, |args| Ok(js(&text_of(args)).into())),
    ("le", 2, 2, |args| order(args).map(|order| (order != Some(Ordering::Greater) && order.is_some()).into())),
    ("len", 1, 1, len),
    ("lt", 2, 2, |args| order(args).map(|order| (order == Some(Ordering::Less)).into())),
    ("ne", 2, 2, |args| Ok((!same(&args[0], &args[1])?).into())),
    ("not", 1, 1, |args| Ok((!is_true(&args[0])).into())),
    ("or", 1, usize::MAX, |_| Ok(Value::Null)),
    ("print", 0, usize::MAX, |args| Ok(print(args).into())),
    ("printf", 1, usize::MAX, |args| match &args[0] {
        Value::String(format) => Ok(printf(format, &args[1..]).into()),
        other => Err(format!("wrong type for value; expected string; got {}", type_name(other))),
    }),
    ("println", 0, usize::MAX, |args| Ok((args.iter().map(go_text).collect::<Vec<_>>().join(" ") + "\n").into())),
    ("slice", 1, 4, slice),
    ("urlquery", 0, usize::MAX, |args| {
        Ok(form_urlencoded::byte_serialize(text_of(args).as_bytes()).collect::<String>().into())
    }),
];

pub fn is_known(name: &str) -> bool {
    ALL.iter().any(|(known, ..)| *known == name)
}

/// # Errors
/// Go's words for why it can't be called so.
pub fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    let Some((_, min, max, function)) = ALL.iter().find(|(known, ..)| *known == name) else {
        return Err(format!("{name:?} is not a defined function"));
    };
    let got = arguments.len();
    if got < *min && *max == usize::MAX {
        return Err(format!("wrong number of args for {name}: want at least {min} got {got}"));
    }
    if !(*min..=*max).contains(&got) {
        return Err(format!("wrong number of args for {name}: want {min} got {got}"));
    }
    function(arguments).map_err(|problem| format!("error calling {name}: {problem}"))
}

/// Whether an `if` takes it: not what is nothing, zero or empty.
pub fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_true) => *is_true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// A number as Go writes it down: `42`, `0x1F`, `1_000`, `1.5`, `1e3`.
pub fn number(text: &str) -> Option<Number> {
    let plain = text.replace('_', "");
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    let lower = digits.to_lowercase();
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find(|(prefix, _)| lower.starts_with(prefix));
    let integer = match radix {
        Some((_, radix)) => i64::from_str_radix(&lower[2..], radix).ok(),
        None if lower.len() > 1 && lower.starts_with('0') => i64::from_str_radix(&lower, 8).ok(),
        None => lower.parse::<i64>().ok(),
    };
    let float = || lower.parse::<f64>().ok().filter(|_| lower.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
    match integer {
        Some(integer) => Some((sign * integer).into()),
        // A float without a fraction counts as an integer, too.
        None => float().and_then(|float| match float.fract() == 0.0 && float.abs() < 1e15 {
            true => Some((sign * float as i64).into()),
            false => Number::from_f64(sign as f64 * float),
        }),
    }
}

/// Go's `Sprint`: a space between two operands if neither is a text.
fn print(args: &[Value]) -> String {
    let mut text = String::new();
    for (place, value) in args.iter().enumerate() {
        if place > 0 && !value.is_string() && !args[place - 1].is_string() {
            text.push(' ');
        }
        text.push_str(&go_text(value));
    }
    text
}

fn text_of(args: &[Value]) -> String {
    print(args)
}

fn base64decode(args: &[Value]) -> Result<Value, String> {
    let Value::String(text) = &args[0] else {
        return Err(format!("wrong type for value; expected string; got {}", type_name(&args[0])));
    };
    let bytes = STANDARD.decode(text).map_err(|problem| {
        let place = match problem {
            base64::DecodeError::InvalidByte(place, _) | base64::DecodeError::InvalidLastSymbol(place, _) => place,
            _ => text.len(),
        };
        format!("base64 decode failed: illegal base64 data at input byte {place}")
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned().into())
}

/// One step into a list or a map; nothing if there is no such step.
fn step<'v>(value: &'v Value, index: &Value) -> Option<&'v Value> {
    match (value, index) {
        (Value::Array(items), Value::Number(place)) => items.get(usize::try_from(place.as_i64()?).ok()?),
        (Value::Object(fields), Value::String(key)) => fields.get(key),
        _ => None,
    }
}

fn exists(value: &Value, indices: &[Value]) -> bool {
    indices.iter().try_fold(value, step).is_some_and(|found| !found.is_null())
}

/// As [`type_name`], for a value that stands in the template, in which whole numbers are ints.
fn literal_type(value: &Value) -> String {
    if value.is_i64() { "int".into() } else { type_name(value).to_string() }
}

fn index(args: &[Value]) -> Result<Value, String> {
    let mut value = &args[0];
    if value.is_null() {
        return Err("index of untyped nil".into());
    }
    for index in &args[1..] {
        value = match (value, index) {
            (Value::Array(_), Value::Number(_)) => {
                step(value, index).ok_or_else(|| format!("index out of range: {index}"))?
            }
            (Value::Array(_), other) => return Err(format!("cannot index slice/array with type {}", type_name(other))),
            (Value::Object(_), Value::String(_)) => step(value, index).unwrap_or(&Value::Null),
            (Value::Object(_), other) => {
                return Err(format!("value has type {}; should be string", literal_type(other)));
            }
            (Value::Null, _) => return Err("index of nil pointer".into()),
            (other, _) => return Err(format!("can't index item of type {}", type_name(other))),
        };
    }
    Ok(value.clone())
}

fn slice(args: &[Value]) -> Result<Value, String> {
    let length = match &args[0] {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        Value::Null => return Err("slice of untyped nil".into()),
        other => return Err(format!("can't slice item of type {}", type_name(other))),
    };
    let bound = |place: usize, otherwise: usize| match args.get(place) {
        None => Ok(otherwise),
        Some(bound) => match bound.as_u64().and_then(|bound| usize::try_from(bound).ok()) {
            Some(bound) if bound <= length => Ok(bound),
            _ => Err(format!("index out of range: {}", go_text(bound))),
        },
    };
    let (from, to) = (bound(1, 0)?, bound(2, length)?);
    if from > to {
        return Err(format!("invalid slice index: {from} > {to}"));
    }
    match &args[0] {
        Value::String(text) => Ok(String::from_utf8_lossy(&text.as_bytes()[from..to]).into_owned().into()),
        Value::Array(items) => Ok(items[from..to].to_vec().into()),
        _ => Ok(Value::Null),
    }
}

fn len(args: &[Value]) -> Result<Value, String> {
    match &args[0] {
        Value::String(text) => Ok(text.len().into()),
        Value::Array(items) => Ok(items.len().into()),
        Value::Object(fields) => Ok(fields.len().into()),
        Value::Null => Err("len of nil pointer".into()),
        other => Err(format!("len of type {}", type_name(other))),
    }
}

fn eq(args: &[Value]) -> Result<Value, String> {
    if args.len() == 1 {
        return Err("missing argument for comparison".into());
    }
    for other in &args[1..] {
        if same(&args[0], other)? {
            return Ok(true.into());
        }
    }
    Ok(false.into())
}

fn same(left: &Value, right: &Value) -> Result<bool, String> {
    match (left, right) {
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => {
            Err(format!("non-comparable type {}: {}", go_text(left), type_name(left)))
        }
        (Value::Null, _) | (_, Value::Null) => Ok(left == right),
        _ if type_name(left) != type_name(right) => Err("incompatible types for comparison".into()),
        _ => Ok(left == right),
    }
}

fn order(args: &[Value]) -> Result<Option<Ordering>, String> {
    match (&args[0], &args[1]) {
        (Value::String(left), Value::String(right)) => Ok(Some(left.cmp(right))),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            Ok(left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right)))
        }
        (left, right) if type_name(left) == type_name(right) => Err("invalid type for comparison".into()),
        _ => Err("incompatible types for comparison".into()),
    }
}

fn html(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('\'', "&#39;").replace('<', "&lt;");
    escaped.replace('>', "&gt;").replace('"', "&#34;").replace('\0', "\u{fffd}")
}

fn js(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '\\' | '\'' | '"' => escaped.extend(['\\', letter]),
            '<' | '>' | '&' | '=' => escaped.push_str(&format!("\\u{:04X}", u32::from(letter))),
            control if control.is_control() => escaped.push_str(&format!("\\u{:04X}", u32::from(control))),
            plain => escaped.push(plain),
        }
    }
    escaped
}
