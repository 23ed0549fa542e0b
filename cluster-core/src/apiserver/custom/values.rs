//! Whether a value is what its schema asks for. Texts and order are those of the OpenAPI validation that Kubernetes uses.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation>

use serde_json::{Map, Value};

use super::formats;
use super::schema::{Additional, Schema};
use crate::api::status::Cause;
use crate::apiserver::cel::value::Merge;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::metadata;

/// Everything in a value that the schema does not allow. What `old` had already is let through, so that an object can
/// still be changed whose schema has become stricter; a new value has no old one.
/// <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-ratcheting>
pub fn validate(value: &Value, old: Option<&Value>, schema: &Schema, path: &str, causes: &mut Causes) {
    if old == Some(value) {
        return;
    }
    let mut own = Causes::new();
    check_type(value, schema, path, &mut own);
    if !value.is_null() {
        check_alternatives(value, schema, path, &mut own);
    }
    match value {
        Value::String(text) => {
            check_text(text, schema, path, &mut own);
            if !schema.format.is_empty() && !formats::has_format(text, &schema.format) {
                own.push(wrong_type(path, &schema.format, text));
            }
        }
        Value::Number(_) => check_number(value, schema, path, &mut own),
        Value::Array(items) => check_items(items, old, schema, path, &mut own),
        _ => {}
    }
    check_enumeration(value, schema, path, &mut own);
    if let Value::Object(fields) = value {
        check_fields(fields, old, schema, path, &mut own);
    }
    causes.extend(own);
}

fn root(path: &str) -> Path {
    Path::new(path)
}

/// `spec.size`, of `spec` and `size`.
fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn check_type(value: &Value, schema: &Schema, path: &str, causes: &mut Causes) {
    let wanted: &[&str] = if schema.int_or_string { &["integer", "string"] } else { &[&schema.type_name] };
    if wanted == [""] || value.is_null() && schema.nullable {
        return;
    }
    let found = type_name(value);
    let whole =
        found == "number" && value.as_f64().is_some_and(|number| number.fract() == 0.0 && number.abs() < 9.0e15);
    let fits = wanted.contains(&found)
        || found == "integer" && wanted.contains(&"number")
        || whole && wanted.contains(&"integer");
    if !fits {
        causes.push(wrong_type(path, &wanted.join(","), found));
    }
}

fn wrong_type(path: &str, wanted: &str, found: &str) -> Cause {
    let detail = format!("{path} in body must be of type {wanted}: {found:?}");
    Cause { reason: "FieldValueTypeInvalid", ..Cause::invalid(root(path), found, detail) }
}

fn is_valid(value: &Value, schema: &Schema, path: &str) -> (bool, Causes) {
    let mut causes = Causes::new();
    validate(value, None, schema, path, &mut causes);
    (causes.is_empty(), causes)
}

/// `anyOf`, `oneOf`, `allOf`, `not`. Of alternatives that all fail, the one that fails least is told about.
fn check_alternatives(value: &Value, schema: &Schema, path: &str, causes: &mut Causes) {
    let limits = &schema.limits;
    let refuse = |causes: &mut Causes, detail: String| causes.invalid(&Path::default(), "", detail);
    let least = |tried: Vec<(bool, Causes)>| tried.into_iter().map(|(_, causes)| causes).min_by_key(Causes::len);
    let tried = |of: &[Schema]| of.iter().map(|schema| is_valid(value, schema, path)).collect::<Vec<_>>();
    let any = tried(&limits.any_of);
    if !any.is_empty() && !any.iter().any(|(valid, _)| *valid) {
        refuse(causes, format!("{path:?} must validate at least one schema (anyOf)"));
        causes.extend(least(any).unwrap_or_default());
    }
    let one = tried(&limits.one_of);
    match one.iter().filter(|(valid, _)| *valid).count() {
        1 => {}
        0 if !one.is_empty() => {
            refuse(causes, format!("{path:?} must validate one and only one schema (oneOf). Found none valid"));
            causes.extend(least(one).unwrap_or_default());
        }
        count if count > 1 => {
            let detail =
                format!("{path:?} must validate one and only one schema (oneOf). Found {count} valid alternatives");
            refuse(causes, detail);
        }
        _ => {}
    }
    let all = tried(&limits.all_of);
    let valid = all.iter().filter(|(valid, _)| *valid).count();
    let wrong = valid < all.len();
    all.into_iter().for_each(|(_, told)| causes.extend(told));
    if wrong {
        let none = if valid == 0 { ". None validated" } else { "" };
        refuse(causes, format!("{path:?} must validate all the schemas (allOf){none}"));
    }
    if limits.not.as_ref().is_some_and(|not| is_valid(value, not, path).0) {
        refuse(causes, format!("{path:?} must not validate the schema (not)"));
    }
}

