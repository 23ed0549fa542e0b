//! `kubectl delete`

use std::time::Duration;

use axum::http::Method;
use cluster_core::api::request::{Options, Propagation, Request, Verb as ApiVerb};
use serde_json::Value;

use super::super::client;
use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{FOREVER, duration, integer, optional, switch, text};
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, OUTPUT};
use super::super::raw;
use super::super::resources::{Item, NOT_SPECIFIED, targets};
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb {
    name: "delete",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        KUSTOMIZE,
        OUTPUT,
        DRY_RUN,
        text("selector").short('l'),
        text("field-selector"),
        switch("all"),
        switch("all-namespaces").short('A'),
        switch("force"),
        switch("now"),
        switch("wait"),
        switch("ignore-not-found"),
        switch("interactive").short('i'),
        integer("grace-period"),
        duration("timeout"),
        optional("cascade", "background"),
        raw::RAW,
    ],
    run,
};

/// How long a deletion without --timeout is waited for before it is called stuck: kubectl waits for ever.
pub const PATIENCE: Duration = Duration::from_secs(3600);

/// How an object is deleted.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub grace_period_seconds: Option<i64>,
    pub propagation: Propagation,
    pub force: bool,
    pub dry_run: DryRun,
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    if let Some(uri) = raw::uri(call)? {
        return raw::send(call, &Method::DELETE, &uri);
    }
    let manner = manner(call)?;
    if manner.force && manner.grace_period_seconds == Some(0) {
        call.warn(
            "Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.",
        );
    }
    let (items, mut failures) = doomed(call)?;
    let mut gone = Vec::new();
    let mut found = 0;
    for item in &items {
        found += 1;
        match delete(call, item, manner) {
            Ok(uid) => {
                told(call, item, manner);
                gone.push((item, uid));
            }
            Err(failure) if failure.is_not_found() && ignores_missing(call) => {}
            Err(failure) => failures.push(match &item.source {
                Some(source) => failure.prefixed(&format!("error when deleting {source:?}: ")),
                None => failure,
            }),
        }
    }
    if found == 0 && failures.is_empty() && !call.parsed.names_files() {
        call.line("No resources found");
    }
    if call.parsed.switch_or_on("wait") && manner.dry_run == DryRun::None {
        let patience = match call.parsed.duration("timeout") {
            None | Some(Duration::ZERO) => PATIENCE,
            Some(timeout) => timeout.min(FOREVER),
        };
        for (item, uid) in gone {
            if let Err(failure) = wait_until_gone(call, item, &uid, patience) {
                failures.push(failure);
            }
        }
    }
    all_of(failures)
}

fn ignores_missing(call: &Call<'_, '_>) -> bool {
    match call.parsed.has("ignore-not-found") {
        true => call.parsed.switch("ignore-not-found"),
        false => call.parsed.switch("all"),
    }
}

fn manner(call: &Call<'_, '_>) -> Result<Manner, Failure> {
    let parsed = &call.parsed;
    let force = parsed.switch("force");
    let mut grace = parsed.integer("grace-period").filter(|seconds| *seconds >= 0);
    if parsed.switch("now") {
        if grace.is_some() {
            return message("--now and --grace-period cannot be specified together");
        }
        grace = Some(1);
    }
    match grace {
        Some(0) if !force => grace = Some(1),
        Some(seconds) if force && seconds > 0 => {
            return message("--force and --grace-period greater than 0 cannot be specified together");
        }
        None if force => grace = Some(0),
        _ => {}
    }
    if parsed.switch("all") && parsed.has("selector") {
        return message("setting 'all' parameter but found a non empty selector. ");
    }
    if let Some(output) = parsed.text("output").filter(|output| !matches!(*output, "" | "name")) {
        return message(format!("unexpected -o output mode: {output}. We only support '-o name'"));
    }
    Ok(Manner { grace_period_seconds: grace, propagation: propagation(call)?, force, dry_run: call.dry_run()? })
}

