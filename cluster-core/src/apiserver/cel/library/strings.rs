//! Strings and regular expressions. <https://pkg.go.dev/github.com/google/cel-go/ext#Strings>,
//! <https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-regex-library>

use regex_lite::Regex;

use super::Function;
use crate::apiserver::cel::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    ("string.contains(string) -> bool", |args| two(args, |text, part| text.contains(part).into())),
    ("string.startsWith(string) -> bool", |args| two(args, |text, part| text.starts_with(part).into())),
    ("string.endsWith(string) -> bool", |args| two(args, |text, part| text.ends_with(part).into())),
    ("string.matches(string) -> bool", |args| matched(args, |regex, text| regex.is_match(text).into())),
    ("matches(string, string) -> bool", |args| matched(args, |regex, text| regex.is_match(text).into())),
    ("string.find(string) -> string", |args| {
        matched(args, |regex, text| regex.find(text).map_or("", |found| found.as_str()).into())
    }),
    ("string.findAll(string) -> list<string>", find_all),
    ("string.findAll(string, int) -> list<string>", find_all),
    ("string.charAt(int) -> string", char_at),
    ("string.indexOf(string) -> int", |args| index_of(args, false)),
    ("string.indexOf(string, int) -> int", |args| index_of(args, false)),
    ("string.lastIndexOf(string) -> int", |args| index_of(args, true)),
    ("string.lastIndexOf(string, int) -> int", |args| index_of(args, true)),
    ("string.lowerAscii() -> string", |args| one(args, |text| text.to_ascii_lowercase().into())),
    ("string.upperAscii() -> string", |args| one(args, |text| text.to_ascii_uppercase().into())),
    ("string.trim() -> string", |args| one(args, |text| text.trim().into())),
    ("string.reverse() -> string", |args| one(args, |text| text.chars().rev().collect::<String>().into())),
    ("string.replace(string, string) -> string", replace),
    ("string.replace(string, string, int) -> string", replace),
    ("string.split(string) -> list<string>", split),
    ("string.split(string, int) -> list<string>", split),
    ("string.substring(int) -> string", substring),
    ("string.substring(int, int) -> string", substring),
    ("list<string>.join() -> string", join),
    ("list<string>.join(string) -> string", join),
    ("string.format(list<dyn>) -> string", format),
    ("strings.quote(string) -> string", |args| one(args, |text| format!("{text:?}").into())),
    ("jsonpatch.escapeKey(string) -> string", |args| {
        one(args, |text| text.replace('~', "~0").replace('/', "~1").into())
    }),
    ("base64.encode(bytes) -> string", |args| match &args[0] {
        Value::Bytes(bytes) => Ok(data_encoding::BASE64.encode(bytes).into()),
        _ => Err(NO_OVERLOAD.to_owned()),
    }),
    ("base64.decode(string) -> bytes", |args| match &args[0] {
        Value::String(text) => match data_encoding::BASE64.decode(text.as_bytes()) {
            Ok(bytes) => Ok(Value::Bytes(bytes.into())),
            Err(_) => Err("illegal base64 data".to_owned()),
        },
        _ => Err(NO_OVERLOAD.to_owned()),
    }),
];

const NO_OVERLOAD: &str = "no such overload";

fn text(value: &Value) -> Result<&str, String> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

fn number(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(number) => Ok(*number),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

fn one(args: &[Value], of: fn(&str) -> Value) -> Result<Value, String> {
    Ok(of(text(&args[0])?))
}

fn two(args: &[Value], of: fn(&str, &str) -> Value) -> Result<Value, String> {
    Ok(of(text(&args[0])?, text(&args[1])?))
}

fn regex(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| format!("error parsing regexp: {error}"))
}

fn matched(args: &[Value], of: fn(&Regex, &str) -> Value) -> Result<Value, String> {
    Ok(of(&regex(text(&args[1])?)?, text(&args[0])?))
}

fn find_all(args: &[Value]) -> Result<Value, String> {
    let most = args.get(2).map(number).transpose()?.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let regex = regex(text(&args[1])?)?;
    Ok(regex.find_iter(text(&args[0])?).take(most).map(|found| found.as_str().into()).collect::<Vec<_>>().into())
}