/// Only the first of these is told.
fn check_text(text: &str, schema: &Schema, path: &str, causes: &mut Causes) {
    let limits = &schema.limits;
    let length = text.chars().count() as i64;
    if let Some(most) = limits.length_max.filter(|most| length > *most) {
        causes.too_long(&root(path), usize::try_from(most).unwrap_or(0));
    } else if let Some(least) = limits.length_min.filter(|least| length < *least) {
        causes.invalid(&root(path), text, format!("{path} in body should be at least {least} chars long"));
    } else if let Some((pattern, Some(regex))) = &limits.pattern
        && !regex.is_match(text)
    {
        causes.invalid(&root(path), text, format!("{path} in body should match '{pattern}'"));
    }
}

fn check_number(value: &Value, schema: &Schema, path: &str, causes: &mut Causes) {
    let limits = &schema.limits;
    let number = value.as_f64().unwrap_or_default();
    if !schema.int_or_string && schema.type_name == "integer" {
        let whole = number.fract() == 0.0 && (value.is_i64() || number.abs() < 9.2e18);
        let fits = match schema.format.as_str() {
            "int32" => whole && i32::try_from(number as i64).is_ok(),
            "uint32" => whole && u32::try_from(number as i64).is_ok(),
            "uint64" => whole && number >= 0.0,
            _ => whole,
        };
        if !fits {
            let format = match schema.format.as_str() {
                "" => "(default format)".to_owned(),
                format => format!("with format {format}"),
            };
            causes.invalid(&Path::default(), "", format!("Checked value must be of type integer {format} in {path}"));
        }
    }
    let mut refuse = |words: &str, bound: f64| {
        causes.invalid(&root(path), value.clone(), format!("{path} in body should be {words} {bound}"));
    };
    if let Some(step) = limits.multiple_of.filter(|step| *step > 0.0 && (number / step).fract() != 0.0) {
        refuse("a multiple of", step);
    }
    match limits.minimum {
        Some(least) if limits.exclusive_minimum && number <= least => refuse("greater than", least),
        Some(least) if number < least => refuse("greater than or equal to", least),
        _ => {}
    }
    match limits.maximum {
        Some(most) if limits.exclusive_maximum && number >= most => refuse("less than", most),
        Some(most) if number > most => refuse("less than or equal to", most),
        _ => {}
    }
}

fn check_items(items: &[Value], old: Option<&Value>, schema: &Schema, path: &str, causes: &mut Causes) {
    let limits = &schema.limits;
    if let Some(schema_of_item) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let old = old_item(old, item, &schema.merge);
            validate(item, old, schema_of_item, &format!("{path}[{index}]"), causes);
        }
    }
    let length = items.len() as i64;
    if let Some(least) = limits.items_min.filter(|least| length < *least) {
        causes.invalid(&root(path), length, format!("{path} in body should have at least {least} items"));
    }
    if let Some(most) = limits.items_max.filter(|most| length > *most) {
        causes.too_many(&root(path), items.len(), usize::try_from(most).unwrap_or(0));
    }
}

/// The item of the old list that an item is the new state of: only lists with keys tell.
pub fn old_item<'a>(old: Option<&'a Value>, item: &Value, merge: &Merge) -> Option<&'a Value> {
    let Merge::Map(keys) = merge else { return None };
    old?.as_array()?.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}

