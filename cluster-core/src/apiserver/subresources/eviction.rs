//! `pods/eviction`: a deletion that asks the disruption budgets first.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/>

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::{Request, Response, Verb};
use crate::api::selector::Selector;
use crate::api::status::{Cause, Status};
use crate::apiserver::{ApiServer, Moment, delete, read};

pub fn handle(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let pod = read::existing(server, request)?;
    let body = super::body(request);
    let named = body.pointer("/metadata/name").and_then(serde_json::Value::as_str).unwrap_or_default();
    if !named.is_empty() && *named != *request.key.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut removal = Request { verb: Verb::Delete, subresource: "", ..request.clone() };
    removal.options.grace_period_seconds =
        body.pointer("/deleteOptions/gracePeriodSeconds").and_then(serde_json::Value::as_i64);
    let finished = matches!(pod.status::<Pod>().phase.as_deref(), Some("Succeeded" | "Failed" | "Pending"));
    if !finished && !pod.is_terminating() {
        take_from_budget(server, &pod, request, moment)?;
    }
    delete::delete(server, &removal, moment)
}

/// Counts the disruption against the one budget that covers the pod, or refuses it.
fn take_from_budget(
    server: &mut ApiServer,
    pod: &Object,
    request: &Request,
    moment: &mut Moment<'_>,
) -> Result<(), Status> {
    let covers = |budget: &&Object| {
        let selector = budget.spec::<PodDisruptionBudget>().selector.as_ref().map(Selector::of);
        selector.is_some_and(|selector| selector.matches(pod.metadata().labels.as_ref()))
    };
    let kind = KindRef::of::<PodDisruptionBudget>();
    let budgets: Vec<Object> = server.store.list(kind, &pod.key.namespace).filter(covers).cloned().collect();
    let old = match budgets.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            return Err(Status::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    let name = &old.key.name;
    let mut budget = old.clone();
    let status = budget.status_mut::<PodDisruptionBudget>();
    if old.metadata().generation > status.observed_generation {
        return Err(refused(&format!("The disruption budget {name} is still being processed by the server."), 10));
    }
    let allowed = status.disruptions_allowed.unwrap_or(0);
    if allowed <= 0 {
        let detail = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            status.desired_healthy.unwrap_or(0),
            status.current_healthy.unwrap_or(0)
        );
        return Err(refused(&detail, 0));
    }
    status.disruptions_allowed = Some(allowed - 1);
    let disrupted = status.disrupted_pods.get_or_insert_default();
    disrupted.insert(pod.key.name.to_string(), moment.now.to_meta());
    let write = Request {
        kind: kind.clone(),
        key: old.key.clone(),
        subresource: "status",
        verb: Verb::Update,
        ..request.clone()
    };
    server.put(budget, Some(old.revision), &write, moment)?;
    Ok(())
}

fn refused(detail: &str, retry_after_seconds: u32) -> Status {
    let mut status = Status::too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry_after_seconds,
    );
    let cause = Cause { reason: "DisruptionBudget", message: detail.to_owned(), field: String::new() };
    let details = status.details.get_or_insert_default();
    details.causes.push(cause);
    status
}
