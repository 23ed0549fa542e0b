//! The verbs of `kubectl config` that are about users.

use serde_json::{Value, json};

use super::super::super::failure::{Outcome, message, usage};
use super::super::super::verb::Call;
use super::clusters::Entry;
use super::{Kubeconfig, show_help};

const FILES: [&str; 2] = ["client-certificate", "client-key"];
const INTERACTIVE_MODES: [&str; 3] = ["IfAvailable", "Never", "Always"];

pub fn set(call: &mut Call<'_, '_>) -> Outcome {
    let [name] = call.parsed.args.as_slice() else {
        show_help(call);
        return message(format!("unexpected args: [{}]", call.parsed.args.join(" ")));
    };
    let name = name.clone();
    let pairs = [pairs(call, "auth-provider-arg")?, pairs(call, "exec-env")?];
    if name.is_empty() {
        return message("you must specify a non-empty user name");
    }
    let is_set = |flag: &str| call.parsed.text(flag).is_some_and(|text| !text.is_empty());
    let (by_token, by_password) = (is_set("token"), is_set("username") || is_set("password"));
    if by_token && by_password {
        return message(
            "you cannot specify more than one authentication method at the same time: --token, --username/--password",
        );
    }
    let embeds = call.parsed.switch("embed-certs");
    if embeds && !FILES.iter().any(|flag| is_set(flag)) {
        return message("you must specify a --client-certificate or --client-key to embed");
    }
    if let Some(mode) = call.parsed.text("exec-interactive-mode")
        && !INTERACTIVE_MODES.contains(&mode)
    {
        return message("invalid interactive mode type, can be only IfAvailable, Never, Always");
    }
    let mut config = Kubeconfig::read(call)?;
    let known = config.entry("users", &name).clone();
    let mut user = Entry(if known.is_object() { known } else { json!({}) });
    for field in FILES {
        if let Some(path) = call.parsed.text(field) {
            user.set_file(call, &config, field, path, embeds)?;
        }
    }
    for field in ["token", "username", "password"] {
        if let Some(text) = call.parsed.text(field) {
            user.set(field, text);
        }
    }
    if by_token {
        ["username", "password"].iter().for_each(|field| user.remove(field));
    } else if by_password {
        user.remove("token");
    }
    let [arguments, variables] = pairs;
    provider(call, &mut user, arguments);
    plugin(call, &mut user, variables);
    config.put("users", &name, user.0);
    config.write(call)?;
    call.line(format!("User {name:?} set."));
    Ok(())
}

/// What is set to a value, and what is removed: `NAME=VALUE`, `NAME-`.
type Pairs = Vec<(String, Option<String>)>;

fn pairs(call: &mut Call<'_, '_>, flag: &str) -> Result<Pairs, super::super::super::failure::Failure> {
    let mut pairs = Pairs::new();
    let given: Vec<String> = call.parsed.list(flag).map(str::to_owned).collect();
    for text in given {
        match (text.split_once('='), text.strip_suffix('-')) {
            (Some((name, value)), _) => pairs.push((name.to_owned(), Some(value.to_owned()))),
            (None, Some(name)) => pairs.push((name.to_owned(), None)),
            (None, None) => {
                show_help(call);
                return message(format!("invalid {flag} format: {text}"));
            }
        }
    }
    Ok(pairs)
}

/// The user comes by a plugin that was built into clients.
fn provider(call: &Call<'_, '_>, user: &mut Entry, arguments: Pairs) {
    if let Some(name) = call.parsed.text("auth-provider").filter(|name| !name.is_empty()) {
        if !user.0["auth-provider"].is_object() {
            user.0["auth-provider"] = json!({"config": null});
        }
        user.0["auth-provider"]["name"] = name.into();
    }
    if !user.0["auth-provider"].is_object() {
        user.remove("auth-provider");
        return;
    }
    let Some(provider) = user.0.get_mut("auth-provider") else { return };
    if !arguments.is_empty() && !provider["config"].is_object() {
        provider["config"] = json!({});
    }
    for (name, value) in arguments {
        match value {
            Some(value) => provider["config"][name] = value.into(),
            None => drop(provider["config"].as_object_mut().map(|config| config.remove(&name))),
        }
    }
}

/// A program tells who the user is.
/// <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins>
fn plugin(call: &Call<'_, '_>, user: &mut Entry, variables: Pairs) {
    if let Some(command) = call.parsed.text("exec-command") {
        if !user.0["exec"].is_object() {
            user.0["exec"] = json!({"env": null, "provideClusterInfo": false});
        }
        user.0["exec"]["command"] = command.into();
        user.0["exec"]["args"] = Value::Null;
    }
    if !user.0["exec"].is_object() {
        user.remove("exec");
        return;
    }
    let Some(plugin) = user.0.get_mut("exec") else { return };
    for (field, flag) in [("apiVersion", "exec-api-version"), ("interactiveMode", "exec-interactive-mode")] {
        if let Some(text) = call.parsed.text(flag) {
            plugin[field] = text.into();
        }
    }
    if call.parsed.has("exec-provide-cluster-info") {
        plugin["provideClusterInfo"] = call.parsed.switch("exec-provide-cluster-info").into();
    }
    if call.parsed.has("exec-arg") {
        plugin["args"] = call.parsed.list("exec-arg").collect();
    }
    for (name, value) in variables {
        if !plugin["env"].is_array() {
            plugin["env"] = json!([]);
        }
        let Some(known) = plugin["env"].as_array_mut() else { return };
        match (known.iter_mut().find(|variable| variable["name"] == *name), value) {
            (Some(variable), Some(value)) => variable["value"] = value.into(),
            (None, Some(value)) => known.push(json!({"name": name, "value": value})),
            (_, None) => known.retain(|variable| variable["name"] != *name),
        }
    }
}

pub fn delete(call: &mut Call<'_, '_>) -> Outcome {
    let [name] = call.parsed.args.as_slice() else { return usage("user to delete is required") };
    let name = name.clone();
    Kubeconfig::read_to_delete(call, "users", &name)?.delete(call, "users", &name)
}
