//! What makes a schema one: that it is structural, that its defaults fit, that its rules compile.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use regex_lite::Regex;
use serde_json::{Value, json};

use super::rules::field_path;
use super::schema::{self, Additional, Schema};
use super::values;
use crate::apiserver::cel::value::Merge;
use crate::apiserver::validation::field::{Causes, Path};

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const MESSAGE_BYTES_MAX: usize = 2048;

/// Everything that is wrong with the schema of a version.
pub fn validate(causes: &mut Causes, props: &JSONSchemaProps, path: &Path) {
    let before = causes.len();
    if props.nullable == Some(true) {
        causes.forbidden(&path.child("nullable"), "nullable cannot be true at the root");
    }
    check_keywords(causes, props, path);
    let compiled = Schema::of_resource(props);
    check_rules(causes, &compiled, path, true);
    let generic = causes.len();
    check_structure(causes, props, Level::Root, path);
    check_completeness(causes, props, props, path, path);
    if causes.len() == generic {
        check_defaults(causes, &compiled, path, true);
    }
    if causes.len() == before {
        check_map_keys(causes, props, path);
    }
}

fn items(props: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &props.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => Some(items),
        _ => None,
    }
}

fn values_of_map(props: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &props.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => Some(values),
        _ => None,
    }
}

/// The alternatives of a schema, with their places.
fn alternatives<'a>(props: &'a JSONSchemaProps, path: &Path) -> Vec<(&'a JSONSchemaProps, Path)> {
    let lists = [("allOf", &props.all_of), ("anyOf", &props.any_of), ("oneOf", &props.one_of)];
    let mut found = Vec::new();
    for (name, list) in lists {
        found.extend(list.iter().flatten().enumerate().map(|(index, of)| (of, path.child(name).index(index))));
    }
    found.extend(props.not.as_deref().map(|not| (not, path.child("not"))));
    found
}

