//! `kubectl rollout pause` and `resume`

use cluster_core::api::request::{Options, PatchType};
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, all_of};
use super::super::super::flags::text;
use super::super::super::manifests::{FILENAME, RECURSIVE};
use super::super::super::output::{DryRun, FIELD_MANAGER, OUTPUT};
use super::super::super::verb::{Call, Verb};
use super::named;

pub const PAUSE: Verb = Verb {
    name: "rollout pause",
    aliases: &[],
    flags: &[FILENAME, RECURSIVE, OUTPUT, FIELD_MANAGER, text("selector").short('l')],
    run: |call| set_paused(call, true),
};

pub const RESUME: Verb = Verb {
    name: "rollout resume",
    aliases: &[],
    flags: &[FILENAME, RECURSIVE, OUTPUT, FIELD_MANAGER, text("selector").short('l')],
    run: |call| set_paused(call, false),
};

fn set_paused(call: &mut Call<'_, '_>, pause: bool) -> Outcome {
    let (items, mut failures) = named(call)?;
    for item in items {
        let is_paused = item.value.pointer("/spec/paused") == Some(&Value::Bool(true));
        let problem = match (pause, is_paused) {
            _ if &*item.kind.kind != "Deployment" => {
                Some(if pause { "pausing is not supported" } else { "resuming is not supported" })
            }
            (true, true) => Some("is already paused"),
            (false, false) => Some("is not paused"),
            _ => None,
        };
        if let Some(problem) = problem {
            failures.push(Failure::Message(format!("{} {:?} {problem}", item.kind.qualified_resource(), item.name)));
            continue;
        }
        let patch = if pause { json!({"spec": {"paused": true}}) } else { json!({"spec": {"paused": null}}) };
        let options = Options { field_manager: "kubectl-rollout".into(), ..Options::default() };
        match call.patch(&item.kind, &item.namespace, &item.name, (PatchType::StrategicMerge, patch), options) {
            Ok(_) => call.changed(&item, if pause { "paused" } else { "resumed" }, DryRun::None)?,
            Err(failure) => failures.push(failure),
        }
    }
    all_of(failures)
}