fn char_at(args: &[Value]) -> Result<Value, String> {
    let (text, at) = (text(&args[0])?, number(&args[1])?);
    let length = text.chars().count() as i64;
    if at < 0 || at > length {
        return Err(format!("index out of range: {at}"));
    }
    Ok(text.chars().nth(at as usize).map(String::from).unwrap_or_default().into())
}

/// Places count letters, not bytes.
fn index_of(args: &[Value], last: bool) -> Result<Value, String> {
    let (text, part) = (text(&args[0])?, text(&args[1])?);
    let length = text.chars().count() as i64;
    let from = args.get(2).map(number).transpose()?;
    if from.is_some_and(|from| from < 0 || from > length) {
        return Err(format!("index out of range: {}", from.unwrap_or_default()));
    }
    let byte = |place: i64| text.char_indices().nth(place as usize).map_or(text.len(), |(byte, _)| byte);
    let found = match (last, from) {
        (false, from) => {
            let start = byte(from.unwrap_or(0));
            text[start..].find(part).map(|at| start + at)
        }
        (true, None) => text.rfind(part),
        (true, Some(from)) => {
            let end = (byte(from) + part.len()).min(text.len());
            text.get(..end).and_then(|head| head.rfind(part))
        }
    };
    Ok(Value::Int(found.map_or(-1, |byte| text[..byte].chars().count() as i64)))
}

fn replace(args: &[Value]) -> Result<Value, String> {
    let (text, old, new) = (text(&args[0])?, text(&args[1])?, text(&args[2])?);
    let most = args.get(3).map(number).transpose()?.unwrap_or(-1);
    let replacements = if old.is_empty() { text.len() + 1 } else { text.len() / old.len() };
    if text.len() + replacements * new.len() > super::TEXT_BYTES_MAX {
        return Err("string is too long".to_owned());
    }
    Ok(match usize::try_from(most) {
        Ok(most) => text.replacen(old, new, most).into(),
        Err(_) => text.replace(old, new).into(),
    })
}

fn split(args: &[Value]) -> Result<Value, String> {
    let (text, separator) = (text(&args[0])?, text(&args[1])?);
    let most = args.get(2).map(number).transpose()?.unwrap_or(-1);
    let letters = || text.chars().map(String::from).collect::<Vec<_>>();
    let parts: Vec<Value> = match (most, separator) {
        (0, _) => Vec::new(),
        (most, "") if most < 0 => letters().into_iter().map(Value::from).collect(),
        (most, "") => {
            let letters = letters();
            let head = letters.len().min(most as usize - 1);
            let mut parts: Vec<Value> = letters[..head].iter().map(|letter| letter.as_str().into()).collect();
            if head < letters.len() {
                parts.push(letters[head..].concat().into());
            }
            parts
        }
        (most, separator) if most < 0 => text.split(separator).map(Value::from).collect(),
        (most, separator) => text.splitn(most as usize, separator).map(Value::from).collect(),
    };
    Ok(parts.into())
}

fn substring(args: &[Value]) -> Result<Value, String> {
    let (text, start) = (text(&args[0])?, number(&args[1])?);
    let length = text.chars().count() as i64;
    let end = args.get(2).map(number).transpose()?.unwrap_or(length);
    if let Some(wrong) = [start, end].into_iter().find(|at| *at < 0 || *at > length) {
        return Err(format!("index out of range: {wrong}"));
    }
    if start > end {
        return Err(format!("invalid substring range. start: {start}, end: {end}"));
    }
    Ok(text.chars().skip(start as usize).take((end - start) as usize).collect::<String>().into())
}

fn join(args: &[Value]) -> Result<Value, String> {
    let Value::List(list) = &args[0] else { return Err(NO_OVERLOAD.to_owned()) };
    let separator = args.get(1).map(text).transpose()?.unwrap_or("");
    let parts = list.items.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    if parts.iter().map(|part| part.len() + separator.len()).sum::<usize>() > super::TEXT_BYTES_MAX {
        return Err("string is too long".to_owned());
    }
    Ok(parts.join(separator).into())
}