fn check_enumeration(value: &Value, schema: &Schema, path: &str, causes: &mut Causes) {
    let allowed = &schema.limits.enumeration;
    if allowed.is_empty() || allowed.contains(value) || value.is_null() && schema.nullable {
        return;
    }
    let allowed: Vec<String> =
        allowed.iter().map(|value| value.as_str().map_or(value.to_string(), str::to_owned)).collect();
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    causes.not_supported(&root(path), value.clone(), &allowed);
}

fn check_fields(fields: &Map<String, Value>, old: Option<&Value>, schema: &Schema, path: &str, causes: &mut Causes) {
    let limits = &schema.limits;
    let count = fields.len() as i64;
    if let Some(least) = limits.properties_min.filter(|least| count < *least) {
        causes.invalid(&root(path), count, format!("{path} in body should have at least {least} properties"));
        return;
    }
    if let Some(most) = limits.properties_max.filter(|most| count > *most) {
        causes.too_many(&root(path), fields.len(), usize::try_from(most).unwrap_or(0));
        return;
    }
    for (name, field) in fields {
        if let Some(schema) = schema.field(name) {
            validate(field, old.and_then(|old| old.get(name)), schema, &below(path, name), causes);
        }
    }
    for name in limits.required.iter().filter(|name| !fields.contains_key(*name)) {
        causes.required(&root(&below(path, name)), "");
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Embedded resources have an apiVersion, a kind, and metadata as all objects do.
pub fn validate_embedded(value: &Value, schema: &Schema, path: &Path, causes: &mut Causes) {
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                validate_resource(fields, path, causes);
            }
            for (name, field) in fields {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(schema), _) => validate_embedded(field, schema, &path.child(name), causes),
                    (None, Additional::Of(schema)) => validate_embedded(field, schema, &path.key(name), causes),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    validate_embedded(item, schema, &path.index(index), causes);
                }
            }
        }
        _ => {}
    }
}

fn validate_resource(fields: &Map<String, Value>, path: &Path, causes: &mut Causes) {
    for name in ["apiVersion", "kind"] {
        match fields.get(name) {
            None => causes.required(&path.child(name), ""),
            Some(Value::String(text)) if text.is_empty() => causes.invalid(&path.child(name), "", "must not be empty"),
            Some(Value::String(_)) => {}
            Some(other) => causes.invalid(&path.child(name), other.clone(), "must be a string"),
        }
    }
    let path = path.child("metadata");
    for (name, check) in [("labels", metadata::labels as fn(&mut _, &_, &_)), ("annotations", metadata::annotations)] {
        if let Some(map) = fields.get("metadata").and_then(|metadata| metadata.get(name)) {
            match serde_json::from_value(map.clone()) {
                Ok(map) => check(causes, &map, &path.child(name)),
                Err(error) => causes.invalid(&path.child(name), map.clone(), error.to_string()),
            }
        }
    }
}

