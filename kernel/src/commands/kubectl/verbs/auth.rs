//! `kubectl auth can-i`, `auth whoami`: what one may do, and who one is.
//! <https://kubernetes.io/docs/reference/kubectl/generated/kubectl_auth/>

use cluster_core::api::kind::{KindRef, Resource};
use cluster_core::api::request::Options;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SelfSubjectRulesReview};
use serde_json::{Value, json};

use super::super::columns::align;
use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{switch, text};
use super::super::output::OUTPUT;
use super::super::resources::find_kind;
use super::super::verb::{Call, Verb};
use super::group;

pub const AUTH: Verb = Verb { name: "auth", aliases: &[], flags: &[], run: group::on_stderr };

pub const CAN_I: Verb = Verb {
    name: "auth can-i",
    aliases: &[],
    flags: &[
        switch("all-namespaces").short('A'),
        switch("quiet").short('q'),
        switch("list"),
        switch("no-headers"),
        text("subresource"),
    ],
    run: can_i,
};

pub const WHO_AM_I: Verb = Verb { name: "auth whoami", aliases: &[], flags: &[OUTPUT], run: who_am_i };

/// Asks the server a question, which it answers by what it returns.
fn ask<K: Resource>(call: &mut Call<'_, '_>, spec: Value) -> Result<Value, Failure> {
    call.create(KindRef::of::<K>(), "", json!({"spec": spec}), Options::default())
}

/// Verbs that mean something to resources, and to paths that are none.
const RESOURCE_VERBS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "use",
    "bind",
    "impersonate",
    "*",
    "approve",
    "sign",
    "escalate",
    "attest",
];
const PATH_VERBS: &[&str] = &["get", "put", "post", "head", "options", "delete", "patch", "*"];

fn can_i(call: &mut Call<'_, '_>) -> Outcome {
    if call.parsed.switch("list") {
        return list(call);
    }
    let spec = match call.parsed.args.clone().as_slice() {
        [verb, path] if path.starts_with('/') => json!({"nonResourceAttributes": {"verb": verb, "path": path}}),
        [verb, what] => {
            let (resource, name) = what.split_once('/').unwrap_or((what, ""));
            let (group, resource) = resource_of(call, resource)?;
            let namespace = if call.parsed.switch("all-namespaces") { "" } else { &call.namespace };
            let subresource = call.parsed.text("subresource").unwrap_or_default();
            json!({"resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource,
                "namespace": namespace, "name": name,
            }})
        }
        _ => {
            return message(
                "you must specify two arguments: verb resource or verb resource/resourceName.\nSee 'kubectl auth can-i -h' for help and examples.",
            );
        }
    };
    let of_path = spec.get("nonResourceAttributes").is_some();
    if of_path && call.parsed.has("subresource") {
        return message("--subresource can not be used with NonResourceURL");
    }
    let known = if of_path { PATH_VERBS } else { RESOURCE_VERBS };
    if !known.contains(&call.parsed.args[0].as_str()) && (of_path || !call.parsed.switch("all-namespaces")) {
        call.warn(format!("verb '{}' is not a known verb\n", call.parsed.args[0]));
    }
    if call.parsed.switch("no-headers") {
        return message("--no-headers cannot be set without --list specified");
    }
    let answer = ask::<SelfSubjectAccessReview>(call, spec)?;
    let allowed = answer["status"]["allowed"] == true;
    if !call.parsed.switch("quiet") {
        let reason = answer["status"]["reason"].as_str().filter(|reason| !allowed && !reason.is_empty());
        let reason = reason.map(|reason| format!(" - {reason}")).unwrap_or_default();
        call.line(format!("{}{reason}", if allowed { "yes" } else { "no" }));
    }
    if allowed { Ok(()) } else { Err(Failure::Quiet) }
}