/// Words of JSON Schema that Kubernetes does not take, and those of its own that must fit together.
fn check_keywords(causes: &mut Causes, props: &JSONSchemaProps, path: &Path) {
    let unsupported = [
        ("$ref", props.ref_path.is_some()),
        ("id", props.id.is_some()),
        ("additionalItems", props.additional_items.is_some()),
        ("patternProperties", props.pattern_properties.as_ref().is_some_and(|of| !of.is_empty())),
        ("definitions", props.definitions.as_ref().is_some_and(|of| !of.is_empty())),
        ("dependencies", props.dependencies.as_ref().is_some_and(|of| !of.is_empty())),
    ];
    if props.unique_items == Some(true) {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        causes.forbidden(&path.child("uniqueItems"), detail);
    }
    match &props.additional_properties {
        Some(JSONSchemaPropsOrBool::Bool(false)) => {
            causes.forbidden(&path.child("additionalProperties"), "additionalProperties cannot be set to false");
        }
        Some(_) if props.properties.as_ref().is_some_and(|properties| !properties.is_empty()) => {
            let detail = "additionalProperties and properties are mutual exclusive";
            causes.forbidden(&path.child("additionalProperties"), detail);
        }
        _ => {}
    }
    for (word, _) in unsupported.iter().filter(|(_, used)| *used) {
        causes.forbidden(&path.child(word), &format!("{word} is not supported"));
    }
    if matches!(props.items, Some(JSONSchemaPropsOrArray::Schemas(_))) {
        causes.forbidden(&path.child("items"), "items must be a schema object and not an array");
    }
    if let Some(of) = props.type_.as_deref().filter(|of| !of.is_empty() && !TYPES.contains(of)) {
        causes.not_supported(&path.child("type"), of, TYPES);
    }
    if let Some(pattern) = &props.pattern
        && let Err(error) = Regex::new(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        causes.invalid(&path.child("pattern"), pattern.as_str(), detail);
    }
    if props.x_kubernetes_preserve_unknown_fields == Some(false) {
        causes.invalid(&path.child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined");
    }
    check_merge(causes, props, path);
    check_written_rules(causes, props.x_kubernetes_validations.as_deref().unwrap_or_default(), path);
    for (name, property) in props.properties.iter().flatten() {
        check_keywords(causes, property, &path.child("properties").key(name));
    }
    if let Some(values) = values_of_map(props) {
        check_keywords(causes, values, &path.child("additionalProperties"));
    }
    if let Some(items) = items(props) {
        check_keywords(causes, items, &path.child("items"));
    }
    for (alternative, path) in alternatives(props, path) {
        check_keywords(causes, alternative, &path);
    }
}

/// `x-kubernetes-list-type`, `x-kubernetes-list-map-keys`, `x-kubernetes-map-type`.
fn check_merge(causes: &mut Causes, props: &JSONSchemaProps, path: &Path) {
    let of = props.type_.as_deref().unwrap_or_default();
    let must_be = |causes: &mut Causes, wanted: &str, word: &str| {
        let detail = format!("must be {wanted} if {word} is specified");
        match of {
            "" => causes.required(&path.child("type"), &detail),
            other if other != wanted => causes.invalid(&path.child("type"), other, detail),
            _ => {}
        }
    };
    let list_type = props.x_kubernetes_list_type.as_deref();
    let keys = props.x_kubernetes_list_map_keys.as_deref().unwrap_or_default();
    if let Some(map_type) = props.x_kubernetes_map_type.as_deref() {
        must_be(causes, "object", "x-kubernetes-map-type");
        causes.one_of(&path.child("x-kubernetes-map-type"), Some(map_type), &["granular", "atomic"]);
    }
    if list_type.is_some() {
        must_be(causes, "array", "x-kubernetes-list-type");
        causes.one_of(&path.child("x-kubernetes-list-type"), list_type, &["atomic", "set", "map"]);
    }
    if !keys.is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => causes.required(&path.child("x-kubernetes-list-type"), detail),
            Some(other) => causes.invalid(&path.child("x-kubernetes-list-type"), other, detail),
        }
    }
    if list_type == Some("set")
        && let Some(items) = items(props)
    {
        let path = path.child("items");
        if items.nullable == Some(true) {
            causes.forbidden(&path.child("nullable"), "cannot be nullable when x-kubernetes-list-type is set");
        }
        let atomic = |of: &Option<String>| of.as_deref() == Some("atomic");
        match items.type_.as_deref() {
            Some("object") if !atomic(&items.x_kubernetes_map_type) => {
                let value = items.x_kubernetes_map_type.clone().unwrap_or_default();
                let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
                causes.invalid(&path.child("x-kubernetes-map-type"), value, detail);
            }
            Some("array") if items.x_kubernetes_list_type.as_ref().is_some_and(|of| of != "atomic") => {
                let value = items.x_kubernetes_list_type.clone().unwrap_or_default();
                let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
                causes.invalid(&path.child("x-kubernetes-list-type"), value, detail);
            }
            _ => {}
        }
    }
    if list_type == Some("map") {
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            causes.required(&path.child("x-kubernetes-list-map-keys"), detail);
        }
        let Some(items) = items(props) else {
            causes.required(&path.child("items"), "must have a schema if x-kubernetes-list-type is map");
            return;
        };
        if items.type_.as_deref() != Some("object") {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            causes.invalid(&path.child("items.type"), items.type_.clone().unwrap_or_default(), detail);
        }
        for (index, key) in keys.iter().enumerate() {
            let path_of_keys = path.child("x-kubernetes-list-map-keys");
            if keys[..index].contains(key) {
                causes.invalid(&path_of_keys, json!(keys), "must not contain duplicate entries");
            }
            match items.properties.as_ref().and_then(|properties| properties.get(key)) {
                None => causes.invalid(&path_of_keys, json!(keys), "entries must all be names of item properties"),
                Some(property) if matches!(property.type_.as_deref(), Some("array" | "object")) => {
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let path = path.child("items").child("properties").key(key).child("type");
                    causes.invalid(&path, property.type_.clone().unwrap_or_default(), detail);
                }
                Some(_) => {}
            }
        }
    }
}

