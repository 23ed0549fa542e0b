//! What an unquoted word means: YAML 1.1 as go-yaml v2 reads it, on which kubectl stands.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Number, Value};

/// A scalar after its type has been settled.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Only what is too large for [`Scalar::Int`].
    Unsigned(u64),
    Float(f64),
    Text(String),
}

/// The type of an unquoted word, where it is not text.
#[derive(Debug, Clone, PartialEq)]
enum Plain {
    Scalar(Scalar),
    Timestamp,
}

const YAML_TAG: &str = "tag:yaml.org,2002:";

/// What a scalar is and what its tag says, as short tags, where these do not fit.
#[derive(Debug, PartialEq)]
pub(super) struct Unfit {
    pub(super) found: &'static str,
    pub(super) wanted: String,
}

/// Settles the type of a scalar that was written unquoted or with a tag. The error says why it cannot have its tag's type.
pub(super) fn resolve(tag: Option<&str>, text: &str) -> Result<Scalar, Unfit> {
    let as_text = || Ok(Scalar::Text(text.to_owned()));
    let Some(tag) = tag else {
        return match plain(text) {
            Some(Plain::Scalar(scalar)) => Ok(scalar),
            _ => as_text(),
        };
    };
    let refuse = || Err(Unfit { found: tag_of(&plain(text)), wanted: short_tag(tag) });
    match (tag.strip_prefix(YAML_TAG), plain(text)) {
        (Some("bool"), Some(Plain::Scalar(scalar @ Scalar::Bool(_))))
        | (Some("null"), Some(Plain::Scalar(scalar @ Scalar::Null)))
        | (Some("int"), Some(Plain::Scalar(scalar @ (Scalar::Int(_) | Scalar::Unsigned(_)))))
        | (Some("float"), Some(Plain::Scalar(scalar @ Scalar::Float(_)))) => Ok(scalar),
        (Some("float"), Some(Plain::Scalar(Scalar::Int(int)))) => Ok(Scalar::Float(int as f64)),
        (Some("timestamp"), Some(Plain::Timestamp)) => as_text(),
        (Some("bool" | "null" | "int" | "float" | "timestamp"), _) => refuse(),
        (Some("binary"), _) => match decode_base64(text) {
            Some(bytes) => Ok(Scalar::Text(String::from_utf8_lossy(&bytes).into_owned())),
            None => refuse(),
        },
        _ => as_text(),
    }
}

fn tag_of(plain: &Option<Plain>) -> &'static str {
    match plain {
        None | Some(Plain::Scalar(Scalar::Text(_))) => "!!str",
        Some(Plain::Timestamp) => "!!timestamp",
        Some(Plain::Scalar(Scalar::Null)) => "!!null",
        Some(Plain::Scalar(Scalar::Bool(_))) => "!!bool",
        Some(Plain::Scalar(Scalar::Int(_) | Scalar::Unsigned(_))) => "!!int",
        Some(Plain::Scalar(Scalar::Float(_))) => "!!float",
    }
}

/// `!!int` for `tag:yaml.org,2002:int`.
pub(super) fn short_tag(tag: &str) -> String {
    match tag.strip_prefix(YAML_TAG) {
        Some(name) => format!("!!{name}"),
        None => tag.to_owned(),
    }
}

/// Whether the text, unquoted, would be read as something else than text; base 60 numbers count, for other readers' sake.
pub(super) fn needs_quotes(text: &str) -> bool {
    plain(text).is_some() || is_base_60(text)
}

fn plain(text: &str) -> Option<Plain> {
    let scalar = match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ if is_timestamp(text) => return Some(Plain::Timestamp),
        _ => number(text)?,
    };
    Some(Plain::Scalar(scalar))
}

fn number(text: &str) -> Option<Scalar> {
    if text.starts_with('.') {
        // Here Go's own rule holds, by which an underscore stands between digits.
        let digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
        let well_formed = text.match_indices('_').all(|(at, _)| digit(at - 1) && digit(at + 1));
        return well_formed.then(|| float(&text.replace('_', ""))).flatten();
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-') {
        return None;
    }
    let digits = text.replace('_', "");
    integer(&digits).or_else(|| float(&digits))
}

fn integer(digits: &str) -> Option<Scalar> {
    let (sign, magnitude) = match digits.as_bytes().first()? {
        b'-' => ("-", &digits[1..]),
        b'+' => ("+", &digits[1..]),
        _ => ("", digits),
    };
    let (radix, magnitude) = match magnitude.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &magnitude[2..]),
        [b'0', b'o' | b'O', ..] => (8, &magnitude[2..]),
        [b'0', b'b' | b'B', ..] => (2, &magnitude[2..]),
        [b'0', _, ..] => (8, &magnitude[1..]),
        _ => (10, magnitude),
    };
    if !magnitude.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(magnitude, radix).ok()?;
    match sign {
        "-" => 0i64.checked_sub_unsigned(magnitude).map(Scalar::Int),
        "+" => i64::try_from(magnitude).ok().map(Scalar::Int),
        _ => Some(i64::try_from(magnitude).map_or(Scalar::Unsigned(magnitude), Scalar::Int)),
    }
}

fn float(text: &str) -> Option<Scalar> {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let well_formed = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent)
        });
    let float = text.parse::<f64>().ok()?;
    (well_formed && float.is_finite()).then_some(Scalar::Float(float))
}

