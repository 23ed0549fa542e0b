//! The old document, OpenAPI 2.0 ("Swagger"): all versions in one, in the words of the new ones.

use serde_json::{Map, Value, json};

use super::schemas::PREFIX;
use super::{Group, document};
use crate::apiserver::discovery::VERSION;

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

pub fn whole(groups: &[Group<'_>]) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for group in groups {
        for version in &group.versions {
            let Value::Object(mut document) = document(group, version) else { continue };
            if let Some(Value::Object(more)) = document.remove("paths") {
                paths.extend(more.into_iter().map(|(path, item)| (path, path_item(item))));
            }
            let schemas = document.get_mut("components").and_then(|components| components.get_mut("schemas"));
            if let Some(Value::Object(more)) = schemas.map(Value::take) {
                definitions.extend(more.into_iter().map(|(name, schema)| (name, definition(schema))));
            }
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": {
            "type": "apiKey", "in": "header", "name": "authorization", "description": "Bearer Token authentication",
        }},
        "security": [{"BearerToken": []}],
    })
}

/// A resource that may have any field is told of by its kind alone, or kubectl would refuse the fields that are not told.
fn definition(value: Value) -> Value {
    const KIND: &str = "x-kubernetes-group-version-kind";
    match (value.get(KIND), value.get("x-kubernetes-preserve-unknown-fields")) {
        (Some(kind), Some(Value::Bool(true))) => json!({"type": "object", KIND: kind}),
        _ => schema(value),
    }
}

/// Without what 2.0 can't say: alternatives, null.
fn schema(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    let mut converted = Map::new();
    for (name, field) in fields {
        match (name.as_str(), field) {
            ("$ref", Value::String(target)) => {
                converted.insert(name, target.replace(PREFIX, "#/definitions/").into());
            }
            ("allOf", Value::Array(mut schemas)) if schemas.len() == 1 => {
                if let Value::Object(only) = schema(schemas.remove(0)) {
                    converted.extend(only);
                }
            }
            ("oneOf", Value::Array(alternatives)) => {
                // A quantity, or a number or a name: text always will do.
                if alternatives.iter().any(|alternative| alternative["type"] == "string") {
                    converted.insert("type".into(), "string".into());
                }
            }
            ("allOf" | "anyOf" | "not" | "nullable", _) => {}
            ("properties", Value::Object(properties)) => {
                let properties = properties.into_iter().map(|(name, property)| (name, schema(property)));
                converted.insert(name, properties.collect());
            }
            ("items" | "additionalProperties", field) => {
                converted.insert(name, schema(field));
            }
            (_, field) => {
                converted.insert(name, field);
            }
        }
    }
    Value::Object(converted)
}

fn path_item(item: Value) -> Value {
    let Value::Object(fields) = item else { return item };
    let convert = |(name, field): (String, Value)| {
        let field = match (name.as_str(), field) {
            ("parameters", Value::Array(parameters)) => parameters.into_iter().map(parameter).collect(),
            (method, operation) if METHODS.contains(&method) => self::operation(operation),
            (_, field) => field,
        };
        (name, field)
    };
    fields.into_iter().map(convert).collect()
}

fn operation(mut operation: Value) -> Value {
    let Value::Object(fields) = &mut operation else { return operation };
    let mut parameters: Vec<Value> = match fields.remove("parameters") {
        Some(Value::Array(parameters)) => parameters.into_iter().map(parameter).collect(),
        _ => Vec::new(),
    };
    let mut consumes = vec![Value::from("*/*")];
    if let Some(mut body) = fields.remove("requestBody") {
        let required = body["required"].take();
        if let Some((forms, schema)) = contents(&mut body) {
            parameters.insert(0, json!({"in": "body", "name": "body", "required": required, "schema": schema}));
            consumes = forms;
        }
    }
    let mut produces = Vec::new();
    for response in fields.get_mut("responses").and_then(Value::as_object_mut).into_iter().flatten().map(|(_, r)| r) {
        if let Some((forms, schema)) = contents(response) {
            response["schema"] = schema;
            produces = forms;
        }
    }
    fields.insert("consumes".into(), consumes.into());
    fields.insert("produces".into(), produces.into());
    fields.insert("schemes".into(), json!(["https"]));
    fields.insert("parameters".into(), parameters.into());
    operation
}

/// Takes the content of a body: its media types and its schema.
fn contents(body: &mut Value) -> Option<(Vec<Value>, Value)> {
    let Some(Value::Object(content)) = body.as_object_mut()?.remove("content") else { return None };
    let forms = content.keys().map(|form| Value::from(form.as_str())).collect();
    let (_, mut first) = content.into_iter().next()?;
    Some((forms, schema(first["schema"].take())))
}

/// A parameter of 2.0 has its type in itself.
fn parameter(mut parameter: Value) -> Value {
    if let Value::Object(fields) = &mut parameter
        && let Some(Value::Object(schema)) = fields.remove("schema")
    {
        fields.extend(schema);
    }
    parameter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::ApiServer;
    use crate::apiserver::discovery::groups;

    #[test]
    fn everything_is_in_one_document() {
        let server = ApiServer::new();
        let document = whole(&groups(server.kinds()));
        let definitions = &document["definitions"];
        let spec = &definitions["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"];
        assert_eq!(spec["$ref"], "#/definitions/io.k8s.api.apps.v1.DeploymentSpec");
        assert_eq!(definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["type"], "string");
        let create = &document["paths"]["/api/v1/namespaces/{namespace}/pods"]["post"];
        assert_eq!(create["parameters"][0]["schema"]["$ref"], "#/definitions/io.k8s.api.core.v1.Pod");
        assert_eq!(create["parameters"][1]["type"], "string");
        assert_eq!(create["responses"]["201"]["schema"]["$ref"], "#/definitions/io.k8s.api.core.v1.Pod");
        assert!(!document.to_string().contains("#/components/"));
    }
}
