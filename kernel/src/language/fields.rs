//! What can be written at a cursor in a manifest: fields with their types, kinds, apiVersions, a few known values.

use cluster_core::Cluster;
use cluster_core::api::kind::KindRef;
use cluster_core::api::schema::Schema;

use super::manifest::schema_at;
use crate::output::{Completion, Match, MimeBundle, text};

/// The path of keys that encloses a line, read off the indentation, list items included.
struct Place {
    parents: Vec<String>,
    /// What has been typed of the key at the cursor.
    typed: String,
    /// Byte offset at which the typed word begins.
    start: usize,
    /// The key whose value is being typed, if the cursor stands behind a colon.
    value_of: Option<String>,
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '-']).len()
}

fn key_of(line: &str) -> Option<&str> {
    let body = line.trim_start_matches([' ', '-']);
    let (key, _) = body.split_once(':')?;
    Some(key.trim().trim_matches(['"', '\'']))
}

impl Place {
    fn at(code: &str, cursor: usize) -> Place {
        let line_start = code[..cursor].rfind('\n').map_or(0, |at| at + 1);
        let line = &code[line_start..cursor];
        let mut depth = indentation(line);
        let mut parents = Vec::new();
        for earlier in code[..line_start].lines().rev() {
            if earlier.starts_with("---") {
                break;
            }
            if earlier.trim().is_empty() || earlier.trim_start().starts_with('#') {
                continue;
            }
            let indent = indentation(earlier);
            if let Some(key) = key_of(earlier).filter(|_| indent < depth) {
                parents.push(key.to_owned());
                depth = earlier.len() - earlier.trim_start().len();
                if earlier.trim_start().starts_with('-') {
                    depth += 1;
                    // The key of a list stands where its items do, or further left.
                    parents.pop();
                    if indentation(earlier) < indentation(line) {
                        parents.push(key.to_owned());
                    }
                }
            }
        }
        parents.reverse();
        let value_of = line.contains(':').then(|| key_of(line).map(str::to_owned)).flatten();
        let typed = match &value_of {
            Some(_) => line.rsplit(':').next().unwrap_or_default().trim_start().to_owned(),
            None => line.trim_start_matches([' ', '-']).to_owned(),
        };
        Place { parents, start: cursor - typed.len(), typed, value_of }
    }
}

/// The kind of the document in which the cursor stands.
fn kind_at(code: &str, cursor: usize, cluster: &Cluster) -> Option<KindRef> {
    let start = code[..cursor].rfind("\n---").map_or(0, |at| at + 1);
    let end = code[cursor..].find("\n---").map_or(code.len(), |at| cursor + at);
    let value = |key: &str| {
        let line = code[start..end].lines().find(|line| line.starts_with(key) && line[key.len()..].starts_with(':'))?;
        Some(line[key.len() + 1..].trim().trim_matches(['"', '\'']).to_owned())
    };
    cluster.kind(&value("apiVersion")?, &value("kind")?).cloned()
}

/// The schema of what encloses the cursor; lists are passed through to their items.
fn enclosing(kind: &KindRef, parents: &[String]) -> Option<Schema<'static>> {
    let mut schema = Schema::of(kind)?;
    for parent in parents {
        schema = schema.property(parent)?;
        schema = schema.items().unwrap_or(schema);
    }
    Some(schema)
}

pub fn type_of(schema: &Schema<'_>) -> String {
    let resolved = schema.resolved();
    match resolved.get("type").and_then(|found| found.as_str()) {
        Some("array") => format!("[]{}", schema.items().map_or_else(|| "any".into(), |items| type_of(&items))),
        Some(found) => found.to_owned(),
        None => schema.type_name().and_then(|name| name.rsplit('.').next()).unwrap_or("any").to_owned(),
    }
}