/// Keys of a list must be there in every item.
fn check_map_keys(causes: &mut Causes, props: &JSONSchemaProps, path: &Path) {
    if let (Some(items), Some("map")) = (items(props), props.x_kubernetes_list_type.as_deref()) {
        if items.nullable == Some(true) {
            let detail = "cannot be nullable when x-kubernetes-list-type is map";
            causes.forbidden(&path.child("items").child("nullable"), detail);
        }
        for key in props.x_kubernetes_list_map_keys.iter().flatten() {
            let property = items.properties.as_ref().and_then(|properties| properties.get(key));
            let required = items.required.iter().flatten().any(|name| name == key);
            if property.is_some_and(|property| property.default.is_none()) && !required {
                let path = path.child("items").child("properties").key(key).child("default");
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                              property";
                causes.required(&path, detail);
            }
        }
    }
    for (name, property) in props.properties.iter().flatten() {
        check_map_keys(causes, property, &path.child("properties").key(name));
    }
    if let Some(values) = values_of_map(props) {
        check_map_keys(causes, values, &path.child("additionalProperties"));
    }
    if let Some(items) = items(props) {
        check_map_keys(causes, items, &path.child("items"));
    }
}

fn check_written_rules(causes: &mut Causes, rules: &[ValidationRule], path: &Path) {
    const REASONS: &[&str] = &["FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"];
    for (index, rule) in rules.iter().enumerate() {
        let path = path.child("x-kubernetes-validations").index(index);
        let message = rule.message.as_deref().unwrap_or_default();
        if rule.rule.trim().is_empty() {
            causes.required(&path.child("rule"), "rule is not specified");
        }
        if !message.is_empty() && message.trim().is_empty() {
            causes.invalid(&path.child("message"), message, "message must be non-empty if specified");
        } else if message.trim().contains('\n') {
            causes.invalid(&path.child("message"), message, "message must not contain line breaks");
        } else if rule.rule.trim().contains('\n') && message.is_empty() {
            causes.required(&path.child("message"), "message must be specified if rule contains line breaks");
        }
        if message.len() > MESSAGE_BYTES_MAX {
            causes.too_long(&path.child("message"), MESSAGE_BYTES_MAX);
        }
        if rule.message_expression.as_deref().is_some_and(|source| !source.is_empty() && source.trim().is_empty()) {
            causes.required(&path.child("messageExpression"), "must be non-empty if specified");
        }
        if let Some(reason) = &rule.reason {
            causes.one_of(&path.child("reason"), Some(reason), REASONS);
        }
        if let Some(text) = rule.field_path.as_deref().filter(|text| !text.is_empty())
            && field_path(text).is_none()
        {
            let detail = format!("fieldPath must be a valid path: {text:?} is not a path of fields");
            causes.invalid(&path.child("fieldPath"), text, detail);
        }
    }
}

/// Whether the rules compile, and speak of old values only where these can be found.
fn check_rules(causes: &mut Causes, schema: &Schema, path: &Path, comparable: bool) {
    for (index, rule) in schema.rules.rules.iter().enumerate() {
        let path = path.child("x-kubernetes-validations").index(index);
        if let Err(problem) = &rule.program {
            if !rule.written.rule.trim().is_empty() {
                causes.invalid(&path.child("rule"), shown(&rule.written), problem);
            }
        } else if rule.is_transition && !comparable {
            let detail = "oldSelf cannot be used on the uncorrelatable portion of the schema";
            causes.invalid(&path.child("rule"), rule.written.rule.as_str(), detail);
        }
        if let Some(Err(problem)) = &rule.message {
            causes.invalid(&path.child("messageExpression"), shown(&rule.written), problem);
        }
    }
    for (name, property) in &schema.properties {
        check_rules(causes, property, &path.child("properties").key(name), comparable);
    }
    if let Additional::Of(values) = &schema.additional {
        check_rules(causes, values, &path.child("additionalProperties"), comparable);
    }
    if let Some(items) = &schema.items {
        let comparable = comparable && matches!(schema.merge, Merge::Map(_));
        check_rules(causes, items, &path.child("items"), comparable);
    }
}

