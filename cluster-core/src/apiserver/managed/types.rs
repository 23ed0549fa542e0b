//! Types as server-side apply sees them: scalars, lists and maps, each with one owner or with an owner for each part.
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>

use serde_json::{Map, Value, json};

use crate::api::field_set::{Literal, PathElement};
use crate::api::kind::Kind;
use crate::api::merge_keys::{self, List as Rule};
use crate::api::schema::Schema;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Type<'a> {
    BuiltIn {
        schema: Schema<'a>,
        /// What the field that holds the value says about it.
        rule: Rule,
    },
    /// Of a custom resource, as its CustomResourceDefinition says.
    Custom {
        schema: &'a Value,
        /// It has `apiVersion`, `kind` and `metadata`.
        whole: bool,
        /// Fields that the schema does not name are allowed.
        open: bool,
    },
    /// Whatever the value is; fields of maps have owners of their own.
    Deduced,
    /// Whatever the value is, with one owner.
    Whole,
}

/// The shapes that a type allows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shapes<'a> {
    pub scalar: Option<Scalar>,
    pub list: Option<List<'a>>,
    pub map: Option<MapShape<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Number,
    Text,
    Boolean,
    Any,
}

#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    pub items: Type<'a>,
    pub merge: Merge<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum Merge<'a> {
    Atomic,
    Set,
    /// By these fields.
    BuiltIn(&'static [&'static str]),
    Custom(&'a [Value]),
}

#[derive(Clone, Copy, Debug)]
pub struct MapShape<'a> {
    pub atomic: bool,
    of: Type<'a>,
}

/// One of the shapes of a type.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    Scalar(Scalar),
    List(List<'a>),
    Map(MapShape<'a>),
}

impl<'a> Type<'a> {
    pub fn of(kind: &'a Kind) -> Type<'a> {
        match (&kind.schema, Schema::of(kind)) {
            (Some(schema), _) => Type::Custom { schema, whole: true, open: is_open(schema) },
            (None, Some(schema)) => Type::BuiltIn { schema, rule: Rule::Unsaid },
            (None, None) => Type::Deduced,
        }
    }

    fn named(type_name: &str) -> Type<'a> {
        Schema::named(type_name).map_or(Type::Deduced, |schema| Type::BuiltIn { schema, rule: Rule::Unsaid })
    }

    pub fn shapes(self) -> Shapes<'a> {
        let any = |element| Shapes {
            scalar: Some(Scalar::Any),
            list: Some(List { items: Type::Whole, merge: Merge::Atomic }),
            map: Some(MapShape { atomic: matches!(element, Type::Whole), of: element }),
        };
        match self {
            Type::Deduced | Type::Whole => any(self),
            Type::BuiltIn { schema, rule } => built_in(self, schema, rule),
            Type::Custom { schema, open, .. } => custom(self, schema, open),
        }
    }

    /// The shape for a value; for none, or one that does not fit, the first that there is.
    pub fn shape_for(self, value: Option<&Value>) -> Option<Shape<'a>> {
        let Shapes { scalar, list, map } = self.shapes();
        let fitting = match value {
            Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) => scalar.map(Shape::Scalar),
            Some(Value::Array(_)) => list.map(Shape::List),
            Some(Value::Object(_)) => map.map(Shape::Map),
            _ => None,
        };
        fitting.or(map.map(Shape::Map)).or(scalar.map(Shape::Scalar)).or(list.map(Shape::List))
    }
}

fn built_in<'a>(whole: Type<'a>, schema: Schema<'a>, rule: Rule) -> Shapes<'a> {
    let resolved = schema.resolved();
    let scalar = |scalar| Shapes { scalar: Some(scalar), ..Shapes::default() };
    let name = schema.type_name().unwrap_or_default();
    let atomic =
        rule == Rule::Atomic || rule == Rule::Unsaid && merge_keys::rule(short(name), "(type)").0 == Rule::Atomic;
    match resolved.get("type").and_then(Value::as_str) {
        _ if name.ends_with(".JSON") => Type::Whole.shapes(),
        Some("object") => Shapes { map: Some(MapShape { atomic, of: whole }), ..Shapes::default() },
        Some("array") => {
            let items = schema.items().map_or(Type::Deduced, |schema| Type::BuiltIn { schema, rule: Rule::Unsaid });
            let merge = match rule {
                Rule::Set => Merge::Set,
                Rule::Map(keys) => Merge::BuiltIn(keys),
                Rule::Atomic | Rule::Granular | Rule::Unsaid => Merge::Atomic,
            };
            Shapes { list: Some(List { items, merge }), ..Shapes::default() }
        }
        Some("integer" | "number") => scalar(Scalar::Number),
        Some("boolean") => scalar(Scalar::Boolean),
        Some("string") if has_own_format(resolved) => scalar(Scalar::Any),
        Some("string") => scalar(Scalar::Text),
        _ if resolved.get("x-kubernetes-int-or-string").is_some() => scalar(Scalar::Any),
        _ => Type::Whole.shapes(),
    }
}

