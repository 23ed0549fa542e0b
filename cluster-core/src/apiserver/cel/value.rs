//! The values that expressions compute with.
//! <https://kubernetes.io/docs/reference/using-api/cel/#type-checking>

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value as Json, json};

use super::library::format::Format;
use super::library::net::Cidr;
use super::library::quantity::Quantity;
use super::library::url::Url;

#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<List>),
    Map(Arc<Map>),
    Timestamp(Timestamp),
    Duration(SignedDuration),
    Optional(Option<Arc<Value>>),
    /// A type as a value, by name: what `type(x)` gives.
    Type(Arc<str>),
    Quantity(Arc<Quantity>),
    Url(Arc<Url>),
    Ip(IpAddr),
    Cidr(Cidr),
    Format(&'static Format),
    Semver(Arc<semver::Version>),
    /// A question to the authorizer that is not asked yet, or its decision.
    Authorizer(Arc<super::library::authorizer::Check>),
}

/// A list, and how its schema says that it merges and compares.
/// <https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy>
#[derive(Clone, Debug, Default)]
pub struct List {
    pub items: Vec<Value>,
    pub merge: Merge,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Merge {
    #[default]
    Atomic,
    Set,
    /// By the fields that make up the key of an item.
    Map(Arc<[String]>),
}

/// Fields of an object, or entries of a map.
pub type Map = BTreeMap<Key, Value>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    String(Arc<str>),
}

impl Key {
    /// The key that a value stands for. Unsigned numbers are the same keys as signed ones.
    pub fn of(value: &Value) -> Option<Key> {
        match value {
            Value::Bool(bool) => Some(Key::Bool(*bool)),
            Value::Int(int) => Some(Key::Int(*int)),
            Value::Uint(uint) => Some(i64::try_from(*uint).map_or(Key::Uint(*uint), Key::Int)),
            Value::Double(double) if double.fract() == 0.0 && double.abs() < 9.0e15 => Some(Key::Int(*double as i64)),
            Value::String(text) => Some(Key::String(text.clone())),
            _ => None,
        }
    }

    pub fn to_value(&self) -> Value {
        match self {
            Key::Bool(bool) => Value::Bool(*bool),
            Key::Int(int) => Value::Int(*int),
            Key::Uint(uint) => Value::Uint(*uint),
            Key::String(text) => Value::String(text.clone()),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Bool(bool) => bool.fmt(f),
            Key::Int(int) => int.fmt(f),
            Key::Uint(uint) => uint.fmt(f),
            Key::String(text) => f.write_str(text),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text.into())
    }
}

impl From<bool> for Value {
    fn from(bool: bool) -> Value {
        Value::Bool(bool)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Value {
        Value::Int(number as i64)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Value {
        Value::List(Arc::new(List { items, merge: Merge::Atomic }))
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Value {
        Value::Map(Arc::new(map))
    }
}

impl From<Option<Value>> for Value {
    fn from(value: Option<Value>) -> Value {
        Value::Optional(value.map(Arc::new))
    }
}

impl Value {
    /// JSON without a schema: objects are maps, whole numbers are ints.
    pub fn from_json(json: &Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(bool) => Value::Bool(*bool),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Value::Int(int),
                None => Value::Double(number.as_f64().unwrap_or_default()),
            },
            Json::String(text) => text.as_str().into(),
            Json::Array(items) => items.iter().map(Value::from_json).collect::<Vec<_>>().into(),
            Json::Object(fields) => {
                let entry =
                    |(name, value): (&String, &Json)| (Key::String(name.as_str().into()), Value::from_json(value));
                fields.iter().map(entry).collect::<Map>().into()
            }
        }
    }

    /// The value as JSON, where it has such a form.
    pub fn to_json(&self) -> Option<Json> {
        Some(match self {
            Value::Null => Json::Null,
            Value::Bool(bool) => json!(bool),
            Value::Int(int) => json!(int),
            Value::Uint(uint) => json!(uint),
            Value::Double(double) => json!(double),
            Value::String(text) => json!(&**text),
            Value::Bytes(bytes) => json!(data_encoding::BASE64.encode(bytes)),
            Value::Timestamp(time) => json!(time.to_string()),
            Value::Duration(duration) => json!(super::library::time::duration_text(*duration)),
            Value::List(list) => Json::Array(list.items.iter().map(Value::to_json).collect::<Option<_>>()?),
            Value::Map(map) => {
                let entry = |(key, value): (&Key, &Value)| Some((key.to_string(), value.to_json()?));
                Json::Object(map.iter().map(entry).collect::<Option<_>>()?)
            }
            Value::Optional(Some(value)) => value.to_json()?,
            _ => return None,
        })
    }

    /// The type's name, as `type()` and error texts give it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Optional(_) => "optional_type",
            Value::Type(_) => "type",
            Value::Quantity(_) => "kubernetes.Quantity",
            Value::Url(_) => "kubernetes.URL",
            Value::Ip(_) => "net.IP",
            Value::Cidr(_) => "net.CIDR",
            Value::Format(_) => "kubernetes.NamedFormat",
            Value::Semver(_) => "kubernetes.Semver",
            Value::Authorizer(check) => check.type_name(),
        }
    }

    /// What going through the value once costs, beside what any step costs: an entry or ten letters are one unit.
    pub fn size(&self) -> u64 {
        match self {
            Value::String(text) => text.len() as u64 / 10,
            Value::Bytes(bytes) => bytes.len() as u64 / 10,
            Value::List(list) => list.items.len() as u64,
            Value::Map(map) => map.len() as u64,
            _ => 0,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::List(a), Value::List(b)) => lists_equal(a, b),
            (Value::Map(a), Value::Map(b)) => Arc::ptr_eq(a, b) || a == b,
            (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Value::Duration(a), Value::Duration(b)) => a == b,
            (Value::Optional(a), Value::Optional(b)) => a == b,
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::Quantity(a), Value::Quantity(b)) => a == b,
            (Value::Url(a), Value::Url(b)) => a == b,
            (Value::Ip(a), Value::Ip(b)) => a == b,
            (Value::Cidr(a), Value::Cidr(b)) => a == b,
            (Value::Format(a), Value::Format(b)) => a.name == b.name,
            (Value::Semver(a), Value::Semver(b)) => a.cmp_precedence(b) == Ordering::Equal,
            _ => matches!(compare_numbers(self, other), Some(Ordering::Equal)),
        }
    }
}

