//! Structural schemas of custom resources: defaults, pruning, validation.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value};

use crate::api::status::Cause;

/// Fills in the defaults that the schema names.
pub fn default(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if let Some(default) = property.get("default") {
                    fields.entry(name.clone()).or_insert_with(|| default.clone());
                }
                if let Some(field) = fields.get_mut(name) {
                    self::default(field, property);
                }
            }
            if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
                fields.values_mut().for_each(|field| default(field, values));
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| default(item, schema));
            }
        }
        _ => {}
    }
}

/// Takes out the fields that the schema does not know, and names them.
pub fn prune(value: &mut Value, schema: &Value, path: &str, pruned: &mut Vec<String>) {
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        return;
    }
    match value {
        Value::Object(fields) => {
            let values = schema.get("additionalProperties");
            let known = schema.get("properties").and_then(Value::as_object);
            let embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
            let kept = |name: &str| {
                known.is_some_and(|known| known.contains_key(name))
                    || (embedded || path.is_empty()) && matches!(name, "apiVersion" | "kind" | "metadata")
            };
            let place = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            if values.is_none() {
                let gone: Vec<String> = fields.keys().filter(|name| !kept(name)).cloned().collect();
                for name in gone {
                    fields.remove(&name);
                    pruned.push(place(&name));
                }
            }
            for (name, field) in fields.iter_mut() {
                let schema = known.and_then(|known| known.get(name)).or(values.filter(|values| values.is_object()));
                if let Some(schema) = schema {
                    prune(field, schema, &place(name), pruned);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    prune(item, schema, &format!("{path}[{index}]"), pruned);
                }
            }
        }
        _ => {}
    }
}

/// What keeps a schema from being one: types that there are not, lists of anything, patterns that can't be read.
pub fn structural(schema: &JSONSchemaProps, field: &str, causes: &mut Vec<Cause>) {
    let types = ["array", "boolean", "integer", "number", "object", "string"];
    let own = |name: &str| format!("{field}.{name}");
    let free =
        schema.x_kubernetes_int_or_string == Some(true) || schema.x_kubernetes_preserve_unknown_fields == Some(true);
    match schema.type_.as_deref() {
        None if free => {}
        None => causes.push(Cause::required(own("type"), "must not be empty for specified object fields")),
        Some(found) if !types.contains(&found) => {
            causes.push(Cause::unsupported(own("type"), found, &types));
        }
        Some("array") if schema.items.is_none() => {
            causes.push(Cause::required(own("items"), "must be specified"));
        }
        Some(_) => {}
    }
    if let Some(pattern) = &schema.pattern
        && let Err(error) = regex_lite::Regex::new(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        causes.push(Cause::invalid(own("pattern"), pattern.as_str(), detail));
    }
    for (name, property) in schema.properties.iter().flatten() {
        structural(property, &format!("{field}.properties[{name}]"), causes);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        structural(items, &own("items"), causes);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        structural(values, &own("additionalProperties"), causes);
    }
}

/// Everything in a value that the schema does not allow.
pub fn validate(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    if value.is_null() && schema.get("nullable") == Some(&Value::Bool(true)) {
        return;
    }
    let int_or_string = schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    if let Some(wanted) = text("type")
        && !int_or_string
        && !is_of_type(value, wanted)
    {
        let found = type_name(value);
        let detail = format!("{path} in body must be of type {wanted}: \"{found}\"");
        causes.push(Cause {
            reason: "FieldValueTypeInvalid",
            message: format!("Invalid value: \"{found}\": {detail}"),
            field: path.to_owned(),
        });
        return;
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|allowed| !allowed.contains(value)) {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
        causes.push(Cause { reason: "FieldValueNotSupported", message, field: path.to_owned() });
    }
    match value {
        Value::Number(number) => validate_number(number.as_f64().unwrap_or(0.0), value, schema, path, causes),
        Value::String(text) => validate_text(text, schema, path, causes),
        Value::Array(items) => validate_list(items, schema, path, causes),
        Value::Object(fields) => validate_fields(fields, schema, path, causes),
        _ => {}
    }
}

