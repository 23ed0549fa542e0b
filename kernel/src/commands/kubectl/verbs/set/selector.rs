//! `kubectl set selector`: which pods a service is for.

use cluster_core::api::request::{Options, PatchType};
use serde_json::{Value, json};

use super::super::super::failure::{Outcome, message};
use super::super::super::flags::{switch, text};
use super::super::super::manifests::{FILENAME, RECURSIVE};
use super::super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT};
use super::super::super::resources::{Item, label_selector};
use super::super::super::verb::{Call, Verb};
use super::super::create::tell;
use super::LOCAL;

pub const VERB: Verb = Verb {
    name: "set selector",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        OUTPUT,
        DRY_RUN,
        FIELD_MANAGER,
        switch("all"),
        switch("local"),
        text("resource-version"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let dry_run = call.dry_run()?;
    call.format()?;
    // The last argument is the selector, whatever it looks like.
    let Some(text) = call.parsed.args.pop() else { return message("one selector is required") };
    let selector = label_selector(&text)?;
    let (items, mut failures) = call.objects(LOCAL)?;
    if !failures.is_empty() {
        return Err(failures.remove(0));
    }
    for item in items {
        set(call, &item, &selector, dry_run)?;
    }
    Ok(())
}

fn set(call: &mut Call<'_, '_>, item: &Item, selector: &Value, dry_run: DryRun) -> Outcome {
    if &*item.kind.kind != "Service" {
        return message("setting a selector is only supported for Services");
    }
    if let Some(expressions) = selector.get("matchExpressions").and_then(Value::as_array) {
        let shown: Vec<String> = expressions.iter().map(expression).collect();
        return message(format!("match expression [{}] not supported on this object", shown.join(" ")));
    }
    let wanted = selector.get("matchLabels").cloned().unwrap_or_else(|| json!({}));
    let mut changed = item.clone();
    changed.value["spec"]["selector"] = wanted.clone();
    if dry_run == DryRun::Client || call.parsed.switch("local") {
        return tell(call, &changed, "selector updated", dry_run);
    }
    // Labels that are no longer wanted are taken out one by one.
    let mut patch = wanted;
    for key in item.value.pointer("/spec/selector").and_then(Value::as_object).into_iter().flat_map(|old| old.keys()) {
        if patch.get(key).is_none() {
            patch[key.as_str()] = Value::Null;
        }
    }
    let mut patch = json!({"spec": {"selector": patch}});
    if let Some(version) = call.parsed.text("resource-version").filter(|version| !version.is_empty()) {
        patch["metadata"] = json!({"resourceVersion": version});
    }
    let options = Options {
        dry_run: dry_run == DryRun::Server,
        field_manager: call.parsed.text("field-manager").unwrap_or("kubectl-set").to_owned(),
        ..Options::default()
    };
    let patched = call.patch(&item.kind, &item.namespace, &item.name, (PatchType::StrategicMerge, patch), options)?;
    tell(call, &Item::new(&item.kind, patched), "selector updated", dry_run)
}

/// As Go prints one: `{app In [a b]}`.
fn expression(expression: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let values: Vec<String> = expression["values"].as_array().into_iter().flatten().map(text).collect();
    format!("{{{} {} [{}]}}", text(&expression["key"]), text(&expression["operator"]), values.join(" "))
}