/// A rule as the server's own type of it is written.
fn shown(rule: &ValidationRule) -> Value {
    json!({
        "Rule": rule.rule, "Message": rule.message.as_deref().unwrap_or_default(),
        "MessageExpression": rule.message_expression.as_deref().unwrap_or_default(), "Reason": rule.reason,
        "FieldPath": rule.field_path.as_deref().unwrap_or_default(), "OptionalOldSelf": rule.optional_old_self,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Field,
    Item,
}

/// Every value has a type, and alternatives only narrow what stands outside of them.
fn check_structure(causes: &mut Causes, props: &JSONSchemaProps, level: Level, path: &Path) {
    let of = props.type_.as_deref().unwrap_or_default();
    let free =
        props.x_kubernetes_int_or_string == Some(true) || props.x_kubernetes_preserve_unknown_fields == Some(true);
    if of == "array" && items(props).is_none() {
        causes.required(&path.child("items"), "must be specified");
    }
    if let Some(items) = items(props) {
        check_structure(causes, items, Level::Item, &path.child("items"));
    }
    for (name, property) in props.properties.iter().flatten() {
        check_structure(causes, property, Level::Field, &path.child("properties").key(name));
    }
    if let Some(values) = values_of_map(props) {
        check_structure(causes, values, Level::Field, &path.child("additionalProperties"));
    }
    if props.x_kubernetes_int_or_string == Some(true) {
        let path_of = |word: &str| path.child(word);
        if !of.is_empty() {
            causes.invalid(&path_of("type"), of, "must be empty if x-kubernetes-int-or-string is true");
        }
        if props.x_kubernetes_preserve_unknown_fields == Some(true) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            causes.invalid(&path_of("x-kubernetes-preserve-unknown-fields"), true, detail);
        }
        if props.x_kubernetes_embedded_resource == Some(true) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            causes.invalid(&path_of("x-kubernetes-embedded-resource"), true, detail);
        }
    }
    for (alternative, path) in alternatives(props, path) {
        let is_type_of_int_or_string = props.x_kubernetes_int_or_string == Some(true);
        check_narrowing(causes, alternative, is_type_of_int_or_string, &path);
    }
    if props.x_kubernetes_embedded_resource == Some(true) {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        match of {
            "object" => {}
            "" => causes.required(&path.child("type"), detail),
            other => causes.invalid(&path.child("type"), other, detail),
        }
        if props.additional_properties.is_some() {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            causes.forbidden(&path.child("additionalProperties"), detail);
        }
        let empty = props.properties.as_ref().is_none_or(|properties| properties.is_empty());
        if empty && props.x_kubernetes_preserve_unknown_fields != Some(true) {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                          x-kubernetes-preserve-unknown-fields";
            causes.required(&path.child("properties"), detail);
        }
    } else if of.is_empty() && !free {
        let place = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        causes.required(&path.child("type"), &format!("must not be empty {place}"));
    }
    if level == Level::Root && !of.is_empty() && of != "object" {
        causes.invalid(&path.child("type"), of, "must be object at the root");
    }
    if level == Level::Root || props.x_kubernetes_embedded_resource == Some(true) {
        check_resource_fields(causes, props, path);
    }
}

/// A schema may say of metadata only what names look like.
fn check_resource_fields(causes: &mut Causes, props: &JSONSchemaProps, path: &Path) {
    let property = |name: &str| props.properties.as_ref().and_then(|properties| properties.get(name));
    let path_of = |name: &str| path.child("properties").key(name);
    for name in ["apiVersion", "kind"] {
        if let Some(of) = property(name).map(|of| of.type_.as_deref().unwrap_or_default()).filter(|of| *of != "string")
        {
            causes.invalid(&path_of(name).child("type"), of, "must be string");
        }
    }
    let Some(metadata) = property("metadata") else { return };
    if metadata.type_.as_deref() != Some("object") {
        let of = metadata.type_.clone().unwrap_or_default();
        causes.invalid(&path_of("metadata").child("type"), of, "must be object");
    }
    let other = metadata.properties.iter().flatten().any(|(name, _)| !matches!(name.as_str(), "name" | "generateName"));
    if other {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        causes.forbidden(&path_of("metadata"), detail);
    }
}

