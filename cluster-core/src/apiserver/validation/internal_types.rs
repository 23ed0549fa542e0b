//! Objects as kube-apiserver holds them itself: each field by its Go name, also those that nobody has set. Refusals of
//! changes show two of them side by side.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{EphemeralContainer, PersistentVolumeClaimSpec, PersistentVolumeSpec, PodSpec};
use serde_json::{Map, Value, json};

use super::unified_diff::unified;
use crate::apiserver::managed::go;

pub fn pod_spec_diff(old: &PodSpec, new: &PodSpec) -> String {
    diff("PodSpec", pod_spec(old), pod_spec(new))
}

pub fn ephemeral_container_diff(old: &EphemeralContainer, new: &EphemeralContainer) -> String {
    diff("EphemeralContainer", json!(old), json!(new))
}

pub fn claim_spec_diff(old: &PersistentVolumeClaimSpec, new: &PersistentVolumeClaimSpec) -> String {
    diff("PersistentVolumeClaimSpec", json!(old), json!(new))
}

pub fn volume_source_diff(old: &PersistentVolumeSpec, new: &PersistentVolumeSpec) -> String {
    diff("PersistentVolumeSource", json!(old), json!(new))
}

fn diff(name: &'static str, old: Value, new: Value) -> String {
    let text = |value: &Value| {
        let mut text = String::new();
        print(&mut text, Shape::Always(name), Some(value), 0);
        text
    };
    unified(&text(&old), &text(&new))
}

/// What the pod shares with its node belongs to the security context there.
fn pod_spec(spec: &PodSpec) -> Value {
    let mut spec = json!(spec);
    let fields = ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];
    if let Value::Object(spec) = &mut spec {
        let moved: Vec<_> = fields.iter().filter_map(|field| Some((*field, spec.remove(*field)?))).collect();
        let context = spec.entry("securityContext").or_insert_with(|| Value::Object(Map::new()));
        for (field, value) in moved {
            context[field] = value;
        }
    }
    spec
}

/// What a field holds.
#[derive(Clone, Copy)]
enum Shape {
    /// No type of its own; this where nothing is set.
    Plain(&'static str),
    Always(&'static str),
    Optional(&'static str),
    Many(&'static str),
}

struct Field {
    name: &'static str,
    json: String,
    shape: Shape,
}

static TYPES: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let mut types: BTreeMap<&str, Vec<Field>> = BTreeMap::new();
    let mut current = "";
    for line in include_str!("internal_types.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        if !line.starts_with(' ') {
            current = words.next().unwrap_or_default();
        }
        types.entry(current).or_default().extend(words.filter_map(field));
    }
    types
});

fn field(word: &'static str) -> Option<Field> {
    let (name, value) = word.split_once(':')?;
    let (name, json) = match name.split_once('=') {
        Some((name, json)) => (name, json.to_owned()),
        None => (name, small(name)),
    };
    let shape = match value.strip_prefix("[]") {
        Some(items) => Shape::Many(items),
        None => match value.strip_prefix('*') {
            Some(name) => Shape::Optional(name),
            None if value.starts_with(char::is_uppercase) => Shape::Always(value),
            None => Shape::Plain(value),
        },
    };
    Some(Field { name, json, shape })
}

/// The name of a Go field with small letters at its beginning: `dnsPolicy` for `DNSPolicy`.
fn small(name: &str) -> String {
    let capitals = name.chars().take_while(char::is_ascii_uppercase).count();
    let lowered = if capitals > 1 && capitals < name.len() { capitals - 1 } else { capitals };
    name[..lowered].to_ascii_lowercase() + &name[lowered..]
}

/// Prints a value as Go's encoder does with one space for each level.
fn print(out: &mut String, shape: Shape, value: Option<&Value>, depth: usize) {
    match (shape, value) {
        (Shape::Plain(zero), None | Some(Value::Null)) => out.push_str(zero),
        (Shape::Plain(_), Some(value)) => plain(out, value, depth),
        (Shape::Optional(_) | Shape::Many(_), None | Some(Value::Null)) => out.push_str("null"),
        (Shape::Many(items), Some(value)) => {
            let all = value.as_array().into_iter().flatten();
            list(out, ('[', ']'), all, depth, |out, item| print(out, Shape::Always(items), Some(item), depth + 1));
        }
        (Shape::Always(name) | Shape::Optional(name), value) => {
            let fields = TYPES.get(name).into_iter().flatten();
            let set = |field: &Field| value.and_then(|value| value.get(&field.json));
            let shown = fields.filter(|field| field.name.starts_with(char::is_uppercase) || set(field).is_some());
            list(out, ('{', '}'), shown, depth, |out, field| {
                out.push_str(&format!("\"{}\": ", field.name));
                print(out, field.shape, set(field), depth + 1);
            });
        }
    }
}

fn plain(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Array(items) => list(out, ('[', ']'), items.iter(), depth, |out, item| plain(out, item, depth + 1)),
        Value::Object(fields) => list(out, ('{', '}'), fields.iter(), depth, |out, (name, value)| {
            out.push_str(&go::json_line(&Value::String(name.clone())));
            out.push_str(": ");
            plain(out, value, depth + 1);
        }),
        other => out.push_str(&go::json_line(other)),
    }
}

fn list<T>(
    out: &mut String,
    (open, close): (char, char),
    items: impl Iterator<Item = T>,
    depth: usize,
    mut print: impl FnMut(&mut String, T),
) {
    out.push(open);
    let mut is_empty = true;
    for item in items {
        out.push_str(if is_empty { "\n" } else { ",\n" });
        out.push_str(&" ".repeat(depth + 1));
        print(out, item);
        is_empty = false;
    }
    if !is_empty {
        out.push('\n');
        out.push_str(&" ".repeat(depth));
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Container;

    use super::*;

    fn web() -> PodSpec {
        let container = Container { name: "web".into(), image: Some("nginx".into()), ..Container::default() };
        PodSpec { containers: vec![container], ..PodSpec::default() }
    }

    #[test]
    fn a_changed_field_stands_among_its_neighbours_by_its_go_name() {
        let new = PodSpec { priority: Some(5), host_network: Some(true), ..web() };
        assert_eq!(
            pod_spec_diff(&web(), &new),
            "@@ -44,7 +44,7 @@\n  \"AutomountServiceAccountToken\": null,\n  \"NodeName\": \"\",\n  \"SecurityContext\": {\n-  \
             \"HostNetwork\": false,\n+  \"HostNetwork\": true,\n   \"HostPID\": false,\n   \"HostIPC\": false,\n   \
             \"ShareProcessNamespace\": null,\n@@ -72,7 +72,7 @@\n  \"Tolerations\": null,\n  \"HostAliases\": null,\n  \
             \"PriorityClassName\": \"\",\n- \"Priority\": null,\n+ \"Priority\": 5,\n  \"PreemptionPolicy\": null,\n  \
             \"DNSConfig\": null,\n  \"ReadinessGates\": null,\n"
        );
    }

    #[test]
    fn every_type_that_a_field_has_is_known() {
        for field in TYPES.values().flatten() {
            if let Shape::Always(name) | Shape::Optional(name) | Shape::Many(name) = field.shape {
                assert!(TYPES.contains_key(name), "{}: {name}", field.name);
            }
        }
        assert_eq!(
            (small("DNSPolicy"), small("OS"), small("SELinuxOptions")),
            ("dnsPolicy".into(), "os".into(), "seLinuxOptions".into())
        );
    }
}