pub fn complete(code: &str, cursor: usize, cluster: &Cluster) -> Completion {
    let place = Place::at(code, cursor);
    let candidate = |text: String, kind: &str| Match { text, kind: kind.to_owned() };
    let mut matches: Vec<Match> = match (place.value_of.as_deref(), place.parents.is_empty()) {
        (Some("apiVersion"), true) => {
            let mut versions: Vec<String> =
                cluster.kinds().filter(|kind| kind.allows("create")).map(|kind| kind.api_version()).collect();
            versions.sort();
            versions.dedup();
            versions.into_iter().map(|version| candidate(version, "apiVersion")).collect()
        }
        (Some("kind"), true) => {
            let version = code.lines().find_map(|line| line.strip_prefix("apiVersion:")).map(str::trim);
            let fits =
                |kind: &&KindRef| kind.allows("create") && version.is_none_or(|version| kind.api_version() == version);
            cluster.kinds().filter(fits).map(|kind| candidate(kind.kind.to_string(), "kind")).collect()
        }
        (Some(key), _) => values_of(key).iter().map(|value| candidate((*value).to_owned(), "value")).collect(),
        (None, _) => match kind_at(code, cursor, cluster).and_then(|kind| enclosing(&kind, &place.parents)) {
            Some(schema) => {
                schema.properties().map(|(name, field)| candidate(format!("{name}:"), &type_of(&field))).collect()
            }
            None if place.parents.is_empty() => ["apiVersion:", "kind:", "metadata:", "spec:"]
                .iter()
                .map(|field| candidate((*field).to_owned(), "field"))
                .collect(),
            None => Vec::new(),
        },
    };
    matches.retain(|known| known.text.starts_with(&place.typed));
    Completion { start: place.start, end: cursor, matches }
}

/// Values of fields that have only a few.
fn values_of(key: &str) -> &'static [&'static str] {
    match key {
        "restartPolicy" => &["Always", "OnFailure", "Never"],
        "imagePullPolicy" => &["Always", "IfNotPresent", "Never"],
        "protocol" => &["TCP", "UDP", "SCTP"],
        "type" => &["ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "RollingUpdate", "Recreate"],
        "image" => &["nginx", "httpd", "redis", "busybox", "alpine"],
        _ => &[],
    }
}

/// What `kubectl explain` says about the field at the cursor.
pub fn inspect(code: &str, cursor: usize, cluster: &Cluster) -> Option<MimeBundle> {
    let line_end = code[cursor..].find('\n').map_or(code.len(), |at| cursor + at);
    let line_start = code[..cursor].rfind('\n').map_or(0, |at| at + 1);
    let key = key_of(&code[line_start..line_end])?.to_owned();
    let key_start = line_start + indentation(&code[line_start..line_end]);
    let place = Place::at(code, key_start);
    let kind = kind_at(code, cursor, cluster)?;
    let field = enclosing(&kind, &place.parents)?.property(&key).or_else(|| schema_at(&kind, &key))?;
    let path = place.parents.iter().chain([&key]).cloned().collect::<Vec<_>>().join(".");
    Some(text(format!("{}.{path} <{}>\n\n{}", kind.kind, type_of(&field), field.description())))
}

#[cfg(test)]
mod tests {
    use cluster_core::Config;

    use super::*;

    const CODE: &str = "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - name: web\n        im";

    fn words(code: &str) -> Vec<String> {
        let cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        complete(code, code.len(), &cluster).matches.into_iter().map(|found| found.text).collect()
    }

    #[test]
    fn fields_fit_the_place() {
        assert_eq!(words(CODE), ["image:", "imagePullPolicy:"]);
        assert_eq!(words("apiVersion: apps/v1\nkind: Deployment\nspec:\n  rep"), ["replicas:"]);
        assert_eq!(words("apiVersion: apps/v1\nkind: Dep"), ["Deployment"]);
        assert_eq!(words("api"), ["apiVersion:"]);
    }

    #[test]
    fn help_explains_the_field() {
        let cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        let code = CODE.replace("        im", "        image: nginx");
        let help = inspect(&code, code.len() - 2, &cluster).unwrap();
        let help = help["text/plain"].as_str().unwrap();
        assert!(help.starts_with("Deployment.spec.template.spec.containers.image <string>"), "{help}");
    }
}