/// Sets hold nothing twice, lists with keys no key twice.
pub fn validate_lists(value: &Value, schema: &Schema, path: &Path, causes: &mut Causes) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(schema), _) => validate_lists(field, schema, &path.child(name), causes),
                    (None, Additional::Of(schema)) => validate_lists(field, schema, &path.key(name), causes),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            let key = |item: &Value| match &schema.merge {
                Merge::Atomic => None,
                Merge::Set => Some(item.clone()),
                Merge::Map(keys) => {
                    Some(keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect())
                }
            };
            let mut seen = std::collections::BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                if let Some(key) = key(item)
                    && !seen.insert(key.to_string())
                {
                    causes.duplicate(&path.index(index), key);
                }
            }
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    validate_lists(item, schema, &path.index(index), causes);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn told(schema: Value, value: Value, old: Option<Value>) -> Vec<String> {
        let schema = Schema::of(&from_value(schema).unwrap());
        let mut causes = Causes::new();
        validate(&value, old.as_ref(), &schema, "", &mut causes);
        validate_embedded(&value, &schema, &Path::default(), &mut causes);
        validate_lists(&value, &schema, &Path::default(), &mut causes);
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    fn of(property: Value, value: Value) -> Vec<String> {
        told(json!({"type": "object", "properties": {"a": property}}), json!({"a": value}), None)
    }

    #[test]
    fn values_and_what_is_wrong_with_them() {
        for (property, value, expected) in [
            (
                json!({"type": "integer"}),
                json!("x"),
                "a: Invalid value: \"string\": a in body must be of type integer: \"string\"",
            ),
            (
                json!({"type": "integer", "minimum": 1}),
                json!(0),
                "a: Invalid value: 0: a in body should be greater than or equal to 1",
            ),
            (
                json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
                json!(0),
                "a: Invalid value: 0: a in body should be greater than 0",
            ),
            (
                json!({"type": "integer", "multipleOf": 5}),
                json!(7),
                "a: Invalid value: 7: a in body should be a multiple of 5",
            ),
            (json!({"type": "string", "maxLength": 2}), json!("abc"), "a: Too long: may not be more than 2 bytes"),
            (
                json!({"type": "string", "minLength": 2}),
                json!("a"),
                "a: Invalid value: \"a\": a in body should be at least 2 chars long",
            ),
            (
                json!({"type": "string", "pattern": "^[a-z]+$"}),
                json!("A"),
                "a: Invalid value: \"A\": a in body should match '^[a-z]+$'",
            ),
            (
                json!({"type": "string", "format": "date"}),
                json!("x"),
                "a: Invalid value: \"x\": a in body must be of type date: \"x\"",
            ),
            (
                json!({"type": "string", "enum": ["b", "a"]}),
                json!("c"),
                "a: Unsupported value: \"c\": supported values: \"b\", \"a\"",
            ),
            (
                json!({"type": "array", "maxItems": 1, "items": {}}),
                json!([1, 2]),
                "a: Too many: 2: must have at most 1 item",
            ),
            (
                json!({"type": "array", "minItems": 1, "items": {}}),
                json!([]),
                "a: Invalid value: 0: a in body should have at least 1 items",
            ),
            (json!({"type": "object", "required": ["b"]}), json!({}), "a.b: Required value"),
            (
                json!({"x-kubernetes-int-or-string": true}),
                json!(1.5),
                "a: Invalid value: \"number\": a in body must be of type integer,string: \"number\"",
            ),
            (
                json!({"type": "string"}),
                json!(null),
                "a: Invalid value: \"null\": a in body must be of type string: \"null\"",
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
                json!(["x", "x"]),
                "a[1]: Duplicate value: \"x\"",
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], "items": {"type": "object"}}),
                json!([{"n": 1}, {"n": 2}, {"n": 1}]),
                "a[2]: Duplicate value: {\"n\":1}",
            ),
            (
                json!({"not": {"type": "string"}}),
                json!("x"),
                "<nil>: Invalid value: \"\": \"a\" must not validate the schema (not)",
            ),
        ] {
            assert_eq!(of(property.clone(), value), [expected], "{property}");
        }
        for (property, value) in [
            (json!({"type": "integer"}), json!(3.0)),
            (json!({"type": "number"}), json!(3)),
            (json!({"type": "string", "nullable": true}), json!(null)),
            (json!({"x-kubernetes-int-or-string": true}), json!("80")),
            (json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}), json!(1)),
        ] {
            assert_eq!(of(property.clone(), value), Vec::<String>::new(), "{property}");
        }
    }

    #[test]
    fn a_fraction_is_no_integer_twice() {
        assert_eq!(
            of(json!({"type": "integer"}), json!(1.5)),
            [
                "a: Invalid value: \"number\": a in body must be of type integer: \"number\"",
                "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in a",
            ]
        );
    }

    #[test]
    fn what_was_wrong_before_may_stay() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "integer", "maximum": 3}, "b": {"type": "string"}}});
        assert_eq!(told(schema.clone(), json!({"a": 5, "b": "new"}), Some(json!({"a": 5}))), Vec::<String>::new());
        assert_eq!(told(schema, json!({"a": 6}), Some(json!({"a": 5}))).len(), 1);
    }
}
