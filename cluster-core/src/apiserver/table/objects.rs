//! The plain objects of the core group: namespaces, config maps, secrets, accounts, quotas.

use k8s_openapi::api::core::v1::{
    ComponentStatus, ConfigMap, LimitRange, Namespace, ResourceQuota, Secret, ServiceAccount,
};
use serde_json::Value;

use super::age::{age, created_at};
use super::{cells, printers};
use crate::api::object::Object;
use crate::clock::Time;

printers! {
    Namespace: "Name, Status, Age" => |object, now| {
        cells![&*object.key.name, object.status::<Namespace>().phase.as_deref().unwrap_or_default(), age(object, now)]
    },
    ConfigMap: "Name, Data, Age" => config_map,
    Secret: "Name, Type, Data, Age" => secret,
    ServiceAccount: "Name, Age" => |object, now| cells![&*object.key.name, age(object, now)],
    LimitRange: "Name, Created At@" => |object, _| cells![&*object.key.name, created_at(object)],
    ResourceQuota: "Name, Request, Limit, Age" => resource_quota,
    ComponentStatus: "Name, Status, Message, Error" => component_status,
}

fn config_map(object: &Object, now: Time) -> Vec<Value> {
    let map = object.spec::<ConfigMap>();
    let count = map.data.as_ref().map_or(0, |data| data.len()) + map.binary_data.as_ref().map_or(0, |data| data.len());
    cells![&*object.key.name, count, age(object, now)]
}

fn secret(object: &Object, now: Time) -> Vec<Value> {
    let secret = object.spec::<Secret>();
    let count = secret.data.as_ref().map_or(0, |data| data.len());
    cells![&*object.key.name, secret.type_.as_deref().unwrap_or("Opaque"), count, age(object, now)]
}

/// What of a quota is used, requests and limits in columns of their own.
fn resource_quota(object: &Object, now: Time) -> Vec<Value> {
    let status = object.status::<ResourceQuota>();
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in status.hard.iter().flatten() {
        let used = status.used.as_ref().and_then(|used| used.get(resource));
        let text = format!("{resource}: {}/{}", used.map_or("0", |used| used.0.as_str()), hard.0);
        if resource.starts_with("limits") { limits.push(text) } else { requests.push(text) }
    }
    cells![&*object.key.name, requests.join(", "), limits.join(", "), age(object, now)]
}

fn component_status(object: &Object, _: Time) -> Vec<Value> {
    let conditions = object.spec::<ComponentStatus>().conditions.iter().flatten();
    let healthy = conditions.into_iter().find(|condition| condition.type_ == "Healthy");
    let state = match healthy.map(|condition| condition.status.as_str()) {
        Some("True") => "Healthy",
        Some("False") => "Unhealthy",
        _ => "Unknown",
    };
    let text = |text: Option<&Option<String>>| text.and_then(Clone::clone).unwrap_or_default();
    cells![&*object.key.name, state, text(healthy.map(|c| &c.message)), text(healthy.map(|c| &c.error))]
}