fn limit(schema: &Value, name: &str) -> Option<f64> {
    schema.get(name).and_then(Value::as_f64)
}

fn validate_number(number: f64, value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let exclusive = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let mut refuse = |words: &str, bound: f64| {
        causes.push(Cause::invalid(path, value.clone(), format!("{path} in body should be {words} {bound}")));
    };
    if let Some(least) = limit(schema, "minimum") {
        if exclusive("exclusiveMinimum") && number <= least {
            refuse("greater than", least);
        } else if number < least {
            refuse("greater than or equal to", least);
        }
    }
    if let Some(most) = limit(schema, "maximum") {
        if exclusive("exclusiveMaximum") && number >= most {
            refuse("less than", most);
        } else if number > most {
            refuse("less than or equal to", most);
        }
    }
    if let Some(step) = limit(schema, "multipleOf").filter(|step| *step > 0.0 && number % step != 0.0) {
        refuse("a multiple of", step);
    }
}

fn validate_text(text: &str, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let length = text.chars().count() as f64;
    let mut refuse = |words: String| causes.push(Cause::invalid(path, text, format!("{path} in body should {words}")));
    if let Some(least) = limit(schema, "minLength").filter(|least| length < *least) {
        refuse(format!("be at least {least} chars long"));
    }
    if let Some(most) = limit(schema, "maxLength").filter(|most| length > *most) {
        refuse(format!("be at most {most} chars long"));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && regex_lite::Regex::new(pattern).is_ok_and(|pattern| !pattern.is_match(text))
    {
        refuse(format!("match '{pattern}'"));
    }
}

fn validate_list(items: &[Value], schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let length = items.len() as f64;
    let shown = Value::from(items.len());
    if let Some(least) = limit(schema, "minItems").filter(|least| length < *least) {
        causes.push(Cause::invalid(path, shown.clone(), format!("{path} in body should have at least {least} items")));
    }
    if let Some(most) = limit(schema, "maxItems").filter(|most| length > *most) {
        causes.push(Cause::invalid(path, shown, format!("{path} in body should have at most {most} items")));
    }
    if let Some(schema) = schema.get("items") {
        for (index, item) in items.iter().enumerate() {
            validate(item, schema, &format!("{path}[{index}]"), causes);
        }
    }
}

fn validate_fields(fields: &Map<String, Value>, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let place = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            causes.push(Cause::required(place(name), ""));
        }
    }
    let known = schema.get("properties").and_then(Value::as_object);
    let values = schema.get("additionalProperties").filter(|values| values.is_object());
    for (name, field) in fields {
        let schema = known.and_then(|known| known.get(name)).or(values);
        if let Some(schema) = schema {
            validate(field, schema, &place(name), causes);
        }
    }
}

fn is_of_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool() -> Value {
        json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "required": ["image"],
            "properties": {
                "replicas": {"type": "integer", "minimum": 1, "default": 2},
                "image": {"type": "string"},
                "size": {"type": "string", "enum": ["small", "large"]},
            },
        }}})
    }

    #[test]
    fn defaults_and_pruning() {
        let mut value = json!({"kind": "Pool", "spec": {"image": "nginx", "colour": "blue"}});
        let mut pruned = Vec::new();
        prune(&mut value, &pool(), "", &mut pruned);
        default(&mut value, &pool());
        assert_eq!(value, json!({"kind": "Pool", "spec": {"image": "nginx", "replicas": 2}}));
        assert_eq!(pruned, ["spec.colour"]);
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let mut causes = Vec::new();
        validate(&json!({"spec": {"replicas": 0, "size": "huge"}}), &pool(), "", &mut causes);
        let told: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        assert_eq!(
            told,
            [
                "spec.image: Required value",
                "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1",
                "spec.size: Unsupported value: \"huge\": supported values: \"small\", \"large\"",
            ]
        );
        causes.clear();
        validate(&json!({"spec": {"image": "a", "replicas": "three"}}), &pool(), "", &mut causes);
        assert_eq!(
            causes[0].message,
            "Invalid value: \"string\": spec.replicas in body must be of type integer: \"string\""
        );
    }
}
