//! `kubectl explain`

use cluster_core::api::kind::{KindRef, Resource};
use cluster_core::api::schema::{Schema, definitions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::super::failure::{Failure, Outcome, message};
use super::super::flags::text;
use super::super::manifests::RECURSIVE;
use super::super::output::OUTPUT;
use super::super::resources::find_kind;
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb { name: "explain", aliases: &[], flags: &[OUTPUT, RECURSIVE, text("api-version")], run };

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let [path] = call.parsed.args.as_slice() else {
        return match call.parsed.args.is_empty() {
            true => message(
                "You must specify the type of resource to explain. Use \"kubectl api-resources\" for a complete list of supported resources.",
            ),
            false => message("We accept only this format: explain RESOURCE"),
        };
    };
    let output = call.parsed.text("output").unwrap_or("plaintext").to_owned();
    match output.as_str() {
        "plaintext" => {}
        "plaintext-openapiv2" => return message("explaining by version 2 of OpenAPI is not built here"),
        other => return message(format!("unrecognized format: {other}")),
    }
    let version = call.parsed.text("api-version").map(str::to_owned);
    let kinds = call.context.api.kinds()?;
    let words: Vec<&str> = path.split('.').collect();
    let Some((kind, used)) = kind_of(&kinds, &words) else {
        return Err(Failure::Raw(format!("the server doesn't have a resource type {:?}", words[0])));
    };
    let fields: Vec<String> =
        words[used..].iter().filter(|name| !name.is_empty()).map(|name| name.to_string()).collect();
    let kind = match &version {
        None => kind.clone(),
        Some(version) => {
            let same = |known: &&KindRef| known.api_version() == *version && known.resource == kind.resource;
            let Some(known) = kinds.iter().find(same) else {
                let (group, version) = match version.split('/').collect::<Vec<_>>()[..] {
                    [version] => ("", version),
                    [group, version] => (group, version),
                    _ => return message(format!("unexpected GroupVersion string: {version}")),
                };
                return message(format!(
                    "couldn't find resource for \"{group}/{version}, Resource={}\"",
                    kind.resource
                ));
            };
            known.clone()
        }
    };
    let recursive = call.parsed.switch("recursive");
    let custom = if Schema::of(&kind).is_none() { Some(custom_schema(call, &kind)?) } else { None };
    let schema = match &custom {
        Some(value) => Schema::new(value),
        None => match Schema::of(&kind) {
            Some(schema) => schema,
            None => return Err(Failure::Quiet),
        },
    };
    if !kind.group.is_empty() {
        call.line(format!("GROUP:      {}", kind.group));
    }
    call.line(format!("KIND:       {}\nVERSION:    {}\n", kind.kind, kind.version));
    let mut place = schema;
    for name in &fields {
        let Some(field) = step(place, name) else {
            return message(format!("field {:?} does not exist", fields.last().unwrap_or(name)));
        };
        place = field;
    }
    let text = explain(place, fields.last().map(String::as_str), recursive);
    call.context.print(text);
    Ok(())
}

/// The kind that words begin with, perhaps with its group behind it, and how many of them say so.
fn kind_of<'a>(kinds: &'a [KindRef], words: &[&str]) -> Option<(&'a KindRef, usize)> {
    let with_group = (2..=words.len()).rev().find_map(|used| {
        let group = words[1..used].join(".");
        let found = find_kind(kinds, &words[..used].join("."))?;
        (*found.group == group).then_some((found, used))
    });
    with_group.or_else(|| Some((find_kind(kinds, words[0])?, 1)))
}

/// The field of that name, also through the items of a list and the values of a map.
fn step<'a>(schema: Schema<'a>, name: &str) -> Option<Schema<'a>> {
    let own = schema.properties().find(|(known, _)| *known == name);
    own.map(|(_, field)| field).or_else(|| step(schema.items().or_else(|| schema.values())?, name))
}

