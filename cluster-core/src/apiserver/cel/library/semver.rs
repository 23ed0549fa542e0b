//! Versions. <https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-semver-library>

use std::cmp::Ordering;

use semver::Version;

use super::Function;
use crate::apiserver::cel::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    ("semver(string) -> kubernetes.Semver", |args| parse(args).map(|version| Value::Semver(version.into()))),
    ("semver(string, bool) -> kubernetes.Semver", |args| parse(args).map(|version| Value::Semver(version.into()))),
    ("isSemver(string) -> bool", |args| Ok(parse(args).is_ok().into())),
    ("isSemver(string, bool) -> bool", |args| Ok(parse(args).is_ok().into())),
    ("kubernetes.Semver.major() -> int", |args| part(args, |version| version.major)),
    ("kubernetes.Semver.minor() -> int", |args| part(args, |version| version.minor)),
    ("kubernetes.Semver.patch() -> int", |args| part(args, |version| version.patch)),
    ("kubernetes.Semver.isGreaterThan(kubernetes.Semver) -> bool", |args| {
        Ok((order(args)? == Ordering::Greater).into())
    }),
    ("kubernetes.Semver.isLessThan(kubernetes.Semver) -> bool", |args| Ok((order(args)? == Ordering::Less).into())),
    ("kubernetes.Semver.compareTo(kubernetes.Semver) -> int", |args| Ok(Value::Int(order(args)? as i64))),
];

/// The second argument allows a leading `v`, missing parts and leading zeros.
fn parse(args: &[Value]) -> Result<Version, String> {
    let Value::String(text) = &args[0] else { return Err("no such overload".to_owned()) };
    let lenient = matches!(args.get(1), Some(Value::Bool(true)));
    let parsed = if lenient { Version::parse(&normalized(text)) } else { Version::parse(text) };
    parsed.map_err(|error| error.to_string())
}

fn normalized(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, tail) = text.split_at(end);
    let trimmed = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let mut parts: Vec<String> = numbers.split('.').map(trimmed).collect();
    while parts.len() < 3 {
        parts.push("0".to_owned());
    }
    format!("{}{tail}", parts.join("."))
}

fn part(args: &[Value], of: fn(&Version) -> u64) -> Result<Value, String> {
    match &args[0] {
        Value::Semver(version) => Ok(Value::Int(of(version) as i64)),
        _ => Err("no such overload".to_owned()),
    }
}

fn order(args: &[Value]) -> Result<Ordering, String> {
    match (&args[0], &args[1]) {
        (Value::Semver(a), Value::Semver(b)) => Ok(a.cmp_precedence(b)),
        _ => Err("no such overload".to_owned()),
    }
}
