//! JSON values as Go prints them in messages.

use serde_json::Value;

use crate::go_json::escape_html;

/// As `%v` prints a value.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{}", text(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

/// As `%v` prints a pointer to a struct that holds the value.
pub fn pointed(value: &Value) -> String {
    format!("&{{{}}}", text(value))
}

/// As `%#v` prints a value: Go source.
pub fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(source).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name:?}:{}", source(value))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

/// JSON in one line as Go's encoder writes it: sorted keys, and nothing that HTML could take for its own.
pub fn json_line(value: &Value) -> String {
    escape_html(&value.to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_print_in_the_order_of_their_keys() {
        let value = json!({"name": "e", "image": "j", "ports": [80, null]});
        assert_eq!(text(&value), "map[image:j name:e ports:[80 <nil>]]");
        assert_eq!(pointed(&json!(["x"])), "&{[x]}");
        assert_eq!(source(&json!({"a": [1, "b"]})), "map[string]interface {}{\"a\":[]interface {}{1, \"b\"}}");
    }
}