fn custom_schema(call: &mut Call<'_, '_>, kind: &KindRef) -> Result<Value, Failure> {
    if let Some(schema) = &kind.schema {
        return Ok(with_common_fields((**schema).clone()));
    }
    let definition = call.get(CustomResourceDefinition::kind(), "", &kind.qualified_resource())?;
    Ok(schema_in(&definition, kind))
}

/// The schema that a definition gives its kind, with the fields that every object has.
pub fn schema_in(definition: &Value, kind: &KindRef) -> Value {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let version = versions.into_iter().flatten().find(|version| version["name"] == *kind.version);
    let schema = version.and_then(|version| version.pointer("/schema/openAPIV3Schema")).cloned();
    with_common_fields(schema.unwrap_or(json!({})))
}

/// The schema of a custom kind with the fields that every object has, in the words in which built-in ones have them.
pub fn with_common_fields(mut schema: Value) -> Value {
    let pod = definitions().get("io.k8s.api.core.v1.Pod").and_then(|pod| pod.get("properties"));
    for field in ["apiVersion", "kind", "metadata"] {
        schema["properties"][field] = pod.and_then(|fields| fields.get(field)).cloned().unwrap_or_default();
    }
    schema
}

/// As kubectl's template of plain text has it. (`plaintext.tmpl` of k8s.io/kubectl/pkg/explain/v2.)
fn explain(schema: Schema<'_>, field: Option<&str>, recursive: bool) -> String {
    let mut text = String::new();
    if let Some(name) = field {
        text.push_str(&format!("FIELD: {name} <{}>\n", type_of(schema)));
        match schema.enumeration() {
            values if values.is_empty() => {}
            values => text.push_str(&format!("ENUM:\n    {}", shown(&values).join("\n    "))),
        }
        text.push_str("\n\n");
    }
    text.push_str("DESCRIPTION:\n");
    let description: String = schema.descriptions().iter().map(|text| format!("{text}\n")).collect();
    let description = if description.is_empty() { "<empty>".to_owned() } else { description };
    text.push_str(&format!("{}\n", indented(4, &wrapped(&description, LINE_WIDTH - 4))));
    let mut list = String::new();
    fields(&mut list, schema, 1, recursive, &mut Vec::new());
    if !list.is_empty() {
        text.push_str(&format!("FIELDS:\n{list}"));
    }
    text.push('\n');
    text
}

fn fields<'a>(text: &mut String, schema: Schema<'a>, level: usize, recursive: bool, within: &mut Vec<&'a str>) {
    if let Some(inner) = schema.items().or_else(|| schema.values().filter(|_| schema.properties().next().is_none())) {
        return fields(text, inner, level, recursive, within);
    }
    // A type may hold itself, as JSONSchemaProps does.
    let type_name = schema.type_name().unwrap_or_default();
    if !type_name.is_empty() && within.contains(&type_name) {
        return;
    }
    within.push(type_name);
    let indent = level * 2;
    // Every object has metadata, but nobody needs to write them, but for those of an event.
    let is_object = ["apiVersion", "kind"].iter().all(|name| schema.properties().any(|(known, _)| known == *name));
    let is_object = is_object && schema.type_name() != Some("io.k8s.api.core.v1.Event");
    for (name, field) in schema.properties() {
        let required = schema.is_required(name) && !(is_object && name == "metadata");
        let required = if required { " -required-" } else { "" };
        text.push_str(&format!("{}\t<{}>{required}", indented(indent, name), type_of(field)));
        let values = field.enumeration();
        if !values.is_empty() {
            let more = if values.len() > VALUES_MAX { ", ...." } else { "" };
            let first = shown(&values).into_iter().take(VALUES_MAX).collect::<Vec<_>>().join(", ");
            text.push_str(&format!("\n{}{first}{more}", indented(indent, "enum: ")));
        }
        text.push('\n');
        if recursive {
            fields(text, field, level + 1, true, within);
        } else {
            let description = field.own_description().unwrap_or("<no description>");
            let description = wrapped(description, LINE_WIDTH - 2 - indent);
            text.push_str(&format!("{}\n\n", indented(indent + 2, &description)));
        }
    }
    within.pop();
}

