//! `kubectl cordon`, `uncordon` and `taint`

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Options, PatchType};
use cluster_core::apiserver::validation::names;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::super::failure::{Failure, Outcome, all_of, message, usage};
use super::super::flags::{Flag, switch, text};
use super::super::output::{DRY_RUN, DryRun, OUTPUT};
use super::super::resources::{Item, find_kind};
use super::super::verb::{Call, Verb};

const CORDON_FLAGS: &[Flag] = &[DRY_RUN, text("selector").short('l')];

pub const CORDON: Verb = Verb { name: "cordon", aliases: &[], flags: CORDON_FLAGS, run: |call| set_all(call, true) };

pub const UNCORDON: Verb =
    Verb { name: "uncordon", aliases: &[], flags: CORDON_FLAGS, run: |call| set_all(call, false) };

pub const TAINT: Verb = Verb {
    name: "taint",
    aliases: &[],
    flags: &[OUTPUT, DRY_RUN, switch("all"), switch("overwrite"), text("selector").short('l')],
    run: taint,
};

/// The nodes that are named or selected.
pub fn nodes(call: &mut Call<'_, '_>, word: &str) -> Result<Vec<Item>, Failure> {
    let kind = KindRef::of::<Node>();
    let mut items = Vec::new();
    if call.parsed.args.is_empty() && !call.parsed.has("selector") {
        return usage(format!("USAGE: {word} NODE [flags]"));
    }
    if !call.parsed.args.is_empty() && call.parsed.has("selector") {
        return usage("cannot specify both a node name and a --selector option");
    }
    if call.parsed.has("selector") {
        let options = call.list_options(kind)?;
        items.extend(call.list(kind, "", options)?.into_iter().map(|value| Item::new(kind, value)));
    }
    for name in call.parsed.args.clone() {
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        items.push(Item::new(kind, call.get(kind, "", &name)?));
    }
    Ok(items)
}

fn set_all(call: &mut Call<'_, '_>, unschedulable: bool) -> Outcome {
    let word = if unschedulable { "cordon" } else { "uncordon" };
    let dry_run = call.dry_run()?;
    let (items, mut failures) = (nodes(call, word)?, Vec::new());
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

/// `key=value:effect` or `key:effect`; to take away, `key-` too.
fn parse_change(text: &str) -> Result<Change, Failure> {
    let (body, remove) = text.strip_suffix('-').map_or((text, false), |body| (body, true));
    let wrong = |why: &str| usage(format!("invalid taint spec: {body}{why}"));
    let parts: Vec<&str> = body.split(':').collect();
    let (pair, effect) = match parts[..] {
        [key] => (vec![key], ""),
        [pair, effect] => (pair.split('=').collect(), effect),
        _ => return wrong(""),
    };
    if parts.len() == 2 && !matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
        return usage(format!("invalid taint effect: {effect}, unsupported taint effect"));
    }
    let (key, value) = match pair[..] {
        [key] => (key, ""),
        [key, value] => (key, value),
        _ => return wrong(""),
    };
    for problems in [names::label_value(value), names::qualified_name(key)] {
        if !problems.is_empty() {
            return wrong(&format!(", {}", problems.join("; ")));
        }
    }
    if effect.is_empty() && !remove {
        return wrong("");
    }
    Ok(Change { key: key.into(), value: value.into(), effect: effect.into(), remove })
}

fn taint(call: &mut Call<'_, '_>) -> Outcome {
    let dry_run = call.dry_run()?;
    let args = call.parsed.args.clone();
    let is_change = |arg: &String| arg.contains('=') || arg.contains(':') || arg.ends_with('-');
    let start = args.iter().position(is_change).unwrap_or(args.len());
    let (resources, changes) = args.split_at(start);
    if let Some(arg) = changes.iter().find(|arg| !is_change(arg)) {
        return message(format!("all resources must be specified before taint changes: {arg}"));
    }
    let Some((type_, names)) = resources.split_first() else {
        return message("one or more resources must be specified as <resource> <name>");
    };
    if changes.is_empty() {
        return message("at least one taint update is required");
    }
    let changes: Vec<Change> = changes.iter().map(|change| parse_change(change)).collect::<Result<_, _>>()?;
    check_together(&changes)?;
    let kinds = call.context.api.kinds()?;
    match find_kind(&kinds, type_) {
        None => return Err(Failure::Raw(format!("the server doesn't have a resource type {type_:?}"))),
        Some(kind) if &*kind.kind != "Node" => {
            return message(format!("invalid resource type {}, only node types are supported", type_.to_lowercase()));
        }
        Some(_) => {}
    }
    match (call.parsed.switch("all"), call.parsed.has("selector")) {
        (true, true) => return message("setting 'all' parameter with a non empty selector is prohibited"),
        (false, false) if names.is_empty() => {
            return message("at least one resource name must be specified since 'all' parameter is not set");
        }
        _ => {}
    }
    let (items, mut failures) = call.items_of(resources)?;
    for item in items {
        if let Err(failure) = taint_one(call, &item, &changes, dry_run) {
            failures.push(failure);
        }
    }
    all_of(failures)
}

/// That no taint is set twice, or both set and taken away.
fn check_together(changes: &[Change]) -> Outcome {
    let same = |a: &Change, b: &Change| a.key == b.key && a.effect == b.effect;
    let set = || changes.iter().filter(|change| !change.remove);
    for (index, change) in set().enumerate() {
        if set().take(index).any(|earlier| same(earlier, change)) {
            let Change { key, value, effect, .. } = change;
            return usage(format!("duplicated taints with the same key and effect: {{{key} {value} {effect} <nil>}}"));
        }
    }
    let both = changes.iter().filter(|gone| {
        gone.remove && set().any(|change| change.key == gone.key && (gone.effect.is_empty() || same(change, gone)))
    });
    let both: Vec<String> = both.map(|gone| format!("{}={}", gone.key, gone.effect)).collect();
    match both.is_empty() {
        true => Ok(()),
        false => message(format!(
            "can not both modify and remove the following taint(s) in the same command: {}",
            both.join(", ")
        )),
    }
}

fn taint_one(call: &mut Call<'_, '_>, item: &Item, changes: &[Change], dry_run: DryRun) -> Outcome {
    let old = item.value.pointer("/spec/taints").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut taints = old.clone();
    let (mut added, mut removed) = (false, false);
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
        added |= !known;
        taints.retain(|taint| !meant(taint));
        let mut taint = json!({"key": change.key, "effect": change.effect});
        if !change.value.is_empty() {
            taint["value"] = change.value.as_str().into();
        }
        taints.insert(0, taint);
    }
    let mut shown = item.clone();
    shown.value["spec"]["taints"] = taints.clone().into();
    if taints != old && dry_run != DryRun::Client {
        let options =
            Options { dry_run: dry_run == DryRun::Server, field_manager: "kubectl-taint".into(), ..Options::default() };
        let body = json!({"spec": {"taints": taints}});
        shown.value = call.patch(&item.kind, "", &item.name, (PatchType::Merge, body), options)?;
    }
    let what = match (added, removed) {
        _ if call.parsed.switch("overwrite") || added && removed => "modified",
        (true, _) => "tainted",
        (false, _) => "untainted",
    };
    // Of a node that only would have been tainted, the same is told.
    call.changed(&shown, what, if dry_run == DryRun::Client { DryRun::None } else { dry_run })
}
