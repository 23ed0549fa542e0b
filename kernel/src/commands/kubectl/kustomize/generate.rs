//! `configMapGenerator` and `secretGenerator`: objects whose names tell their content.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster_core::go_json::escape_html;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Resource, add, id, read, text, texts};
use crate::commands::files::Files;

/// Secrets are written in lines of so many letters.
const BASE64_LINE: usize = 70;

/// Adds what the generators of a kustomization make, or merges it into what is there.
pub fn generate(
    files: &dyn Files,
    folder: &str,
    kustomization: &Value,
    resources: &mut Vec<Resource>,
) -> Result<(), String> {
    for (field, kind) in [("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")] {
        for generator in kustomization[field].as_array().into_iter().flatten() {
            let made = make(files, folder, kind, generator, &kustomization["generatorOptions"])?;
            let name = made.name().to_owned();
            let namespace = made.namespace().to_owned();
            let known = resources.iter_mut().find(|known| {
                known.kind() == kind
                    && known.is_called(&name)
                    && (namespace.is_empty() || known.namespace() == namespace)
            });
            match (text(generator, "/behavior"), known) {
                ("" | "create" | "unspecified", _) => add(resources, made)?,
                ("merge" | "replace", None) => {
                    return Err(format!(
                        "merging from generator: id {} does not exist; cannot merge or replace",
                        id(&made)
                    ));
                }
                ("merge", Some(known)) => merge(known, &made.value, true),
                ("replace", Some(known)) => merge(known, &made.value, false),
                (other, _) => return Err(format!("unknown behavior {other:?}: expected create, merge or replace")),
            }
        }
    }
    Ok(())
}

/// Puts other content into what was generated before; labels and annotations come on top.
fn merge(known: &mut Resource, made: &Value, keep: bool) {
    for field in ["data", "metadata"] {
        if !keep && field == "data" {
            known.value[field] = json!({});
        }
    }
    let mut put = |pointer: [&str; 2], from: &Value| {
        for (key, value) in from.as_object().into_iter().flatten() {
            let place = match pointer {
                ["data", _] => &mut known.value["data"],
                [parent, field] => &mut known.value[parent][field],
            };
            place[key] = value.clone();
        }
    };
    put(["data", ""], &made["data"]);
    for field in ["labels", "annotations"] {
        put(["metadata", field], &made["metadata"][field]);
    }
    if let Some(immutable) = made.get("immutable") {
        known.value["immutable"] = immutable.clone();
    }
}

fn make(files: &dyn Files, folder: &str, kind: &str, generator: &Value, common: &Value) -> Result<Resource, String> {
    let name = text(generator, "/name");
    if name.is_empty() {
        return Err(format!("a {kind} generator without a name"));
    }
    let mut data = Map::new();
    for (key, value) in pairs(files, folder, generator)? {
        let value = if kind == "Secret" { in_lines(&STANDARD.encode(value)) } else { value };
        if data.insert(key.clone(), value.into()).is_some() {
            return Err(format!("configmap {name} illegally repeats the key `{key}`"));
        }
    }
    let options = &generator["options"];
    let mut value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    if !data.is_empty() {
        value["data"] = Value::Object(data);
    }
    if kind == "Secret" {
        let kind = text(generator, "/type");
        value["type"] = if kind.is_empty() { "Opaque" } else { kind }.into();
    }
    if let Some(namespace) = generator["namespace"].as_str() {
        value["metadata"]["namespace"] = namespace.into();
    }
    for field in ["labels", "annotations"] {
        for (key, wanted) in [common, options].into_iter().filter_map(|from| from[field].as_object()).flatten() {
            value["metadata"][field][key] = wanted.clone();
        }
    }
    if options["immutable"] == true || common["immutable"] == true {
        value["immutable"] = true.into();
    }
    let disabled = |from: &Value| from["disableNameSuffixHash"] == true;
    Ok(Resource { hashed: !disabled(options) && !disabled(common), ..Resource::new(value) })
}

/// Keys and values of files, files of variables and literals.
fn pairs(files: &dyn Files, folder: &str, generator: &Value) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for path in texts(&generator["envs"]).chain(generator["env"].as_str()) {
        let content = read(files, folder, path)?;
        let lines = content.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            pairs.push((key.to_owned(), value.to_owned()));
        }
    }
    for literal in texts(&generator["literals"]) {
        let wrong = || format!("invalid literal source {literal}, expected key=value");
        let (key, value) = literal.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(wrong)?;
        let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        pairs.push((key.to_owned(), quoted.unwrap_or(value).to_owned()));
    }
    for source in texts(&generator["files"]) {
        let (key, path) = source.split_once('=').unwrap_or((source.rsplit('/').next().unwrap_or(source), source));
        pairs.push((key.to_owned(), read(files, folder, path)?));
    }
    Ok(pairs)
}

fn in_lines(encoded: &str) -> String {
    if encoded.len() < BASE64_LINE {
        return encoded.to_owned();
    }
    let lines = encoded.as_bytes().chunks(BASE64_LINE).map(|line| String::from_utf8_lossy(line).into_owned() + "\n");
    lines.collect()
}

/// Puts a hash of the content behind the name of what a generator has made.
/// (`hash` of sigs.k8s.io/kustomize/api/hasher)
pub fn add_hash(resource: &mut Resource) {
    if !resource.hashed {
        return;
    }
    let value = &resource.value;
    let part = |field: &str| value.get(field).cloned().unwrap_or_else(|| "".into());
    let mut content = json!({"kind": resource.kind(), "name": "", "data": part("data")});
    if resource.kind() == "Secret" {
        content["type"] = part("type");
    }
    // Go's encoder escapes what could end a script in a page of HTML.
    let content = content.to_string();
    let digest: String =
        Sha256::digest(escape_html(&content).as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let letters = digest.chars().take(10).map(|letter| match letter {
        '0' => 'g',
        '1' => 'h',
        '3' => 'k',
        'a' => 'm',
        'e' => 't',
        other => other,
    });
    let name = format!("{}-{}", resource.name(), letters.collect::<String>());
    resource.rename(name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::files::Memory;

    #[test]
    fn names_tell_the_content() {
        let generated = json!({
            "configMapGenerator": [{"name": "files", "literals": ["greeting.txt=hello\nthere\n", "other=hello\nthere\n"]}],
            "secretGenerator": [{"name": "key", "literals": ["token='hush'"]}],
        });
        let mut resources = Vec::new();
        generate(&Memory::default(), "", &generated, &mut resources).unwrap();
        resources.iter_mut().for_each(add_hash);
        let names: Vec<&str> = resources.iter().map(Resource::name).collect();
        assert_eq!(names, ["files-bhg9745ch7", "key-hg49tt48h7"]);
        assert_eq!(resources[1].value["data"], json!({"token": "aHVzaA=="}));
    }

    #[test]
    fn long_secrets_stand_in_lines() {
        assert_eq!(in_lines("abc"), "abc");
        assert_eq!(in_lines(&"a".repeat(80)), format!("{}\n{}\n", "a".repeat(70), "a".repeat(10)));
    }
}
