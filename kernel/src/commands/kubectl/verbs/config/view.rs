//! `kubectl config view`

use cluster_core::api::kind::KindRef;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::output::{Format, json_line};
use super::super::super::resources::Item;
use super::super::super::verb::Call;
use super::{Kubeconfig, LISTS};

/// The order in which Go holds the fields of a kubeconfig.
const ORDER: &[&str] = &[
    "kind",
    "apiVersion",
    "clusters",
    "users",
    "contexts",
    "current-context",
    "name",
    "cluster",
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority",
    "certificate-authority-data",
    "proxy-url",
    "user",
    "namespace",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
    "token",
    "tokenFile",
    "username",
    "password",
];
pub const BYTES: &[&str] = &["certificate-authority-data", "client-certificate-data", "client-key-data"];
const SECRETS: &[&str] = &["token", "password"];

pub fn run(call: &mut Call<'_, '_>) -> Outcome {
    if !call.parsed.args.is_empty() {
        return message(format!("unexpected arguments: [{}]", call.parsed.args.join(" ")));
    }
    let mut config = Kubeconfig::read(call)?;
    if let Some(context) = call.parsed.text("context").map(str::to_owned) {
        if call.parsed.switch("minify") && config.entry("contexts", &context).is_null() {
            return message(format!("cannot locate context {context}"));
        }
        config.value["current-context"] = context.into();
    }
    if call.parsed.switch("minify") {
        minify(&mut config)?;
    }
    if !call.parsed.switch("raw") {
        redact(&mut config.value);
    }
    let mut value = config.value;
    for (list, _) in LISTS {
        if value.get(list).is_none() {
            value[list] = Value::Null;
        }
    }
    match call.format()? {
        Format::Human | Format::Yaml => call.context.print(crate::yaml::print(&value)),
        Format::Json => {
            let mut text = String::new();
            write(&mut text, &value, 0);
            call.line(text);
        }
        format => {
            // It is no object of any kind; what prints it does not ask.
            let item = Item::new(KindRef::of::<Namespace>(), value);
            call.print_objects(&format, &[item], false)?;
        }
    }
    Ok(())
}

/// Only what the current context needs.
fn minify(config: &mut Kubeconfig) -> Result<(), Failure> {
    let current = config.current().to_owned();
    if current.is_empty() {
        return message("current-context must exist in order to minify");
    }
    let context = config.entry("contexts", &current).clone();
    if context.is_null() {
        return message(format!("cannot locate context {current}"));
    }
    let wanted = [("clusters", &context["cluster"]), ("users", &context["user"]), ("contexts", &json!(current))];
    for (list, name) in wanted {
        if let Some(entries) = config.value[list].as_array_mut() {
            entries.retain(|entry| entry["name"] == *name);
        }
    }
    Ok(())
}

fn redact(value: &mut Value) {
    for (list, field) in LISTS {
        for entry in value[list].as_array_mut().into_iter().flatten() {
            let Some(fields) = entry[field].as_object_mut() else { continue };
            for (name, held) in fields.iter_mut() {
                if BYTES.contains(&name.as_str()) {
                    *held = "DATA+OMITTED".into();
                } else if SECRETS.contains(&name.as_str()) {
                    *held = "REDACTED".into();
                }
            }
        }
    }
}

/// JSON with fields as Go holds them.
fn write(text: &mut String, value: &Value, depth: usize) {
    let line = |text: &mut String, depth: usize| text.push_str(&format!("\n{}", "    ".repeat(depth)));
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_by_key(|key| ORDER.iter().position(|known| known == key).unwrap_or(ORDER.len()));
            text.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                line(text, depth + 1);
                text.push_str(&format!("{}: ", json_line(&Value::from(key.as_str()))));
                write(text, &fields[key], depth + 1);
            }
            line(text, depth);
            text.push('}');
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                line(text, depth + 1);
                write(text, item, depth + 1);
            }
            line(text, depth);
            text.push(']');
        }
        scalar => text.push_str(&json_line(scalar)),
    }
}
