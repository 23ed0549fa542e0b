//! What controllers ask of a pod: does it count, is it ready, since when, for how long must it stay so.
//! <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/>

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::api::object::{Object, Part};
use crate::clock::Time;
pub use crate::disruption::disrupted;

/// The pod that a template describes. All pods that are cloned from it share one spec.
pub fn from_template(template: &PodTemplateSpec, owner: &Object, reference: OwnerReference) -> Object {
    let mut pod = Object::new::<Pod>(&owner.key.namespace, "", Default::default());
    let spec: Part = Arc::new(template.spec.clone().unwrap_or_default());
    pod.set_spec_part(spec);
    let from = template.metadata.clone().unwrap_or_default();
    let metadata = pod.metadata_mut();
    metadata.generate_name = Some(format!("{}-", owner.key.name));
    metadata.labels = from.labels;
    metadata.annotations = from.annotations;
    metadata.finalizers = from.finalizers;
    metadata.owner_references = Some(vec![reference]);
    pod
}

/// It has ended for good: Succeeded or Failed.
pub fn is_finished(pod: &Object) -> bool {
    matches!(pod.status::<Pod>().phase.as_deref(), Some("Succeeded" | "Failed"))
}

/// It counts as a replica: neither ended nor on its way out.
pub fn is_active(pod: &Object) -> bool {
    !is_finished(pod) && !pod.is_terminating()
}

/// It is on its way out and still there.
pub fn is_leaving(pod: &Object) -> bool {
    !is_finished(pod) && pod.is_terminating()
}

/// The names of the claims that it uses.
pub fn claims(pod: &Object) -> impl Iterator<Item = String> {
    let name = &pod.key.name;
    pod.spec::<Pod>().volumes.iter().flatten().filter_map(move |volume: &Volume| {
        let claim = volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.clone());
        // An ephemeral volume's claim is named for its pod.
        claim.or_else(|| volume.ephemeral.as_ref().map(|_| format!("{name}-{}", volume.name)))
    })
}

pub fn condition<'a>(pod: &'a Object, condition_type: &str) -> Option<&'a PodCondition> {
    pod.status::<Pod>().conditions.iter().flatten().find(|condition| condition.type_ == condition_type)
}

pub fn is_ready(pod: &Object) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when it is ready; `None` if it is not.
pub fn ready_since(pod: &Object) -> Option<Time> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(Time::from)
}

/// How long until a ready pod counts as available; zero if it does, `None` if it is not ready.
pub fn available_in(pod: &Object, min_ready_seconds: i32, now: Time) -> Option<Duration> {
    if !is_ready(pod) {
        return None;
    }
    if min_ready_seconds <= 0 {
        return Some(Duration::ZERO);
    }
    let at = ready_since(pod)? + Duration::from_secs(min_ready_seconds as u64);
    Some(at.since(now))
}

/// The most restarts of any of its containers.
pub fn restarts(pod: &Object) -> i32 {
    let statuses = pod.status::<Pod>().container_statuses.iter().flatten();
    statuses.map(|status| status.restart_count).max().unwrap_or(0)
}
