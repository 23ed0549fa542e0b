//! Nodes, leases, runtime classes, devices.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use serde_json::Value;

use super::age::age;
use super::{cells, or_none, printers};
use crate::api::object::Object;
use crate::clock::Time;

printers! {
    Node: "Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*" => node,
    Lease: "Name, Holder, Age" => lease,
    RuntimeClass: "Name, Handler, Age" => |object, now| {
        cells![&*object.key.name, object.spec::<RuntimeClass>().handler.as_str(), age(object, now)]
    },
    DeviceClass: "Name, Age" => |object, now| cells![&*object.key.name, age(object, now)],
    ResourceClaim: "Name, State, Age" => |object, now| cells![&*object.key.name, claim_state(object), age(object, now)],
    ResourceClaimTemplate: "Name, Age" => |object, now| cells![&*object.key.name, age(object, now)],
    ResourceSlice: "Name, Node, Driver, Pool, Age" => resource_slice,
}

const ROLE_LABEL: &str = "node-role.kubernetes.io/";

fn node(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<Node>(), object.status::<Node>());
    let ready = status.conditions.iter().flatten().find(|condition| condition.type_ == "Ready");
    let mut state = match ready.map(|condition| condition.status.as_str()) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if spec.unschedulable == Some(true) {
        state.push_str(",SchedulingDisabled");
    }
    let address = |type_: &str| {
        let found = status.addresses.iter().flatten().find(|address| address.type_ == type_);
        or_none(found.map(|address| address.address.as_str())).to_owned()
    };
    let info = status.node_info.as_ref();
    let unknown = |text: Option<&str>| match text {
        Some(text) if !text.is_empty() => text.to_owned(),
        _ => "<unknown>".to_owned(),
    };
    let mut kernel = unknown(info.map(|info| info.kernel_version.as_str()));
    if let Some(info) = info.filter(|info| !info.architecture.is_empty()) {
        kernel.push_str(&format!(" ({})", info.architecture));
    }
    cells![
        &*object.key.name,
        state,
        roles(object),
        age(object, now),
        info.map(|info| info.kubelet_version.as_str()).unwrap_or_default(),
        address("InternalIP"),
        address("ExternalIP"),
        unknown(info.map(|info| info.os_image.as_str())),
        kernel,
        unknown(info.map(|info| info.container_runtime_version.as_str())),
    ]
}

fn roles(object: &Object) -> String {
    let mut roles: Vec<&str> = Vec::new();
    for (key, value) in object.metadata().labels.iter().flatten() {
        if let Some(role) = key.strip_prefix(ROLE_LABEL).filter(|role| !role.is_empty()) {
            roles.push(role);
        } else if key == "kubernetes.io/role" && !value.is_empty() {
            roles.push(value);
        }
    }
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { "<none>".into() } else { roles.join(",") }
}

fn lease(object: &Object, now: Time) -> Vec<Value> {
    let holder = object.spec::<Lease>().holder_identity.as_deref().unwrap_or_default();
    cells![&*object.key.name, holder, age(object, now)]
}

fn claim_state(object: &Object) -> &'static str {
    let status = object.status::<ResourceClaim>();
    match () {
        () if object.is_terminating() && status.allocation.is_some() => "deleted,allocated",
        () if object.is_terminating() => "deleted",
        () if status.allocation.is_none() => "pending",
        () if status.reserved_for.as_ref().is_some_and(|list| !list.is_empty()) => "allocated,reserved",
        () => "allocated",
    }
}

fn resource_slice(object: &Object, now: Time) -> Vec<Value> {
    let spec = object.spec::<ResourceSlice>();
    cells![
        &*object.key.name,
        spec.node_name.as_deref().unwrap_or_default(),
        spec.driver.as_str(),
        spec.pool.name.as_str(),
        age(object, now),
    ]
}
