//! `kubectl set`: changes to the pod templates of workloads, one file a word under it.

pub mod env;
pub mod image;
pub mod resources;

use cluster_core::api::request::{Options, PatchType};
use serde_json::{Value, json};

use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{Flag, switch, text};
use super::super::manifests::{FILENAME, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT};
use super::super::resources::Item;
use super::super::verb::Call;

/// Flags that all of them take.
pub const SHARED: [Flag; 9] = [
    FILENAME,
    RECURSIVE,
    OUTPUT,
    DRY_RUN,
    FIELD_MANAGER,
    switch("all"),
    switch("local"),
    text("selector").short('l'),
    text("containers").short('c'),
];

/// The path of the pod spec in objects that have one.
fn pod_spec(kind: &str) -> Option<&'static str> {
    match kind {
        "Pod" => Some("/spec"),
        "CronJob" => Some("/spec/jobTemplate/spec/template/spec"),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job" | "ReplicationController" => {
            Some("/spec/template/spec")
        }
        _ => None,
    }
}

/// The arguments before the first of the form `key=value` or `key-`, and the rest.
fn split_changes(call: &mut Call<'_, '_>) -> Vec<String> {
    let is_change = |arg: &String| arg.contains('=') || (arg.ends_with('-') && arg.len() > 1);
    let start = call.parsed.args.iter().position(is_change).unwrap_or(call.parsed.args.len());
    call.parsed.args.split_off(start)
}

/// Changes the containers of each object that is named and tells of it: `deployment.apps/web image updated`.
fn change_containers(
    call: &mut Call<'_, '_>,
    what: &str,
    mut change: impl FnMut(&mut Vec<Value>) -> Outcome,
) -> Outcome {
    let dry_run = call.dry_run()?;
    let (items, mut failures) = call.items()?;
    for item in items {
        if let Err(failure) = change_one(call, &item, what, dry_run, &mut change) {
            failures.push(failure);
        }
    }
    all_of(failures)
}

fn change_one(
    call: &mut Call<'_, '_>,
    item: &Item,
    what: &str,
    dry_run: DryRun,
    change: &mut impl FnMut(&mut Vec<Value>) -> Outcome,
) -> Outcome {
    let Some(path) = pod_spec(&item.kind.kind) else {
        return message(format!("the object is not a pod or does not have a pod template: {}", item.kind.kind));
    };
    let mut changed = item.value.clone();
    let Some(Value::Array(containers)) = changed.pointer_mut(&format!("{path}/containers")) else {
        return Err(Failure::Message(format!("{} has no containers", item.title())));
    };
    change(containers)?;
    if changed == item.value {
        return Ok(());
    }
    if dry_run != DryRun::Client {
        let containers = changed.pointer(&format!("{path}/containers")).cloned().unwrap_or_default();
        let patch = json!([{"op": "replace", "path": format!("{path}/containers"), "value": containers}]);
        let options =
            Options { dry_run: dry_run == DryRun::Server, field_manager: "kubectl-set".into(), ..Options::default() };
        call.patch(&item.kind, &item.namespace, &item.name, (PatchType::Json, patch), options)?;
    }
    call.changed(&Item { value: changed, ..item.clone() }, what, dry_run)
}

/// Whether a container is among those that `-c` names; `*` stands for any letters.
fn is_meant(container: &Value, pattern: Option<&str>) -> bool {
    let name = container["name"].as_str().unwrap_or_default();
    pattern.is_none_or(|pattern| wildmatch::WildMatch::new(pattern).matches(name))
}
