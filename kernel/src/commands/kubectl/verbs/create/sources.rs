//! Keys and values of config maps and secrets: from literals, files, folders and files of variables.

use std::collections::BTreeMap;

use cluster_core::apiserver::validation::names;

use super::super::super::failure::{Failure, message};
use super::super::super::flags::{Flag, text};
use super::super::super::verb::Call;
use super::super::set::env::check_name;

pub const FROM_LITERAL: Flag = text("from-literal");
pub const FROM_FILE: Flag = text("from-file");
pub const FROM_ENV_FILE: Flag = text("from-env-file");

/// The keys and values that the flags name, for a `ConfigMap` or `Secret` of that name.
pub fn data(call: &Call<'_, '_>, kind: &str, name: &str) -> Result<BTreeMap<String, String>, Failure> {
    let parsed = &call.parsed;
    if parsed.has("from-env-file") && (parsed.has("from-file") || parsed.has("from-literal")) {
        return message("from-env-file cannot be combined with from-file or from-literal");
    }
    let mut data = BTreeMap::new();
    let mut add = |key: &str, value: String| {
        let problems = names::config_map_key(key);
        if !problems.is_empty() {
            return message(format!("{key:?} is not a valid key name for a {kind}: {}", problems.join(",")));
        }
        if data.contains_key(key) {
            return message(match kind {
                "Secret" => format!("cannot add key {key}, another key by that name already exists"),
                _ => format!(
                    "cannot add key {key:?}, another key by that name already exists in Data for {kind} {name:?}"
                ),
            });
        }
        data.insert(key.to_owned(), value);
        Ok(())
    };
    let read = |path: &str| {
        call.context.files.read(path).map_err(|trouble| Failure::Message(format!("error reading {path}: {trouble}")))
    };
    for source in parsed.all("from-file") {
        let (key, path) = file_source(source)?;
        match call.context.files.list(path) {
            Some(_) if key.is_some() => return message("cannot give a key name for a directory path"),
            Some(names) => {
                for name in names {
                    add(&name, read(&format!("{}/{name}", path.trim_end_matches('/')))?)?;
                }
            }
            None => add(key.unwrap_or(path.rsplit('/').next().unwrap_or(path)), read(path)?)?,
        }
    }
    for literal in parsed.all("from-literal") {
        let Some((key, value)) = literal.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return message(format!("invalid literal source {literal}, expected key=value"));
        };
        add(key, value.to_owned())?;
    }
    for path in parsed.all("from-env-file") {
        if call.context.files.list(path).is_some() {
            return message("env config file cannot be a directory");
        }
        for line in read(path)?.trim_start_matches('\u{feff}').lines().map(str::trim_start) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            check_name(key)?;
            add(key, value.to_owned())?;
        }
    }
    Ok(data)
}

/// `key=path`, or a path of which the last part is the key.
fn file_source(source: &str) -> Result<(Option<&str>, &str), Failure> {
    match source.split('=').collect::<Vec<_>>()[..] {
        [path] => Ok((None, path)),
        ["", path] => message(format!("key name for file path {path} missing")),
        [key, ""] => message(format!("file path for key name {key} missing")),
        [key, path] => Ok((Some(key), path)),
        _ => message("key names or file paths cannot contain '='"),
    }
}
