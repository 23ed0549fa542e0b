//! Access, budgets, priorities.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::age::{age, created_at, human_duration};
use super::{cells, printers};
use crate::api::object::Object;
use crate::clock::Time;

printers! {
    PodDisruptionBudget: "Name, Min Available, Max Unavailable, Allowed Disruptions#, Age" => disruption_budget,
    PriorityClass: "Name, Value#, Global-Default?, Age, PreemptionPolicy" => priority_class,
    Role: "Name, Created At@" => |object, _| cells![&*object.key.name, created_at(object)],
    ClusterRole: "Name, Created At@" => |object, _| cells![&*object.key.name, created_at(object)],
    RoleBinding: "Name, Role, Age, Users*, Groups*, ServiceAccounts*" => |object, now| {
        let binding = object.spec::<RoleBinding>();
        role_binding(object, &binding.role_ref, binding.subjects.as_deref(), now)
    },
    ClusterRoleBinding: "Name, Role, Age, Users*, Groups*, ServiceAccounts*" => |object, now| {
        let binding = object.spec::<ClusterRoleBinding>();
        role_binding(object, &binding.role_ref, binding.subjects.as_deref(), now)
    },
    CertificateSigningRequest: "Name, Age, SignerName, Requestor, RequestedDuration, Condition" => signing_request,
    FlowSchema: "Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL" => flow_schema,
    PriorityLevelConfiguration: "Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age" => priority_level,
}

fn disruption_budget(object: &Object, now: Time) -> Vec<Value> {
    let spec = object.spec::<PodDisruptionBudget>();
    let text = |bound: &Option<IntOrString>| match bound {
        None => "N/A".to_owned(),
        Some(IntOrString::Int(number)) => number.to_string(),
        Some(IntOrString::String(text)) => text.clone(),
    };
    cells![
        &*object.key.name,
        text(&spec.min_available),
        text(&spec.max_unavailable),
        object.status::<PodDisruptionBudget>().disruptions_allowed,
        age(object, now),
    ]
}

fn priority_class(object: &Object, now: Time) -> Vec<Value> {
    let class = object.spec::<PriorityClass>();
    cells![
        &*object.key.name,
        class.value,
        class.global_default.unwrap_or(false),
        age(object, now),
        class.preemption_policy.as_deref().unwrap_or("PreemptLowerPriority"),
    ]
}

fn role_binding(object: &Object, role: &RoleRef, subjects: Option<&[Subject]>, now: Time) -> Vec<Value> {
    let of = |kind: &str| {
        let subjects = subjects.into_iter().flatten().filter(|subject| subject.kind == kind);
        let names = subjects.map(|subject| match &subject.namespace {
            Some(namespace) if kind == "ServiceAccount" => format!("{namespace}/{}", subject.name),
            _ => subject.name.clone(),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    cells![
        &*object.key.name,
        format!("{}/{}", role.kind, role.name),
        age(object, now),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ]
}

fn signing_request(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<CertificateSigningRequest>(), object.status::<CertificateSigningRequest>());
    let has = |type_: &str| status.conditions.iter().flatten().any(|condition| condition.type_ == type_);
    let mut states = vec![match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }];
    states.extend(has("Failed").then_some("Failed"));
    states.extend(status.certificate.is_some().then_some("Issued"));
    let seconds = spec.expiration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    cells![
        &*object.key.name,
        age(object, now),
        spec.signer_name.as_str(),
        spec.username.as_deref().unwrap_or_default(),
        seconds.map_or("<none>".into(), |seconds| human_duration(std::time::Duration::from_secs(seconds))),
        states.join(","),
    ]
}

fn flow_schema(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<FlowSchema>(), object.status::<FlowSchema>());
    let dangling = status.conditions.iter().flatten().find(|condition| condition.type_.as_deref() == Some("Dangling"));
    cells![
        &*object.key.name,
        spec.priority_level_configuration.name.as_str(),
        spec.matching_precedence.unwrap_or(0).to_string(),
        spec.distinguisher_method.as_ref().map_or("<none>", |method| method.type_.as_str()),
        age(object, now),
        dangling.and_then(|condition| condition.status.as_deref()).unwrap_or("?"),
    ]
}

fn priority_level(object: &Object, now: Time) -> Vec<Value> {
    let spec = object.spec::<PriorityLevelConfiguration>();
    let none = || "<none>".to_owned();
    let number = |number: Option<i32>| number.map_or_else(none, |number| number.to_string());
    let limited = spec.limited.as_ref();
    let shares = limited.and_then(|limited| limited.nominal_concurrency_shares);
    let queuing = limited.and_then(|limited| limited.limit_response.as_ref()?.queuing.as_ref());
    cells![
        &*object.key.name,
        spec.type_.as_str(),
        number(shares),
        number(queuing.and_then(|queuing| queuing.queues)),
        number(queuing.and_then(|queuing| queuing.hand_size)),
        number(queuing.and_then(|queuing| queuing.queue_length_limit)),
        age(object, now),
    ]
}
