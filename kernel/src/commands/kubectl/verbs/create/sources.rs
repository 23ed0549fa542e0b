//! Keys and values of config maps and secrets: from literals, files, folders and files of variables.

use std::collections::BTreeMap;

use super::super::super::failure::{Failure, message};
use super::super::super::flags::{Flag, text};
use super::super::super::verb::Call;

pub const FROM_LITERAL: Flag = text("from-literal");
pub const FROM_FILE: Flag = text("from-file");
pub const FROM_ENV_FILE: Flag = text("from-env-file");

/// The keys and values that the flags name. `holder` is `ConfigMap "settings"`, for a key that comes twice.
pub fn data(call: &Call<'_, '_>, holder: &str) -> Result<BTreeMap<String, String>, Failure> {
    let mut data = BTreeMap::new();
    let mut add = |key: &str, value: String| match data.contains_key(key) {
        true => {
            message(format!("cannot add key {key:?}, another key by that name already exists in Data for {holder}"))
        }
        false => {
            data.insert(key.to_owned(), value);
            Ok(())
        }
    };
    let read = |path: &str| {
        call.context.files.read(path).map_err(|trouble| Failure::Message(format!("error reading {path}: {trouble}")))
    };
    for literal in call.parsed.all("from-literal") {
        let Some((key, value)) = literal.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return message(format!("invalid literal source {literal}, expected key=value"));
        };
        let quoted = |quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
        add(key, quoted('"').or_else(|| quoted('\'')).unwrap_or(value).to_owned())?;
    }
    for source in call.parsed.all("from-file") {
        let (key, path) = match source.split_once('=') {
            Some((key, path)) => (Some(key), path),
            None => (None, source),
        };
        match (key, call.context.files.list(path)) {
            (None, Some(names)) => {
                for name in names {
                    add(&name, read(&format!("{}/{name}", path.trim_end_matches('/')))?)?;
                }
            }
            (key, _) => {
                let name = path.rsplit('/').next().unwrap_or(path);
                add(key.unwrap_or(name), read(path)?)?;
            }
        }
    }
    for path in call.parsed.all("from-env-file") {
        for line in read(path)?.lines().map(str::trim_start) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            add(key, value.to_owned())?;
        }
    }
    Ok(data)
}
