//! What the scheduler tells about pods: conditions, Events, and evictions.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use serde_json::{Value, json};

use super::actor;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::{Options, PatchType, Request, Verb};
use crate::clock::Time;
use crate::events::EventNote;
use crate::trace::{Causes, Sequence};
use crate::world::World;

/// The name of the profile that decides about a pod: it is who tells of it.
fn scheduler_of(pod: &Object) -> &str {
    pod.spec::<Pod>().scheduler_name.as_deref().unwrap_or_default()
}

pub fn scheduled(pod: &Object, node: &str, binding: Sequence, world: &mut World) {
    let message = format!("Successfully assigned {} to {node}", pod.key);
    let note = EventNote::normal(pod, "Scheduled", message).from(scheduler_of(pod)).doing("Binding");
    world.event(&actor(), &note, &Causes::from(binding));
}

/// `at` is the plugin that failed.
pub fn binding_failed(pod: &Object, at: &str, message: &str, binding: Sequence, world: &mut World) {
    let message = format!("running {at}: {message}");
    let note = EventNote::warning(pod, "FailedScheduling", message).from(scheduler_of(pod)).doing("Scheduling");
    world.event(&actor(), &note, &Causes::from(binding));
}

/// The condition, the Event, and the node that the pod is nominated to.
pub fn unschedulable(pod: &Object, message: &str, nominated: Option<&str>, causes: Causes, world: &mut World) {
    let condition = PodCondition {
        type_: "PodScheduled".into(),
        status: "False".into(),
        reason: Some("Unschedulable".into()),
        message: Some(message.into()),
        observed_generation: pod.metadata().generation,
        ..PodCondition::default()
    };
    let mut status = json!({});
    if let Some(conditions) = with_condition(pod, condition, world.now) {
        status["conditions"] = conditions;
    }
    if pod.status::<Pod>().nominated_node_name.as_deref() != nominated {
        status["nominatedNodeName"] = json!(nominated);
    }
    let note = EventNote::warning(pod, "FailedScheduling", message).from(scheduler_of(pod)).doing("Scheduling");
    world.event(&actor(), &note, &causes);
    patch_status(pod, status, "no node fits", &causes, world);
}

/// Takes a pod off its node to make room for another.
pub fn evict(victim: &Object, preemptor: &Object, node: &str, causes: &Causes, world: &mut World) {
    if victim.is_terminating() {
        return;
    }
    let condition = PodCondition {
        type_: "DisruptionTarget".into(),
        status: "True".into(),
        reason: Some("PreemptionByScheduler".into()),
        message: Some(format!("{}: preempting to accommodate a higher priority pod", scheduler_of(preemptor))),
        observed_generation: victim.metadata().generation,
        ..PodCondition::default()
    };
    if let Some(conditions) = with_condition(victim, condition, world.now) {
        patch_status(victim, json!({"conditions": conditions}), "it makes room for another pod", causes, world);
    }
    let mut delete = Request::new(&actor(), Verb::Delete, KindRef::of::<Pod>(), victim.key.clone());
    delete.options = Options { precondition_uid: Some(victim.uid().to_owned()), ..Options::default() };
    let delete = delete.because(format!("{} has a higher priority", preemptor.key)).caused_by(causes.clone());
    if world.request(delete).is_ok() {
        let message = format!("Preempted by pod {} on node {node}", preemptor.uid());
        let note = EventNote::normal(victim, "Preempted", message).from(scheduler_of(preemptor)).doing("Preempting");
        world.event(&actor(), &note, causes);
    }
}

/// Says where a pod will be bound that has to wait for its volumes. <https://kep.k8s.io/5278>
pub fn nominate(pod: &Object, node: &str, causes: &Causes, world: &mut World) {
    patch_status(pod, json!({"nominatedNodeName": node}), "its volumes are made ready for that node", causes, world);
}

pub fn release_nomination(pod: &Object, causes: &Causes, world: &mut World) {
    let status = json!({"nominatedNodeName": null});
    patch_status(pod, status, "a pod of higher priority takes the room", causes, world);
}

fn patch_status(pod: &Object, status: Value, reason: &'static str, causes: &Causes, world: &mut World) {
    if status.as_object().is_none_or(|fields| fields.is_empty()) {
        return;
    }
    let kind = KindRef::of::<Pod>();
    let patch = Request::patch(&actor(), kind, pod.key.clone(), PatchType::StrategicMerge, json!({"status": status}));
    // A pod that is gone needs no status; one that can't be written to now is told again when it is tried again.
    let _ = world.request(Request { subresource: "status", ..patch }.because(reason).caused_by(causes.clone()));
}

/// The pod's conditions with one of them set; `None` if it is set already.
fn with_condition(pod: &Object, mut condition: PodCondition, now: Time) -> Option<Value> {
    let mut conditions = pod.status::<Pod>().conditions.clone().unwrap_or_default();
    condition.last_transition_time = Some(now.to_meta());
    match conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        Some(known) => {
            if known.status == condition.status {
                condition.last_transition_time = known.last_transition_time.clone();
            }
            if *known == condition {
                return None;
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
    serde_json::to_value(conditions).ok()
}
