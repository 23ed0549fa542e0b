//! `kubectl replace`: puts whole objects in the place of those that are there.

use std::time::Duration;

use axum::http::Method;
use cluster_core::api::request::{Body, FieldValidation, Options, Request, Verb as ApiVerb};
use serde_json::Value;

use super::super::client;
use super::super::failure::{Outcome, all_of, message};
use super::super::flags::{duration, integer, optional, switch};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, FIELD_MANAGER, OUTPUT, SHOW_MANAGED_FIELDS, TEMPLATE};
use super::super::raw;
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::apply::with_last_applied;
use super::create::{SAVE_CONFIG, VALIDATE, validation};
use super::delete::{Manner, delete, propagation, told, wait_until_gone};
use super::patch::{SUBRESOURCE, subresource};

pub const VERB: Verb = Verb {
    name: "replace",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        KUSTOMIZE,
        OUTPUT,
        TEMPLATE,
        SHOW_MANAGED_FIELDS,
        DRY_RUN,
        FIELD_MANAGER,
        VALIDATE,
        SUBRESOURCE,
        SAVE_CONFIG,
        raw::RAW,
        switch("force"),
        switch("wait"),
        integer("grace-period"),
        duration("timeout"),
        optional("cascade", "background"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let dry_run = call.dry_run()?;
    let validation = validation(call)?;
    call.format()?;
    let propagation = propagation(call)?;
    call.require_files()?;
    let force = call.parsed.switch("force");
    // Nothing that is asked for without --force is deleted without any grace.
    let grace = call.parsed.integer("grace-period").filter(|seconds| *seconds >= 0).map(|seconds| seconds.max(1));
    let timeout = call.parsed.duration("timeout").filter(|timeout| !timeout.is_zero());
    match (force, dry_run) {
        (false, _) if grace.is_some() => return message("--grace-period must have --force specified"),
        (false, _) if timeout.is_some() => return message("--timeout must have --force specified"),
        (true, DryRun::Client | DryRun::Server) => return message("--dry-run can not be used when --force is set"),
        _ => {}
    }
    if let Some(uri) = raw::uri(call)? {
        return raw::send(call, &Method::PUT, &uri);
    }
    let (items, mut failures) = call.manifests_so_far()?;
    if force {
        all_of(failures)?;
        let manner = Manner { grace_period_seconds: grace, propagation, force: false, dry_run };
        return replace_by_force(call, &items, manner, timeout.unwrap_or(FORCED_PATIENCE));
    }
    for item in items {
        if let Err(failure) = replace(call, &item, dry_run, validation) {
            let source = item.source.unwrap_or_default();
            failures.push(failure.prefixed(&format!("error when replacing {source:?}: ")));
        }
    }
    all_of(failures)
}

/// How long --force waits for the old object to be gone.
const FORCED_PATIENCE: Duration = Duration::from_secs(300);

/// Deletes what is there, waits until it is gone, and creates anew.
fn replace_by_force(call: &mut Call<'_, '_>, items: &[Item], manner: Manner, patience: Duration) -> Outcome {
    let mut gone = Vec::new();
    for item in items {
        match delete(call, item, manner) {
            Ok(uid) => {
                told(call, item, manner);
                gone.push((item, uid));
            }
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => {
                let source = item.source.clone().unwrap_or_default();
                return Err(failure.prefixed(&format!("error when deleting {source:?}: ")));
            }
        }
    }
    for (item, uid) in gone {
        wait_until_gone(call, item, &uid, patience)?;
    }
    let mut failures = Vec::new();
    for item in items {
        let options = Options {
            field_manager: call.parsed.text("field-manager").unwrap_or("kubectl-replace").to_owned(),
            field_validation: validation(call)?,
            ..Options::default()
        };
        match call.create(&item.kind, &item.namespace, body(call, item), options) {
            Ok(created) => call.changed(&Item { value: created, ..item.clone() }, "replaced", DryRun::None)?,
            Err(failure) => failures.push(failure),
        }
    }
    if items.is_empty() {
        return message("no objects passed to replace");
    }
    all_of(failures)
}

fn body(call: &Call<'_, '_>, item: &Item) -> Value {
    match call.parsed.switch("save-config") {
        true => with_last_applied(&item.value),
        false => item.value.clone(),
    }
}

fn replace(call: &mut Call<'_, '_>, item: &Item, dry_run: DryRun, field_validation: FieldValidation) -> Outcome {
    if dry_run == DryRun::Client {
        return call.changed(item, "replaced", dry_run);
    }
    let subresource = subresource(call)?;
    let mut body = body(call, item);
    // Without a revision the one that is there is meant, whichever it is.
    if body.pointer("/metadata/resourceVersion").is_none() {
        let current = call.get(&item.kind, &item.namespace, &item.name)?;
        body["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
    }
    let options = Options {
        dry_run: dry_run == DryRun::Server,
        field_manager: call.parsed.text("field-manager").unwrap_or("kubectl-replace").to_owned(),
        field_validation,
        ..Options::default()
    };
    let request = Request {
        subresource,
        body: Body::Json(body),
        options,
        ..client::request(ApiVerb::Update, &item.kind, &item.namespace, &item.name)
    };
    let replaced = call.send_for_object(request)?;
    call.changed(&Item { value: replaced, ..item.clone() }, "replaced", dry_run)
}
