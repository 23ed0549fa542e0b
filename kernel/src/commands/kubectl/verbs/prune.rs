//! `kubectl apply --prune`: what was applied once and stands in no file any more goes.
//! <https://kubernetes.io/docs/tasks/manage-kubernetes-objects/declarative-config/#how-to-delete-objects>

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Options, Propagation};
use cluster_core::api::selector::Selector;
use serde_json::Value;

use super::super::failure::{Failure, Outcome, message};
use super::super::output::DryRun;
use super::super::resources::Item;
use super::super::verb::Call;
use super::apply::{LAST_APPLIED, tell};
use super::delete::{Manner, delete};

/// The kinds that are pruned if none are named, namespaced ones first: group, version, kind.
const USUAL: &[(&str, &str, &str)] = &[
    ("", "v1", "ConfigMap"),
    ("", "v1", "Endpoints"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "Pod"),
    ("", "v1", "ReplicationController"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("batch", "v1", "Job"),
    ("batch", "v1", "CronJob"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "StatefulSet"),
    ("", "v1", "Namespace"),
    ("", "v1", "PersistentVolume"),
];

/// # Errors
/// Kinds that there are not, and flags that don't go together.
pub fn check(call: &mut Call<'_, '_>) -> Outcome {
    kinds(call)?;
    let parsed = &call.parsed;
    let selects = parsed.text("selector").is_some_and(|selector| !selector.is_empty());
    match (parsed.switch("all"), selects) {
        (true, true) => message("cannot set --all and --selector at the same time"),
        (false, false) => message(
            "all resources selected for prune without explicitly passing --all. To prune all resources, pass the --all flag. If you did not mean to prune all resources, specify a label selector",
        ),
        _ => Ok(()),
    }
}

pub fn prune(call: &mut Call<'_, '_>, applied: &[Item], dry_run: DryRun) -> Outcome {
    let kinds = kinds(call)?;
    let mut namespaces: Vec<&str> =
        applied.iter().map(|item| item.namespace.as_str()).filter(|namespace| !namespace.is_empty()).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let kept: Vec<&str> = applied.iter().map(|item| uid(&item.value)).collect();
    let namespaced = namespaces
        .iter()
        .flat_map(|namespace| kinds.iter().filter(|kind| kind.namespaced).map(|kind| (*namespace, kind)));
    let places: Vec<(&str, &KindRef)> =
        namespaced.chain(kinds.iter().filter(|kind| !kind.namespaced).map(|kind| ("", kind))).collect();
    for (namespace, kind) in places {
        let labels = Selector::parse(call.parsed.text("selector").unwrap_or_default()).map_err(Failure::Message)?;
        let listed = call.list(kind, namespace, Options { labels, ..Options::default() })?;
        for value in listed {
            let was_applied = value["metadata"]["annotations"].get(LAST_APPLIED).is_some();
            if !was_applied || kept.contains(&uid(&value)) {
                continue;
            }
            let item = Item::new(kind, value);
            if dry_run != DryRun::Client {
                let manner = Manner {
                    grace_period_seconds: call.parsed.integer("grace-period").filter(|seconds| *seconds >= 0),
                    propagation: Propagation::Background,
                    force: false,
                    dry_run,
                };
                match delete(call, &item, manner) {
                    Err(failure) if !failure.is_not_found() => return Err(failure),
                    _ => {}
                }
            }
            tell(call, &item, "pruned", dry_run)?;
        }
    }
    Ok(())
}

fn uid(value: &Value) -> &str {
    value.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default()
}

/// The kinds of `--prune-allowlist`, each as `group/version/kind` (`core/v1/ConfigMap`), or the usual ones.
fn kinds(call: &mut Call<'_, '_>) -> Result<Vec<KindRef>, Failure> {
    let mut wanted = Vec::new();
    for text in call.parsed.list("prune-allowlist") {
        let parts: Vec<&str> = text.split('/').collect();
        let [group, version, kind] = parts.as_slice() else {
            return message(format!("invalid GroupVersionKind format: {text}, please follow <group/version/kind>"));
        };
        let group = if *group == "core" { "" } else { group };
        wanted.push((group.to_owned(), (*version).to_owned(), (*kind).to_owned()));
    }
    let named = !wanted.is_empty();
    if !named {
        let usual = USUAL.iter().map(|(group, version, kind)| [*group, *version, *kind].map(str::to_owned));
        wanted.extend(usual.map(|[group, version, kind]| (group, version, kind)));
    }
    let served = call.context.api.kinds()?;
    let mut found = Vec::new();
    for (group, version, kind) in wanted {
        let is = |known: &&KindRef| *known.group == *group && *known.version == *version && *known.kind == *kind;
        match served.iter().find(is) {
            Some(kind) => found.push(kind.clone()),
            None if named => {
                let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
                return message(format!("no matches for kind {kind:?} in version {api_version:?}"));
            }
            None => {}
        }
    }
    Ok(found)
}
