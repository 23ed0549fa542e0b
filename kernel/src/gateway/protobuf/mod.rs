//! Bodies in Kubernetes' protobuf, which kubectl and client-go send for built-in kinds, as JSON.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding>
//!
//! The schemas of the API say what a field holds, a table beside them which number it has.

mod wire;

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cluster_core::api::schema::{self, Schema};
use serde_json::{Map, Value};
use wire::{Wire, bytes_of, fields, number_of, utf8, varint};

/// What stands before the envelope, `runtime.Unknown`.
const MAGIC: &[u8] = b"k8s\0";
/// Messages in messages; nothing of Kubernetes is half as deep.
const DEPTH_MAX: usize = 128;

/// A line a message: its name, then its fields with their numbers. `^` marks a message whose fields JSON has in the
/// outer object, `?` a field in which zero is a value: elsewhere it means that there is none.
const TABLE: &str = include_str!("field_numbers.txt");

struct Field {
    name: &'static str,
    inline: bool,
    keeps_zero: bool,
}

type Fields = HashMap<u64, Field>;

static MESSAGES: LazyLock<HashMap<&'static str, Fields>> = LazyLock::new(|| {
    let field = |text: &'static str| {
        let (name, number) = text.split_once('=')?;
        let field = Field {
            name: name.trim_start_matches('^'),
            inline: name.starts_with('^'),
            keeps_zero: number.ends_with('?'),
        };
        Some((number.trim_end_matches('?').parse().ok()?, field))
    };
    let message = |line: &'static str| {
        let mut words = line.split(' ');
        Some((words.next()?, words.filter_map(field).collect()))
    };
    TABLE.lines().filter_map(message).collect()
});

/// Reads an enveloped object.
///
/// # Errors
/// What is wrong, in words: no envelope, a kind without a message, bytes that end too early.
pub fn decode(bytes: &[u8]) -> Result<Value, String> {
    let envelope = bytes.strip_prefix(MAGIC).ok_or("provided data does not appear to be a protobuf message")?;
    let (mut api_version, mut kind, mut raw) = ("", "", &[][..]);
    for field in fields(envelope) {
        match field? {
            (1, Wire::Bytes(meta)) => {
                for field in fields(meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = utf8(text)?,
                        (2, Wire::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(object)) => raw = object,
            _ => {}
        }
    }
    let name = schema::type_of(api_version, kind)
        .ok_or_else(|| format!("no kind {kind:?} is registered for version {api_version:?} as protobuf"))?;
    let schema = schema::definitions().get(name).map(Schema::new).ok_or("no schema")?;
    let mut object = Map::new();
    message(short(name), schema, raw, &mut object, 0)?;
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Ok(Value::Object(object))
}

/// The fields of a type, given by its OpenAPI name, in the order in which Go declares them. None if it is no message.
pub fn field_order(type_name: &str) -> Vec<&'static str> {
    let wanted = short(type_name);
    let line = TABLE.lines().find(|line| line.split(' ').next() == Some(wanted)).unwrap_or_default();
    let names = line.split(' ').skip(1).filter_map(|field| Some(field.split_once('=')?.0));
    names.flat_map(|name| name.strip_prefix('^').map_or_else(|| vec![name], field_order)).collect()
}

fn short(type_name: &str) -> &str {
    type_name.strip_prefix("io.k8s.").unwrap_or(type_name)
}

/// Reads a message into an object.
fn message(
    name: &str,
    schema: Schema<'_>,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err("messages are nested too deeply".into());
    }
    let Some(known) = MESSAGES.get(name) else { return Ok(()) };
    for field in fields(bytes) {
        let (number, wire) = field?;
        let Some(field) = known.get(&number) else { continue };
        if let (true, Wire::Bytes(bytes)) = (field.inline, wire) {
            message(field.name, schema, bytes, object, depth + 1)?;
            continue;
        }
        let Some(property) = schema.property(field.name) else { continue };
        let resolved = property.resolved();
        if let Some(items) = property.items() {
            let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = list {
                read_items(items, wire, list, depth)?;
            }
        } else if let (Some(values), Wire::Bytes(bytes)) = (map_values(resolved), wire) {
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                let (key, value) = entry(values, bytes, depth)?;
                map.insert(key, value);
            }
        } else {
            let value = read(property, wire, depth)?;
            if field.keeps_zero || !is_zero(&value) {
                object.insert(field.name.to_owned(), value);
            }
        }
    }
    Ok(())
}