/// So many values are told in a list of fields.
const VALUES_MAX: usize = 4;

/// The empty value is one that has to be seen.
fn shown<'a>(values: &[&'a str]) -> Vec<&'a str> {
    values.iter().map(|value| if value.is_empty() { "\"\"" } else { value }).collect()
}

/// A type as explain names it: `string`, `PodSpec`, `[]Container`, `map[string]string`.
fn type_of(schema: Schema<'_>) -> String {
    if let Some(name) = schema.type_name() {
        return match name.rsplit('.').next().unwrap_or(name) {
            "Time" | "MicroTime" => "string".into(),
            short => short.to_owned(),
        };
    }
    let resolved = schema.resolved();
    let type_ = match resolved.get("type") {
        Some(Value::String(type_)) => type_.as_str(),
        Some(Value::Array(types)) => {
            types.iter().filter_map(Value::as_str).find(|type_| *type_ != "null").unwrap_or("Object")
        }
        _ => "Object",
    };
    match type_ {
        "array" => format!("[]{}", schema.items().map_or("Object".into(), type_of)),
        "object" => match resolved.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => format!("map[string]{}", type_of(Schema::new(values))),
            None => "Object".into(),
        },
        other => other.to_owned(),
    }
}

const LINE_WIDTH: usize = 80;

fn indented(width: usize, text: &str) -> String {
    let pad = " ".repeat(width);
    format!("{pad}{}", text.replace('\n', &format!("\n{pad}")))
}

/// Lines of at most so many columns. Spaces stay as they are, but for those at which a line is broken; a word that is
/// longer than a line is not. (github.com/mitchellh/go-wordwrap.)
fn wrapped(text: &str, width: usize) -> String {
    let (mut out, mut space, mut word) = (String::new(), String::new(), String::new());
    let (mut column, mut spaces, mut letters) = (0, 0, 0);
    for letter in text.chars() {
        if letter == '\n' {
            if letters > 0 || column + spaces <= width {
                out.push_str(&space);
            }
            out.push_str(&word);
            out.push('\n');
            space.clear();
            word.clear();
            (column, spaces, letters) = (0, 0, 0);
        } else if letter == ' ' || letter == '\t' {
            if spaces == 0 || letters > 0 {
                column += spaces + letters;
                out.push_str(&std::mem::take(&mut space));
                out.push_str(&std::mem::take(&mut word));
                (spaces, letters) = (0, 0);
            }
            space.push(letter);
            spaces += 1;
        } else {
            word.push(letter);
            letters += 1;
            if column + spaces + letters > width && letters < width {
                out.push('\n');
                space.clear();
                (column, spaces) = (0, 0);
            }
        }
    }
    if letters > 0 || column + spaces <= width {
        out.push_str(&space);
    }
    out.push_str(&word);
    out
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn a_field_is_told_with_its_values() {
        let spec = Schema::of(Pod::kind()).and_then(|pod| pod.property("spec")).unwrap();
        let text = explain(spec.property("restartPolicy").unwrap(), Some("restartPolicy"), false);
        assert!(
            text.starts_with("FIELD: restartPolicy <string>\nENUM:\n    Always\n    Never\n    OnFailure\n\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "\nDESCRIPTION:\n    Restart policy for all containers within the pod. One of Always, OnFailure,\n"
            ),
            "{text}"
        );
        let text = explain(spec.property("containers").unwrap(), Some("containers"), false);
        assert!(text.starts_with("FIELD: containers <[]Container>\n"), "{text}");
        assert!(
            text.contains("  name\t<string> -required-\n    Name of the container specified as a DNS_LABEL."),
            "{text}"
        );
    }

    #[test]
    fn a_type_that_holds_itself_ends() {
        let schema = Schema::of(CustomResourceDefinition::kind()).unwrap();
        assert!(explain(schema, None, true).contains("openAPIV3Schema\t<JSONSchemaProps>"));
    }
}
