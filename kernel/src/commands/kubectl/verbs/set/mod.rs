//! `kubectl set`: changes to the pod templates of workloads, and to who is meant by services and bindings; one file a
//! word below it.

pub mod env;
pub mod image;
pub mod resources;
pub mod selector;
pub mod service_account;
pub mod subject;

use cluster_core::api::request::{Options, PatchType};
use cluster_core::api::schema::Schema;
use serde_json::{Value, json};

use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::output::DryRun;
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::create::tell;
use super::{group, three_way};

pub const SET: Verb = Verb { name: "set", aliases: &[], flags: &[], run: group::on_stderr };

/// The flags that those which change pod templates take, and behind them its own.
macro_rules! set_flags {
    ($($own:expr),* $(,)?) => {{
        use $crate::commands::kubectl::flags::{switch, text};
        use $crate::commands::kubectl::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
        use $crate::commands::kubectl::output::{DRY_RUN, FIELD_MANAGER, OUTPUT};
        &[FILENAME, RECURSIVE, KUSTOMIZE, OUTPUT, DRY_RUN, FIELD_MANAGER, switch("all"), switch("local"),
          text("selector").short('l'), $($own),*]
    }};
}
use set_flags;

/// --local knows no objects but those of files.
const LOCAL: &str = "you must specify resources by --filename when --local is set.
Example resource specifications include:
   '-f rsrc.yaml'
   '--filename=rsrc.json'";

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

/// What is done, and how a refusal of the server begins.
struct Change {
    done: &'static str,
    failing: &'static str,
    /// It is also told of an object that already was so.
    tells_always: bool,
}

/// The objects that are named and not missing.
fn found(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Failure> {
    let (items, failures) = call.objects(LOCAL)?;
    all_of(failures)?;
    if call.parsed.switch("local") && call.dry_run()? == DryRun::Server {
        return message("cannot specify --local and --dry-run=server - did you mean --dry-run=client?");
    }
    if call.parsed.switch("all") && call.parsed.has("selector") {
        return message("cannot set --all and --selector at the same time");
    }
    Ok(items)
}

/// Changes the pod spec of each object and tells of it: `deployment.apps/web image updated`.
fn change_pods(
    call: &mut Call<'_, '_>,
    items: Vec<Item>,
    change: &Change,
    mut act: impl FnMut(&Item, &mut Value) -> Result<(), Vec<Failure>>,
) -> Outcome {
    let dry_run = call.dry_run()?;
    let mut failures = Vec::new();
    for item in items {
        let mut changed = item.clone();
        match pod_spec(&item.kind.kind).and_then(|path| changed.value.pointer_mut(path)) {
            Some(spec) => {
                if let Err(more) = act(&item, spec) {
                    failures.extend(more);
                }
            }
            None => {
                failures.push(Failure::Message(format!(
                    "{}/{} the object is not a pod or does not have a pod template: *{}.{}",
                    item.kind.resource, item.name, item.kind.version, item.kind.kind
                )));
                continue;
            }
        }
        if let Err(failure) = send(call, &item, &changed, change, dry_run) {
            failures.push(failure);
        }
    }
    all_of(failures)
}

fn send(call: &mut Call<'_, '_>, item: &Item, changed: &Item, change: &Change, dry_run: DryRun) -> Outcome {
    let patch = three_way::patch(&item.value, &changed.value, &item.value, Schema::of(&item.kind));
    if patch == json!({}) && !change.tells_always {
        return Ok(());
    }
    if dry_run == DryRun::Client || call.parsed.switch("local") {
        return tell(call, changed, change.done, dry_run);
    }
    let options = Options {
        dry_run: dry_run == DryRun::Server,
        field_manager: call.parsed.text("field-manager").unwrap_or("kubectl-set").to_owned(),
        ..Options::default()
    };
    let patch = (PatchType::StrategicMerge, patch);
    let patched =
        call.patch(&item.kind, &item.namespace, &item.name, patch, options).map_err(|failure| match failure {
            Failure::Server(status) => Failure::Message(format!("{}{}", change.failing, status.message)),
            other => other,
        })?;
    tell(call, &Item { value: patched, ..item.clone() }, change.done, dry_run)
}

/// The containers and init containers that a pattern names, in which `*` stands for any letters.
fn containers<'a>(spec: &'a mut Value, pattern: &'a str) -> impl Iterator<Item = &'a mut Value> {
    let pattern = wildmatch::WildMatch::new(pattern);
    let lists = spec.as_object_mut().into_iter().flatten().filter_map(|(field, list)| {
        matches!(field.as_str(), "containers" | "initContainers").then(|| list.as_array_mut()).flatten()
    });
    lists.flatten().filter(move |container| pattern.matches(container["name"].as_str().unwrap_or_default()))
}
