//! `kubectl rollout status`

use std::time::Duration;

use serde_json::Value;

use super::super::super::failure::{Failure, Outcome, all_of, message};
use super::super::super::flags::{duration, integer, switch, text};
use super::super::super::manifests::{FILENAME, RECURSIVE};
use super::super::super::resources::Item;
use super::super::super::verb::{Call, Verb};
use super::super::delete::PATIENCE;
use super::named;

pub const VERB: Verb = Verb {
    name: "rollout status",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        switch("watch").short('w'),
        duration("timeout"),
        integer("revision"),
        text("selector").short('l'),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let (items, mut failures) = named(call)?;
    if items.is_empty() && failures.is_empty() {
        call.context.error_line(format!("No resources found in {} namespace.", call.namespace));
    }
    for item in items {
        if let Err(failure) = follow(call, item) {
            failures.push(failure);
        }
    }
    all_of(failures)
}

/// Tells of each new state until the rollout is over.
fn follow(call: &mut Call<'_, '_>, mut item: Item) -> Outcome {
    let watch = call.parsed.switch_or_on("watch");
    let patience = call.parsed.duration("timeout").filter(|timeout| !timeout.is_zero()).unwrap_or(PATIENCE);
    let started = call.context.api.now();
    let mut told = String::new();
    loop {
        wanted_revision(call, &item)?;
        let (state, done) = state(&item)?;
        if state != told {
            call.context.print(&state);
            told = state;
        }
        if done || !watch {
            return Ok(());
        }
        if call.context.api.now().since(started) >= patience {
            return message("timed out waiting for the condition");
        }
        if !call.context.api.wait(Duration::from_millis(20)) {
            return Err(Failure::Quiet);
        }
        let Item { kind, namespace, name, .. } = &item;
        let (kind, namespace, name) = (kind.clone(), namespace.clone(), name.clone());
        let value = call.get(&kind, &namespace, &name).map_err(|failure| match failure {
            missing if missing.is_not_found() => Failure::Message("object has been deleted".into()),
            other => other,
        })?;
        item = Item::new(&kind, value);
    }
}

/// That a deployment is at the revision that --revision says.
fn wanted_revision(call: &Call<'_, '_>, item: &Item) -> Outcome {
    let is = super::annotation(&item.value, super::REVISION).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    match call.parsed.integer("revision").filter(|wanted| *wanted > 0 && &*item.kind.kind == "Deployment") {
        Some(wanted) if wanted != is => {
            message(format!("desired revision ({wanted}) is different from the running revision ({is})"))
        }
        _ => Ok(()),
    }
}

/// What there is to say of a rollout, and whether it is over. (`StatusViewer` of k8s.io/kubectl/pkg/polymorphichelpers.)
fn state(item: &Item) -> Result<(String, bool), Failure> {
    let number = |path: &str| item.value.pointer(path).and_then(Value::as_i64).unwrap_or(0);
    let observed = number("/metadata/generation") <= number("/status/observedGeneration");
    match &*item.kind.kind {
        "Deployment" => deployment(item, number, observed),
        "DaemonSet" => {
            let (wanted, updated) =
                (number("/status/desiredNumberScheduled"), number("/status/updatedNumberScheduled"));
            let available = number("/status/numberAvailable");
            Ok(match () {
                () if !observed => ("Waiting for daemon set spec update to be observed...\n".into(), false),
                () if updated < wanted => (
                    format!(
                        "Waiting for daemon set {:?} rollout to finish: {updated} out of {wanted} new pods have been updated...\n",
                        item.name
                    ),
                    false,
                ),
                () if available < wanted => (
                    format!(
                        "Waiting for daemon set {:?} rollout to finish: {available} of {wanted} updated pods are available...\n",
                        item.name
                    ),
                    false,
                ),
                () => (format!("daemon set {:?} successfully rolled out\n", item.name), true),
            })
        }
        "StatefulSet" => Ok(stateful_set(item, number, observed)),
        kind => {
            let group = if item.kind.group.is_empty() { String::new() } else { format!(".{}", item.kind.group) };
            message(format!("no status viewer has been implemented for {kind}{group}"))
        }
    }
}

fn deployment(item: &Item, number: impl Fn(&str) -> i64, observed: bool) -> Result<(String, bool), Failure> {
    if !observed {
        return Ok(("Waiting for deployment spec update to be observed...\n".into(), false));
    }
    let name = &item.name;
    let conditions = item.value.pointer("/status/conditions").and_then(Value::as_array);
    let late = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Progressing" && condition["reason"] == "ProgressDeadlineExceeded");
    if late {
        return message(format!("deployment {name:?} exceeded its progress deadline"));
    }
    let wanted = number("/spec/replicas");
    let (all, updated) = (number("/status/replicas"), number("/status/updatedReplicas"));
    let available = number("/status/availableReplicas");
    let waiting = |what: String| (format!("Waiting for deployment {name:?} rollout to finish: {what}...\n"), false);
    Ok(match () {
        () if updated < wanted => waiting(format!("{updated} out of {wanted} new replicas have been updated")),
        () if all > updated => waiting(format!("{} old replicas are pending termination", all - updated)),
        () if available < updated => waiting(format!("{available} of {updated} updated replicas are available")),
        () => (format!("deployment {name:?} successfully rolled out\n"), true),
    })
}

fn stateful_set(item: &Item, number: impl Fn(&str) -> i64, observed: bool) -> (String, bool) {
    let text = |path: &str| item.value.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let rolling = text("/spec/updateStrategy/type") == "RollingUpdate";
    let (wanted, ready) = (number("/spec/replicas"), number("/status/readyReplicas"));
    let updated = number("/status/updatedReplicas");
    let partition = item.value.pointer("/spec/updateStrategy/rollingUpdate/partition").and_then(Value::as_i64);
    match partition {
        _ if !observed => ("Waiting for statefulset spec update to be observed...\n".into(), false),
        _ if ready < wanted => (format!("Waiting for {} pods to be ready...\n", wanted - ready), false),
        Some(partition) if rolling => {
            let new = wanted - partition;
            match updated < new {
                true => (
                    format!(
                        "Waiting for partitioned roll out to finish: {updated} out of {new} new pods have been updated...\n"
                    ),
                    false,
                ),
                false => (format!("partitioned roll out complete: {updated} new pods have been updated...\n"), true),
            }
        }
        _ if text("/status/updateRevision") != text("/status/currentRevision") => (
            format!(
                "waiting for statefulset rolling update to complete {updated} pods at revision {}...\n",
                text("/status/updateRevision")
            ),
            false,
        ),
        _ => (
            format!(
                "statefulset rolling update complete {} pods at revision {}...\n",
                number("/status/currentReplicas"),
                text("/status/currentRevision")
            ),
            true,
        ),
    }
}
