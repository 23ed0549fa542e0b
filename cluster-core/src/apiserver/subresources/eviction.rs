//! `pods/eviction`: a deletion that asks the disruption budgets first.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/>

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::{Options, Propagation, Request, Response, Verb};
use crate::api::status::{Cause, Status};
use crate::apiserver::{ApiServer, Moment, delete, read};
use crate::disruption::{DISRUPTION_ALLOWED, covers, tell_allowed};

/// More evictions than these may not wait for the budget's controller.
const DISRUPTED_PODS_MAX: usize = 2000;

const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let body = super::body(request);
    super::check_namespace(&body, request)?;
    let named = body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if *named != *request.key.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let pod = read::existing(server, request)?;
    let options = delete_options(&body, &request.options);
    let removal = Request { verb: Verb::Delete, subresource: "", options, ..request.clone() };
    let ends_anyway = matches!(pod.status::<Pod>().phase.as_deref(), Some("Succeeded" | "Failed" | "Pending"));
    if !ends_anyway && !pod.is_terminating() {
        ask_budget(server, &pod, &removal, moment)?;
    }
    delete::check_preconditions(&pod, &removal)?;
    let pod = if removal.options.dry_run { pod } else { tell(server, pod, request, moment)? };
    delete::carry_out(server, &removal, pod, moment)
}

/// What the eviction says of the deletion.
fn delete_options(eviction: &Value, asked: &Options) -> Options {
    let given = |pointer: &str| eviction.pointer(&format!("/deleteOptions/{pointer}"));
    let text = |pointer: &str| given(pointer).and_then(Value::as_str);
    Options {
        dry_run: asked.dry_run || given("dryRun").and_then(Value::as_array).is_some_and(|list| !list.is_empty()),
        grace_period_seconds: given("gracePeriodSeconds").and_then(Value::as_i64),
        propagation: match text("propagationPolicy") {
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Background") => Some(Propagation::Background),
            Some("Orphan") => Some(Propagation::Orphan),
            _ => None,
        },
        precondition_uid: text("preconditions/uid").map(str::to_owned),
        precondition_revision: text("preconditions/resourceVersion").and_then(|text| text.parse().ok()),
        ..asked.clone()
    }
}

/// Lets the pod know what ends it.
fn tell(server: &mut ApiServer, mut pod: Object, request: &Request, moment: &mut Moment<'_>) -> Result<Object, Status> {
    const TYPE: &str = "DisruptionTarget";
    let revision = pod.revision;
    let condition = PodCondition {
        type_: TYPE.into(),
        status: "True".into(),
        reason: Some("EvictionByEvictionAPI".into()),
        message: Some("Eviction API: evicting".into()),
        last_transition_time: Some(moment.now.to_meta()),
        ..PodCondition::default()
    };
    let conditions = pod.status::<Pod>().conditions.as_deref().unwrap_or_default();
    match conditions.iter().position(|known| known.type_ == TYPE) {
        Some(at) if conditions[at].status == "True" && conditions[at].reason == condition.reason => return Ok(pod),
        Some(at) => pod.status_mut::<Pod>().conditions.get_or_insert_default()[at] = condition,
        None => pod.status_mut::<Pod>().conditions.get_or_insert_default().push(condition),
    }
    let write = Request { subresource: "status", verb: Verb::Update, ..request.clone() };
    server.put(pod, Some(revision), &write, moment)
}