fn custom<'a>(whole: Type<'a>, schema: &'a Value, open: bool) -> Shapes<'a> {
    let scalar = |scalar| Shapes { scalar: Some(scalar), ..Shapes::default() };
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return scalar(Scalar::Any);
    }
    match text("type") {
        Some("object") => {
            let atomic = text("x-kubernetes-map-type") == Some("atomic");
            Shapes { map: Some(MapShape { atomic, of: whole }), ..Shapes::default() }
        }
        Some("array") => {
            let items = schema.get("items").map_or(Type::Deduced, |items| part(items, open));
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let merge = match (text("x-kubernetes-list-type"), keys) {
                (Some("set"), _) => Merge::Set,
                (Some("map"), Some(keys)) => Merge::Custom(keys),
                _ => Merge::Atomic,
            };
            Shapes { list: Some(List { items, merge }), ..Shapes::default() }
        }
        Some("integer" | "number") => scalar(Scalar::Number),
        Some("boolean") => scalar(Scalar::Boolean),
        Some("string") if has_own_format(schema) => scalar(Scalar::Any),
        Some("string") => scalar(Scalar::Text),
        _ if open => Type::Deduced.shapes(),
        _ => Type::Whole.shapes(),
    }
}

fn has_own_format(schema: &Value) -> bool {
    schema.get("format").and_then(Value::as_str).is_some_and(|format| !matches!(format, "" | "byte"))
}

fn is_open(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
}

fn part(schema: &Value, open: bool) -> Type<'_> {
    let whole = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    Type::Custom { schema, whole, open: open || is_open(schema) }
}

fn short(type_name: &str) -> &str {
    type_name.strip_prefix("io.k8s.").unwrap_or(type_name)
}

impl<'a> MapShape<'a> {
    /// The type names its fields.
    pub fn is_struct(&self) -> bool {
        matches!(self.of, Type::BuiltIn { schema, .. } if schema.resolved().get("properties").is_some())
    }

    /// The type has a type for all its fields: it is a map in Go, too.
    pub fn is_open(&self) -> bool {
        matches!(self.of, Type::BuiltIn { schema, .. } if schema.resolved().get("additionalProperties").is_some())
    }

    pub fn is_required(&self, name: &str) -> bool {
        matches!(self.of, Type::BuiltIn { schema, .. } if schema.is_required(name))
    }

    /// The type of a field that the type names.
    pub fn named_field(&self, name: &str) -> Option<Type<'a>> {
        match self.of {
            Type::BuiltIn { schema, .. } => {
                let field = schema.resolved().get("properties")?.get(name)?;
                let rule = merge_keys::rule(short(schema.type_name().unwrap_or_default()), name).0;
                Some(Type::BuiltIn { schema: Schema::new(field), rule })
            }
            Type::Custom { whole: true, .. } if name == "metadata" => Some(Type::named(OBJECT_META)),
            Type::Custom { whole: true, .. } if matches!(name, "apiVersion" | "kind") => Some(Type::Deduced),
            Type::Custom { schema, open, .. } => Some(part(schema.get("properties")?.get(name)?, open)),
            Type::Deduced | Type::Whole => None,
        }
    }

    /// The type of a field, named or not; none if there is no such field.
    pub fn field(&self, name: &str) -> Option<Type<'a>> {
        self.named_field(name).or_else(|| self.other_fields())
    }

    /// The type of fields that are not named.
    fn other_fields(&self) -> Option<Type<'a>> {
        let (schema, open) = match self.of {
            Type::Deduced | Type::Whole => return Some(self.of),
            Type::BuiltIn { schema, .. } => (schema.resolved(), false),
            Type::Custom { schema, open, .. } => (schema, open),
        };
        let unnamed = schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(values @ Value::Object(_)) => Some(match self.of {
                Type::Custom { .. } => part(values, open),
                _ => Type::BuiltIn { schema: Schema::new(values), rule: Rule::Unsaid },
            }),
            Some(_) => Some(Type::Deduced),
            None => (open || unnamed).then_some(Type::Deduced),
        }
    }
}