fn map_values(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|values| values.is_object())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

/// One item of a list, or several numbers packed together.
fn read_items(schema: Schema<'_>, wire: Wire<'_>, list: &mut Vec<Value>, depth: usize) -> Result<(), String> {
    match (schema.resolved()["type"].as_str(), wire) {
        (Some("integer"), Wire::Bytes(mut packed)) => {
            while !packed.is_empty() {
                list.push(signed(varint(&mut packed)?));
            }
        }
        _ => list.push(read(schema, wire, depth)?),
    }
    Ok(())
}

/// An entry of a map; a list as its value comes in a message of its own.
fn entry(values: &Value, bytes: &[u8], depth: usize) -> Result<(String, Value), String> {
    let schema = Schema::new(values);
    let (mut key, mut value) = (String::new(), None);
    for field in fields(bytes) {
        match (field?, schema.items()) {
            ((1, Wire::Bytes(text)), _) => key = utf8(text)?.to_owned(),
            ((2, Wire::Bytes(list)), Some(items)) => {
                let mut read = Vec::new();
                for field in fields(list) {
                    read_items(items, field?.1, &mut read, depth)?;
                }
                value = Some(Value::Array(read));
            }
            ((2, wire), None) => value = Some(read(schema, wire, depth)?),
            _ => {}
        }
    }
    let empty = || read(schema, Wire::Bytes(&[]), depth);
    Ok((key, value.map_or_else(empty, Ok)?))
}

/// A value by its schema. Some types are written in JSON in their own way.
fn read(schema: Schema<'_>, wire: Wire<'_>, depth: usize) -> Result<Value, String> {
    let (name, resolved) = (schema.type_name().unwrap_or_default(), schema.resolved());
    let bytes = match wire {
        Wire::Bytes(bytes) => bytes,
        Wire::Number(number) => {
            return Ok(match resolved["type"].as_str() {
                Some("boolean") => Value::Bool(number != 0),
                Some("number") => Value::from(f64::from_bits(number)),
                _ => signed(number),
            });
        }
    };
    match name.rsplit('.').next().unwrap_or_default() {
        "Quantity" => Ok(utf8(bytes_of(bytes, 1)?)?.into()),
        "IntOrString" => match number_of(bytes, 1)? {
            0 => Ok(signed(number_of(bytes, 2)?)),
            _ => Ok(utf8(bytes_of(bytes, 3)?)?.into()),
        },
        "Time" | "MicroTime" if bytes.is_empty() => Ok(Value::Null),
        "Time" => time(bytes).map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()),
        "MicroTime" => time(bytes).map(|time| time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into()),
        "FieldsV1" | "RawExtension" | "JSON" => {
            serde_json::from_slice(bytes_of(bytes, 1)?).map_err(|error| format!("JSON in protobuf: {error}"))
        }
        "JSONSchemaPropsOrArray" => either(name, bytes, 1, depth),
        "JSONSchemaPropsOrBool" => either(name, bytes, 2, depth),
        "JSONSchemaPropsOrStringArray" => either(name, bytes, 1, depth),
        _ => match (resolved["type"].as_str(), resolved["format"].as_str()) {
            (Some("string"), Some("byte")) => Ok(BASE64_STANDARD.encode(bytes).into()),
            (Some("string"), _) => Ok(utf8(bytes)?.into()),
            _ => {
                let mut object = Map::new();
                message(short(name), schema, bytes, &mut object, depth + 1)?;
                Ok(Value::Object(object))
            }
        },
    }
}