/// Counts the disruption against the one budget that covers the pod, or refuses it.
fn ask_budget(server: &mut ApiServer, pod: &Object, removal: &Request, moment: &mut Moment<'_>) -> Result<(), Status> {
    let kind = PodDisruptionBudget::kind();
    let covering = server.store.list(kind, &pod.key.namespace).filter(|budget| covers(budget, pod));
    let budgets: Vec<Object> = covering.cloned().collect();
    let old = match budgets.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            return Err(Status::unexplained(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    if !is_ready(pod) && lets_unhealthy_go(old) {
        return Ok(());
    }
    check(old)?;
    let mut budget = old.clone();
    let status = budget.status_mut::<PodDisruptionBudget>();
    let left = status.disruptions_allowed.unwrap_or(0) - 1;
    status.disruptions_allowed = Some(left);
    if left == 0 {
        tell_allowed(status, moment.now);
    }
    status.disrupted_pods.get_or_insert_default().insert(pod.key.name.to_string(), moment.now.to_meta());
    let write = Request {
        kind: kind.clone(),
        key: old.key.clone(),
        subresource: "status",
        verb: Verb::Update,
        ..removal.clone()
    };
    server.put(budget, Some(old.revision), &write, moment)?;
    Ok(())
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod.status::<Pod>().conditions.iter().flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// A pod that isn't ready disturbs nobody, if the budget sees it so.
fn lets_unhealthy_go(budget: &Object) -> bool {
    let policy = budget.spec::<PodDisruptionBudget>().unhealthy_pod_eviction_policy.as_deref();
    let status = budget.status::<PodDisruptionBudget>();
    let (current, desired) = (status.current_healthy.unwrap_or(0), status.desired_healthy.unwrap_or(0));
    policy == Some("AlwaysAllow") || current >= desired && desired > 0
}

/// The budget allows one more disruption.
fn check(budget: &Object) -> Result<(), Status> {
    let (name, status) = (&budget.key.name, budget.status::<PodDisruptionBudget>());
    if budget.metadata().generation.unwrap_or(0) > status.observed_generation.unwrap_or(0) {
        return Err(violated(&format!("The disruption budget {name} is still being processed by the server."), 10));
    }
    let forbidden = |detail: &str| {
        let mut refused = Status::forbidden(&budget.kind, name, detail);
        refused.message = format!("poddisruptionbudget.policy \"{name}\" is forbidden: {detail}");
        refused.details.get_or_insert_default().kind = "poddisruptionbudget".into();
        Err(refused)
    };
    let allowed = status.disruptions_allowed.unwrap_or(0);
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if status.disrupted_pods.as_ref().is_some_and(|pods| pods.len() > DISRUPTED_PODS_MAX) {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed > 0 {
        return Ok(());
    }
    let (current, desired) = (status.current_healthy.unwrap_or(0), status.desired_healthy.unwrap_or(0));
    let told = |condition: &&Condition| {
        condition.type_ == DISRUPTION_ALLOWED && condition.status == "False" && !condition.message.is_empty()
    };
    let cannot = format!("The disruption budget {name} does not allow evicting pods currently");
    let detail = match status.conditions.iter().flatten().find(told) {
        Some(failed) if failed.reason == "SyncFailed" => {
            format!("{cannot} because it failed sync: {}", failed.message)
        }
        _ if current <= desired => {
            format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        }
        Some(condition) => format!("{cannot} ({}): {}", condition.reason, condition.message),
        None => cannot,
    };
    Err(violated(&detail, 0))
}

fn violated(detail: &str, retry_after_seconds: u32) -> Status {
    let mut status = Status::too_many_requests(VIOLATED, retry_after_seconds);
    let cause = Cause { reason: "DisruptionBudget", message: detail.to_owned(), field: String::new() };
    status.details.get_or_insert_default().causes.push(cause);
    status
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::strategies::testing::Api;

    fn running_pod() -> Api {
        let mut pods = Api::new::<Pod>();
        let spec = json!({"automountServiceAccountToken": false, "nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
        pods.create(json!({"metadata": {"name": "a", "labels": {"app": "x"}}, "spec": spec})).unwrap();
        let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        pods.merge_status("a", json!({"status": status})).unwrap();
        pods
    }

    fn budget(pods: Api, status: Value) -> Api {
        let mut budgets = pods.of::<PodDisruptionBudget>();
        let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}});
        budgets.create(json!({"metadata": {"name": "b"}, "spec": spec})).unwrap();
        budgets.merge_status("b", json!({"status": status})).unwrap();
        budgets.of::<Pod>()
    }

    fn evict(pods: &mut Api, options: Value) -> Result<Value, Status> {
        pods.send(Verb::Create, "a", "eviction", json!({"metadata": {"name": "a"}, "deleteOptions": options}))
    }

    #[test]
    fn an_eviction_uses_up_the_budget_and_marks_the_pod() {
        let status =
            json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1});
        let mut pods = budget(running_pod(), status);
        evict(&mut pods, json!({"dryRun": ["All"]})).unwrap();
        assert_eq!(pods.get("a").unwrap()["metadata"].get("deletionTimestamp"), None);

        evict(&mut pods, json!({"gracePeriodSeconds": 7})).unwrap();
        let pod = pods.get("a").unwrap();
        assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 7);
        assert_eq!(pod["status"]["conditions"][1]["reason"], "EvictionByEvictionAPI");
        let budget = pods.of::<PodDisruptionBudget>().get("b").unwrap();
        assert_eq!(budget["status"]["disruptionsAllowed"], 0);
        assert_eq!(budget["status"]["conditions"][0]["reason"], "InsufficientPods");
    }

    #[test]
    fn a_budget_says_why_it_refuses() {
        let refusal = |status: Value| {
            let refused = evict(&mut budget(running_pod(), status), json!({})).unwrap_err();
            (refused.code, refused.causes()[0].message.clone())
        };
        let known = json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1});
        assert_eq!(refusal(known), (429, "The disruption budget b needs 1 healthy pods and has 1 currently".into()));
        let enough = json!({"observedGeneration": 1, "currentHealthy": 3, "desiredHealthy": 1});
        assert_eq!(refusal(enough), (429, "The disruption budget b does not allow evicting pods currently".into()));
        let unknown = json!({"disruptionsAllowed": 1});
        assert_eq!(refusal(unknown), (429, "The disruption budget b is still being processed by the server.".into()));
    }

    #[test]
    fn a_pod_that_is_not_ready_may_go_while_enough_others_are() {
        let status =
            json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1});
        let mut pods = running_pod();
        pods.merge_status("a", json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})).unwrap();
        let mut pods = budget(pods, status);
        evict(&mut pods, json!({})).unwrap();
        assert!(pods.get("a").unwrap()["metadata"]["deletionTimestamp"].is_string());
    }

    #[test]
    fn an_eviction_is_of_the_pod_that_was_meant() {
        let mut pods = running_pod();
        let refused = evict(&mut pods, json!({"preconditions": {"uid": "other"}})).unwrap_err();
        assert!(refused.message.contains("does not match the UID in record"), "{}", refused.message);
        let unnamed = pods.send(Verb::Create, "a", "eviction", json!({})).unwrap_err();
        assert_eq!(unnamed.message, "name in URL does not match name in Eviction object");
    }
}
