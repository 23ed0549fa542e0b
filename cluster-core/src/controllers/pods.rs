//! What controllers ask of a pod: does it count, is it ready, since when, for how long must it stay so.
//! <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/>

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodCondition};

use crate::api::object::Object;
use crate::clock::Time;

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

/// The pod with the condition DisruptionTarget, which says why it is taken away.
pub fn disrupted(pod: &Object, reason: &str, message: &str, now: Time) -> Object {
    let condition = PodCondition {
        type_: "DisruptionTarget".into(),
        status: "True".into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_transition_time: Some(now.to_meta()),
        observed_generation: pod.metadata().generation,
        ..PodCondition::default()
    };
    let mut pod = pod.clone();
    let conditions = pod.status_mut::<Pod>().conditions.get_or_insert_default();
    match conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        Some(known) if known.status == "True" => {}
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
    pod
}
