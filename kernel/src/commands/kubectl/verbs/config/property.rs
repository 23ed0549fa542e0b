//! `kubectl config set` and `unset`: one value of a kubeconfig, named by its path.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::verb::Call;
use super::view::BYTES;
use super::{Kubeconfig, LISTS, arguments};

/// The fields of each list's entries that hold a value of their own.
const FIELDS: [(&str, &[&str]); 3] = [
    (
        "clusters",
        &[
            "server",
            "tls-server-name",
            "insecure-skip-tls-verify",
            "certificate-authority",
            "certificate-authority-data",
            "proxy-url",
            "disable-compression",
        ],
    ),
    ("contexts", &["cluster", "user", "namespace"]),
    (
        "users",
        &[
            "client-certificate",
            "client-certificate-data",
            "client-key",
            "client-key-data",
            "token",
            "tokenFile",
            "as",
            "as-uid",
            "username",
            "password",
        ],
    ),
];
const TOP: &[&str] = &["current-context", "kind", "apiVersion"];
const COLORS: &str = "preferences.colors";
const BOOLEANS: &[&str] = &["insecure-skip-tls-verify", "disable-compression"];
/// Maps in a user that have no values of their own.
const MAPS: &[&str] = &["exec", "auth-provider"];

/// What a path leads to.
enum Place {
    /// A field of the kubeconfig itself.
    Top(&'static str),
    Colors,
    /// A whole list.
    List(&'static str),
    /// What stands under a name, which may hold dots.
    Entry(&'static str, String),
    Field(&'static str, String, &'static str),
}

fn place(path: &str) -> Result<Place, Failure> {
    let nowhere = || format!("unable to parse one or more field values of {path}");
    if path == COLORS {
        return Ok(Place::Colors);
    }
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    if let Some(top) = TOP.iter().find(|top| **top == first) {
        return if rest.is_none() { Ok(Place::Top(top)) } else { message(nowhere()) };
    }
    let Some((list, fields)) = FIELDS.iter().find(|(list, _)| *list == first) else {
        return message(format!("unable to parse {path} after [] at api.Config"));
    };
    let Some(rest) = rest else { return Ok(Place::List(list)) };
    if rest.split('.').skip(1).any(|word| MAPS.contains(&word)) {
        return message(nowhere());
    }
    let field = fields.iter().find_map(|field| Some((rest.strip_suffix(field)?.strip_suffix('.')?, *field)));
    Ok(match field {
        Some((name, field)) => Place::Field(list, name.to_owned(), field),
        None => Place::Entry(list, rest.to_owned()),
    })
}

pub fn set(call: &mut Call<'_, '_>) -> Outcome {
    let [path, text] = arguments(call)?;
    let mut config = Kubeconfig::read(call)?;
    match place(&path)? {
        Place::Top(field) => config.value[field] = text.into(),
        Place::Colors => config.value["preferences"] = json!({"colors": boolean(&text)?}),
        Place::List(list) | Place::Entry(list, _) => {
            return message(format!("can't set a map to a value: map[{}]", config.names(list).join(" ")));
        }
        Place::Field(list, name, field) => {
            let value = match field {
                field if BOOLEANS.contains(&field) => boolean(&text)?.into(),
                field if BYTES.contains(&field) => bytes(&text, call.parsed.switch("set-raw-bytes"))?.into(),
                _ => Value::from(text),
            };
            let known = config.entry(list, &name).clone();
            let mut entry = if known.is_object() { known } else { empty(list) };
            entry[field] = value;
            config.put(list, &name, entry);
        }
    }
    config.write(call)?;
    call.line(format!("Property {path:?} set."));
    Ok(())
}

pub fn unset(call: &mut Call<'_, '_>) -> Outcome {
    let [path] = arguments(call)?;
    let mut config = Kubeconfig::read(call)?;
    match place(&path)? {
        Place::Top(field) => config.value[field] = "".into(),
        Place::Colors => config.value["preferences"] = json!({}),
        Place::List(list) => config.value[list] = Value::Null,
        Place::Entry(list, name) => config.remove(list, &name),
        Place::Field(list, name, field) => {
            let mut entry = config.entry(list, &name).clone();
            if entry.is_null() {
                return message(format!("current map key `{name}` is invalid"));
            }
            match empty(list).get(field) {
                Some(unset) => entry[field] = unset.clone(),
                None => drop(entry.as_object_mut().map(|fields| fields.remove(field))),
            }
            config.put(list, &name, entry);
        }
    }
    config.write(call)?;
    call.line(format!("Property {path:?} unset."));
    Ok(())
}

/// An entry of which nothing is said: some fields are written all the same.
fn empty(list: &str) -> Value {
    match LISTS.iter().find(|(known, _)| *known == list) {
        Some(("clusters", _)) => json!({"server": ""}),
        Some(("contexts", _)) => json!({"cluster": "", "user": ""}),
        _ => json!({}),
    }
}

/// As `strconv.ParseBool` reads it.
fn boolean(text: &str) -> Result<bool, Failure> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => message(format!("strconv.ParseBool: parsing {text:?}: invalid syntax")),
    }
}

/// What is written of a field of bytes: base64, which is what is given unless it is said to be raw.
fn bytes(text: &str, is_raw: bool) -> Result<String, Failure> {
    if is_raw {
        return Ok(BASE64_STANDARD.encode(text));
    }
    if BASE64_STANDARD.decode(text).is_ok() {
        return Ok(text.to_owned());
    }
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let wrong = text.bytes().position(|byte| !is_letter(byte)).unwrap_or(text.len() / 4 * 4);
    message(format!("error decoding input value: illegal base64 data at input byte {wrong}"))
}