/// `"%s has %d".format([name, count])`.
fn format(args: &[Value]) -> Result<Value, String> {
    let (pattern, Value::List(list)) = (text(&args[0])?, &args[1]) else { return Err(NO_OVERLOAD.to_owned()) };
    let (mut made, mut letters, mut next) = (String::new(), pattern.chars(), list.items.iter());
    while let Some(letter) = letters.next() {
        if letter != '%' {
            made.push(letter);
            continue;
        }
        let mut precision = None;
        let verb = match letters.next() {
            Some('%') => {
                made.push('%');
                continue;
            }
            Some('.') => {
                let digits: String = letters.clone().take_while(char::is_ascii_digit).collect();
                precision = digits.parse::<usize>().ok().filter(|precision| *precision <= 100);
                letters.nth(digits.len())
            }
            verb => verb,
        };
        let verb = verb.ok_or("unexpected end of format string")?;
        let index = list.items.len() - next.len();
        let value = next.next().ok_or_else(|| format!("index {index} out of range"))?;
        made.push_str(&formatted(verb, precision, value)?);
        if made.len() > super::TEXT_BYTES_MAX {
            return Err("string is too long".to_owned());
        }
    }
    Ok(made.into())
}

fn formatted(verb: char, precision: Option<usize>, value: &Value) -> Result<String, String> {
    let refused = |takes: &str| {
        let found = value.type_name();
        Err(format!("error during formatting: {takes} clause can only be used on numbers, was given {found}"))
    };
    Ok(match (verb, value) {
        ('s', value) => shown(value),
        ('d', Value::Int(int)) => int.to_string(),
        ('d', Value::Uint(uint)) => uint.to_string(),
        ('d', Value::Double(double)) if !double.is_finite() => shown(value),
        ('f', Value::Double(double)) => format!("{double:.*}", precision.unwrap_or(6)),
        ('f', Value::Int(int)) => format!("{:.*}", precision.unwrap_or(6), *int as f64),
        ('e', Value::Double(double)) => format!("{double:.*e}", precision.unwrap_or(6)),
        ('b', Value::Int(int)) => signed(*int, |magnitude| format!("{magnitude:b}")),
        ('b', Value::Bool(bool)) => u8::from(*bool).to_string(),
        ('b', Value::Uint(uint)) => format!("{uint:b}"),
        ('o', Value::Int(int)) => signed(*int, |magnitude| format!("{magnitude:o}")),
        ('o', Value::Uint(uint)) => format!("{uint:o}"),
        ('x', Value::Int(int)) => signed(*int, |magnitude| format!("{magnitude:x}")),
        ('X', Value::Int(int)) => signed(*int, |magnitude| format!("{magnitude:X}")),
        ('x', Value::Uint(uint)) => format!("{uint:x}"),
        ('X', Value::Uint(uint)) => format!("{uint:X}"),
        ('x', Value::String(text)) => data_encoding::HEXLOWER.encode(text.as_bytes()),
        ('X', Value::String(text)) => data_encoding::HEXUPPER.encode(text.as_bytes()),
        ('x', Value::Bytes(bytes)) => data_encoding::HEXLOWER.encode(bytes),
        ('X', Value::Bytes(bytes)) => data_encoding::HEXUPPER.encode(bytes),
        ('d', _) => return refused("decimal"),
        ('f', _) => return refused("fixed-point"),
        ('e', _) => return refused("scientific"),
        ('b', _) => return refused("binary"),
        ('o', _) => return refused("octal"),
        ('x' | 'X', _) => return refused("hexadecimal"),
        (other, _) => {
            return Err(format!("could not parse formatting clause: unrecognized formatting clause \"{other}\""));
        }
    })
}

fn signed(number: i64, magnitude: fn(u64) -> String) -> String {
    format!("{}{}", if number < 0 { "-" } else { "" }, magnitude(number.unsigned_abs()))
}

/// A value as `%s` shows it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => text.to_string(),
        Value::Bool(bool) => bool.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Uint(uint) => uint.to_string(),
        Value::Double(double) => double.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::List(list) => format!("[{}]", list.items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let entries: Vec<String> = map.iter().map(|(key, value)| format!("{key}: {}", shown(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(duration) => super::time::duration_text(*duration),
        Value::Ip(ip) => ip.to_string(),
        Value::Cidr(cidr) => cidr.to_string(),
        Value::Type(name) => name.to_string(),
        Value::Optional(Some(value)) => shown(value),
        other => other.type_name().to_owned(),
    }
}
