//! Reads the JSON of a built-in kind along the schema of its type: values of a wrong type, fields that the type does not
//! have, quantities in other than their canonical form, zeros that mean nothing.
//!
//! Messages name types as the API server does, which is written in Go.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use data_encoding::BASE64;
use serde_json::{Map, Value};

use super::{base64, text};
use crate::api::quantity;
use crate::api::schema::Schema;
use crate::api::wire::ZERO_TIME;
use crate::api::zero_values::is_nullable;

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const LABEL_SELECTOR: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";

/// Types of schemas that hold values of several types, or of any, though their own schemas say `object`.
const JSON_SCHEMA: &str = "io.k8s.apiextensions-apiserver.";
const ANY: [&str; 4] = ["JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"];

/// A line a type: its OpenAPI name, then its fields whose texts or maps have Go types of their own.
const NAMED_TYPES: &str = include_str!("named_types.txt");

/// Where the walk is.
struct Place<'a> {
    /// With indexes and keys: how a field is named that is not known.
    path: String,
    /// The OpenAPI name of the type that holds the field, and the names of the fields that lead to it.
    holder: &'a str,
    fields: String,
    /// The last of them.
    field: &'a str,
}

/// Makes `value` what the API would write. Unknown fields are added to `unknown` and taken away; the error is about the
/// first value of a wrong type.
pub fn object(value: &mut Value, schema: Schema<'_>, unknown: &mut Vec<String>) -> Result<(), String> {
    let place = Place { path: String::new(), holder: "", fields: String::new(), field: "" };
    fields(value, schema, &place, unknown)
}

/// `PodSpec` of `io.k8s.api.core.v1.PodSpec`.
fn short(type_name: &str) -> &str {
    type_name.rsplit('.').next().unwrap_or(type_name)
}

/// `v1.PodSpec`.
fn qualified(type_name: &str) -> String {
    let mut parts = type_name.rsplit('.');
    let name = parts.next().unwrap_or_default();
    format!("{}.{name}", parts.next().unwrap_or_default())
}

/// The Go type of a field that has one of its own: `v1.PodPhase`.
fn named_type(holder: &str, field: &str) -> Option<&'static str> {
    type Fields = BTreeMap<&'static str, &'static str>;
    static TYPES: LazyLock<BTreeMap<&'static str, Fields>> = LazyLock::new(|| {
        let line = |line: &'static str| {
            let (name, fields) = line.split_once(' ')?;
            Some((name, fields.split(' ').filter_map(|field| field.split_once('=')).collect()))
        };
        NAMED_TYPES.lines().filter_map(line).collect()
    });
    TYPES.get(holder.strip_prefix("io.k8s.")?)?.get(field).copied()
}

/// The type of a schema as Go names it, for what stands in a field or is an element there.
fn go_type(schema: Schema<'_>, place: &Place<'_>) -> String {
    let resolved = schema.resolved();
    let named = schema.type_name();
    let own = || named_type(place.holder, place.field).map(str::to_owned);
    match (resolved.get("type").and_then(Value::as_str), resolved.get("format").and_then(Value::as_str)) {
        (Some("array"), _) => {
            let item = schema.items().map(|items| go_type(items, place));
            format!("[]{}", item.unwrap_or_default())
        }
        (Some("string"), Some("byte")) => "[]uint8".into(),
        (Some("string"), _) if named.is_none() => own().unwrap_or_else(|| "string".into()),
        (Some("integer"), format) => format.unwrap_or("int64").into(),
        (Some("number"), _) => "float64".into(),
        (Some("boolean"), _) => "bool".into(),
        (Some("object"), _) if named.is_none() => own().unwrap_or_else(|| {
            let values = resolved.get("additionalProperties").map(Schema::new);
            format!("map[string]{}", values.map(|values| go_type(values, place)).unwrap_or_default())
        }),
        _ => named.map(qualified).unwrap_or_default(),
    }
}

fn mismatch(found: &str, wanted: &str, place: &Place<'_>) -> String {
    if place.fields.is_empty() {
        return text::misfit(found, wanted);
    }
    format!(
        "json: cannot unmarshal {found} into Go struct field {}.{} of type {wanted}",
        short(place.holder),
        place.fields
    )
}