/// Below `allOf` and the like stand limits only.
fn check_narrowing(causes: &mut Causes, props: &JSONSchemaProps, types_allowed: bool, path: &Path) {
    let set = |value: Option<bool>| value == Some(true);
    let texts = [("title", &props.title), ("description", &props.description)];
    if props.type_.as_ref().is_some_and(|of| !of.is_empty()) && !types_allowed {
        causes.forbidden(&path.child("type"), "must be empty to be structural");
    }
    for (word, _) in texts.iter().filter(|(_, text)| text.as_ref().is_some_and(|text| !text.is_empty())) {
        causes.forbidden(&path.child(word), "must be empty to be structural");
    }
    if props.default.is_some() {
        causes.forbidden(&path.child("default"), "must be undefined to be structural");
    }
    if props.additional_properties.is_some() {
        causes.forbidden(&path.child("additionalProperties"), "must be undefined to be structural");
    }
    let flags = [
        ("nullable", set(props.nullable)),
        ("x-kubernetes-preserve-unknown-fields", set(props.x_kubernetes_preserve_unknown_fields)),
        ("x-kubernetes-embedded-resource", set(props.x_kubernetes_embedded_resource)),
        ("x-kubernetes-int-or-string", set(props.x_kubernetes_int_or_string)),
    ];
    for (word, _) in flags.iter().filter(|(_, set)| *set) {
        causes.forbidden(&path.child(word), "must be false to be structural");
    }
    if props.x_kubernetes_validations.as_ref().is_some_and(|rules| !rules.is_empty()) {
        causes.forbidden(&path.child("x-kubernetes-validations"), "must be empty to be structural");
    }
    for (name, property) in props.properties.iter().flatten() {
        check_narrowing(causes, property, false, &path.child("properties").key(name));
    }
    if let Some(items) = items(props) {
        check_narrowing(causes, items, false, &path.child("items"));
    }
    for (alternative, path) in alternatives(props, path) {
        check_narrowing(causes, alternative, types_allowed, &path);
    }
}

/// What an alternative speaks of stands outside of it, too.
fn check_completeness(
    causes: &mut Causes,
    outer: &JSONSchemaProps,
    props: &JSONSchemaProps,
    outer_path: &Path,
    path: &Path,
) {
    for (alternative, path) in alternatives(props, path) {
        for (name, property) in alternative.properties.iter().flatten() {
            let (outside, place) = (outer_path.child("properties").key(name), path.child("properties").key(name));
            match outer.properties.as_ref().and_then(|properties| properties.get(name)) {
                None => causes.required(&outside, &format!("because it is defined in {place}")),
                Some(found) => check_completeness_below(causes, found, property, &outside, &place),
            }
        }
        if let Some(of_items) = items(alternative) {
            match items(outer) {
                None => {
                    let detail = format!("because it is defined in {}", path.child("items"));
                    causes.required(&outer_path.child("items"), &detail);
                }
                Some(found) => {
                    let (outside, place) = (outer_path.child("items"), path.child("items"));
                    check_completeness_below(causes, found, of_items, &outside, &place);
                }
            }
        }
        check_completeness(causes, outer, alternative, outer_path, &path);
    }
    if std::ptr::eq(outer, props) {
        for (name, property) in props.properties.iter().flatten() {
            let path = path.child("properties").key(name);
            check_completeness(causes, property, property, &path, &path);
        }
        if let Some(items) = items(props) {
            let path = path.child("items");
            check_completeness(causes, items, items, &path, &path);
        }
        if let Some(values) = values_of_map(props) {
            let path = path.child("additionalProperties");
            check_completeness(causes, values, values, &path, &path);
        }
    }
}

