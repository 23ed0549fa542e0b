//! JSON patches, as kube-apiserver carries them out: it is more lenient than RFC 6902.
//! <https://datatracker.ietf.org/doc/html/rfc6902>

use serde_json::{Map, Value};

use crate::api::status::Status;
use crate::apiserver::decode::text;

/// A patch may not have more operations.
const OPERATIONS_MAX: usize = 10_000;

/// What an operation may say.
const FIELDS: [&str; 4] = ["from", "op", "path", "value"];

/// Carries out a list of operations.
pub fn apply(document: &mut Value, patch: &Value) -> Result<(), Status> {
    let refused = |found: &Value, wanted: &str| {
        Status::bad_request(format!("error decoding patch: {}", text::misfit(text::json_type(found), wanted)))
    };
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(refused(other, "[]handlers.jsonPatchOp")),
    };
    if let Some(other) = operations.iter().find(|operation| !operation.is_object() && !operation.is_null()) {
        return Err(refused(other, "handlers.jsonPatchOp"));
    }
    if operations.len() > OPERATIONS_MAX {
        return Err(Status::too_many_operations(operations.len(), OPERATIONS_MAX));
    }
    for operation in operations {
        // The server tells nobody which operation failed and why.
        carry_out(document, operation)
            .ok_or_else(|| Status::unprocessable("the server rejected our request due to an error in our request"))?;
    }
    Ok(())
}

/// Fields that operations do not have, as a strict reader tells of them.
pub fn unknown_fields(patch: &Value) -> impl Iterator<Item = String> {
    let operations = patch.as_array().into_iter().flatten().enumerate();
    let named = operations.filter_map(|(at, operation)| Some((at, operation.as_object()?)));
    let unknown = named.flat_map(|(at, fields)| fields.keys().map(move |field| (at, field)));
    let unknown = unknown.filter(|(_, field)| !FIELDS.contains(&field.as_str()));
    unknown.map(|(at, field)| format!("unknown field \"[{at}].{field}\""))
}

fn carry_out(document: &mut Value, operation: &Value) -> Option<()> {
    let text = |field: &str| operation.get(field).and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or_default();
    let path = text("path")?;
    match text("op")? {
        "add" => add(document, path, value()),
        "replace" => replace(document, path, value()),
        "remove" => remove(document, path).map(|_| ()),
        "test" => (get(document, path)?.unwrap_or_default() == value()).then_some(()),
        "move" => {
            let moved = remove(document, text("from")?)?;
            add(document, path, moved)
        }
        "copy" => {
            let copied = get(document, text("from")?)?.unwrap_or_default();
            add(document, path, copied)
        }
        _ => None,
    }
}

enum Container<'d> {
    Object(&'d mut Map<String, Value>),
    Array(&'d mut Vec<Value>),
}

/// What holds the value at a pointer, and its last token. Whatever stands before the first slash is not looked at.
fn find<'d>(document: &'d mut Value, pointer: &str) -> Option<(Container<'d>, String)> {
    let token = |token: &str| token.replace("~1", "/").replace("~0", "~");
    let (_, rest) = pointer.split_once('/')?;
    let mut tokens: Vec<&str> = rest.split('/').collect();
    let last = token(tokens.pop()?);
    let mut place = document;
    for step in tokens {
        place = match place {
            Value::Object(fields) => fields.get_mut(&token(step))?,
            Value::Array(items) => {
                let index = index(step, items.len())?;
                items.get_mut(index)?
            }
            _ => return None,
        };
    }
    match place {
        Value::Object(fields) => Some((Container::Object(fields), last)),
        Value::Array(items) => Some((Container::Array(items), last)),
        _ => None,
    }
}

/// A place in a list of some length; `-1` is the last.
fn index(token: &str, length: usize) -> Option<usize> {
    let index: i64 = token.parse().ok()?;
    usize::try_from(if index < 0 { index + length as i64 } else { index }).ok().filter(|index| *index < length)
}

/// The value at a pointer: `Some(None)` for a missing key of an object that is there.
fn get(document: &mut Value, pointer: &str) -> Option<Option<Value>> {
    match find(document, pointer)? {
        (Container::Object(fields), key) => Some(fields.get(&key).cloned()),
        (Container::Array(items), key) => items.get(index(&key, items.len())?).cloned().map(Some),
    }
}

fn add(document: &mut Value, pointer: &str, value: Value) -> Option<()> {
    match find(document, pointer)? {
        (Container::Object(fields), key) => {
            fields.insert(key, value);
        }
        (Container::Array(items), key) if key == "-" => items.push(value),
        (Container::Array(items), key) => items.insert(index(&key, items.len() + 1)?, value),
    }
    Some(())
}

/// A missing key of an object is added.
fn replace(document: &mut Value, pointer: &str, value: Value) -> Option<()> {
    match find(document, pointer)? {
        (Container::Object(fields), key) => {
            fields.insert(key, value);
        }
        (Container::Array(items), key) => {
            let index = index(&key, items.len())?;
            *items.get_mut(index)? = value;
        }
    }
    Some(())
}

fn remove(document: &mut Value, pointer: &str) -> Option<Value> {
    match find(document, pointer)? {
        (Container::Object(fields), key) => fields.remove(&key),
        (Container::Array(items), key) => index(&key, items.len()).map(|index| items.remove(index)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(operations: Value) -> Result<Value, u16> {
        let mut document = json!({"data": {"k": "v", "x/y": "1"}, "list": ["a", "b"]});
        apply(&mut document, &operations).map_err(|status| status.code)?;
        Ok(document)
    }

    #[test]
    fn operations_change_objects_and_lists() {
        let patch = json!([
            {"op": "test", "path": "/data/k", "value": "v"},
            {"op": "replace", "path": "/data/x~1y", "value": "2"},
            {"op": "move", "from": "/data/k", "path": "/data/moved"},
            {"op": "add", "path": "/list/-", "value": "c"},
            {"op": "add", "path": "/list/0", "value": "z"},
            {"op": "replace", "path": "/list/-1", "value": "last"},
            {"op": "replace", "path": "/data/new", "value": "added"},
        ]);
        let wanted = json!({"data": {"moved": "v", "x/y": "2", "new": "added"}, "list": ["z", "a", "b", "last"]});
        assert_eq!(patched(patch), Ok(wanted));
    }

    #[test]
    fn what_does_not_apply_is_refused_without_a_word() {
        let wrong = [
            json!({"op": "test", "path": "/data/k", "value": "other"}),
            json!({"op": "remove", "path": "/data/none"}),
            json!({"op": "add", "path": "/no/such", "value": 1}),
            json!({"op": "add", "path": "/list/9", "value": 1}),
            json!({"op": "explode", "path": "/data"}),
        ];
        for operation in wrong {
            assert_eq!(patched(json!([operation])), Err(422));
        }
        assert_eq!(patched(json!({"op": "add"})), Err(400));
    }
}