/// Everything that one may do in the namespace, a line for each resource.
fn list(call: &mut Call<'_, '_>) -> Outcome {
    if !call.parsed.args.is_empty() {
        return message("list option must be specified with no arguments");
    }
    let parsed = &call.parsed;
    if parsed.switch("quiet") || parsed.switch("all-namespaces") || parsed.has("subresource") {
        return message("list option can't be specified with neither quiet, all-namespaces nor subresource options");
    }
    let spec = json!({"namespace": call.namespace});
    let answer = ask::<SelfSubjectRulesReview>(call, spec)?;
    let status = &answer["status"];
    if status["incomplete"] == true {
        call.warn(format!("the list may be incomplete: {}", status["evaluationError"].as_str().unwrap_or_default()));
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    if !call.parsed.switch("no-headers") {
        rows.push(["Resources", "Non-Resource URLs", "Resource Names", "Verbs"].map(str::to_owned).into());
    }
    rows.extend(grants(status).iter().map(Grant::row));
    call.context.print(align(&rows));
    Ok(())
}

/// One resource, perhaps only one object of it, or one path, with all that may be done.
struct Grant {
    group: String,
    resource: String,
    path: String,
    name: String,
    verbs: Vec<String>,
}

impl Grant {
    fn row(&self) -> Vec<String> {
        let Grant { group, resource, path, name, verbs } = self;
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let dot = if group.is_empty() { "" } else { "." };
        let slash = if part.is_empty() { "" } else { "/" };
        vec![
            format!("{resource}{dot}{group}{slash}{part}"),
            format!("[{path}]"),
            format!("[{name}]"),
            format!("[{}]", verbs.join(" ")),
        ]
    }
}

/// Rules taken apart, and those about the same resource put together. Paths stand for themselves, a line a verb.
fn grants(status: &Value) -> Vec<Grant> {
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        rule[field].as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let rules = |field: &str| status[field].as_array().cloned().unwrap_or_default();
    let mut grants: Vec<Grant> = Vec::new();
    for rule in rules("resourceRules") {
        let mut names = texts(&rule, "resourceNames");
        if names.is_empty() {
            names.push(String::new());
        }
        for group in texts(&rule, "apiGroups") {
            for resource in texts(&rule, "resources") {
                for name in &names {
                    let same =
                        |known: &&mut Grant| known.group == group && known.resource == resource && known.name == *name;
                    let verbs = texts(&rule, "verbs");
                    match grants.iter_mut().find(same) {
                        Some(known) => {
                            let more: Vec<String> =
                                verbs.into_iter().filter(|verb| !known.verbs.contains(verb)).collect();
                            known.verbs.extend(more);
                        }
                        None => grants.push(Grant {
                            group: group.clone(),
                            resource: resource.clone(),
                            path: String::new(),
                            name: name.clone(),
                            verbs,
                        }),
                    }
                }
            }
        }
    }
    for rule in rules("nonResourceRules") {
        for path in texts(&rule, "nonResourceURLs") {
            grants.extend(texts(&rule, "verbs").into_iter().map(|verb| Grant {
                group: String::new(),
                resource: String::new(),
                path: path.clone(),
                name: String::new(),
                verbs: vec![verb],
            }));
        }
    }
    // kubectl sorts by what Go prints of a rule.
    grants.sort_by_cached_key(|Grant { group, resource, path, name, verbs }| {
        format!(
            "Verbs:[{}],APIGroups:[{group}],Resources:[{resource}],ResourceNames:[{name}],NonResourceURLs:[{path}],",
            verbs.join(" ")
        )
    });
    grants
}

/// Group and resource that a word means. One that the server does not have is asked about as it stands.
fn resource_of(call: &mut Call<'_, '_>, word: &str) -> Result<(String, String), Failure> {
    if word == "*" {
        return Ok((String::new(), word.to_owned()));
    }
    let kinds = call.context.api.kinds()?;
    let Some(kind) = find_kind(&kinds, word) else {
        let (resource, group) = word.split_once('.').unwrap_or((word, ""));
        let of_group = if group.is_empty() { String::new() } else { format!(" in group '{group}'") };
        call.warn(format!("the server doesn't have a resource type '{resource}'{of_group}\n"));
        return Ok((group.to_owned(), resource.to_owned()));
    };
    if !kind.namespaced && !call.parsed.switch("all-namespaces") {
        let of_group = if kind.group.is_empty() { String::new() } else { format!(" in group '{}'", kind.group) };
        call.warn(format!("resource '{}' is not namespace scoped{of_group}\n", kind.resource));
    }
    Ok((kind.group.to_string(), kind.resource.to_string()))
}

fn who_am_i(call: &mut Call<'_, '_>) -> Outcome {
    let review = call.create(KindRef::of::<SelfSubjectReview>(), "", json!({}), Options::default())?;
    match call.parsed.text("output") {
        None => {}
        Some("json") => {
            call.line(format!("{review:#}"));
            return Ok(());
        }
        Some("yaml") => {
            call.context.print(crate::yaml::print(&review));
            return Ok(());
        }
        Some(other) => {
            return message(format!(
                "unable to match a printer suitable for the output format {other:?}, allowed formats are: json,yaml"
            ));
        }
    }
    let user = &review["status"]["userInfo"];
    let list = |value: &Value| {
        let texts: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!("[{}]", texts.join(" "))
    };
    let mut rows = vec![["ATTRIBUTE".to_owned(), "VALUE".to_owned()]];
    for (title, field) in [("Username", "username"), ("UID", "uid")] {
        if let Some(text) = user[field].as_str() {
            rows.push([title.to_owned(), text.to_owned()]);
        }
    }
    if user["groups"].is_array() {
        rows.push(["Groups".to_owned(), list(&user["groups"])]);
    }
    for (key, values) in user["extra"].as_object().into_iter().flatten() {
        rows.push([format!("Extra: {key}"), list(values)]);
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    call.context.print(align(&rows));
    Ok(())
}
