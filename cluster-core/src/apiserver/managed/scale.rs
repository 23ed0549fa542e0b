//! Who manages `spec.replicas`, as the scale subresource sees it and as the workload keeps it.
//! <https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership>

use super::{is_same_manager, set, sort};
use crate::api::field_set::FieldSet;
use crate::api::kind::KindRef;
use crate::api::managed::Entry;

const SCALE_VERSION: &str = "autoscaling/v1";

/// The one field of a workload that its scale has.
pub fn replicas() -> FieldSet {
    set(&[&["spec", "replicas"]])
}

/// The managers of a Scale: those of the workload's replicas.
pub fn of_scale(workload: &[Entry]) -> Vec<Entry> {
    let replicas = replicas();
    let entry = |entry: &Entry| Entry {
        api_version: SCALE_VERSION.into(),
        fields: entry.fields.intersection(&replicas),
        ..entry.clone()
    };
    workload.iter().map(entry).filter(|entry| !entry.fields.is_empty()).collect()
}

/// The managers of the workload after a write of its Scale, which left these managers of the Scale.
pub fn of_workload(workload: &[Entry], scale: &[Entry], kind: &KindRef) -> Vec<Entry> {
    let replicas = replicas();
    let mut managers: Vec<Entry> = Vec::new();
    let known = |entry: &Entry| {
        workload.iter().find(|known| {
            let version = entry.api_version.clone();
            is_same_manager(&Entry { api_version: version, ..Entry::clone(known) }, entry)
        })
    };
    for entry in workload {
        let kept = scale.iter().any(|scale| known(scale).is_some_and(|known| std::ptr::eq(known, entry)));
        let fields = if kept { entry.fields.clone() } else { entry.fields.difference(&replicas) };
        managers.push(Entry { fields, ..entry.clone() });
    }
    for entry in scale.iter().filter(|entry| known(entry).is_none()) {
        let fields = entry.fields.intersection(&replicas);
        // Whoever scales has no time, as in Kubernetes.
        managers.push(Entry { api_version: kind.api_version().into(), time: None, fields, ..entry.clone() });
    }
    managers.retain(|entry| !entry.fields.is_empty());
    sort(&mut managers);
    managers
}