/// Lists with a schema's merge type compare as that says: sets and maps without an order.
fn lists_equal(a: &List, b: &List) -> bool {
    if a.items.len() != b.items.len() {
        return false;
    }
    match if a.merge == Merge::Atomic { &b.merge } else { &a.merge } {
        Merge::Atomic => a.items == b.items,
        Merge::Set => a.items.iter().all(|item| b.items.contains(item)),
        Merge::Map(keys) => {
            a.items.iter().all(|item| b.items.iter().any(|other| same_key(item, other, keys) && item == other))
        }
    }
}

pub fn same_key(a: &Value, b: &Value, keys: &[String]) -> bool {
    let field = |value: &Value, name: &str| match value {
        Value::Map(map) => map.get(&Key::String(name.into())).cloned(),
        _ => None,
    };
    keys.iter().all(|key| field(a, key) == field(b, key))
}

fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Double(a), Value::Int(b)) => a.partial_cmp(&(*b as f64)),
        (Value::Double(a), Value::Uint(b)) => a.partial_cmp(&(*b as f64)),
        (Value::Int(a), Value::Double(b)) => (*a as f64).partial_cmp(b),
        (Value::Uint(a), Value::Double(b)) => (*a as f64).partial_cmp(b),
        _ => None,
    }
}

/// How two values are ordered; `None` if they are not.
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        _ => compare_numbers(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_types_compare() {
        assert_eq!(Value::Int(1), Value::Double(1.0));
        assert_eq!(Value::Uint(1), Value::Int(1));
        assert_ne!(Value::Int(-1), Value::Uint(u64::MAX));
        assert_ne!(Value::Int(1), Value::from("1"));
        assert_eq!(compare(&Value::Double(0.5), &Value::Int(1)), Some(Ordering::Less));
        assert_eq!(compare(&Value::Null, &Value::Int(1)), None);
    }

    #[test]
    fn sets_and_map_lists_have_no_order() {
        let list = |merge: Merge, items: Json| match Value::from_json(&items) {
            Value::List(list) => Value::List(Arc::new(List { merge, ..(*list).clone() })),
            other => other,
        };
        assert_eq!(list(Merge::Set, json!([1, 2])), list(Merge::Set, json!([2, 1])));
        assert_ne!(list(Merge::Atomic, json!([1, 2])), list(Merge::Atomic, json!([2, 1])));
        let by_name = Merge::Map(Arc::new(["n".to_owned()]));
        let ports = json!([{"n": "a", "v": 1}, {"n": "b", "v": 2}]);
        let other = json!([{"n": "b", "v": 2}, {"n": "a", "v": 1}]);
        assert_eq!(list(by_name.clone(), ports.clone()), list(by_name.clone(), other));
        assert_ne!(list(by_name.clone(), ports), list(by_name, json!([{"n": "b", "v": 1}, {"n": "a", "v": 2}])));
    }
}