/// A schema of a definition, or what may stand in its place.
fn either(name: &str, bytes: &[u8], number: u64, depth: usize) -> Result<Value, String> {
    let props = name.rsplit_once("Or").map_or(name, |(props, _)| props);
    let schema = schema::definitions().get(props).map(Schema::new).ok_or("no schema")?;
    let read_schema = |bytes: &[u8]| {
        let mut object = Map::new();
        message(short(props), schema, bytes, &mut object, depth + 1).map(|()| Value::Object(object))
    };
    let (mut list, mut allows) = (Vec::new(), false);
    for field in fields(bytes) {
        match field? {
            (found, Wire::Bytes(bytes)) if found == number => return read_schema(bytes),
            (_, Wire::Bytes(bytes)) if name.ends_with("OrStringArray") => list.push(utf8(bytes)?.into()),
            (_, Wire::Bytes(bytes)) => list.push(read_schema(bytes)?),
            (_, Wire::Number(number)) => allows = number != 0,
        }
    }
    Ok(if name.ends_with("OrBool") { Value::Bool(allows) } else { Value::Array(list) })
}

fn time(bytes: &[u8]) -> Result<jiff::Timestamp, String> {
    let [seconds, nanos] = [number_of(bytes, 1)?, number_of(bytes, 2)?].map(|number| number.cast_signed());
    let nanos = i32::try_from(nanos).map_err(|error| error.to_string())?;
    jiff::Timestamp::new(seconds, nanos).map_err(|error| error.to_string())
}

fn signed(number: u64) -> Value {
    Value::from(number.cast_signed())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tagged(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut message = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        message.extend(bytes);
        message
    }

    fn enveloped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [tagged(1, api_version.as_bytes()), tagged(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), tagged(1, &meta), tagged(2, raw)].concat()
    }

    #[test]
    fn an_object_is_read_by_its_schema() {
        // As client-go writes it: fields without a value are there, too.
        let metadata = [tagged(1, b"web"), tagged(2, b""), tagged(8, b"")].concat();
        let metadata = [metadata, tagged(11, &[tagged(1, b"app"), tagged(2, b"web")].concat())].concat();
        let spec = [vec![1 << 3, 0], vec![5 << 3, 0]].concat();
        let raw = [tagged(1, &metadata), tagged(2, &spec)].concat();
        let expected = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"replicas": 0},
        });
        assert_eq!(decode(&enveloped("apps/v1", "Deployment", &raw)), Ok(expected));
    }

    #[test]
    fn fields_of_inlined_messages_stand_beside_the_others() {
        let source = tagged(1, &tagged(1, b"/data"));
        let volume = [tagged(1, b"data"), tagged(2, &source)].concat();
        let pod = tagged(2, &tagged(1, &volume));
        let value = decode(&enveloped("v1", "Pod", &pod)).unwrap();
        assert_eq!(value["spec"]["volumes"], json!([{"name": "data", "hostPath": {"path": "/data"}}]));
    }

    #[test]
    fn every_message_has_a_schema_or_is_part_of_one() {
        let inlined: Vec<&str> =
            MESSAGES.values().flat_map(HashMap::values).filter(|f| f.inline).map(|f| f.name).collect();
        for name in MESSAGES.keys() {
            let known = schema::definitions().contains_key(&format!("io.k8s.{name}"));
            assert!(known || inlined.contains(name), "{name}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(decode(b"{}").is_err());
        assert!(decode(b"k8s\0\x0a\xff").is_err());
        assert!(decode(&enveloped("v1", "Pod", &[0x0a, 0x05, 0x01])).is_err());
        assert!(decode(&enveloped("v1", "Moon", &[])).unwrap_err().starts_with("no kind \"Moon\""));
    }
}
