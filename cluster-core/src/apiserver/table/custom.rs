//! Custom resources: the columns that their definition asks for, else the age.
//! <https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#additional-printer-columns>

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use serde_json::Value;

use super::age::{age, since};
use super::{Column, Row, Table};
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::schema::Schema;
use crate::clock::Time;

pub(super) fn definition_kind() -> &'static KindRef {
    KindRef::of::<CustomResourceDefinition>()
}

pub(super) fn table(definition: Option<&Object>, kind: &KindRef, objects: &[Object], now: Time) -> Table {
    let versions = definition.map(|definition| definition.spec::<CustomResourceDefinition>().versions.as_slice());
    let version = versions.unwrap_or_default().iter().find(|version| *version.name == *kind.version);
    let wanted = version.and_then(|version| version.additional_printer_columns.as_deref()).unwrap_or_default();
    // Every kind describes its metadata alike.
    let described = |column: Column| {
        let description = Schema::of(definition_kind()).map(|schema| super::description(&column.name, schema));
        Column { description: description.unwrap_or_default(), ..column }
    };
    let mut columns = vec![described(column("Name", "string", "name", 0))];
    if wanted.is_empty() {
        columns.push(described(column("Age", "date", "", 0)));
    }
    columns.extend(wanted.iter().map(|asked| Column {
        description: match asked.description.as_deref() {
            None | Some("") => format!("Custom resource definition column (in JSONPath format): {}", asked.json_path),
            Some(written) => written.to_owned(),
        },
        ..column(&asked.name, &asked.type_, asked.format.as_deref().unwrap_or_default(), asked.priority.unwrap_or(0))
    }));
    let row = |object: &Object| {
        let mut cells = vec![Value::from(&*object.key.name)];
        if wanted.is_empty() {
            cells.push(age(object, now).into());
        } else {
            let json = object.to_json();
            cells.extend(wanted.iter().map(|asked| cell(&json, asked, now)));
        }
        Row { cells, conditions: Vec::new(), object: object.clone() }
    };
    Table { kind: kind.clone(), columns, rows: objects.iter().map(row).collect() }
}

fn column(name: &str, type_: &str, format: &str, priority: i32) -> Column {
    Column { name: name.into(), type_: type_.into(), format: format.into(), description: String::new(), priority }
}

/// The value at a column's path, of the column's type; null where it is not there.
fn cell(object: &Value, asked: &CustomResourceColumnDefinition, now: Time) -> Value {
    let Some(value) = at_path(object, &asked.json_path) else { return Value::Null };
    match (asked.type_.as_str(), value) {
        ("date", Value::String(text)) => match text.parse::<jiff::Timestamp>() {
            Ok(time) => since(Time::from_timestamp(time), now).into(),
            Err(_) => "<invalid>".into(),
        },
        ("string", Value::String(text)) => text.as_str().into(),
        ("string", other) => other.to_string().into(),
        ("integer", Value::Number(_)) | ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        _ => Value::Null,
    }
}

/// A simple JSONPath: `.spec.containers[0].image`, `.status.conditions[?(@.type=="Ready")].status`,
/// `.metadata.annotations['a\.b']`.
fn at_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let (mut value, mut rest) = (object, path.trim());
    while !rest.is_empty() {
        if let Some(filter) = rest.strip_prefix("[?(@.") {
            let (condition, tail) = filter.split_once(")]")?;
            let (field, wanted) = condition.split_once("==")?;
            let wanted = wanted.trim().trim_matches(['"', '\'']);
            value = value.as_array()?.iter().find(|item| item.get(field.trim()).is_some_and(|v| v == wanted))?;
            rest = tail;
        } else if let Some(index) = rest.strip_prefix('[') {
            let (index, tail) = index.split_once(']')?;
            if index == "*" {
                // Of several values the first one is shown.
                value = value.get(0)?;
                rest = tail;
                continue;
            }
            let name = index.trim_matches(['"', '\'']).replace("\\.", ".");
            value = match index.parse::<usize>() {
                Ok(index) => value.get(index)?,
                Err(_) => value.get(&name)?,
            };
            rest = tail;
        } else {
            let text = rest.strip_prefix('.').unwrap_or(rest);
            let mut end = text.len();
            let mut escaped = false;
            for (index, letter) in text.char_indices() {
                match letter {
                    '\\' => escaped = true,
                    '.' | '[' if !escaped => {
                        end = index;
                        break;
                    }
                    _ => escaped = false,
                }
            }
            if end > 0 {
                value = value.get(text[..end].replace('\\', ""))?;
            } else if text.is_empty() || text.starts_with('.') {
                return None;
            }
            rest = &text[end..];
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_walk_fields_indexes_and_filters() {
        let object = json!({
            "spec": {"list": [{"a": 1}], "a.b": "dotted"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        for (path, expected) in [
            (".spec.list[0].a", Some(json!(1))),
            (".status.conditions[?(@.type==\"Ready\")].status", Some(json!("True"))),
            (".spec.a\\.b", Some(json!("dotted"))),
            (".spec['a\\.b']", Some(json!("dotted"))),
            (".spec.none.more", None),
            ("..", None),
        ] {
            assert_eq!(at_path(&object, path).cloned(), expected, "{path}");
        }
    }
}
