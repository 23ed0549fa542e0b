//! `kubectl scale`

use cluster_core::api::request::{Body, Options, PatchType, Request, Verb as ApiVerb};
use serde_json::{Value, json};

use super::super::client;
use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{duration, integer, switch, text};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, OUTPUT};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb {
    name: "scale",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        KUSTOMIZE,
        OUTPUT,
        DRY_RUN,
        integer("replicas"),
        integer("current-replicas"),
        text("resource-version"),
        text("selector").short('l'),
        switch("all"),
        duration("timeout"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let Some(replicas) = call.parsed.integer("replicas") else {
        return message("required flag(s) \"replicas\" not set");
    };
    if replicas < 0 {
        return message("The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0");
    }
    let dry_run = call.dry_run()?;
    let (items, mut failures) = call.items()?;
    if items.is_empty() && failures.is_empty() {
        return message("no objects passed to scale");
    }
    for item in items {
        if let Err(failure) = scale(call, &item, replicas, dry_run) {
            failures.push(failure);
            break;
        }
        call.changed(&item, "scaled", dry_run)?;
    }
    all_of(failures)
}

fn scale(call: &mut Call<'_, '_>, item: &Item, replicas: i64, dry_run: DryRun) -> Outcome {
    if !item.kind.has_subresource("scale") {
        return Err(Failure::Raw(
            "Error from server (NotFound): the server could not find the requested resource".into(),
        ));
    }
    if let Some(expected) = call.parsed.integer("current-replicas").filter(|expected| *expected >= 0) {
        let actual = item.value.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if actual != expected {
            return message(format!("Expected replicas to be {expected}, was {actual}"));
        }
    }
    let version = call.parsed.text("resource-version").unwrap_or_default();
    let actual = item.value.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
    if !version.is_empty() && version != actual {
        return message(format!("Expected resource version to be {version}, was {actual}"));
    }
    if dry_run == DryRun::Client {
        return Ok(());
    }
    let options = Options { dry_run: dry_run == DryRun::Server, field_manager: "kubectl".into(), ..Options::default() };
    call.send(Request {
        subresource: "scale",
        body: Body::Json(json!({"spec": {"replicas": replicas}})),
        options,
        ..client::request(ApiVerb::Patch(PatchType::Merge), &item.kind, &item.namespace, &item.name)
    })?;
    Ok(())
}
