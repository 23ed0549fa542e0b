//! What rules see of a value: its type by the schema, and its fields under names that CEL can say.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#available-validation-functions>

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::schema::{Additional, Schema};
use crate::apiserver::cel::library::time::parse_duration;
use crate::apiserver::cel::types::{ObjectType, Type};
use crate::apiserver::cel::value::{Key, List, Map, Value};

/// Words that CEL keeps for itself.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name under which an expression reaches a field; `None` if it can't.
pub fn escaped(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let mut escaped = String::new();
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '_' if letters.peek() == Some(&'_') => {
                letters.next();
                escaped.push_str("__underscores__");
            }
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            letter if letter.is_ascii_alphanumeric() || letter == '_' => escaped.push(letter),
            _ => return None,
        }
    }
    Some(escaped)
}

impl Schema {
    /// The type of values of this schema; `None` if there is none that rules could be about. `whole` is a resource.
    pub fn expression_type(&self, name: &str, whole: bool) -> Option<Type> {
        if self.int_or_string {
            return Some(Type::Dyn);
        }
        match self.type_name.as_str() {
            "array" => Some(Type::list(self.items.as_ref()?.expression_type(&format!("{name}.@idx"), false)?)),
            "object" => match &self.additional {
                Additional::Of(of) => Some(Type::map(of.expression_type(&format!("{name}.@elem"), false)?)),
                Additional::Any => Some(Type::map(Type::Dyn)),
                Additional::None => {
                    let mut fields = BTreeMap::new();
                    if whole || self.embedded_resource {
                        let metadata = [("name", Type::String), ("generateName", Type::String)];
                        fields.insert("apiVersion".to_owned(), Type::String);
                        fields.insert("kind".to_owned(), Type::String);
                        fields.insert("metadata".to_owned(), Type::object(&format!("{name}.metadata"), metadata));
                    }
                    for (field, property) in &self.properties {
                        let of = property.expression_type(&format!("{name}.{field}"), false);
                        if let (Some(escaped), Some(of)) = (escaped(field), of) {
                            fields.entry(escaped).or_insert(of);
                        }
                    }
                    Some(Type::Object(Arc::new(ObjectType { name: name.to_owned(), fields })))
                }
            },
            "boolean" => Some(Type::Bool),
            "integer" => Some(Type::Int),
            "number" => Some(Type::Double),
            "string" => Some(match self.format.as_str() {
                "byte" => Type::Bytes,
                "duration" => Type::Duration,
                "date" | "date-time" => Type::Timestamp,
                _ => Type::String,
            }),
            _ if self.preserve_unknown_fields => Some(Type::Dyn),
            _ => None,
        }
    }

    /// A value as rules see it.
    pub fn expression_value(&self, json: &Json, whole: bool) -> Value {
        match json {
            Json::Object(fields) => {
                let mut made = Map::new();
                for (name, field) in fields {
                    let key = |name: &str| Key::String(name.into());
                    if (whole || self.embedded_resource) && super::schema::is_resource_field(name) {
                        made.insert(key(name), Value::from_json(field));
                    } else if let Some(property) = self.properties.get(name) {
                        if let Some(escaped) = escaped(name) {
                            made.insert(key(&escaped), property.expression_value(field, false));
                        }
                    } else if let Additional::Of(of) = &self.additional {
                        made.insert(key(name), of.expression_value(field, false));
                    } else if matches!(self.additional, Additional::Any) || self.type_name.is_empty() {
                        made.insert(key(name), Value::from_json(field));
                    }
                }
                made.into()
            }
            Json::Array(items) => {
                let item = |item| match &self.items {
                    Some(schema) => schema.expression_value(item, false),
                    None => Value::from_json(item),
                };
                Value::List(Arc::new(List { items: items.iter().map(item).collect(), merge: self.merge.clone() }))
            }
            Json::Number(number) if self.type_name == "number" => Value::Double(number.as_f64().unwrap_or_default()),
            Json::Number(number) if self.type_name == "integer" && number.is_f64() => {
                Value::Int(number.as_f64().unwrap_or_default() as i64)
            }
            Json::String(text) => self.text(text),
            other => Value::from_json(other),
        }
    }

    fn text(&self, text: &str) -> Value {
        let read = match self.format.as_str() {
            "byte" => data_encoding::BASE64.decode(text.as_bytes()).ok().map(|bytes| Value::Bytes(bytes.into())),
            "duration" => parse_duration(text).map(Value::Duration),
            "date-time" => text.parse().ok().map(Value::Timestamp),
            "date" => format!("{text}T00:00:00Z").parse().ok().map(Value::Timestamp),
            _ => None,
        };
        read.unwrap_or_else(|| text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cel_can_say() {
        for (name, expected) in [
            ("spec", Some("spec")),
            ("namespace", Some("__namespace__")),
            ("a-b", Some("a__dash__b")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("a__b", Some("a__underscores__b")),
            ("1a", None),
            ("a b", None),
        ] {
            assert_eq!(escaped(name).as_deref(), expected, "{name}");
        }
    }
}
