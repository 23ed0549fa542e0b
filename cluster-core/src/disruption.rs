//! What a PodDisruptionBudget allows, for those who ask it (evictions, preemption) and for those who keep its numbers.
//! <https://kubernetes.io/docs/concepts/workloads/pods/disruptions/>

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::clock::Time;

/// The condition of a budget that says whether it allows anything.
pub const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

/// The budget is about this pod. One without a selector is about none, one with an empty selector about all.
pub fn covers(budget: &Object, pod: &Object) -> bool {
    let selector = budget.spec::<PodDisruptionBudget>().selector.as_ref().map(Selector::of);
    budget.key.namespace == pod.key.namespace
        && selector.is_some_and(|selector| selector.matches(pod.metadata().labels.as_ref()))
}

/// Brings the condition in line with the number of disruptions that are allowed.
pub fn tell_allowed(status: &mut PodDisruptionBudgetStatus, now: Time) {
    let allowed = status.disruptions_allowed.unwrap_or(0) > 0;
    let (is, reason) = if allowed { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    tell(status, is, reason, String::new(), now);
}

pub fn tell_failed_sync(status: &mut PodDisruptionBudgetStatus, message: String, now: Time) {
    status.disruptions_allowed = Some(0);
    tell(status, "False", "SyncFailed", message, now);
}

fn tell(status: &mut PodDisruptionBudgetStatus, is: &str, reason: &str, message: String, now: Time) {
    let mut condition = Condition {
        type_: DISRUPTION_ALLOWED.into(),
        status: is.into(),
        reason: reason.into(),
        message,
        observed_generation: status.observed_generation,
        last_transition_time: now.to_meta(),
    };
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        Some(known) => {
            if known.status == condition.status {
                condition.last_transition_time = known.last_transition_time.clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
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
