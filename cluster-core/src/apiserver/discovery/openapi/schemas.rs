//! Types as OpenAPI v3 writes them: those of k8s-openapi, with what the API adds, and those of custom resources.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::{META, Version};
use crate::api::kind::KindRef;
use crate::api::merge_keys::{self, List, Patch};
use crate::api::{kinds, schema};
use crate::apiserver::discovery::is_custom;

pub const PREFIX: &str = "#/components/schemas/";

/// Values that the server fills in and that clients need to know, because they are part of a list's keys.
const DEFAULTS: &[(&str, &str, &str)] =
    &[("api.core.v1.ContainerPort", "protocol", "TCP"), ("api.core.v1.ServicePort", "protocol", "TCP")];

/// The kinds of types that no resource has.
const OTHER_KINDS: &[(&str, [&str; 3])] = &[
    ("io.k8s.api.autoscaling.v1.Scale", ["autoscaling", "v1", "Scale"]),
    ("io.k8s.api.policy.v1.Eviction", ["policy", "v1", "Eviction"]),
    ("io.k8s.api.authentication.v1.TokenRequest", ["authentication.k8s.io", "v1", "TokenRequest"]),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.Status", ["", "v1", "Status"]),
];

pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("{PREFIX}{name}")})
}

/// `io.k8s.api.core.v1.Pod`; for a custom kind its group backwards: `com.example.stable.v1.CronTab`.
pub fn type_name(kind: &KindRef) -> String {
    if !is_custom(kind) {
        return kind.type_name.to_string();
    }
    let group: Vec<&str> = kind.group.split('.').rev().collect();
    format!("{}.{}.{}", group.join("."), kind.version, kind.kind)
}

/// The types of a version's kinds and of its paths, and all that they lead to.
pub fn reached_from(version: &Version<'_>, paths: &Map<String, Value>) -> BTreeMap<String, Value> {
    let mut schemas = BTreeMap::new();
    for kind in &version.kinds {
        if is_custom(kind) {
            schemas.insert(type_name(kind), custom(kind));
        }
        if kind.allows("list") {
            schemas.insert(format!("{}List", type_name(kind)), list(kind));
        }
    }
    let mut open: Vec<String> = version.kinds.iter().map(|kind| type_name(kind)).collect();
    paths.values().chain(schemas.values()).for_each(|value| references(value, &mut open));
    while let Some(name) = open.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        if let Some(schema) = built_in(&name) {
            references(&schema, &mut open);
            schemas.insert(name, schema);
        }
    }
    schemas
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let name = fields.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix(PREFIX));
            found.extend(name.map(str::to_owned));
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn built_in(name: &str) -> Option<Value> {
    let definition = schema::definitions().get(name)?;
    let mut schema = converted(definition);
    match name.rsplit('.').next()? {
        "IntOrString" => {
            schema = json!({
                "description": definition["description"], "format": "int-or-string",
                "oneOf": [{"type": "integer"}, {"type": "string"}],
            });
        }
        "Quantity" => {
            let description = &definition["description"];
            schema = json!({"description": description, "oneOf": [{"type": "string"}, {"type": "number"}]});
        }
        _ => {}
    }
    let short = name.strip_prefix("io.k8s.").unwrap_or(name);
    for (property, schema) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Value::Object(fields) = schema {
            let (list, patch) = merge_keys::rule(short, property);
            let kind = if fields.contains_key("items") { "list" } else { "map" };
            merges(fields, list, patch, kind);
            let default = DEFAULTS.iter().find(|(name, field, _)| *name == short && *field == property.as_str());
            fields.extend(default.map(|(_, _, value)| ("default".to_owned(), Value::from(*value))));
        }
    }
    if let Value::Object(fields) = &mut schema {
        let (list, patch) = merge_keys::rule(short, "(type)");
        merges(fields, list, patch, "map");
        if let Some([group, version, kind]) = kind_of(name) {
            optional_metadata(fields, short);
            fields.insert("x-kubernetes-group-version-kind".into(), json!([gvk(group, version, kind)]));
        }
    }
    Some(schema)
}

pub fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

/// The types of Rust cannot do without metadata, but requests can, but for core's events.
fn optional_metadata(fields: &mut Map<String, Value>, short: &str) {
    let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) else { return };
    required.retain(|field| field != "metadata" || short == "api.core.v1.Event");
    if required.is_empty() {
        fields.remove("required");
    }
}

