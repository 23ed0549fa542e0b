//! `kubectl explain`

use cluster_core::api::kind::{KindRef, Resource};
use cluster_core::api::schema::Schema;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{switch, text};
use super::super::output::OUTPUT;
use super::super::resources::find_kind;
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb {
    name: "explain",
    aliases: &[],
    about: "Get documentation for a resource",
    usage: "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [-o|--output=plaintext|plaintext-openapiv2] [options]",
    flags: &[OUTPUT, switch("recursive"), text("api-version")],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let [path] = call.parsed.args.as_slice() else {
        return match call.parsed.args.is_empty() {
            true => message(
                "You must specify the type of resource to explain. Use \"kubectl api-resources\" for a complete list of supported resources.",
            ),
            false => message("We accept only this format: explain RESOURCE"),
        };
    };
    let mut names = path.split('.');
    let word = names.next().unwrap_or_default().to_owned();
    let fields: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let version = call.parsed.text("api-version").map(str::to_owned);
    let kinds = call.context.api.kinds()?;
    let of_version: Vec<KindRef> = match &version {
        Some(version) => kinds.into_iter().filter(|kind| kind.api_version() == *version).collect(),
        None => kinds,
    };
    let Some(kind) = find_kind(&of_version, &word).cloned() else {
        return Err(Failure::Raw(format!("the server doesn't have a resource type {word:?}")));
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
        let inner = place.items().unwrap_or(place);
        place = match inner.property(name).filter(|_| has_field(&inner, name)) {
            Some(field) => field,
            None => return message(format!("field {name:?} does not exist")),
        };
    }
    let text = explain(place, fields.last().map(String::as_str), recursive);
    call.context.print(text);
    Ok(())
}

fn has_field(schema: &Schema<'_>, name: &str) -> bool {
    schema.properties().any(|(known, _)| known == name)
}

/// The schema that a definition gives its kind, with the fields that every object has.
fn custom_schema(call: &mut Call<'_, '_>, kind: &KindRef) -> Result<Value, Failure> {
    let definition = call.get(CustomResourceDefinition::kind(), "", &kind.qualified_resource())?;
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let version = versions.into_iter().flatten().find(|version| version["name"] == *kind.version);
    let mut schema =
        version.and_then(|version| version.pointer("/schema/openAPIV3Schema")).cloned().unwrap_or(json!({}));
    let name = <ObjectMeta as k8s_openapi::schemars::JsonSchema>::schema_name();
    schema["properties"]["apiVersion"] = json!({"type": "string"});
    schema["properties"]["kind"] = json!({"type": "string"});
    schema["properties"]["metadata"] = json!({"$ref": format!("#/$defs/{name}")});
    Ok(schema)
}

fn explain(schema: Schema<'_>, field: Option<&str>, recursive: bool) -> String {
    let mut text = String::new();
    if let Some(name) = field {
        text.push_str(&format!("FIELD: {name} <{}>\n", type_of(schema)));
        match values(schema) {
            values if values.is_empty() => text.push('\n'),
            values => text.push_str(&format!("ENUM:\n    {}\n", values.join("\n    "))),
        }
        text.push('\n');
    }
    text.push_str("DESCRIPTION:\n");
    let own = schema.description().trim();
    let of_type = schema.resolved().get("description").and_then(Value::as_str).unwrap_or_default().trim();
    let description = match field.is_some() && own != of_type && !of_type.is_empty() {
        true => format!("{own}\n{of_type}"),
        false => own.to_owned(),
    };
    match description.is_empty() {
        true => text.push_str("    <empty>\n"),
        false => {
            text.push_str(&wrapped(&description, "    "));
            text.push_str("    \n");
        }
    }
    let inner = schema.items().unwrap_or(schema);
    if inner.properties().next().is_some() {
        text.push_str("FIELDS:\n");
        fields(&mut text, inner, 1, recursive, &mut Vec::new());
        text.push('\n');
    } else {
        text.push_str("\n\n");
    }
    text
}

fn fields<'a>(text: &mut String, schema: Schema<'a>, level: usize, recursive: bool, within: &mut Vec<&'a str>) {
    let indent = "  ".repeat(level);
    for (name, field) in schema.properties() {
        let required = if schema.is_required(name) { " -required-" } else { "" };
        text.push_str(&format!("{indent}{name}\t<{}>{required}\n", type_of(field)));
        let values = values(field);
        if !values.is_empty() {
            text.push_str(&format!("{indent}enum: {}\n", values.join(", ")));
        }
        if recursive {
            let inner = field.items().unwrap_or(field);
            // A type may hold itself, as JSONSchemaProps does.
            let type_name = inner.type_name().unwrap_or_default();
            if !within.contains(&type_name) || type_name.is_empty() {
                within.push(type_name);
                fields(text, inner, level + 1, true, within);
                within.pop();
            }
        } else {
            let description = field.description().trim();
            match description.is_empty() {
                true => text.push_str(&format!("{indent}  <no description>\n\n")),
                false => {
                    text.push_str(&wrapped(description, &format!("{indent}  ")));
                    text.push('\n');
                }
            }
        }
    }
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
        _ if resolved.get("x-kubernetes-int-or-string").is_some() => "IntOrString",
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

/// The values that a field may have, sorted.
fn values(schema: Schema<'_>) -> Vec<String> {
    let listed = schema.resolved().get("enum").and_then(Value::as_array);
    let mut values: Vec<String> = listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if values.is_empty()
        && let Some((_, list)) = schema.description().split_once("Possible enum values:")
    {
        let quoted = list.lines().filter_map(|line| line.trim().strip_prefix("- `\"")?.split_once("\"`"));
        values = quoted.map(|(value, _)| value.to_owned()).collect();
    }
    values.sort();
    values
}

const LINE_WIDTH: usize = 80;

/// Lines of at most 80 columns, each behind an indent. Runs of spaces within a line stay.
fn wrapped(text: &str, indent: &str) -> String {
    let width = LINE_WIDTH.saturating_sub(indent.len());
    let mut wrapped = String::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut space = String::new();
        for part in paragraph.split_inclusive(' ') {
            let word = part.trim_end_matches(' ');
            let length = line.chars().count() + space.chars().count() + word.chars().count();
            if !line.trim().is_empty() && !word.is_empty() && length > width {
                wrapped.push_str(&format!("{indent}{}\n", std::mem::take(&mut line)));
                space.clear();
            }
            line.push_str(&std::mem::take(&mut space));
            line.push_str(word);
            space = " ".repeat(part.len() - word.len());
        }
        wrapped.push_str(&format!("{indent}{line}\n"));
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn a_field_is_told_with_its_values() {
        let spec = Schema::of(Pod::kind()).and_then(|pod| pod.property("spec")).unwrap();
        let text = explain(spec.property("restartPolicy").unwrap(), Some("restartPolicy"), false);
        assert!(text.starts_with("FIELD: restartPolicy <string>\n"), "{text}");
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
