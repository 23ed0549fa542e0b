//! Kinds that have no description of their own, custom ones above all: every field, named in words.

use serde_json::{Map, Value};

use super::super::failure::Outcome;
use super::super::jsonpath::go_text;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, labels_and_annotations};

/// Words that are written in capitals.
const ACRONYMS: [&str; 4] = ["API", "URL", "UID", "GUID"];
/// What the first lines have told.
const TOLD: [&str; 5] =
    [".metadata.managedFields", ".metadata.name", ".metadata.namespace", ".metadata.labels", ".metadata.annotations"];

pub fn generic(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    page.field(0, "Name", &item.name);
    page.field(0, "Namespace", &item.namespace);
    labels_and_annotations(item, page);
    if let Some(content) = item.value.as_object() {
        fields(page, 0, "", content);
    }
    Ok(())
}

fn fields(page: &mut Page, level: usize, path: &str, content: &Map<String, Value>) {
    for (field, value) in content {
        let path = format!("{path}.{field}");
        if TOLD.contains(&path.as_str()) {
            continue;
        }
        let name = words(field);
        match value {
            Value::Object(content) => {
                page.line(level, format!("{name}:"));
                fields(page, level + 1, &path, content);
            }
            Value::Array(items) => {
                page.line(level, format!("{name}:"));
                for item in items {
                    match item {
                        Value::Object(content) => fields(page, level + 1, &path, content),
                        plain => page.line(level + 1, go_text(plain)),
                    }
                }
            }
            plain => page.field(level, &name, go_text(plain)),
        }
    }
}

/// A field's name as words, each with a capital: `cronSpec` is `Cron Spec`, `apiVersion` is `API Version`.
fn words(field: &str) -> String {
    if field.chars().any(|letter| !letter.is_alphabetic() && letter != '-') {
        return field.to_owned();
    }
    let parts = split(field);
    let mut merged: Vec<String> = Vec::new();
    let mut rest = parts.iter().peekable();
    while let Some(part) = rest.next() {
        let is_upper = part.chars().all(|letter| !letter.is_alphabetic() || letter.is_uppercase());
        let upper_follows = rest.peek().is_some_and(|next| next.starts_with(char::is_uppercase));
        match rest.peek() {
            Some(next) if part.len() >= 2 && is_upper && upper_follows => {
                merged.push(format!("{part}{next}"));
                rest.next();
            }
            _ => merged.push(part.clone()),
        }
    }
    let word = |part: String| match part.to_uppercase() {
        upper if ACRONYMS.contains(&upper.as_str()) => upper,
        _ if part.to_lowercase() == part => {
            let mut letters = part.chars();
            letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
        _ => part,
    };
    merged.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Cuts camel case where the sort of letters changes: `podIPs` is `pod`, `I`, `Ps`; `podCIDR` is `pod`, `CIDR`.
fn split(field: &str) -> Vec<String> {
    #[derive(Clone, Copy, PartialEq)]
    enum Sort {
        Lower,
        Upper,
        Other,
    }
    let sort = |letter: char| match letter {
        _ if letter.is_lowercase() => Sort::Lower,
        _ if letter.is_uppercase() => Sort::Upper,
        _ => Sort::Other,
    };
    let mut runs: Vec<(Sort, String)> = Vec::new();
    for letter in field.chars() {
        match runs.last_mut() {
            Some((last, run)) if *last == sort(letter) => run.push(letter),
            _ => runs.push((sort(letter), letter.to_string())),
        }
    }
    // The capital before small letters belongs to them.
    for index in 1..runs.len() {
        if runs[index - 1].0 == Sort::Upper
            && runs[index].0 == Sort::Lower
            && let Some(capital) = runs[index - 1].1.pop()
        {
            runs[index].1.insert(0, capital);
        }
    }
    runs.into_iter().map(|(_, run)| run).filter(|run| !run.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        for (field, expected) in [
            ("cronSpec", "Cron Spec"),
            ("apiVersion", "API Version"),
            ("uid", "UID"),
            ("creationTimestamp", "Creation Timestamp"),
            ("image", "Image"),
            ("x-kubernetes", "X - Kubernetes"),
            ("app.kubernetes.io", "app.kubernetes.io"),
            ("clusterIP", "Cluster IP"),
            ("podIPs", "Pod I Ps"),
        ] {
            assert_eq!(words(field), expected, "{field}");
        }
    }
}
