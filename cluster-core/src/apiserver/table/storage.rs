//! Volumes, claims, classes and drivers of storage.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{
    CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use super::age::age;
use super::{cells, printers};
use crate::api::object::Object;
use crate::clock::Time;

printers! {
    PersistentVolumeClaim: "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode*" => claim,
    PersistentVolume: "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, VolumeMode*" => volume,
    StorageClass: "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age" => storage_class,
    VolumeAttachment: "Name, Attacher, PV, Node, Attached?, Age" => volume_attachment,
    VolumeAttributesClass: "Name, DriverName, Age" => |object, now| {
        cells![&*object.key.name, object.spec::<VolumeAttributesClass>().driver_name.as_str(), age(object, now)]
    },
    CSIDriver: "Name, AttachRequired?, PodInfoOnMount?, StorageCapacity?, TokenRequests, RequiresRepublish?, Modes, Age" => csi_driver,
    CSINode: "Name, Drivers#, Age" => |object, now| {
        cells![&*object.key.name, object.spec::<CSINode>().drivers.len(), age(object, now)]
    },
    CSIStorageCapacity: "Name, StorageClassName, Capacity" => |object, _| {
        let spec = object.spec::<CSIStorageCapacity>();
        let capacity = spec.capacity.as_ref().map_or("<unset>", |capacity| capacity.0.as_str());
        cells![&*object.key.name, spec.storage_class_name.as_str(), capacity]
    },
}

/// `RWO,ROX`, in the order of the documentation.
fn access_modes(modes: Option<&Vec<String>>) -> String {
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let has = |mode: &str| modes.into_iter().flatten().any(|given| given == mode);
    known.into_iter().filter(|(mode, _)| has(mode)).map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

fn storage(amounts: Option<&BTreeMap<String, Quantity>>) -> String {
    amounts.and_then(|amounts| amounts.get("storage")).map_or("0".into(), |quantity| quantity.0.clone())
}

/// The class, which an old annotation may name, too.
fn class<'a>(object: &'a Object, class: Option<&'a str>) -> &'a str {
    object.annotation("volume.beta.kubernetes.io/storage-class").or(class).unwrap_or_default()
}

fn or_unset(text: Option<&str>) -> &str {
    text.unwrap_or("<unset>")
}

fn claim(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<PersistentVolumeClaim>(), object.status::<PersistentVolumeClaim>());
    let phase = if object.is_terminating() { "Terminating" } else { status.phase.as_deref().unwrap_or_default() };
    let volume = spec.volume_name.as_deref().unwrap_or_default();
    let bound = !volume.is_empty();
    cells![
        &*object.key.name,
        phase,
        volume,
        if bound { storage(status.capacity.as_ref()) } else { String::new() },
        if bound { access_modes(status.access_modes.as_ref()) } else { String::new() },
        class(object, spec.storage_class_name.as_deref()),
        or_unset(spec.volume_attributes_class_name.as_deref()),
        age(object, now),
        or_unset(spec.volume_mode.as_deref()),
    ]
}

fn volume(object: &Object, now: Time) -> Vec<Value> {
    let (spec, status) = (object.spec::<PersistentVolume>(), object.status::<PersistentVolume>());
    let phase = if object.is_terminating() { "Terminating" } else { status.phase.as_deref().unwrap_or_default() };
    let claim = spec.claim_ref.as_ref().map(|claim| {
        format!("{}/{}", claim.namespace.as_deref().unwrap_or_default(), claim.name.as_deref().unwrap_or_default())
    });
    cells![
        &*object.key.name,
        storage(spec.capacity.as_ref()),
        access_modes(spec.access_modes.as_ref()),
        spec.persistent_volume_reclaim_policy.as_deref().unwrap_or_default(),
        phase,
        claim.unwrap_or_default(),
        class(object, spec.storage_class_name.as_deref()),
        or_unset(spec.volume_attributes_class_name.as_deref()),
        status.reason.as_deref().unwrap_or_default(),
        age(object, now),
        or_unset(spec.volume_mode.as_deref()),
    ]
}

fn storage_class(object: &Object, now: Time) -> Vec<Value> {
    let class = object.spec::<StorageClass>();
    let default = object.annotation("storageclass.kubernetes.io/is-default-class") == Some("true");
    cells![
        if default { format!("{} (default)", object.key.name) } else { object.key.name.to_string() },
        class.provisioner.as_str(),
        class.reclaim_policy.as_deref().unwrap_or("Delete"),
        or_unset(class.volume_binding_mode.as_deref()),
        class.allow_volume_expansion.unwrap_or(false),
        age(object, now),
    ]
}

fn volume_attachment(object: &Object, now: Time) -> Vec<Value> {
    let spec = object.spec::<VolumeAttachment>();
    cells![
        &*object.key.name,
        spec.attacher.as_str(),
        spec.source.persistent_volume_name.as_deref().unwrap_or_default(),
        spec.node_name.as_str(),
        object.status::<VolumeAttachment>().attached,
        age(object, now),
    ]
}

fn csi_driver(object: &Object, now: Time) -> Vec<Value> {
    let spec = object.spec::<CSIDriver>();
    let audiences: Vec<String> = spec.token_requests.iter().flatten().map(|request| request.audience.clone()).collect();
    let modes = spec.volume_lifecycle_modes.clone().unwrap_or_default();
    cells![
        &*object.key.name,
        spec.attach_required.unwrap_or(true),
        spec.pod_info_on_mount.unwrap_or(false),
        spec.storage_capacity.unwrap_or(false),
        if audiences.is_empty() { "<unset>".into() } else { audiences.join(",") },
        spec.requires_republish.unwrap_or(false),
        if modes.is_empty() { "<none>".into() } else { modes.join(",") },
        age(object, now),
    ]
}
