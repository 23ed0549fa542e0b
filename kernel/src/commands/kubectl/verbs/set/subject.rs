//! `kubectl set subject`: for whom a binding is.

use cluster_core::api::request::{Options, PatchType};
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, all_of, message};
use super::super::super::flags::{switch, text};
use super::super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT};
use super::super::super::resources::Item;
use super::super::super::verb::{Call, Verb};
use super::super::create::role::GROUP;
use super::super::create::tell;
use super::LOCAL;

pub const VERB: Verb = Verb {
    name: "set subject",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        KUSTOMIZE,
        OUTPUT,
        DRY_RUN,
        FIELD_MANAGER,
        switch("all"),
        switch("local"),
        text("selector").short('l'),
        text("user"),
        text("group"),
        text("serviceaccount"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let dry_run = call.dry_run()?;
    call.format()?;
    let (items, mut failures) = call.objects(LOCAL)?;
    if !failures.is_empty() {
        return all_of(failures);
    }
    if call.parsed.switch("local") && dry_run == DryRun::Server {
        return message("cannot specify --local and --dry-run=server - did you mean --dry-run=client?");
    }
    if call.parsed.switch("all") && call.parsed.has("selector") {
        return message("cannot set --all and --selector at the same time");
    }
    let wanted = subjects(call, &items)?;
    for item in items {
        if let Err(failure) = set(call, &item, &wanted, dry_run) {
            failures.push(failure);
        }
    }
    all_of(failures)
}

/// The subjects that the flags name, each once.
fn subjects(call: &Call<'_, '_>, items: &[Item]) -> Result<Vec<Value>, Failure> {
    let of = |flag: &'static str| {
        let mut names: Vec<&str> = call.parsed.list(flag).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let (users, groups, accounts) = (of("user"), of("group"), of("serviceaccount"));
    if users.is_empty() && groups.is_empty() && accounts.is_empty() {
        return message("you must specify at least one value of user, group or serviceaccount");
    }
    let person = |kind: &str, name: &str| json!({"kind": kind, "apiGroup": GROUP, "name": name});
    let mut subjects: Vec<Value> = users.iter().map(|name| person("User", name)).collect();
    subjects.extend(groups.iter().map(|name| person("Group", name)));
    for account in accounts {
        let [namespace, name] = account.split(':').collect::<Vec<_>>()[..] else {
            return message("serviceaccount must be <namespace>:<name>");
        };
        if name.is_empty() {
            return message("serviceaccount must be <namespace>:<name>");
        }
        if namespace.is_empty() && items.iter().any(|item| &*item.kind.kind == "ClusterRoleBinding") {
            return message("serviceaccount must be <namespace>:<name>, namespace must be specified");
        }
        let namespace = if namespace.is_empty() { call.namespace.as_str() } else { namespace };
        subjects.push(json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}));
    }
    Ok(subjects)
}

fn set(call: &mut Call<'_, '_>, item: &Item, wanted: &[Value], dry_run: DryRun) -> Outcome {
    if !matches!(&*item.kind.kind, "RoleBinding" | "ClusterRoleBinding") {
        return message(format!(
            "{}/{} setting subjects is only supported for RoleBinding/ClusterRoleBinding",
            item.kind.resource, item.name
        ));
    }
    let mut subjects = item.value["subjects"].as_array().cloned().unwrap_or_default();
    let before = subjects.len();
    for subject in wanted {
        if !subjects.contains(subject) {
            subjects.push(subject.clone());
        }
    }
    if subjects.len() == before {
        return Ok(());
    }
    let mut changed = item.clone();
    changed.value["subjects"] = json!(subjects);
    if dry_run == DryRun::Client || call.parsed.switch("local") {
        return tell(call, &changed, "subjects updated", dry_run);
    }
    let options = Options {
        dry_run: dry_run == DryRun::Server,
        field_manager: call.parsed.text("field-manager").unwrap_or("kubectl-set").to_owned(),
        ..Options::default()
    };
    let patch = (PatchType::StrategicMerge, json!({"subjects": subjects}));
    let patched =
        call.patch(&item.kind, &item.namespace, &item.name, patch, options).map_err(|failure| match failure {
            Failure::Server(status) => {
                Failure::Message(format!("failed to patch subjects to rolebinding: {}", status.message))
            }
            other => other,
        })?;
    tell(call, &Item::new(&item.kind, patched), "subjects updated", dry_run)
}
