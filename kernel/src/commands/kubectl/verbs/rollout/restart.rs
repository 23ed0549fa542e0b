//! `kubectl rollout restart`

use cluster_core::api::request::{Options, PatchType};
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, all_of};
use super::super::super::flags::text;
use super::super::super::manifests::{FILENAME, RECURSIVE};
use super::super::super::output::{DryRun, FIELD_MANAGER, OUTPUT};
use super::super::super::verb::{Call, Verb};
use super::named;

pub const VERB: Verb = Verb {
    name: "rollout restart",
    aliases: &[],
    flags: &[FILENAME, RECURSIVE, OUTPUT, FIELD_MANAGER, text("selector").short('l')],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let (items, mut failures) = named(call)?;
    if items.is_empty() && failures.is_empty() {
        call.context.error_line(format!("No resources found in {} namespace.", call.namespace));
    }
    for item in items {
        let refused = |why: &str| Failure::Message(format!("{} {:?} {why}", item.kind.qualified_resource(), item.name));
        if item.value.pointer("/spec/paused") == Some(&Value::Bool(true)) {
            failures.push(refused("can't restart paused deployment (run rollout resume first)"));
            continue;
        }
        if !matches!(&*item.kind.kind, "Deployment" | "DaemonSet" | "StatefulSet") {
            failures.push(refused("restarting is not supported"));
            continue;
        }
        let whole_seconds = call.context.api.now().to_meta();
        let patch = json!({"spec": {"template": {"metadata": {"annotations": {
            "kubectl.kubernetes.io/restartedAt": whole_seconds.0.to_string(),
        }}}}});
        let options = Options { field_manager: "kubectl-rollout".into(), ..Options::default() };
        match call.patch(&item.kind, &item.namespace, &item.name, (PatchType::StrategicMerge, patch), options) {
            Ok(_) => call.changed(&item, "restarted", DryRun::None)?,
            Err(failure) => failures.push(failure),
        }
    }
    all_of(failures)
}
