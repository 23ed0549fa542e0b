//! What can be done with a resource: its paths, with an operation for each verb.

use serde_json::{Map, Value, json};

use super::schemas::{gvk, reference, type_name};
use super::{Group, META, Version};
use crate::api::kind::KindRef;
use crate::apiserver::discovery::{is_custom, subresource_kind};

/// Parameters by their names, types and meanings.
type Parameters = &'static [(&'static str, &'static str, &'static str)];

const WRITE: Parameters = &[
    ("dryRun", "string", "With the value All nothing is stored."),
    ("fieldManager", "string", "The name of the actor or program that makes these changes."),
    ("fieldValidation", "string", "What happens to unknown and duplicate fields: Ignore, Warn or Strict."),
];
const PATCH: Parameters = &[
    WRITE[0],
    WRITE[1],
    WRITE[2],
    ("force", "boolean", "Take fields over that other managers own. Only for apply patches."),
];
const DELETE: Parameters = &[
    WRITE[0],
    ("gracePeriodSeconds", "integer", "The seconds that the object has to end by itself; 0 means at once."),
    ("orphanDependents", "boolean", "Deprecated: use propagationPolicy."),
    ("propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground."),
];
const LIST: Parameters = &[
    ("allowWatchBookmarks", "boolean", "Ask for events of type BOOKMARK."),
    ("continue", "string", "Where the next page begins, as the last page said."),
    ("fieldSelector", "string", "Restrict the list by fields."),
    ("labelSelector", "string", "Restrict the list by labels."),
    ("limit", "integer", "The largest number of items of a page."),
    ("resourceVersion", "string", "The revision to answer from."),
    ("resourceVersionMatch", "string", "How the revision is meant: NotOlderThan or Exact."),
    ("sendInitialEvents", "boolean", "Begin a watch with the state, then a bookmark."),
    ("timeoutSeconds", "integer", "How long the call may last."),
    ("watch", "boolean", "Answer with a stream of changes."),
];
const DELETE_COLLECTION: Parameters = &[
    LIST[1], DELETE[0], LIST[2], DELETE[1], LIST[3], LIST[4], DELETE[2], DELETE[3], LIST[5], LIST[6], LIST[7], LIST[8],
];

/// A method of a path: what it does to which type.
struct Operation<'a> {
    method: &'static str,
    /// As `x-kubernetes-action` names it.
    action: &'static str,
    id: String,
    parameters: Parameters,
    /// What goes in and what comes out, by their types.
    body: Option<&'a str>,
    answer: &'a str,
    codes: &'static [u16],
    gvk: Value,
}

/// The path that lists the resources of a version.
pub fn resources(group: &Group<'_>, version: &Version<'_>) -> Value {
    let answer = content(&reference(&format!("{META}.APIResourceList")), &["application/json", "application/yaml"]);
    json!({"get": {
        "tags": [tag(group.name, version.name)],
        "description": "get available resources",
        "operationId": format!("get{}APIResources", camel(group.name, version.name)),
        "responses": {"200": {"description": "OK", "content": answer}, "401": {"description": "Unauthorized"}},
    }})
}

/// Adds the paths of a resource and its subresources.
pub fn add(paths: &mut Map<String, Value>, kind: &KindRef) {
    let root = format!("{}/{}", if kind.group.is_empty() { "/api" } else { "/apis" }, kind.api_version());
    let (camel, own) = (camel(&kind.group, &kind.version), type_name(kind));
    let (list, status, delete) = (format!("{own}List"), format!("{META}.Status"), format!("{META}.DeleteOptions"));
    let patch = format!("{META}.Patch");
    let scope = if kind.namespaced { "Namespaced" } else { "" };
    let collection = match kind.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{}", kind.resource),
        false => format!("{root}/{}", kind.resource),
    };
    let make = |method, action, verb: &str, suffix: &str, parameters, body, answer, codes| Operation {
        method,
        action,
        id: format!("{verb}{camel}{scope}{}{suffix}", kind.kind),
        parameters,
        body,
        answer,
        codes,
        gvk: gvk(&kind.group, &kind.version, &kind.kind),
    };
    let mut put = |path: &str, operations: Vec<Operation<'_>>| {
        if !operations.is_empty() {
            paths.insert(path.to_owned(), item(path, kind, operations));
        }
    };
    if kind.namespaced && kind.allows("list") {
        let mut all = make("get", "list", "list", "", LIST, None, &list, &[200]);
        all.id = format!("list{camel}{}ForAllNamespaces", kind.kind);
        put(&format!("{root}/{}", kind.resource), vec![all]);
    }
    let many = [
        ("list", make("get", "list", "list", "", LIST, None, list.as_str(), &[200][..])),
        ("create", make("post", "post", "create", "", WRITE, Some(own.as_str()), &own, &[200, 201, 202])),
        ("deletecollection", {
            let mut all =
                make("delete", "deletecollection", "delete", "", DELETE_COLLECTION, Some(&delete), &status, &[200]);
            all.id = format!("delete{camel}Collection{scope}{}", kind.kind);
            all
        }),
    ];
    put(&collection, many.into_iter().filter(|(verb, _)| kind.allows(verb)).map(|(_, operation)| operation).collect());
    let one = [
        ("get", make("get", "get", "read", "", &[], None, &own, &[200])),
        ("update", make("put", "put", "replace", "", WRITE, Some(&own), &own, &[200, 201])),
        ("patch", make("patch", "patch", "patch", "", PATCH, Some(&patch), &own, &[200, 201])),
        ("delete", make("delete", "delete", "delete", "", DELETE, Some(&delete), &status, &[200, 202])),
    ];
    let object = format!("{collection}/{{name}}");
    put(&object, one.into_iter().filter(|(verb, _)| kind.allows(verb)).map(|(_, operation)| operation).collect());
    for (subresource, verbs) in &kind.subresources {
        let (group_version, response) = subresource_kind(kind, subresource);
        let (group, version) = group_version.unwrap_or((&kind.group, &kind.version));
        let answer = match (&**subresource, &*response) {
            ("scale", _) => "io.k8s.api.autoscaling.v1.Scale",
            ("eviction", _) => "io.k8s.api.policy.v1.Eviction",
            ("token", _) => "io.k8s.api.authentication.v1.TokenRequest",
            ("binding", _) => "io.k8s.api.core.v1.Binding",
            _ => &own,
        };
        let suffix: String = pascal(subresource);
        let connects = response.ends_with("Options");
        let operations = verbs.iter().filter_map(|verb| {
            let mut operation = match &**verb {
                "get" => make("get", "get", "read", &suffix, &[], None, answer, &[200]),
                "update" => make("put", "put", "replace", &suffix, WRITE, Some(answer), answer, &[200, 201]),
                "patch" => make("patch", "patch", "patch", &suffix, PATCH, Some(&patch), answer, &[200, 201]),
                "create" => make("post", "post", "create", &suffix, WRITE, Some(answer), answer, &[200, 201, 202]),
                "delete" => make("delete", "delete", "delete", &suffix, &[], None, answer, &[200]),
                _ => return None,
            };
            if connects {
                // A conversation in bytes, with no type of its own.
                operation.action = "connect";
                operation.id = format!("connect{camel}{}{scope}{}{suffix}", pascal(operation.method), kind.kind);
                (operation.body, operation.parameters, operation.answer, operation.codes) = (None, &[], "", &[200]);
            } else if **subresource == *"log" {
                (operation.id, operation.answer) = (format!("read{camel}{scope}{}Log", kind.kind), "");
            }
            operation.gvk = gvk(group, version, &response);
            Some(operation)
        });
        put(&format!("{object}/{subresource}"), operations.collect());
    }
}

