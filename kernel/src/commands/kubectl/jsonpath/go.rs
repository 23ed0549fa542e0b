//! Values as Go prints them.

use serde_json::Value;

/// `%v`: `map[app:web]`, `[a b]`, `<nil>`.
pub fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(field, value)| format!("{field}:{}", go_text(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        // Whole numbers have no point, whatever they are kept in.
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}

/// `%#v`: `map[string]interface {}{"app":"web"}`.
pub fn go_syntax(value: &Value) -> String {
    let inside = match value {
        Value::Null => return "interface {}(nil)".into(),
        Value::String(text) => return format!("{text:?}"),
        Value::Array(items) => items.iter().map(go_syntax).collect::<Vec<_>>(),
        Value::Object(fields) => {
            fields.iter().map(|(field, value)| format!("{field:?}:{}", go_syntax(value))).collect()
        }
        other => return other.to_string(),
    };
    format!("{}{{{}}}", type_name(value), inside.join(", "))
}

/// The type that Go's decoder gives a value.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_as_go_prints_them() {
        let value = json!({"a": ["x", 1], "b": null, "c": true});
        assert_eq!(go_text(&value), "map[a:[x 1] b:<nil> c:true]");
        assert_eq!(
            go_syntax(&value),
            "map[string]interface {}{\"a\":[]interface {}{\"x\", 1}, \"b\":interface {}(nil), \"c\":true}"
        );
    }
}
