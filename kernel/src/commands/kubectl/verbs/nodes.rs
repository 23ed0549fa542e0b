//! `kubectl cordon`, `uncordon` and `taint`

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Options, PatchType};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::super::failure::{Failure, Outcome, all_of, message, usage};
use super::super::flags::{Flag, switch, text};
use super::super::output::{DRY_RUN, DryRun, OUTPUT};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};

const CORDON_FLAGS: &[Flag] = &[DRY_RUN, text("selector").short('l')];

pub const CORDON: Verb = Verb {
    name: "cordon",
    aliases: &[],
    about: "Mark node as unschedulable",
    usage: "cordon NODE [options]",
    flags: CORDON_FLAGS,
    run: |call| set_all(call, true),
};

pub const UNCORDON: Verb = Verb {
    name: "uncordon",
    aliases: &[],
    about: "Mark node as schedulable",
    usage: "uncordon NODE [options]",
    flags: CORDON_FLAGS,
    run: |call| set_all(call, false),
};

pub const TAINT: Verb = Verb {
    name: "taint",
    aliases: &[],
    about: "Update the taints on one or more nodes",
    usage: "taint NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N [options]",
    flags: &[OUTPUT, DRY_RUN, switch("all"), switch("overwrite"), text("selector").short('l')],
    run: taint,
};

/// The nodes that are named or selected.
pub fn nodes(call: &mut Call<'_, '_>, word: &str) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
    let kind = KindRef::of::<Node>();
    let (mut items, mut failures) = (Vec::new(), Vec::new());
    if call.parsed.args.is_empty() && !call.parsed.has("selector") {
        return usage(format!("USAGE: {word} NODE [flags]"));
    }
    if call.parsed.has("selector") {
        let options = call.list_options(kind)?;
        items.extend(call.list(kind, "", options)?.into_iter().map(|value| Item::new(kind, value)));
    }
    for name in call.parsed.args.clone() {
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        match call.get(kind, "", &name) {
            Ok(value) => items.push(Item::new(kind, value)),
            Err(failure) => failures.push(failure),
        }
    }
    Ok((items, failures))
}

fn set_all(call: &mut Call<'_, '_>, unschedulable: bool) -> Outcome {
    let word = if unschedulable { "cordon" } else { "uncordon" };
    let dry_run = call.dry_run()?;
    let (items, mut failures) = nodes(call, word)?;
    for item in items {
        if let Err(failure) = set_unschedulable(call, &item, unschedulable, dry_run) {
            failures.push(failure);
        }
    }
    all_of(failures)
}

/// Closes a node for new pods, or opens it, and tells of it.
pub fn set_unschedulable(call: &mut Call<'_, '_>, item: &Item, unschedulable: bool, dry_run: DryRun) -> Outcome {
    let word = if unschedulable { "cordoned" } else { "uncordoned" };
    let is = item.value.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
    if is == unschedulable {
        call.line(format!("{} already {word}{}", item.title(), dry_run.suffix()));
        return Ok(());
    }
    if dry_run != DryRun::Client {
        let wanted = if unschedulable { Value::Bool(true) } else { Value::Null };
        let options = Options {
            dry_run: dry_run == DryRun::Server,
            field_manager: "kubectl-cordon".into(),
            ..Options::default()
        };
        let body = json!({"spec": {"unschedulable": wanted}});
        call.patch(&item.kind, "", &item.name, (PatchType::StrategicMerge, body), options)?;
    }
    call.line(format!("{} {word}{}", item.title(), dry_run.suffix()));
    Ok(())
}

/// A taint to be set, or, with a minus behind it, taken away.
struct Change {
    key: String,
    value: String,
    effect: String,
    remove: bool,
}

fn parse_change(text: &str) -> Result<Change, Failure> {
    let (body, remove) = text.strip_suffix('-').map_or((text, false), |body| (body, true));
    let (pair, effect) = body.split_once(':').map_or((body, ""), |(pair, effect)| (pair, effect));
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let known = matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute") || remove && effect.is_empty();
    if !known {
        return usage(format!("invalid taint effect: {effect}, unsupported taint effect"));
    }
    Ok(Change { key: key.into(), value: value.into(), effect: effect.into(), remove })
}

fn taint(call: &mut Call<'_, '_>) -> Outcome {
    let args = call.parsed.args.clone();
    let is_change = |arg: &String| arg.contains('=') || arg.contains(':') || (arg.ends_with('-') && arg.len() > 1);
    let start = args.iter().position(is_change).unwrap_or(args.len());
    let (resources, changes) = args.split_at(start);
    if changes.is_empty() {
        return message("at least one taint update is required");
    }
    let changes: Vec<Change> = changes.iter().map(|change| parse_change(change)).collect::<Result<_, _>>()?;
    let dry_run = call.dry_run()?;
    let (items, mut failures) = call.items_of(resources)?;
    for item in items {
        if let Err(failure) = taint_one(call, &item, &changes, dry_run) {
            failures.push(failure);
        }
    }
    all_of(failures)
}

fn taint_one(call: &mut Call<'_, '_>, item: &Item, changes: &[Change], dry_run: DryRun) -> Outcome {
    let old = item.value.pointer("/spec/taints").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut taints = old.clone();
    let (mut added, mut removed, mut replaced) = (false, false, false);
    for change in changes {
        let meant = |taint: &Value| {
            taint["key"] == change.key.as_str()
                && (change.effect.is_empty() || taint["effect"] == change.effect.as_str())
        };
        let known = taints.iter().any(meant);
        if change.remove {
            if !known {
                let effect = if change.effect.is_empty() { String::new() } else { format!(":{}", change.effect) };
                return message(format!("taint {:?} not found", format!("{}{effect}", change.key)));
            }
            taints.retain(|taint| !meant(taint));
            removed = true;
            continue;
        }
        if known && !call.parsed.switch("overwrite") {
            return message(format!(
                "node {} already has {} taint(s) with same effect(s) and --overwrite is false",
                item.name, change.key
            ));
        }
        replaced |= known;
        added |= !known;
        taints.retain(|taint| !meant(taint));
        let mut taint = json!({"key": change.key, "effect": change.effect});
        if !change.value.is_empty() {
            taint["value"] = change.value.as_str().into();
        }
        taints.insert(0, taint);
    }
    if taints != old && dry_run != DryRun::Client {
        let options =
            Options { dry_run: dry_run == DryRun::Server, field_manager: "kubectl-taint".into(), ..Options::default() };
        let body = json!({"spec": {"taints": taints}});
        call.patch(&item.kind, "", &item.name, (PatchType::Merge, body), options)?;
    }
    let what = match (added, removed, replaced) {
        (true, false, false) => "tainted",
        (false, true, false) => "untainted",
        _ => "modified",
    };
    call.changed(item, what, dry_run)
}
