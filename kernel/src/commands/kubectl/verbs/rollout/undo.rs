//! `kubectl rollout undo`

use cluster_core::api::request::{Options, PatchType};
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, all_of, message};
use super::super::super::flags::{integer, text};
use super::super::super::manifests::{FILENAME, RECURSIVE};
use super::super::super::output::{DRY_RUN, DryRun, OUTPUT};
use super::super::super::resources::Item;
use super::super::super::verb::{Call, Verb};
use super::super::apply::LAST_APPLIED;
use super::history::revisions;
use super::{annotation, named};

pub const VERB: Verb = Verb {
    name: "rollout undo",
    aliases: &[],
    flags: &[FILENAME, RECURSIVE, OUTPUT, DRY_RUN, integer("to-revision"), text("selector").short('l')],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let dry_run = call.dry_run()?;
    let (items, mut failures) = named(call)?;
    for item in items {
        if annotation(&item.value, LAST_APPLIED).is_some() {
            call.warn(format!(
                "resource {}/{} was previously managed with 'kubectl apply'. Rolling back will not update the {LAST_APPLIED} annotation, which may cause unexpected behavior on future 'kubectl apply' operations. Consider using 'kubectl apply' with your previous configuration file instead.",
                item.kind.resource, item.name
            ));
        }
        match undo(call, &item, dry_run) {
            Ok(what) => call.line(format!("{} {what}{}", item.title(), dry_run.suffix())),
            Err(failure) => failures.push(failure),
        }
    }
    all_of(failures)
}

fn undo(call: &mut Call<'_, '_>, item: &Item, dry_run: DryRun) -> Result<String, Failure> {
    let name = &item.name;
    if item.value.pointer("/spec/paused") == Some(&Value::Bool(true)) {
        return message(
            "you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again",
        );
    }
    if !matches!(&*item.kind.kind, "Deployment" | "DaemonSet" | "StatefulSet") {
        return message(format!("no rollbacker has been implemented for {:?}", item.kind.kind));
    }
    let revisions = revisions(call, item)?;
    let wanted = call.parsed.integer("to-revision").unwrap_or(0);
    let found = match wanted {
        0 => revisions.iter().rev().nth(1),
        wanted => revisions.iter().find(|(number, _)| *number == wanted),
    };
    let Some((number, revision)) = found else {
        return match (wanted, &*item.kind.kind) {
            (0, "Deployment") => message(format!("no rollout history found for deployment {name:?}")),
            (0, _) => message("no last revision to roll back to"),
            _ => message(format!("unable to find specified revision {wanted} in history")),
        };
    };
    let mut template = revision.pointer("/spec/template").cloned().unwrap_or_default();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove("pod-template-hash");
    }
    if item.value.pointer("/spec/template") == Some(&template) {
        return Ok(format!("skipped rollback (current template already matches revision {number})"));
    }
    if dry_run == DryRun::Client {
        return Ok("rolled back".into());
    }
    let mut patch = vec![json!({"op": "replace", "path": "/spec/template", "value": template})];
    if &*item.kind.kind == "Deployment" {
        patch.push(json!({"op": "replace", "path": "/metadata/annotations", "value": annotations(item, revision)}));
    }
    let options =
        Options { dry_run: dry_run == DryRun::Server, field_manager: "kubectl-rollout".into(), ..Options::default() };
    call.patch(&item.kind, &item.namespace, name, (PatchType::Json, patch.into()), options)?;
    Ok("rolled back".into())
}

/// The deployment keeps its own annotations where the old revision says nothing of them.
fn annotations(item: &Item, revision: &Value) -> Value {
    let of =
        |value: &Value| value.pointer("/metadata/annotations").and_then(Value::as_object).cloned().unwrap_or_default();
    let kept = |name: &str| name == LAST_APPLIED || name.starts_with("deployment.kubernetes.io/");
    let mut annotations = of(&item.value);
    annotations.retain(|name, _| kept(name));
    annotations.extend(of(revision).into_iter().filter(|(name, _)| !kept(name)));
    Value::Object(annotations)
}
