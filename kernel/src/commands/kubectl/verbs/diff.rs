//! `kubectl diff`: what apply would change, as the program `diff -u -N` shows it. Ends with 1 if there are changes, and
//! with 2 if something went wrong.

use cluster_core::api::request::{Options, PatchType};
use serde_json::{Value, json};

use super::super::declare::{self, Difference};
use super::super::failure::{Failure, message, usage};
use super::super::flags::{integer, switch, text};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{FIELD_MANAGER, SHOW_MANAGED_FIELDS, without_managed_fields};
use super::super::resources::Item;
use super::super::unified;
use super::super::verb::{Call, Verb};
use super::apply::without_last_applied;
use crate::yaml;

pub const VERB: Verb = Verb {
    name: "diff",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        KUSTOMIZE,
        FIELD_MANAGER,
        SHOW_MANAGED_FIELDS,
        switch("show-secrets"),
        switch("server-side"),
        switch("force-conflicts"),
        text("selector").short('l'),
        integer("concurrency"),
    ],
    run: |call| match run(call) {
        Ok(true) => Err(Failure::Quiet),
        Ok(false) => Ok(()),
        Err(failure) => Err(Failure::Coded(2, Box::new(failure))),
    },
};

/// True if there are changes.
fn run(call: &mut Call<'_, '_>) -> Result<bool, Failure> {
    if !call.parsed.args.is_empty() {
        return usage(format!("Unexpected args: [{}]", call.parsed.args.join(" ")));
    }
    call.require_files()?;
    if call.parsed.switch("force-conflicts") && !call.parsed.switch("server-side") {
        return message("--force-conflicts only works with --server-side");
    }
    let mut files = Vec::new();
    for item in call.manifests()? {
        let live = match call.get(&item.kind, &item.namespace, &item.name) {
            Ok(live) => Some(live),
            Err(failure) if failure.is_not_found() => None,
            Err(failure) => return Err(failure),
        };
        let mut merged = merged(call, &item, live.as_ref())?;
        if live.as_ref().is_some_and(|live| live.pointer("/metadata/deletionTimestamp").is_some()) {
            call.warn(format!("Detected changes to resource {} which is currently being deleted.", item.name));
        }
        let mut live = live;
        let masked = &*item.kind.kind == "Secret" && !call.parsed.switch("show-secrets");
        if masked {
            mask(live.as_mut(), &mut merged);
        }
        let shown = |value: Value| match call.parsed.switch("show-managed-fields") {
            true => yaml::print(&value),
            false => yaml::print(&without_managed_fields(value)),
        };
        // Of a secret that is not there, kubectl writes down that it is nothing.
        let nothing = if masked { "null\n" } else { "" };
        files.push((file_name(&item), live.map_or(nothing.to_owned(), &shown), shown(merged)));
    }
    files.sort();
    let now = call.context.api.now().timestamp();
    let folders = folders(now.as_nanosecond());
    let time = now.strftime("%Y-%m-%d %H:%M:%S.%9f +0000").to_string();
    let mut changed = false;
    for (name, live, merged) in files {
        let Some(hunks) = unified::diff(&live, &merged) else { continue };
        changed = true;
        let [live, merged] = folders.each_ref().map(|folder| format!("{folder}/{name}"));
        call.context.print(format!("diff -u -N {live} {merged}\n--- {live}\t{time}\n+++ {merged}\t{time}\n{hunks}"));
    }
    Ok(changed)
}

/// The folders in which kubectl lays both versions of all objects.
fn folders(number: i128) -> [String; 2] {
    ["LIVE", "MERGED"].map(|name| format!("/tmp/{name}-{}", number.rem_euclid(10_000_000_000)))
}

fn file_name(item: &Item) -> String {
    let group = if item.kind.group.is_empty() { String::new() } else { format!("{}.", item.kind.group) };
    format!("{group}{}.{}.{}.{}", item.kind.version, item.kind.kind, item.namespace, item.name)
}

/// What the server would have after an apply.
fn merged(call: &mut Call<'_, '_>, item: &Item, live: Option<&Value>) -> Result<Value, Failure> {
    let Item { kind, namespace, name, value, .. } = item;
    let server_side = call.parsed.switch("server-side");
    let manager = if server_side { "kubectl" } else { "kubectl-client-side-apply" };
    let options = Options {
        dry_run: true,
        field_manager: call.parsed.text("field-manager").unwrap_or(manager).to_owned(),
        force: call.parsed.switch("force-conflicts"),
        ..Options::default()
    };
    if server_side {
        return call.patch(kind, namespace, name, (PatchType::Apply, value.clone()), options);
    }
    let Some(live) = live else { return call.create(kind, namespace, value.clone(), options) };
    let Difference { patch, patch_type, .. } = declare::difference(kind, &without_last_applied(value), live);
    match patch == json!({}) {
        true => Ok(live.clone()),
        false => call.patch(kind, namespace, name, (patch_type, patch), options),
    }
}

/// Hides the values of a secret, but not which of them change.
fn mask(live: Option<&mut Value>, merged: &mut Value) {
    let mut none = Value::Null;
    let live = live.unwrap_or(&mut none);
    let fields = |value: &Value| value["data"].as_object().cloned().unwrap_or_default();
    let (before, after) = (fields(live), fields(merged));
    let differs = |key: &String| before.get(key).zip(after.get(key)).is_some_and(|(before, after)| before != after);
    for (object, data, changed) in [(live, &before, "*** (before)"), (merged, &after, "*** (after)")] {
        for key in data.keys() {
            object["data"][key.as_str()] = if differs(key) { changed } else { "***" }.into();
        }
    }
}
