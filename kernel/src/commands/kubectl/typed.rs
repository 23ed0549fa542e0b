//! JSON of objects that kubectl holds as types of Go: kind and apiVersion first, then the fields in the order of the
//! type. What it holds without a type has its fields in the order of the alphabet.

use cluster_core::api::schema::Schema;
use serde_json::Value;

use super::output::json_line;
use crate::gateway::field_order;

const INDENT: &str = "    ";

/// The object, indented by four spaces, without a last newline.
pub fn json(object: &Value, schema: Option<Schema<'_>>) -> String {
    let mut text = String::new();
    write(&mut text, object, schema, 0);
    text
}

fn write(text: &mut String, value: &Value, schema: Option<Schema<'_>>, depth: usize) {
    let list = |text: &mut String, ends: [char; 2], parts: Vec<(Option<&String>, &Value, Option<Schema<'_>>)>| {
        let line = format!("\n{}", INDENT.repeat(depth + 1));
        text.push(ends[0]);
        for (index, (key, value, schema)) in parts.iter().enumerate() {
            text.push_str(if index > 0 { "," } else { "" });
            text.push_str(&line);
            if let Some(key) = key {
                text.push_str(&format!("{}: ", json_line(&Value::from(key.as_str()))));
            }
            write(text, value, *schema, depth + 1);
        }
        if !parts.is_empty() {
            text.push_str(&format!("\n{}", INDENT.repeat(depth)));
        }
        text.push(ends[1]);
    };
    match value {
        Value::Object(fields) => {
            let order = schema.filter(|schema| !schema.is_map()).and_then(|schema| schema.type_name()).map(field_order);
            let order = order.unwrap_or_default();
            let rank = |field: &str| match field {
                "kind" if depth == 0 => 0,
                "apiVersion" if depth == 0 => 1,
                field => order.iter().position(|known| *known == field).map_or(usize::MAX, |place| place + 2),
            };
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_by_key(|key| rank(key));
            let parts = keys
                .into_iter()
                .map(|key| (Some(key), &fields[key.as_str()], schema.and_then(|schema| schema.property(key))));
            list(text, ['{', '}'], parts.collect());
        }
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.items());
            list(text, ['[', ']'], items.iter().map(|item| (None, item, schema)).collect());
        }
        scalar => text.push_str(&json_line(scalar)),
    }
}

#[cfg(test)]
mod tests {
    use cluster_core::api::kind::KindRef;
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_stand_as_in_the_type() {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"labels": {"b": "1", "a": "<"}, "name": "web"},
            "spec": {"strategy": {}, "selector": {}, "template": {"spec": {"containers": [
                {"command": [], "image": "x", "name": "c"},
            ]}}},
        });
        let line: String = json(&object, Schema::of(KindRef::of::<Deployment>())).split_whitespace().collect();
        assert_eq!(
            line,
            r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","labels":{"a":"\u003c","b":"1"}},"spec":{"selector":{},"template":{"spec":{"containers":[{"name":"c","image":"x","command":[]}]}},"strategy":{}}}"#
        );
    }
}
