//! `kubectl apply view-last-applied` and `apply set-last-applied`: the annotation in which apply remembers.
//! <https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/#how-apply-calculates-differences-and-merges-changes>

use cluster_core::api::request::{Options, PatchType};
use serde_json::{Value, json};

use super::super::failure::{Failure, Outcome, all_of, message, usage};
use super::super::flags::{switch, text};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, OUTPUT, TEMPLATE, json_line, json_text};
use super::super::resources::{Item, NOT_SPECIFIED};
use super::super::verb::{Call, Verb};
use super::apply::{LAST_APPLIED, described};
use super::rollout::annotation;
use crate::yaml;

pub const VIEW: Verb = Verb {
    name: "apply view-last-applied",
    aliases: &[],
    flags: &[FILENAME, RECURSIVE, KUSTOMIZE, OUTPUT, switch("all"), text("selector").short('l')],
    run: view,
};

pub const SET: Verb = Verb {
    name: "apply set-last-applied",
    aliases: &[],
    flags: &[FILENAME, OUTPUT, TEMPLATE, DRY_RUN, switch("create-annotation")],
    run: set,
};

fn view(call: &mut Call<'_, '_>) -> Outcome {
    let (items, mut failures) = call.items()?;
    if !failures.is_empty() {
        return Err(failures.remove(0));
    }
    let format = call.parsed.text("output").unwrap_or("yaml").to_owned();
    for item in items {
        // An object that was not applied has nothing to show.
        let Some(text) = annotation(&item.value, LAST_APPLIED) else { continue };
        let applied: Value = serde_json::from_str(text).map_err(|error| Failure::Message(error.to_string()))?;
        match format.as_str() {
            "json" => call.context.print(json_text(&applied, "  ") + if text.ends_with('\n') { "\n" } else { "" }),
            "yaml" => call.context.print(yaml::print(&applied)),
            other => {
                return usage(format!(
                    "Unexpected -o output mode: {other}, the flag 'output' must be one of yaml|json"
                ));
            }
        }
    }
    Ok(())
}

fn set(call: &mut Call<'_, '_>) -> Outcome {
    let dry_run = call.dry_run()?;
    call.format()?;
    if !call.parsed.has("filename") {
        return message(NOT_SPECIFIED);
    }
    let mut changes = Vec::new();
    for item in call.manifests()? {
        let source = item.source.clone().unwrap_or_default();
        let current = call.get(&item.kind, &item.namespace, &item.name).map_err(|failure| {
            if failure.is_not_found() {
                return failure;
            }
            failure.prefixed(&format!(
                "error when retrieving current configuration of:\n{}\nfrom server for: {source:?}: ",
                described(&item)
            ))
        })?;
        let (before, after) = (annotation(&current, LAST_APPLIED), json_line(&item.value) + "\n");
        if before.is_none() && !call.parsed.switch("create-annotation") {
            return message(format!(
                "no last-applied-configuration annotation found on resource: {}, to create the annotation, run the command with --create-annotation",
                item.name
            ));
        }
        if before == Some(after.as_str()) {
            call.line(format!("set-last-applied {}: no changes required.", item.name));
        } else {
            let patch = json!({"metadata": {"annotations": {LAST_APPLIED: after}}});
            changes.push((Item { value: current, ..item }, patch));
        }
    }
    let mut failures = Vec::new();
    for (item, patch) in changes {
        let value = match dry_run {
            DryRun::Client => item.value.clone(),
            _ => {
                let options = Options { dry_run: dry_run == DryRun::Server, ..Options::default() };
                match call.patch(&item.kind, &item.namespace, &item.name, (PatchType::Merge, patch), options) {
                    Ok(value) => value,
                    Err(failure) => {
                        failures.push(failure);
                        break;
                    }
                }
            }
        };
        call.changed(&Item { value, ..item }, "configured", dry_run)?;
    }
    all_of(failures)
}
