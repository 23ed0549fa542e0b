//! URLs, as Go reads those of requests: absolute, or an absolute path.
//! <https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-url-library>

use std::collections::BTreeMap;

use super::Function;
use crate::apiserver::cel::value::{Key, Map, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct Url {
    scheme: String,
    /// With the port, as written.
    host: String,
    path: String,
    query: String,
}

pub(super) const FUNCTIONS: &[Function] = &[
    ("url(string) -> kubernetes.URL", |args| parse(&args[0]).map(|url| Value::Url(url.into()))),
    ("isURL(string) -> bool", |args| Ok(parse(&args[0]).is_ok().into())),
    ("kubernetes.URL.getScheme() -> string", |args| part(args, |url| url.scheme.as_str().into())),
    ("kubernetes.URL.getHost() -> string", |args| part(args, |url| url.host.as_str().into())),
    ("kubernetes.URL.getHostname() -> string", |args| {
        part(args, |url| host_and_port(&url.host).0.trim_matches(['[', ']']).into())
    }),
    ("kubernetes.URL.getPort() -> string", |args| part(args, |url| host_and_port(&url.host).1.into())),
    ("kubernetes.URL.getEscapedPath() -> string", |args| part(args, |url| url.path.as_str().into())),
    ("kubernetes.URL.getQuery() -> map<string, list<string>>", |args| part(args, |url| query(&url.query))),
];

fn part(args: &[Value], of: fn(&Url) -> Value) -> Result<Value, String> {
    match &args[0] {
        Value::Url(url) => Ok(of(url)),
        _ => Err("no such overload".to_owned()),
    }
}

fn parse(value: &Value) -> Result<Url, String> {
    let Value::String(text) = value else { return Err("no such overload".to_owned()) };
    read(text).map_err(|reason| format!("URL parse error during conversion from string: parse \"{text}\": {reason}"))
}

fn read(text: &str) -> Result<Url, &'static str> {
    if text.is_empty() {
        return Err("empty url");
    }
    if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err("net/url: invalid control character in URL");
    }
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
        _ if text.starts_with(':') => return Err("missing protocol scheme"),
        _ => (String::new(), text),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if !rest.starts_with('/') {
        return Err("invalid URI for request");
    }
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) if !scheme.is_empty() => {
            let end = rest.find('/').unwrap_or(rest.len());
            rest.split_at(end)
        }
        _ => ("", rest),
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = host_and_port(host);
    if host.contains(' ') {
        return Err("invalid character \" \" in host name");
    }
    if !port.bytes().all(|byte| byte.is_ascii_digit()) || name.starts_with('[') != name.ends_with(']') {
        return Err("invalid port after host");
    }
    if !escapes_are_right(path) {
        return Err("invalid URL escape");
    }
    let path = path.bytes().map(|byte| match byte {
        b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80.. => format!("%{byte:02X}"),
        byte => char::from(byte).to_string(),
    });
    Ok(Url { scheme, host: host.to_owned(), path: path.collect(), query: query.to_owned() })
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// `[::1]:80` is `[::1]` and `80`.
fn host_and_port(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, ""),
    }
}

fn escapes_are_right(text: &str) -> bool {
    text.split('%').skip(1).all(|tail| {
        let digits = tail.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

fn query(text: &str) -> Value {
    let mut values: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        values.entry(unescaped(name)).or_default().push(unescaped(value).into());
    }
    values.into_iter().map(|(name, values)| (Key::String(name.into()), values.into())).collect::<Map>().into()
}

fn unescaped(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let digits: Option<[u8; 2]> = rest.clone().take(2).collect::<Vec<_>>().try_into().ok();
        let escaped = digits.and_then(|digits| data_encoding::HEXUPPER_PERMISSIVE.decode(&digits).ok());
        match (byte, escaped) {
            (b'%', Some(escaped)) => {
                bytes.extend(escaped);
                rest.nth(1);
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
