//! The formats of strings that schemas can ask for.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation>

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::apiserver::cel::library::time::parse_duration;

/// The formats that are checked; all others say nothing.
pub const KNOWN: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "date-time",
];

/// A text has a format. Texts have every format that is not known.
pub fn has_format(text: &str, format: &str) -> bool {
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match format {
        "bsonobjectid" => text.len() == 24 && hex(text),
        "uri" => is_uri(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "isbn" => is_isbn(text, 10) || is_isbn(text, 13),
        "isbn10" => is_isbn(text, 10),
        "isbn13" => is_isbn(text, 13),
        "creditcard" => is_credit_card(text),
        "ssn" => is_grouped(text, &[3, 2, 4]),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && hex(digits)
        }
        "rgbcolor" => is_rgb(text),
        "byte" => text.len().is_multiple_of(4) && data_encoding::BASE64.decode(text.as_bytes()).is_ok(),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => is_duration(text),
        "datetime" | "date-time" => is_date_time(text),
        _ => true,
    }
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return text.starts_with('/') };
    text.starts_with('/')
        || scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && !rest.is_empty()
            && !text.contains(' ')
}

fn is_email(text: &str) -> bool {
    let address = match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((_, address)) => address,
        None => text,
    };
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        let plain = |part: &str| !part.is_empty() && !part.contains([' ', '@', '<', '>', '(', ')', ',']);
        plain(local) && plain(domain) && !local.starts_with('.') && !local.ends_with('.') && !local.contains("..")
    })
}

fn is_hostname(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(|letter| letter.is_alphanumeric() || letter == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

fn is_cidr(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, length)| {
        let most = match address.parse::<std::net::IpAddr>() {
            Ok(address) if address.is_ipv4() => 32,
            Ok(_) => 128,
            Err(_) => return false,
        };
        length.bytes().all(|byte| byte.is_ascii_digit()) && length.parse::<u8>().is_ok_and(|length| length <= most)
    })
}

fn is_mac(text: &str) -> bool {
    let separator = if text.contains('-') { '-' } else { ':' };
    let pairs: Vec<&str> = text.split(separator).collect();
    let pair = |pair: &&str| pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit());
    matches!(pairs.len(), 6 | 8 | 20) && pairs.iter().all(pair)
}

/// With or without dashes, of a version if one is asked for.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let digits = text.replace('-', "");
    let shaped = lengths == [32] || lengths == [8, 4, 4, 4, 12];
    let variant = || matches!(digits.chars().nth(16), Some('8' | '9' | 'a' | 'b' | 'A' | 'B'));
    shaped
        && digits.len() == 32
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && version.is_none_or(|version| digits.chars().nth(12) == Some(version) && (version == '3' || variant()))
}

fn is_isbn(text: &str, length: usize) -> bool {
    let text: String = text.chars().filter(|letter| !matches!(letter, '-' | ' ')).collect();
    if text.len() != length {
        return false;
    }
    let mut sum = 0;
    for (index, letter) in text.chars().enumerate() {
        let digit = match letter {
            'X' if length == 10 && index == 9 => 10,
            letter => match letter.to_digit(10) {
                Some(digit) => digit,
                None => return false,
            },
        };
        sum += if length == 10 { (index as u32 + 1) * digit } else { digit * if index % 2 == 0 { 1 } else { 3 } };
    }
    sum % if length == 10 { 11 } else { 10 } == 0
}

/// Luhn's sum over 13 to 19 digits.
fn is_credit_card(text: &str) -> bool {
    let digits: Option<Vec<u32>> =
        text.chars().filter(|letter| !matches!(letter, '-' | ' ')).map(|letter| letter.to_digit(10)).collect();
    digits.is_some_and(|digits| {
        let doubled = |(index, digit): (usize, &u32)| match index % 2 {
            0 => *digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        };
        (13..=19).contains(&digits.len()) && digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
    })
}

fn is_grouped(text: &str, lengths: &[usize]) -> bool {
    let groups: Vec<&str> = text.split(['-', ' ']).collect();
    groups.len() == lengths.len()
        && groups
            .iter()
            .zip(lengths)
            .all(|(group, length)| group.len() == *length && group.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_rgb(text: &str) -> bool {
    let inner = text.strip_prefix("rgb(").and_then(|text| text.strip_suffix(')'));
    inner.is_some_and(|inner| {
        let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u8>().is_ok())
    })
}

/// As Go writes durations, or in words: `3 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: &[&str] = &[
        "ns",
        "nano",
        "nanosecond",
        "nanosecs",
        "us",
        "µs",
        "micro",
        "microsec",
        "microsecond",
        "ms",
        "milli",
        "millisec",
        "millisecond",
        "s",
        "sec",
        "second",
        "m",
        "min",
        "minute",
        "h",
        "hr",
        "hour",
        "d",
        "day",
        "w",
        "wk",
        "week",
    ];
    if parse_duration(text).is_some() {
        return true;
    }
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    !number.is_empty() && (UNITS.contains(&unit) || unit.strip_suffix('s').is_some_and(|unit| UNITS.contains(&unit)))
}

/// RFC 3339, with `T` or a lower-case `t`.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    has_format(date, "date")
        && (time.ends_with(['Z', 'z']) || time.contains(['+', '-']))
        && text.to_ascii_uppercase().parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_formats_or_not() {
        for (format, good, bad) in [
            ("date-time", "2026-01-02T03:04:05Z", "2026-01-02"),
            ("date", "2026-01-02", "2026-13-02"),
            ("duration", "3 days", "3 moons"),
            ("uuid", "7b2a6bd2-9fd0-4d44-8a1f-3d6a0e5a1c11", "7b2a6bd2"),
            ("uuid4", "7b2a6bd2-9fd0-4d44-8a1f-3d6a0e5a1c11", "7b2a6bd2-9fd0-3d44-8a1f-3d6a0e5a1c11"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("email", "a@example.com", "a.example.com"),
            ("hostname", "a.example.com", "-a.example.com"),
            ("uri", "https://example.com/a", "example"),
            ("byte", "aGk=", "aGk"),
            ("mac", "00:1b:44:11:3a:b7", "00:1b"),
            ("isbn10", "0-306-40615-2", "0-306-40615-3"),
            ("isbn13", "978-0-306-40615-7", "978-0-306-40615-8"),
            ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
            ("hexcolor", "#ff00aa", "#ff00a"),
            ("rgbcolor", "rgb(1, 2, 255)", "rgb(1, 2, 256)"),
            ("ssn", "111-22-3333", "111-222-333"),
        ] {
            assert!(has_format(good, format), "{good} is a {format}");
            assert!(!has_format(bad, format), "{bad} is no {format}");
        }
        assert!(has_format("anything", "unheard-of"));
    }
}
