//! The schema of a custom resource, read once when its definition is written: one tree for pruning, defaults, values
//! and rules.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex_lite::Regex;
use serde_json::Value;

use super::rules::Rules;
use crate::apiserver::cel::value::Merge;

#[derive(Debug, Default)]
pub struct Schema {
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`; empty for any.
    pub type_name: String,
    pub format: String,
    pub nullable: bool,
    pub int_or_string: bool,
    pub preserve_unknown_fields: bool,
    pub embedded_resource: bool,
    pub default: Option<Value>,
    pub properties: BTreeMap<String, Schema>,
    pub additional: Additional,
    pub items: Option<Box<Schema>>,
    pub merge: Merge,
    pub limits: Limits,
    pub rules: Rules,
}

/// Fields beside the properties.
#[derive(Debug, Default)]
pub enum Additional {
    #[default]
    None,
    Any,
    Of(Box<Schema>),
}

/// What a value must be beside its type.
#[derive(Debug, Default)]
pub struct Limits {
    pub enumeration: Vec<Value>,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub length_min: Option<i64>,
    pub length_max: Option<i64>,
    pub pattern: Option<(String, Option<Regex>)>,
    pub items_min: Option<i64>,
    pub items_max: Option<i64>,
    pub properties_min: Option<i64>,
    pub properties_max: Option<i64>,
    pub required: Vec<String>,
    pub all_of: Vec<Schema>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
}

impl Schema {
    /// The schema of a whole resource.
    pub fn of_resource(props: &JSONSchemaProps) -> Schema {
        let mut schema = Schema::of(props);
        schema.compile_rules("self", true);
        schema
    }

    /// A schema whose rules are not compiled.
    pub fn of(props: &JSONSchemaProps) -> Schema {
        let all = |list: &Option<Vec<JSONSchemaProps>>| list.iter().flatten().map(Schema::of).collect();
        let limits = Limits {
            enumeration: props.enum_.iter().flatten().map(|JSON(value)| value.clone()).collect(),
            minimum: props.minimum,
            exclusive_minimum: props.exclusive_minimum == Some(true),
            maximum: props.maximum,
            exclusive_maximum: props.exclusive_maximum == Some(true),
            multiple_of: props.multiple_of,
            length_min: props.min_length,
            length_max: props.max_length,
            pattern: props.pattern.as_ref().map(|pattern| (pattern.clone(), Regex::new(pattern).ok())),
            items_min: props.min_items,
            items_max: props.max_items,
            properties_min: props.min_properties,
            properties_max: props.max_properties,
            required: props.required.clone().unwrap_or_default(),
            all_of: all(&props.all_of),
            any_of: all(&props.any_of),
            one_of: all(&props.one_of),
            not: props.not.as_ref().map(|not| Box::new(Schema::of(not))),
        };
        Schema {
            type_name: props.type_.clone().unwrap_or_default(),
            format: props.format.clone().unwrap_or_default(),
            nullable: props.nullable == Some(true),
            int_or_string: props.x_kubernetes_int_or_string == Some(true),
            preserve_unknown_fields: props.x_kubernetes_preserve_unknown_fields == Some(true),
            embedded_resource: props.x_kubernetes_embedded_resource == Some(true),
            default: props.default.as_ref().map(|JSON(value)| value.clone()).filter(|value| !value.is_null()),
            properties: props.properties.iter().flatten().map(|(name, of)| (name.clone(), Schema::of(of))).collect(),
            additional: match &props.additional_properties {
                None | Some(JSONSchemaPropsOrBool::Bool(false)) => Additional::None,
                Some(JSONSchemaPropsOrBool::Bool(true)) => Additional::Any,
                Some(JSONSchemaPropsOrBool::Schema(of)) => Additional::Of(Box::new(Schema::of(of))),
            },
            items: match &props.items {
                Some(JSONSchemaPropsOrArray::Schema(of)) => Some(Box::new(Schema::of(of))),
                _ => None,
            },
            merge: match props.x_kubernetes_list_type.as_deref() {
                Some("set") => Merge::Set,
                Some("map") => {
                    let keys: Vec<String> = props.x_kubernetes_list_map_keys.clone().unwrap_or_default();
                    Merge::Map(Arc::from(keys))
                }
                _ => Merge::Atomic,
            },
            limits,
            rules: Rules::written(props.x_kubernetes_validations.clone().unwrap_or_default()),
        }
    }

    /// Compiles the rules here and below; `name` is what their types are called in messages.
    fn compile_rules(&mut self, name: &str, whole: bool) {
        if !self.rules.is_empty() {
            let of = self.expression_type(name, whole);
            self.rules.compile(of);
        }
        for (field, property) in &mut self.properties {
            property.compile_rules(&format!("{name}.{field}"), false);
        }
        if let Additional::Of(of) = &mut self.additional {
            of.compile_rules(&format!("{name}.@elem"), false);
        }
        if let Some(items) = &mut self.items {
            items.compile_rules(&format!("{name}.@idx"), false);
        }
        self.rules.anywhere = !self.rules.is_empty() || self.below().any(|below| below.rules.anywhere);
    }

    /// The schemas of the parts of a value.
    pub fn below(&self) -> impl Iterator<Item = &Schema> {
        let additional = match &self.additional {
            Additional::Of(of) => Some(&**of),
            _ => None,
        };
        self.properties.values().chain(additional).chain(self.items.as_deref())
    }

    /// The schema of a field, if there is one.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(match &self.additional {
            Additional::Of(of) => Some(of),
            _ => None,
        })
    }
}

/// Fields that every resource has, also an embedded one.
pub fn is_resource_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// Fills in the defaults that the schema names; null stands for nothing where it is not allowed.
pub fn default(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let absent = match fields.get(name) {
                    None => true,
                    Some(field) => field.is_null() && !property.nullable,
                };
                match &property.default {
                    Some(default) if absent => {
                        fields.insert(name.clone(), default.clone());
                    }
                    None if absent && !is_untyped(property) => {
                        fields.remove(name);
                    }
                    _ => {}
                }
            }
            if let Additional::Of(of) = &schema.additional {
                fields.retain(|name, field| {
                    !field.is_null() || of.nullable || is_untyped(of) || schema.properties.contains_key(name)
                });
            }
            for (name, field) in fields {
                if let Some(schema) = schema.field(name) {
                    default(field, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| default(item, schema));
            }
        }
        _ => {}
    }
}

/// Anything goes here, null as well.
fn is_untyped(schema: &Schema) -> bool {
    schema.preserve_unknown_fields && schema.type_name.is_empty()
}

/// Takes out the fields that the schema does not know, and names them. The whole is a resource.
pub fn prune_resource(value: &mut Value, schema: &Schema, pruned: &mut Vec<String>) {
    prune_fields(value, schema, "", true, pruned);
}

/// The same for a value below that.
pub fn prune(value: &mut Value, schema: &Schema, pruned: &mut Vec<String>) {
    prune_fields(value, schema, "", schema.embedded_resource, pruned);
}

fn prune_fields(value: &mut Value, schema: &Schema, path: &str, resource: bool, pruned: &mut Vec<String>) {
    let place = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(fields) => {
            let open =
                schema.preserve_unknown_fields || matches!(schema.additional, Additional::Any | Additional::Of(_));
            let known =
                |name: &str| open || schema.properties.contains_key(name) || resource && is_resource_field(name);
            let gone: Vec<String> = fields.keys().filter(|name| !known(name)).cloned().collect();
            for name in gone {
                fields.remove(&name);
                pruned.push(place(&name));
            }
            for (name, field) in fields {
                if resource && is_resource_field(name) {
                    if name == "metadata" {
                        prune_metadata(field, &place(name), pruned);
                    }
                } else if let Some(schema) = schema.field(name) {
                    prune_fields(field, schema, &place(name), schema.embedded_resource, pruned);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    prune_fields(item, schema, &format!("{path}[{index}]"), schema.embedded_resource, pruned);
                }
            }
        }
        _ => {}
    }
}

/// The metadata of a resource has the fields that all metadata has, and no others.
fn prune_metadata(value: &mut Value, path: &str, pruned: &mut Vec<String>) {
    const FIELDS: &[&str] = &[
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    if let Value::Object(fields) = value {
        let gone: Vec<String> = fields.keys().filter(|name| !FIELDS.contains(&name.as_str())).cloned().collect();
        for name in gone {
            fields.remove(&name);
            pruned.push(format!("{path}.{name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn schema(of: Value) -> Schema {
        Schema::of_resource(&from_value(of).unwrap())
    }

    #[test]
    fn defaults_fill_what_is_absent() {
        let schema = schema(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 3},
            "mode": {"type": "string", "nullable": true, "default": "fast"},
            "note": {"type": "string", "nullable": true},
            "gone": {"type": "string"},
            "deep": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}},
            "lazy": {"type": "object", "properties": {"a": {"type": "string", "default": "y"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "z"}}}},
        }}}}));
        let mut value = json!({"spec": {"size": null, "mode": null, "note": null, "gone": null, "list": [{}]}});
        default(&mut value, &schema);
        assert_eq!(
            value,
            json!({"spec": {"size": 3, "mode": null, "note": null, "deep": {"a": "x"}, "list": [{"p": "z"}]}})
        );
    }

    #[test]
    fn fields_that_nobody_declared_go() {
        let schema = schema(json!({"type": "object", "properties": {
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "some": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "strict": {"type": "object", "properties": {"a": {"type": "string"}}}}},
            "inner": {"type": "object", "x-kubernetes-embedded-resource": true},
            "map": {"type": "object", "additionalProperties": {"type": "object"}},
        }}));
        let mut value = json!({
            "kind": "Bag", "metadata": {"name": "a"}, "gone": 1, "any": {"x": [1]},
            "some": {"more": 1, "strict": {"a": "b", "c": "d"}},
            "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c", "bogus": 1}, "data": {}},
            "map": {"a": {"x": 1}},
        });
        let mut pruned = Vec::new();
        prune_resource(&mut value, &schema, &mut pruned);
        pruned.sort();
        assert_eq!(pruned, ["gone", "inner.data", "inner.metadata.bogus", "map.a.x", "some.strict.c"]);
        assert_eq!(
            value,
            json!({
                "kind": "Bag", "metadata": {"name": "a"}, "any": {"x": [1]}, "some": {"more": 1, "strict": {"a": "b"}},
                "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}}, "map": {"a": {}},
            })
        );
    }
}