/// What `--cascade` says of dependents.
pub fn propagation(call: &Call<'_, '_>) -> Result<Propagation, Failure> {
    match call.parsed.text("cascade").unwrap_or("background") {
        "background" | "true" => Ok(Propagation::Background),
        "foreground" => Ok(Propagation::Foreground),
        "orphan" | "false" => Ok(Propagation::Orphan),
        other => {
            message(format!("invalid cascade value ({other}). Must be \"background\", \"foreground\", or \"orphan\""))
        }
    }
}

/// What is to be deleted. Objects that are named are not looked up before.
fn doomed(call: &mut Call<'_, '_>) -> Result<(Vec<Item>, Vec<Failure>), Failure> {
    if call.parsed.names_files() {
        return call.manifests_so_far();
    }
    if call.parsed.args.is_empty() {
        return message(NOT_SPECIFIED);
    }
    let args = call.parsed.args.clone();
    let wanted = targets(call, &args)?;
    let selected = call.parsed.has("selector") || call.parsed.has("field-selector") || call.parsed.switch("all");
    if selected && wanted.iter().any(|target| target.name.is_some()) {
        return message(match args.iter().any(|arg| arg.contains('/')) {
            true => "selectors and the all flag cannot be used when passing resource/name arguments",
            false => "name cannot be provided when a selector is specified",
        });
    }
    let everywhere = call.parsed.switch("all-namespaces");
    if !selected && !everywhere && wanted.iter().all(|target| target.name.is_some()) {
        let item = |target: super::super::resources::Target| Item {
            namespace: if target.kind.namespaced { call.namespace.clone() } else { String::new() },
            name: target.name.unwrap_or_default(),
            kind: target.kind,
            value: Value::Null,
            source: None,
        };
        return Ok((wanted.into_iter().map(item).collect(), Vec::new()));
    }
    call.items_of(&args)
}

/// Deletes; returns the UID of what was deleted.
pub fn delete(call: &mut Call<'_, '_>, item: &Item, manner: Manner) -> Result<String, Failure> {
    // What a client only tells of it does not look for.
    if manner.dry_run == DryRun::Client {
        return Ok(String::new());
    }
    let options = Options {
        dry_run: manner.dry_run == DryRun::Server,
        grace_period_seconds: manner.grace_period_seconds,
        propagation: Some(manner.propagation),
        ..Options::default()
    };
    let request = Request { options, ..client::request(ApiVerb::Delete, &item.kind, &item.namespace, &item.name) };
    let object = call.send_for_object(request)?;
    Ok(object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// `pod "web" deleted from default namespace`
pub fn told(call: &mut Call<'_, '_>, item: &Item, manner: Manner) {
    if call.parsed.text("output") == Some("name") {
        call.line(item.title());
        return;
    }
    let title = item.kind.qualified_name("");
    let place = if item.namespace.is_empty() { String::new() } else { format!(" from {} namespace", item.namespace) };
    let force = if manner.force { "force " } else { "" };
    call.line(format!(
        "{} {:?} {force}deleted{place}{}",
        title.trim_end_matches('/'),
        item.name,
        manner.dry_run.suffix()
    ));
}

/// Waits until an object is no longer there, or another has its name.
pub fn wait_until_gone(call: &mut Call<'_, '_>, item: &Item, uid: &str, patience: Duration) -> Outcome {
    let started = call.context.api.now();
    let mut pause = Duration::from_millis(50);
    loop {
        match call.get(&item.kind, &item.namespace, &item.name) {
            Err(failure) if failure.is_not_found() => return Ok(()),
            Err(failure) => return Err(failure),
            Ok(object) if object.pointer("/metadata/uid").and_then(Value::as_str) != Some(uid) => return Ok(()),
            Ok(_) => {}
        }
        if call.context.api.now().since(started) >= patience {
            return message(format!("timed out waiting for the condition on {}/{}", item.kind.resource, item.name));
        }
        if !call.context.api.wait(pause) {
            return Err(Failure::Quiet);
        }
        pause = (pause * 5 / 4).min(Duration::from_secs(5));
    }
}