impl List<'_> {
    pub fn is_atomic(&self) -> bool {
        matches!(self.merge, Merge::Atomic)
    }

    /// How a path names an element of the list; the error says why it can't.
    pub fn element(&self, item: &Value) -> Result<PathElement, String> {
        let keys: Vec<&str> = match self.merge {
            Merge::Atomic => return Err("invalid indexing of non-associative list".into()),
            Merge::BuiltIn(keys) => keys.to_vec(),
            Merge::Custom(keys) => keys.iter().filter_map(Value::as_str).collect(),
            Merge::Set => {
                let problem = match item {
                    Value::Object(_) => "associative list without keys has an element that's a map type",
                    Value::Array(_) => "not supported: associative list with lists as elements",
                    Value::Null => "associative list without keys has an element that's an explicit null",
                    scalar => return Ok(PathElement::Value(Literal(scalar.clone()))),
                };
                return Err(problem.into());
            }
        };
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => return Err("associative list with keys may not have a null element".into()),
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        let value = |key: &str| {
            let found = fields.get(key).cloned().or_else(|| self.key_default(key));
            let missing = || {
                format!(
                    "associative list with keys has an element that omits key field {key:?} (and doesn't have default value)"
                )
            };
            Ok((key.to_owned(), found.ok_or_else(missing)?))
        };
        Ok(PathElement::key(keys.into_iter().map(value).collect::<Result<Vec<_>, String>>()?))
    }

    /// What a key field is when an element does not say.
    fn key_default(&self, key: &str) -> Option<Value> {
        match self.items {
            Type::Custom { schema, .. } => schema.get("properties")?.get(key)?.get("default").cloned(),
            Type::BuiltIn { schema, .. } => match (schema.type_name().map(short)?, key) {
                (_, "protocol") => Some("TCP".into()),
                ("api.core.v1.LocalObjectReference", "name") => Some("".into()),
                _ if !schema.is_required(key) => None,
                _ => match schema.property(key)?.resolved().get("type").and_then(Value::as_str) {
                    Some("integer") => Some(0.into()),
                    _ => Some("".into()),
                },
            },
            Type::Deduced | Type::Whole => None,
        }
    }
}

/// Optional fields that are never absent: Go keeps structs in them, not pointers.
const STRUCTS: &[(&str, &str)] = &[
    ("api.apps.v1.DaemonSetSpec", "updateStrategy"),
    ("api.apps.v1.DeploymentSpec", "strategy"),
    ("api.apps.v1.StatefulSetSpec", "updateStrategy"),
    ("api.batch.v1.JobTemplateSpec", "metadata"),
    ("api.batch.v1.JobTemplateSpec", "spec"),
    ("api.core.v1.Event", "source"),
    ("api.core.v1.NodeDaemonEndpoints", "kubeletEndpoint"),
    ("api.core.v1.NodeStatus", "daemonEndpoints"),
    ("api.core.v1.NodeStatus", "nodeInfo"),
    ("api.core.v1.PersistentVolumeClaimSpec", "resources"),
    ("api.core.v1.PodTemplate", "template"),
    ("api.core.v1.PodTemplateSpec", "metadata"),
    ("api.core.v1.PodTemplateSpec", "spec"),
    ("api.core.v1.ServiceStatus", "loadBalancer"),
    ("api.networking.v1.IngressStatus", "loadBalancer"),
    ("api.networking.v1.NetworkPolicySpec", "podSelector"),
];

/// An object of a kind in which nobody has set anything, as Go writes it: what a new object is compared with.
pub fn empty(kind: &Kind) -> Value {
    let Some(schema) = Schema::of(kind) else { return json!({"metadata": {}}) };
    let Value::Object(mut object) = zero(schema) else { return Value::Null };
    for (name, part) in schema.properties().filter(|(name, _)| matches!(*name, "metadata" | "spec" | "status")) {
        object.insert(name.to_owned(), zero(part));
    }
    Value::Object(object)
}

fn zero(schema: Schema<'_>) -> Value {
    let resolved = schema.resolved();
    match resolved.get("type").and_then(Value::as_str) {
        Some("object") if resolved.get("properties").is_some() => {
            let name = short(schema.type_name().unwrap_or_default());
            let there = |(field, _): &(&str, _)| schema.is_required(field) || STRUCTS.contains(&(name, field));
            let fields = schema.properties().filter(there).map(|(name, field)| (name.to_owned(), zero(field)));
            Value::Object(fields.collect())
        }
        Some("integer" | "number") => 0.into(),
        Some("boolean") => false.into(),
        Some("string") if !has_own_format(resolved) => "".into(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;
    use crate::api::kind::KindRef;

    #[test]
    fn an_empty_object_has_its_structs_and_required_fields() {
        let empty = empty(KindRef::of::<Deployment>());
        assert_eq!(empty["spec"]["strategy"], json!({}));
        assert_eq!(empty["spec"]["template"], json!({"metadata": {}, "spec": {"containers": null}}));
        assert_eq!(empty["spec"].get("replicas"), None);
    }

    #[test]
    fn an_element_is_named_by_its_keys_and_their_defaults() {
        let container = Type::named("io.k8s.api.core.v1.Container").shape_for(Some(&json!({})));
        let Some(Shape::Map(container)) = container else { panic!("a container is a map") };
        let ports = container.field("ports").unwrap().shape_for(Some(&json!([])));
        let Some(Shape::List(ports)) = ports else { panic!("ports are a list") };
        let element = ports.element(&json!({"containerPort": 80})).unwrap();
        assert_eq!(element.to_string(), "[containerPort=80,protocol=\"TCP\"]");
        assert!(ports.element(&json!("80")).unwrap_err().contains("non-map"));
    }
}
