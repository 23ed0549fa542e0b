//! `kubectl set serviceaccount`: as whom pods speak to the API.

use serde_json::Value;

use super::super::super::failure::{Outcome, all_of, message};
use super::super::super::flags::switch;
use super::super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT};
use super::super::super::verb::{Call, Verb};
use super::{Change, LOCAL, change_pods};

pub const VERB: Verb = Verb {
    name: "set serviceaccount",
    aliases: &["sa"],
    flags: &[FILENAME, RECURSIVE, KUSTOMIZE, OUTPUT, DRY_RUN, FIELD_MANAGER, switch("all"), switch("local")],
    run,
};

const CHANGE: Change =
    Change { done: "serviceaccount updated", failing: "failed to patch ServiceAccountName ", tells_always: true };

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let dry_run = call.dry_run()?;
    if call.parsed.switch("local") && dry_run == DryRun::Server {
        return message("cannot specify --local and --dry-run=server - did you mean --dry-run=client?");
    }
    call.format()?;
    let Some(account) = call.parsed.args.pop() else { return message("serviceaccount is required") };
    let (items, failures) = call.objects(LOCAL)?;
    all_of(failures)?;
    change_pods(call, items, &CHANGE, |_, spec| {
        spec["serviceAccountName"] = Value::from(account.as_str());
        Ok(())
    })
}
