//! The types of expressions, and the signatures of functions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::value::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Any: checked when the expression runs.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Object(Arc<ObjectType>),
    Optional(Arc<Type>),
    /// A type of Kubernetes' own libraries, by name.
    Opaque(&'static str),
    /// The type of a type.
    Kind(Arc<Type>),
    /// A type that the use of a signature decides.
    Variable(usize),
}

/// An object with known fields.
#[derive(Debug)]
pub struct ObjectType {
    pub name: String,
    /// By their escaped names.
    pub fields: BTreeMap<String, Type>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &ObjectType) -> bool {
        self.name == other.name
    }
}

impl Type {
    pub fn list(item: Type) -> Type {
        Type::List(Arc::new(item))
    }

    pub fn map(value: Type) -> Type {
        Type::Map(Arc::new(Type::String), Arc::new(value))
    }

    pub fn object(name: &str, fields: impl IntoIterator<Item = (&'static str, Type)>) -> Type {
        let fields = fields.into_iter().map(|(field, of)| (field.to_owned(), of)).collect();
        Type::Object(Arc::new(ObjectType { name: name.to_owned(), fields }))
    }

    pub fn optional(of: Type) -> Type {
        Type::Optional(Arc::new(of))
    }

    /// A value of this type may be handed to a function that takes this type.
    pub fn takes(&self, value: &Value) -> bool {
        match self {
            Type::Dyn | Type::Variable(_) => true,
            Type::Null => matches!(value, Value::Null),
            Type::Bool => matches!(value, Value::Bool(_)),
            Type::Int => matches!(value, Value::Int(_)),
            Type::Uint => matches!(value, Value::Uint(_)),
            Type::Double => matches!(value, Value::Double(_)),
            Type::String => matches!(value, Value::String(_)),
            Type::Bytes => matches!(value, Value::Bytes(_)),
            Type::Timestamp => matches!(value, Value::Timestamp(_)),
            Type::Duration => matches!(value, Value::Duration(_)),
            Type::List(_) => matches!(value, Value::List(_)),
            Type::Map(..) | Type::Object(_) => matches!(value, Value::Map(_)),
            Type::Optional(_) => matches!(value, Value::Optional(_)),
            Type::Kind(_) => matches!(value, Value::Type(_)),
            Type::Opaque(name) => value.type_name() == *name,
        }
    }

    /// Reads a type as signatures spell it: `int`, `list<A>`, `map<string, dyn>`, `net.IP`.
    fn parse(text: &'static str) -> Type {
        let text = text.trim();
        let simple = match text {
            "dyn" => Some(Type::Dyn),
            "null_type" => Some(Type::Null),
            "bool" => Some(Type::Bool),
            "int" => Some(Type::Int),
            "uint" => Some(Type::Uint),
            "double" => Some(Type::Double),
            "string" => Some(Type::String),
            "bytes" => Some(Type::Bytes),
            "timestamp" => Some(Type::Timestamp),
            "duration" => Some(Type::Duration),
            "A" => Some(Type::Variable(0)),
            "B" => Some(Type::Variable(1)),
            _ => None,
        };
        let inner = |name: &str| text.strip_prefix(name)?.strip_prefix('<')?.strip_suffix('>');
        if let Some(simple) = simple {
            simple
        } else if let Some(item) = inner("list") {
            Type::list(Type::parse(item))
        } else if let Some((key, value)) = inner("map").and_then(|inner| inner.split_once(',')) {
            Type::Map(Arc::new(Type::parse(key)), Arc::new(Type::parse(value)))
        } else if let Some(of) = inner("optional") {
            Type::optional(Type::parse(of))
        } else if let Some(of) = inner("type") {
            Type::Kind(Arc::new(Type::parse(of)))
        } else {
            Type::Opaque(text)
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn => f.write_str("dyn"),
            Type::Null => f.write_str("null"),
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int"),
            Type::Uint => f.write_str("uint"),
            Type::Double => f.write_str("double"),
            Type::String => f.write_str("string"),
            Type::Bytes => f.write_str("bytes"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Duration => f.write_str("duration"),
            Type::List(item) => write!(f, "list({item})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
            Type::Object(object) => f.write_str(&object.name),
            Type::Optional(of) => write!(f, "optional_type({of})"),
            Type::Opaque(name) => f.write_str(name),
            Type::Kind(of) => write!(f, "type({of})"),
            Type::Variable(number) => write!(f, "_var{number}"),
        }
    }
}

/// What a function does with arguments of the types of its signature. The text of an error is CEL's own.
pub type Run = fn(&[Value]) -> Result<Value, String>;

/// One way to call a function.
pub struct Overload {
    pub name: &'static str,
    /// Called as a member of its first argument.
    pub member: bool,
    pub arguments: Vec<Type>,
    pub result: Type,
    pub run: Run,
}

impl Overload {
    /// Reads `name(int, int) -> bool`, or `string.name(int) -> bool` for a member.
    pub fn new(signature: &'static str, run: Run) -> Overload {
        let (call, result) = signature.split_once("->").unwrap_or((signature, "dyn"));
        let (called, arguments) = call.trim().trim_end_matches(')').split_once('(').unwrap_or((call, ""));
        let mut types: Vec<Type> = split_arguments(arguments).into_iter().map(Type::parse).collect();
        // `optional.of` and the like are functions with a dot in their names, not members.
        let receiver = called.rsplit_once('.').filter(|(receiver, _)| !NAMESPACES.contains(receiver));
        let name = receiver.map_or(called, |(_, name)| name);
        if let Some((receiver, _)) = receiver {
            types.insert(0, Type::parse(receiver));
        }
        Overload { name, member: receiver.is_some(), arguments: types, result: Type::parse(result), run }
    }
}

/// The first parts of the names of functions that are no members.
const NAMESPACES: &[&str] =
    &["optional", "sets", "math", "format", "jsonpatch", "strings", "base64", "ip", "cidr", "lists", "cel"];

fn split_arguments(text: &'static str) -> Vec<&'static str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_reads_as_it_is_written() {
        let overload = Overload::new("map<A, B>.get(A, list<int>) -> optional<B>", |_| Ok(Value::Null));
        assert_eq!((overload.name, overload.member, overload.arguments.len()), ("get", true, 3));
        assert_eq!(overload.arguments[2].to_string(), "list(int)");
        assert_eq!(overload.result, Type::optional(Type::Variable(1)));
        let overload = Overload::new("optional.of(A) -> optional<A>", |_| Ok(Value::Null));
        assert_eq!((overload.name, overload.member), ("optional.of", false));
        let overload = Overload::new("net.IP.family() -> int", |_| Ok(Value::Null));
        assert_eq!((overload.name, &overload.arguments[0]), ("family", &Type::Opaque("net.IP")));
    }
}