fn item(path: &str, kind: &KindRef, operations: Vec<Operation<'_>>) -> Value {
    let mut item = Map::new();
    for operation in operations {
        item.insert(operation.method.into(), described(&operation, kind));
    }
    let text = |name: &str, place: &str, description: &str| {
        json!({
            "name": name, "in": place, "required": place == "path", "description": description,
            "schema": {"type": "string", "uniqueItems": true},
        })
    };
    let mut parameters = Vec::new();
    if path.contains("{name}") {
        parameters.push(text("name", "path", &format!("name of the {}", kind.kind)));
    }
    if path.contains("{namespace}") {
        parameters.push(text("namespace", "path", "object name and auth scope, such as for teams and projects"));
    }
    parameters.push(text("pretty", "query", "Indent the answer, for a person."));
    item.insert("parameters".into(), parameters.into());
    Value::Object(item)
}

fn described(operation: &Operation<'_>, kind: &KindRef) -> Value {
    const FORMS: [&str; 2] = ["application/json", "application/yaml"];
    let answer = match operation {
        Operation { answer: "", .. } => content(&json!({"type": "string"}), &["*/*"]),
        Operation { action: "list", .. } => {
            content(&reference(operation.answer), &[FORMS[0], "application/json;stream=watch", FORMS[1]])
        }
        _ => content(&reference(operation.answer), &FORMS),
    };
    let mut responses: Map<String, Value> = operation
        .codes
        .iter()
        .map(|code| (code.to_string(), json!({"description": phrase(*code), "content": answer})))
        .collect();
    responses.insert("401".into(), json!({"description": "Unauthorized"}));
    let parameter = |(name, of, description): &(&str, &str, &str)| json!({"name": name, "in": "query", "description": description, "schema": {"type": of, "uniqueItems": true}});
    let mut described = json!({
        "tags": [tag(&kind.group, &kind.version)],
        "description": format!("{} {}", operation.action, kind.kind),
        "operationId": operation.id,
        "parameters": operation.parameters.iter().map(parameter).collect::<Vec<Value>>(),
        "responses": responses,
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": operation.gvk,
    });
    if let Some(body) = operation.body {
        const PATCHES: [&str; 4] = [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ];
        let forms: &[&str] = match operation.action {
            // Custom resources have no strategic merge.
            "patch" if is_custom(kind) => &PATCHES[..3],
            "patch" => &PATCHES,
            _ => &FORMS,
        };
        let required = !body.ends_with(".DeleteOptions");
        described["requestBody"] = json!({"content": content(&reference(body), forms), "required": required});
    }
    described
}

fn content(schema: &Value, forms: &[&str]) -> Value {
    forms.iter().map(|form| ((*form).to_owned(), json!({"schema": schema}))).collect()
}

fn phrase(code: u16) -> &'static str {
    match code {
        201 => "Created",
        202 => "Accepted",
        _ => "OK",
    }
}

/// `apps_v1`, `core_v1`
fn tag(group: &str, version: &str) -> String {
    format!("{}_{version}", short(group).replace('.', "_"))
}

/// `AppsV1`, `CoreV1`, `RbacAuthorizationV1`
fn camel(group: &str, version: &str) -> String {
    short(group).split('.').map(pascal).chain([pascal(version)]).collect()
}

fn short(group: &str) -> &str {
    if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) }
}

fn pascal(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