fn walk(value: &mut Value, schema: Schema<'_>, place: &Place<'_>, unknown: &mut Vec<String>) -> Result<(), String> {
    let named = schema.type_name().unwrap_or_default();
    match named {
        QUANTITY => return read_quantity(value),
        INT_OR_STRING => return int_or_string(value, place),
        _ if is_any(schema) => return Ok(()),
        _ => {}
    }
    let resolved = schema.resolved();
    let Some(wanted) = resolved.get("type").and_then(Value::as_str) else { return Ok(()) };
    let wrong = |value: &Value| mismatch(text::json_type(value), &go_type(schema, place), place);
    match (wanted, &mut *value) {
        (_, Value::Null) => Ok(()),
        ("object", Value::Object(_)) if resolved.get("properties").is_some() => fields(value, schema, place, unknown),
        ("object", Value::Object(entries)) => {
            let Some(values) = resolved.get("additionalProperties").filter(|values| values.is_object()) else {
                return Ok(());
            };
            for (key, value) in entries.iter_mut() {
                let place = Place { path: format!("{}.{key}", place.path), fields: place.fields.clone(), ..*place };
                walk(value, Schema::new(values), &place, unknown)?;
            }
            Ok(())
        }
        ("array", Value::Array(items)) => {
            let Some(schema) = schema.items() else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                let place = Place { path: format!("{}[{index}]", place.path), fields: place.fields.clone(), ..*place };
                walk(item, schema, &place, unknown)?;
            }
            Ok(())
        }
        ("string", Value::String(text)) if resolved.get("format").and_then(Value::as_str) == Some("byte") => {
            let bytes = base64::decode(text.as_bytes());
            *text = bytes
                .map(|bytes| BASE64.encode(&bytes))
                .map_err(|at| format!("illegal base64 data at input byte {at}"))?;
            Ok(())
        }
        ("string", Value::String(_)) | ("boolean", Value::Bool(_)) | ("number", Value::Number(_)) => Ok(()),
        ("integer", Value::Number(number)) => {
            let small = resolved.get("format").and_then(Value::as_str) == Some("int32");
            let fits = number.as_i64().is_some_and(|number| !small || i32::try_from(number).is_ok());
            let found = format!("number {number}");
            if fits { Ok(()) } else { Err(mismatch(&found, &go_type(schema, place), place)) }
        }
        (_, value) => Err(wrong(value)),
    }
}

fn fields(value: &mut Value, schema: Schema<'_>, place: &Place<'_>, unknown: &mut Vec<String>) -> Result<(), String> {
    let Value::Object(entries) = value else {
        return Err(mismatch(text::json_type(value), &go_type(schema, place), place));
    };
    let known = schema.resolved().get("properties").and_then(Value::as_object);
    let holder = schema.type_name().unwrap_or_default();
    // Metadata stands first in what people write.
    let mut names: Vec<String> = entries.keys().cloned().collect();
    names.sort_by_key(|name| name != "metadata");
    let mut dropped = Vec::new();
    for name in names {
        let join = |start: &str| if start.is_empty() { name.clone() } else { format!("{start}.{name}") };
        let path = join(&place.path);
        let Some(field) = known.and_then(|known| known.get(&name)).map(Schema::new) else {
            unknown.push(path);
            dropped.push(name);
            continue;
        };
        let Some(value) = entries.get_mut(&name) else { continue };
        let inner = Place { path, holder, fields: join(&place.fields), field: &name };
        walk(value, field, &inner, unknown)?;
        let required = schema.is_required(&name);
        if required && field.type_name() == Some(LABEL_SELECTOR) && value.as_object().is_some_and(Map::is_empty) {
            // Tells a selector that was sent from one that was not.
            *value = serde_json::json!({"matchLabels": {}});
        } else if required && field.type_name() == Some(TIME) && value.is_null() {
            *value = ZERO_TIME.into();
        } else if is_any(field) && !value.is_null() {
            // A default of `[]` says something.
        } else if value.is_null() || is_empty_list(value) || !required && means_nothing(value, field, &name) {
            dropped.push(name);
        }
    }
    for name in dropped {
        entries.remove(&name);
    }
    Ok(())
}

fn is_any(schema: Schema<'_>) -> bool {
    schema.type_name().is_some_and(|name| name.starts_with(JSON_SCHEMA) && ANY.contains(&short(name)))
}

