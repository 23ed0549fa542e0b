//! `kubectl drain`

use std::time::Duration;

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Body, Options, Request, Verb as ApiVerb};
use cluster_core::api::selector::{FieldSelector, Selector};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::super::client;
use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{FOREVER, duration, integer, switch, text};
use super::super::output::{DRY_RUN, DryRun};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::delete::{PATIENCE, wait_until_gone};
use super::nodes::{nodes, set_unschedulable};

pub const VERB: Verb = Verb {
    name: "drain",
    aliases: &[],
    flags: &[
        DRY_RUN,
        switch("force"),
        switch("ignore-daemonsets"),
        switch("delete-emptydir-data"),
        switch("disable-eviction"),
        integer("grace-period"),
        duration("timeout"),
        text("selector").short('l'),
        text("pod-selector"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let dry_run = call.dry_run()?;
    if call.parsed.text("pod-selector").is_some_and(|selector| Selector::parse(selector).is_err()) {
        return message("--pod-selector=<pod_selector> must be a valid label selector");
    }
    let (items, mut failures) = (nodes(call, "drain")?, Vec::new());
    for item in &items {
        set_unschedulable(call, item, true, dry_run)?;
    }
    for item in &items {
        match evict_all(call, item, dry_run) {
            Ok(()) => call.line(format!("{} drained{}", item.title(), dry_run.suffix())),
            Err(problems) => {
                let words: Vec<String> = problems.iter().map(words).collect();
                let all = if let [one] = &words[..] { one.clone() } else { format!("[{}]", words.join(", ")) };
                call.context.error_line(format!(
                    "error: unable to drain node {:?} due to error: {all}, continuing command...\nThere are pending nodes to be drained:\n {}",
                    item.name, item.name
                ));
                failures.extend(words.into_iter().map(Failure::Raw));
            }
        }
    }
    all_of(failures)
}

/// Why a pod can't simply be evicted.
#[derive(Clone, Copy, PartialEq)]
enum Obstacle {
    Unmanaged,
    LocalStorage,
    DaemonSet,
}

/// The last obstacle that stands in the way of a pod: one that may be overcome leads on to the next.
/// (`filters.go` of k8s.io/kubectl/pkg/drain.)
fn obstacle(pod: &Value, may_lose_data: bool) -> Option<Obstacle> {
    let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let local = volumes.into_iter().flatten().any(|volume| volume.get("emptyDir").is_some());
    match controller {
        Some(owner) if owner["kind"] == "DaemonSet" => Some(Obstacle::DaemonSet),
        _ if local && !may_lose_data => Some(Obstacle::LocalStorage),
        None => Some(Obstacle::Unmanaged),
        Some(_) => None,
    }
}

/// A failure without the words in front of it.
fn words(failure: &Failure) -> String {
    failure.text("").trim_end().trim_start_matches("error: ").to_owned()
}

/// Evicts or deletes what may be; or else every reason why not.
fn evict_all(call: &mut Call<'_, '_>, node: &Item, dry_run: DryRun) -> Result<(), Vec<Failure>> {
    let one = |failure: Failure| vec![failure];
    let refused = |problem: String| vec![Failure::Message(problem)];
    let fields = FieldSelector::parse(&format!("spec.nodeName={}", node.name)).map_err(refused)?;
    let kind = KindRef::of::<Pod>();
    let labels = call.parsed.text("pod-selector").map(Selector::parse).transpose().map_err(refused)?;
    let options = Options { fields, labels: labels.unwrap_or_default(), ..Options::default() };
    let pods = call.list(kind, "", options).map_err(one)?;
    let may_lose_data = call.parsed.switch("delete-emptydir-data");
    let mirror = "/metadata/annotations/kubernetes.io~1config.mirror";
    let pods: Vec<(Option<Obstacle>, Item)> = pods
        .into_iter()
        .filter(|pod| pod.pointer(mirror).is_none())
        .map(|pod| (obstacle(&pod, may_lose_data), Item::new(kind, pod)))
        .collect();
    let ended = |item: &Item| {
        matches!(item.value.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"))
    };
    let of = |wanted: Obstacle| -> Vec<String> {
        let pods = pods.iter().filter(|(found, item)| *found == Some(wanted) && !ended(item));
        pods.map(|(_, item)| format!("{}/{}", item.namespace, item.name)).collect()
    };
    let (bare, local, daemons) = (of(Obstacle::Unmanaged), of(Obstacle::LocalStorage), of(Obstacle::DaemonSet));
    let parsed = &call.parsed;
    let mut problems = Vec::new();
    if !daemons.is_empty() && !parsed.switch("ignore-daemonsets") {
        problems.push(format!(
            "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): {}",
            daemons.join(", ")
        ));
    }
    if !local.is_empty() {
        problems.push(format!(
            "cannot delete Pods with local storage (use --delete-emptydir-data to override): {}",
            local.join(", ")
        ));
    }
    if !bare.is_empty() && !parsed.switch("force") {
        problems.push(format!(
            "cannot delete Pods that declare no controller (use --force to override): {}",
            bare.join(", ")
        ));
    }
    if !problems.is_empty() {
        return Err(problems.into_iter().map(Failure::Message).collect());
    }
    let mut warnings = Vec::new();
    if !daemons.is_empty() {
        warnings.push(format!("ignoring DaemonSet-managed Pods: {}", daemons.join(", ")));
    }
    if !bare.is_empty() {
        warnings.push(format!("deleting Pods that declare no controller: {}", bare.join(", ")));
    }
    if !warnings.is_empty() {
        call.warn(warnings.join("; "));
    }
    let doomed: Vec<Item> =
        pods.into_iter().filter(|(found, _)| *found != Some(Obstacle::DaemonSet)).map(|(_, item)| item).collect();
    let outcome = match call.parsed.switch("disable-eviction") && dry_run != DryRun::Client {
        true => delete(call, &doomed, dry_run),
        false => evict(call, &doomed, dry_run),
    };
    outcome.map_err(one)
}

fn patience(call: &Call<'_, '_>) -> Duration {
    call.parsed.duration("timeout").filter(|timeout| !timeout.is_zero()).unwrap_or(PATIENCE).min(FOREVER)
}

fn grace(call: &Call<'_, '_>) -> Option<i64> {
    call.parsed.integer("grace-period").filter(|seconds| *seconds >= 0)
}

/// Deletes all at once, whatever disruption budgets say.
fn delete(call: &mut Call<'_, '_>, pods: &[Item], dry_run: DryRun) -> Outcome {
    for pod in pods {
        call.line(format!("deleting pod {}/{}{}", pod.namespace, pod.name, dry_run.suffix()));
        let tried = dry_run == DryRun::Server;
        let options = Options { grace_period_seconds: grace(call), dry_run: tried, ..Options::default() };
        let request = client::request(ApiVerb::Delete, &pod.kind, &pod.namespace, &pod.name);
        match call.send(Request { options, ..request }) {
            Err(failure) if !failure.is_not_found() => return Err(failure),
            _ => {}
        }
    }
    wait_for_all(call, pods, "deleted", dry_run)
}

fn wait_for_all(call: &mut Call<'_, '_>, pods: &[Item], how: &str, dry_run: DryRun) -> Outcome {
    let patience = patience(call);
    for pod in pods.iter().filter(|_| dry_run == DryRun::None) {
        let uid = pod.value.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        wait_until_gone(call, pod, &uid, patience)?;
        call.line(format!("{} {how}", pod.title()));
    }
    Ok(())
}

fn evict(call: &mut Call<'_, '_>, pods: &[Item], dry_run: DryRun) -> Outcome {
    let patience = patience(call);
    let started = call.context.api.now();
    for pod in pods {
        call.line(format!("evicting pod {}/{}{}", pod.namespace, pod.name, dry_run.suffix()));
        if dry_run == DryRun::Client {
            continue;
        }
        let grace = grace(call);
        let tried = dry_run == DryRun::Server;
        let dry_run_words: &[&str] = if tried { &["All"] } else { &[] };
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"gracePeriodSeconds": grace, "dryRun": dry_run_words},
        });
        loop {
            let request = Request {
                subresource: "eviction",
                body: Body::Json(body.clone()),
                options: Options { dry_run: tried, ..Options::default() },
                ..client::request(ApiVerb::Create, &pod.kind, &pod.namespace, &pod.name)
            };
            match call.send(request) {
                Ok(_) => break,
                Err(failure) if failure.is_not_found() => break,
                // A disruption budget forbids it for now: kubectl tries again every five seconds.
                Err(Failure::Server(status)) if status.code == 429 => {
                    call.context.error_line(format!(
                        "error when evicting pods/{:?} -n {:?} (will retry after 5s): {}",
                        pod.name, pod.namespace, status.message
                    ));
                }
                Err(failure) => return Err(failure),
            }
            if call.context.api.now().since(started) >= patience {
                return message("global timeout reached");
            }
            if !call.context.api.wait(Duration::from_secs(5)) {
                return Err(Failure::Quiet);
            }
            call.line(format!("evicting pod {}/{}{}", pod.namespace, pod.name, dry_run.suffix()));
        }
    }
    wait_for_all(call, pods, "evicted", dry_run)
}