fn check_completeness_below(
    causes: &mut Causes,
    outer: &JSONSchemaProps,
    inner: &JSONSchemaProps,
    outer_path: &Path,
    path: &Path,
) {
    for (name, property) in inner.properties.iter().flatten() {
        let (outside, place) = (outer_path.child("properties").key(name), path.child("properties").key(name));
        match outer.properties.as_ref().and_then(|properties| properties.get(name)) {
            None => causes.required(&outside, &format!("because it is defined in {place}")),
            Some(found) => check_completeness_below(causes, found, property, &outside, &place),
        }
    }
}

/// A default is a value that would be taken.
fn check_defaults(causes: &mut Causes, schema: &Schema, path: &Path, whole: bool) {
    if let Some(default) = schema.default.as_ref().filter(|_| !whole) {
        let path = path.child("default");
        let (mut value, mut gone) = (default.clone(), Vec::new());
        schema::prune(&mut value, schema, &mut gone);
        if !gone.is_empty() {
            causes.invalid(&path, default.clone(), "must not have unknown fields");
        }
        schema::default(&mut value, schema);
        let mut told = Causes::new();
        values::validate(&value, None, schema, "", &mut told);
        causes.extend(told.into_iter().map(|mut cause| {
            cause.field = match cause.field.as_str() {
                "<nil>" => path.to_string(),
                below => path.child(below).to_string(),
            };
            cause
        }));
    }
    for (name, property) in &schema.properties {
        check_defaults(causes, property, &path.child("properties").key(name), false);
    }
    if let Additional::Of(values) = &schema.additional {
        check_defaults(causes, values, &path.child("additionalProperties"), false);
    }
    if let Some(items) = &schema.items {
        check_defaults(causes, items, &path.child("items"), false);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;

    fn told(schema: Value) -> Vec<String> {
        let mut causes = Causes::new();
        validate(&mut causes, &from_value(schema).unwrap(), &Path::new("schema"));
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    fn of(property: Value) -> Vec<String> {
        told(json!({"type": "object", "properties": {"a": property}}))
    }

    #[test]
    fn a_schema_has_types() {
        assert_eq!(
            told(json!({"properties": {"a": {}, "b": {"type": "integer", "default": "x"}}})),
            [
                "schema.properties[a].type: Required value: must not be empty for specified object fields",
                "schema.type: Required value: must not be empty at the root",
            ]
        );
        assert_eq!(told(json!({"type": "object"})), Vec::<String>::new());
    }

    #[test]
    fn what_a_property_may_not_say() {
        for (property, expected) in [
            (json!({"type": "array"}), "schema.properties[a].items: Required value: must be specified"),
            (
                json!({"type": "number", "default": "x"}),
                "schema.properties[a].default: Invalid value: \"string\":  in body must be of type number: \"string\"",
            ),
            (
                json!({"type": "object", "default": {"x": 1}}),
                "schema.properties[a].default: Invalid value: {\"x\":1}: must not have unknown fields",
            ),
            (
                json!({"type": "text"}),
                "schema.properties[a].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
            ),
            (
                json!({"type": "string", "anyOf": [{"type": "string"}]}),
                "schema.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
            ),
            (
                json!({"type": "object", "oneOf": [{"properties": {"b": {}}}]}),
                "schema.properties[a].properties[b]: Required value: because it is defined in schema.properties[a].oneOf[0].properties[b]",
            ),
            (
                json!({"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}},
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}),
                "schema.properties[a].items.properties[n].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            ),
            (
                json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self + 1"}]}),
                "schema.properties[a].x-kubernetes-validations[0].rule: Invalid value: {\"FieldPath\":\"\",\"Message\":\"\",\"MessageExpression\":\"\",\"OptionalOldSelf\":null,\"Reason\":null,\"Rule\":\"self + 1\"}: cel expression must evaluate to a bool",
            ),
        ] {
            assert_eq!(of(property.clone()), [expected], "{property}");
        }
    }
}