/// `190:20:30` and its like, which YAML 1.1 counts in base 60; go-yaml quotes them on the way out.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some((first, rest)) = unsigned.split_once(':') else {
        return false;
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let sixtieth = |text: &str| matches!(text.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    let (rest, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && digits(fraction)
        && rest.split(':').all(sixtieth)
}

/// The timestamp formats that go-yaml tries: a date, alone or with a time after `T` (then with a zone) or a space (without).
fn is_timestamp(text: &str) -> bool {
    fn number(text: &str) -> Option<(i16, &str)> {
        let length = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
        Some((text[..length].parse().ok()?, &text[length..]))
    }
    fn time_of_day(text: &str) -> Option<&str> {
        let (hour, text) = number(text)?;
        let (minute, text) = number(text.strip_prefix(':')?)?;
        let (second, text) = number(text.strip_prefix(':')?)?;
        let fraction = text.strip_prefix(['.', ',']).unwrap_or(text);
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let rest = if digits > 0 && fraction.len() < text.len() { &fraction[digits..] } else { text };
        (hour < 24 && minute < 60 && second < 60).then_some(rest)
    }
    fn is_zone(text: &str) -> bool {
        match text.as_bytes() {
            [b'Z'] => true,
            [b'+' | b'-', h1, h2, b':', m1, m2] => {
                [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit())
                    && (*h1, *h2) <= (b'2', b'4')
                    && *m1 <= b'6'
                    && (*m1, *m2) <= (b'6', b'0')
            }
            _ => false,
        }
    }
    fn parse(text: &str) -> Option<bool> {
        let (year, text) = text.split_once('-')?;
        if year.len() != 4 || !year.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let (month, text) = number(text)?;
        let (day, text) = number(text.strip_prefix('-')?)?;
        jiff::civil::Date::new(year.parse().ok()?, month as i8, day as i8).ok()?;
        match text.as_bytes().first() {
            None => Some(true),
            Some(b'T' | b't') => Some(is_zone(time_of_day(&text[1..])?)),
            Some(b' ') => Some(time_of_day(text.trim_start_matches(' '))?.is_empty()),
            Some(_) => None,
        }
    }
    parse(text).unwrap_or(false)
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let unbroken: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let lenient = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(&STANDARD, lenient).decode(unbroken).ok()
}

impl Scalar {
    /// The JSON value, as Go's encoder writes and Kubernetes' decoder reads it: a float without a fraction becomes an integer. `None` for infinities and NaN, which JSON lacks.
    pub(super) fn into_value(self) -> Option<Value> {
        Some(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(bool) => Value::Bool(bool),
            Scalar::Int(int) => Value::from(int),
            Scalar::Unsigned(int) => Value::from(int),
            Scalar::Float(float) => Value::Number(number_of_float(float)?),
            Scalar::Text(text) => Value::String(text),
        })
    }

    pub(super) fn of_value(value: &Value) -> Option<Scalar> {
        Some(match value {
            Value::Null => Scalar::Null,
            Value::Bool(bool) => Scalar::Bool(*bool),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(int), _) => Scalar::Int(int),
                (_, Some(int)) => Scalar::Unsigned(int),
                _ => Scalar::Float(number.as_f64()?),
            },
            Value::String(text) => Scalar::Text(text.clone()),
            Value::Array(_) | Value::Object(_) => return None,
        })
    }

    /// The key that the scalar makes in a JSON object; `None` where sigs.k8s.io/yaml refuses it.
    pub(super) fn into_key(self) -> Option<String> {
        Some(match self {
            Scalar::Text(text) => text,
            Scalar::Bool(bool) => bool.to_string(),
            Scalar::Int(int) => int.to_string(),
            // Keys are written with the precision of a 32-bit float.
            Scalar::Float(float) => match float as f32 {
                f32::INFINITY => ".inf".to_owned(),
                f32::NEG_INFINITY => "-.inf".to_owned(),
                float if float.is_nan() => ".nan".to_owned(),
                float => go_exponent_format(&format!("{float:e}")),
            },
            Scalar::Null | Scalar::Unsigned(_) => return None,
        })
    }
}

/// A float as a JSON number after a way through Go's encoder: an integer where it is written without fraction and exponent and
/// fits 64 bits. `None` for infinities and NaN.
pub(super) fn number_of_float(float: f64) -> Option<Number> {
    if float.fract() == 0.0 && float.abs() < 1e21 {
        // The shortest digits that name the float, with zeros after them: above 2^53 not its exact value.
        let digits = float.to_string();
        if let Ok(int) = digits.parse::<i64>() {
            return Some(Number::from(int));
        }
        if let Ok(int) = digits.parse::<u64>() {
            return Some(Number::from(int));
        }
    }
    Number::from_f64(float)
}

/// A float as Go's `strconv.FormatFloat(f, 'g', -1, 64)` writes it.
pub(super) fn go_float(float: f64) -> String {
    go_exponent_format(&format!("{float:e}"))
}

/// Turns Rust's shortest `1.25e6` into Go's `%g`: an exponent of at least two digits with its sign below 1e-4 and from 1e6
/// (the precision that Go falls back to), plain digits between.
fn go_exponent_format(scientific: &str) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific.to_owned();
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        format!("{sign}{digits:0<whole$}")
    } else {
        format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
    }
}
