//! Config maps, secrets, and all kinds that have no description of their own.

use serde_json::Value;

use super::super::failure::Outcome;
use super::super::jsonpath::go_text;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, name_and_labels, text};

pub fn config_map(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name_and_labels(item, page);
    page.line(0, "\nData\n====");
    for (key, value) in item.value.get("data").and_then(Value::as_object).into_iter().flatten() {
        page.line(0, format!("{key}:\n----\n{}\n", go_text(value)));
    }
    page.line(0, "\nBinaryData\n====");
    for (key, value) in item.value.get("binaryData").and_then(Value::as_object).into_iter().flatten() {
        page.line(0, format!("{key}: {} bytes", decoded_length(value)));
    }
    page.line(0, "");
    Ok(())
}

pub fn secret(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name_and_labels(item, page);
    page.line(0, format!("\nType:\t{}\n\nData\n====", text(&item.value, "/type")));
    for (key, value) in item.value.get("data").and_then(Value::as_object).into_iter().flatten() {
        page.field(0, key, format!("{} bytes", decoded_length(value)));
    }
    Ok(())
}

/// How many bytes a base64 text stands for.
fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.trim_end_matches('=').len() * 3 / 4
}

/// Every field, named in words: `apiVersion` becomes `API Version`.
pub fn generic(item: &Item, page: &mut Page) {
    name_and_labels(item, page);
    let Some(fields) = item.value.as_object() else { return };
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                let mut rest = metadata.clone();
                for known in ["name", "namespace", "labels", "annotations", "managedFields"] {
                    rest.remove(known);
                }
                if !rest.is_empty() {
                    field(page, 0, "Metadata", &Value::Object(rest));
                }
            }
            (name, value) => field(page, 0, &words(name), value),
        }
    }
}

fn field(page: &mut Page, level: usize, name: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            page.line(level, format!("{name}:"));
            fields.iter().for_each(|(name, value)| field(page, level + 1, &words(name), value));
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            page.line(level, format!("{name}:"));
            for item in items {
                match item.as_object() {
                    Some(fields) => fields.iter().for_each(|(name, value)| field(page, level + 1, &words(name), value)),
                    None => page.line(level + 1, go_text(item)),
                }
            }
        }
        Value::Array(items) => {
            page.line(level, format!("{name}:"));
            items.iter().for_each(|item| page.line(level + 1, go_text(item)));
        }
        other => page.field(level, name, go_text(other)),
    }
}

/// Field names as words, each with a capital: `cronSpec` is `Cron Spec`.
fn words(field: &str) -> String {
    let mut words = String::new();
    for (index, letter) in field.char_indices() {
        match index {
            0 => words.extend(letter.to_uppercase()),
            _ if letter.is_uppercase() && !words.ends_with(|last: char| last.is_uppercase()) => {
                words.extend([' ', letter])
            }
            _ => words.push(letter),
        }
    }
    words.replace("Api ", "API ").replace("Uid", "UID").replace("Ip ", "IP ")
}