fn kind_of(name: &str) -> Option<[&'static str; 3]> {
    static KINDS: LazyLock<BTreeMap<&str, [&str; 3]>> = LazyLock::new(|| {
        let resources =
            kinds::built_in().iter().map(|kind| (&*kind.type_name, [&*kind.group, &*kind.version, &*kind.kind]));
        OTHER_KINDS.iter().copied().chain(resources).collect()
    });
    KINDS.get(name).copied()
}

/// Says how a field merges. <https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>
fn merges(fields: &mut Map<String, Value>, list: List, patch: Patch, kind: &str) {
    let kind = format!("x-kubernetes-{kind}-type");
    match list {
        List::Atomic => fields.insert(kind, "atomic".into()),
        List::Granular => fields.insert(kind, "granular".into()),
        List::Set => fields.insert(kind, "set".into()),
        List::Map(keys) => {
            fields.insert("x-kubernetes-list-map-keys".into(), json!(keys));
            fields.insert(kind, "map".into())
        }
        List::Unsaid => None,
    };
    let (strategy, key) = match patch {
        Patch::Replace => return,
        Patch::Merge(key) => ("merge", key),
        Patch::RetainKeys => ("retainKeys", ""),
        Patch::MergeRetainingKeys(key) => ("merge,retainKeys", key),
    };
    fields.insert("x-kubernetes-patch-strategy".into(), strategy.into());
    if !key.is_empty() {
        fields.insert("x-kubernetes-patch-merge-key".into(), key.into());
    }
}

/// A schema of JSON Schema 2020-12 as one of OpenAPI 3.0, where nothing may stand beside a reference.
fn converted(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let mut converted_fields = Map::new();
    for (name, field) in fields {
        let field = match (name.as_str(), field) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, schema)| (name.clone(), converted(schema))).collect()
            }
            ("items" | "additionalProperties", schema) => converted(schema),
            ("oneOf", Value::Array(schemas)) => schemas.iter().map(converted).collect(),
            ("$ref", _) => continue,
            (_, field) => field.clone(),
        };
        converted_fields.insert(name.clone(), field);
    }
    if let Some(name) = fields.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next()) {
        if converted_fields.is_empty() {
            return reference(name);
        }
        converted_fields.insert("allOf".into(), json!([reference(name)]));
    }
    Value::Object(converted_fields)
}

/// The list of a kind, as lists of built-in kinds are described.
fn list(kind: &KindRef) -> Value {
    let (name, known) = (type_name(kind), type_meta());
    json!({
        "type": "object",
        "description": format!("{}List is a list of {}", kind.kind, kind.resource),
        "required": ["items"],
        "properties": {
            "apiVersion": known["apiVersion"], "kind": known["kind"],
            "metadata": {"description": "Standard list metadata.", "allOf": [reference(&format!("{META}.ListMeta"))]},
            "items": {"description": format!("List of {}.", kind.resource), "type": "array", "items": reference(&name)},
        },
        "x-kubernetes-group-version-kind": [gvk(&kind.group, &kind.version, &format!("{}List", kind.kind))],
    })
}

/// The schema of a definition, with what every object has.
fn custom(kind: &KindRef) -> Value {
    let mut schema = kind.schema.as_deref().cloned().unwrap_or_else(|| json!({"type": "object"}));
    if let Value::Object(fields) = &mut schema {
        let known = type_meta();
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.insert("apiVersion".into(), known["apiVersion"].clone());
            properties.insert("kind".into(), known["kind"].clone());
            let metadata = json!({
                "description": known["metadata"]["description"], "allOf": [reference(&format!("{META}.ObjectMeta"))],
            });
            properties.insert("metadata".into(), metadata);
        }
        fields.insert("x-kubernetes-group-version-kind".into(), json!([gvk(&kind.group, &kind.version, &kind.kind)]));
    }
    schema
}

/// `apiVersion`, `kind` and `metadata` as every built-in kind describes them.
fn type_meta() -> &'static Value {
    schema::definitions().get("io.k8s.api.core.v1.Pod").and_then(|pod| pod.get("properties")).unwrap_or(&Value::Null)
}