/// An empty list is none: protobuf, in which objects are kept, knows no difference.
fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// The API would not write this value. Types that read their JSON themselves decide for themselves.
fn means_nothing(value: &Value, schema: Schema<'_>, name: &str) -> bool {
    let zero = match value {
        Value::Null => return true,
        Value::Array(items) => return items.is_empty() && schema.type_name().is_none(),
        Value::Object(entries) => return entries.is_empty() && schema.type_name().is_none(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
    };
    zero && schema.type_name().is_none() && !is_nullable(name)
}

fn read_quantity(value: &mut Value) -> Result<(), String> {
    let text = match &*value {
        Value::Null => return Ok(()),
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    *value = quantity::canonical(&text)?.into();
    Ok(())
}

fn int_or_string(value: &Value, place: &Place<'_>) -> Result<(), String> {
    let place = Place { fields: String::new(), path: String::new(), ..*place };
    match value {
        Value::String(_) | Value::Null => Ok(()),
        Value::Number(number) if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => Ok(()),
        Value::Number(number) => Err(mismatch(&format!("number {number}"), "int32", &place)),
        other => Err(mismatch(text::json_type(other), "int32", &place)),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
    use k8s_openapi::api::networking::v1::NetworkPolicy;
    use serde_json::json;

    use super::*;
    use crate::api::kind::Resource;

    fn read<K: Resource>(mut value: Value) -> Result<(Value, Vec<String>), String> {
        let mut unknown = Vec::new();
        object(&mut value, Schema::of(K::kind()).unwrap(), &mut unknown)?;
        Ok((value, unknown))
    }

    #[test]
    fn a_wrong_type_is_named_as_the_api_names_it() {
        let error = |found: Result<(Value, Vec<String>), String>| found.unwrap_err();
        assert_eq!(
            error(read::<Deployment>(json!({"spec": {"replicas": "3"}}))),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
        assert_eq!(
            error(read::<Pod>(json!({"spec": {"containers": {"name": "c"}}}))),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"
        );
        assert_eq!(
            error(read::<ConfigMap>(json!({"data": {"n": 1}}))),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        );
        assert_eq!(
            error(read::<ConfigMap>(json!({"metadata": {"labels": {"n": true}}}))),
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string"
        );
    }

    #[test]
    fn texts_and_maps_with_types_of_their_own_are_named_by_them() {
        let problem = |found: Result<(Value, Vec<String>), String>| found.unwrap_err();
        let wanted = |problem: String| problem.rsplit_once(" of type ").map(|(_, wanted)| wanted.to_owned()).unwrap();
        let policy = problem(read::<NetworkPolicy>(json!({"spec": {"policyTypes": "Ingress"}})));
        assert_eq!(
            policy,
            "json: cannot unmarshal string into Go struct field NetworkPolicySpec.spec.policyTypes of type []v1.PolicyType"
        );
        let deployment = read::<Deployment>(json!({"spec": {"strategy": {"type": 1}}}));
        assert_eq!(wanted(problem(deployment)), "v1.DeploymentStrategyType");
        let service = read::<Service>(json!({"spec": {"type": ["NodePort"]}}));
        assert_eq!(wanted(problem(service)), "v1.ServiceType");
        let item = read::<NetworkPolicy>(json!({"spec": {"policyTypes": [1]}}));
        assert_eq!(wanted(problem(item)), "v1.PolicyType");
        let limits = read::<Pod>(json!({"spec": {"containers": [{"resources": {"limits": "much"}}]}}));
        assert_eq!(wanted(problem(limits)), "v1.ResourceList");
    }

    /// <https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go>
    #[test]
    fn a_time_may_be_null_and_is_shown_so() {
        let condition =
            json!({"type": "A", "status": "True", "reason": null, "message": "", "lastTransitionTime": null});
        let (read, _) = read::<Service>(json!({"status": {"conditions": [condition]}})).unwrap();
        assert_eq!(read["status"]["conditions"][0]["lastTransitionTime"], ZERO_TIME);
        let mut object = crate::api::object::Object::new::<Service>("default", "s", Default::default());
        *object.status_mut::<Service>() = serde_json::from_value(read["status"].clone()).unwrap();
        let shown = object.to_json();
        assert_eq!(shown["status"]["conditions"][0]["lastTransitionTime"], Value::Null);
        assert_eq!(shown["status"]["conditions"][0]["type"], "A");
    }

    #[test]
    fn bytes_are_read_as_go_reads_them() {
        let read = |text: &str| read::<ConfigMap>(json!({"binaryData": {"k": text}}));
        assert_eq!(read("not base64!").unwrap_err(), "illegal base64 data at input byte 3");
        assert_eq!(read("v").unwrap_err(), "illegal base64 data at input byte 0");
        assert_eq!(read("eH\nk=\n").unwrap().0["binaryData"]["k"], "eHk=");
    }

    #[test]
    fn unknown_fields_and_zeros_go_and_quantities_become_canonical() {
        let pod = json!({
            "metadata": {"name": "a", "colour": "red", "labels": {}},
            "spec": {
                "hostNetwork": false, "priority": 0, "nodeName": "",
                "containers": [{"name": "c", "ports": [{"port": 80, "containerPort": 1}],
                    "resources": {"limits": {"memory": "1.5Gi", "cpu": 0.5}}}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
        });
        let (pod, unknown) = read::<Pod>(pod).unwrap();
        assert_eq!(unknown, ["metadata.colour", "spec.containers[0].ports[0].port"]);
        assert_eq!(pod["metadata"], json!({"name": "a"}));
        assert_eq!(pod["spec"]["containers"][0]["resources"]["limits"], json!({"memory": "1536Mi", "cpu": "500m"}));
        assert_eq!((&pod["spec"]["priority"], pod["spec"].get("hostNetwork")), (&json!(0), None));
        assert_eq!(pod["spec"]["volumes"][0]["emptyDir"], json!({}));
    }
}
