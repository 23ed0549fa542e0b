//! `kubectl auth can-i`, `auth whoami`: what one may do, and who one is.
//! <https://kubernetes.io/docs/reference/kubectl/generated/kubectl_auth/>

use cluster_core::api::kind::{KindRef, Resource};
use cluster_core::api::request::Options;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use serde_json::{Value, json};

use super::super::columns::align;
use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{switch, text};
use super::super::output::OUTPUT;
use super::super::resources::find_kind;
use super::super::verb::{Call, Verb};

pub const CAN_I: Verb = Verb {
    name: "auth can-i",
    aliases: &[],
    about: "Check whether an action is allowed",
    usage: "auth can-i VERB [TYPE | TYPE/NAME | NONRESOURCEURL] [flags] [options]",
    flags: &[switch("all-namespaces").short('A'), switch("quiet").short('q'), text("subresource")],
    run: can_i,
};

pub const WHO_AM_I: Verb = Verb {
    name: "auth whoami",
    aliases: &[],
    about: "Experimental: Check self subject attributes",
    usage: "auth whoami [options]",
    flags: &[OUTPUT],
    run: who_am_i,
};

/// Asks the server a question, which it answers by what it returns.
fn ask<K: Resource>(call: &mut Call<'_, '_>, spec: Value) -> Result<Value, Failure> {
    call.create(KindRef::of::<K>(), "", json!({"spec": spec}), Options::default())
}

fn can_i(call: &mut Call<'_, '_>) -> Outcome {
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
                "you must specify two arguments: verb resource or verb resource/resourceName.\nSee 'kubectl auth can-i -h' for help and examples",
            );
        }
    };
    let answer = ask::<SelfSubjectAccessReview>(call, spec)?;
    let allowed = answer["status"]["allowed"] == true;
    if !call.parsed.switch("quiet") {
        let reason = answer["status"]["reason"].as_str().filter(|reason| !allowed && !reason.is_empty());
        let reason = reason.map(|reason| format!(" - {reason}")).unwrap_or_default();
        call.line(format!("{}{reason}", if allowed { "yes" } else { "no" }));
    }
    if allowed { Ok(()) } else { Err(Failure::Quiet) }
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
