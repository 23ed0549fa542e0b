//! What CSI drivers write and read. <https://kubernetes-csi.github.io/docs/kubernetes-objects.html>

use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment};
use serde_json::json;

use crate::api::object::Object;
use crate::api::quantity;
use crate::api::status::Cause;
use crate::apiserver::Moment;
use crate::apiserver::strategy::{Strategy, keep_metadata};
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{names, selectors};

const DRIVER_NAME_BYTES_MAX: usize = 63;
const NODE_ID_CHARACTERS_MAX: usize = 192;
const UPDATE_PERIOD_SECONDS_MIN: i64 = 10;

pub struct Drivers;

impl Strategy for Drivers {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<CSIDriver>();
        spec.attach_required.get_or_insert(true);
        for flag in [
            &mut spec.pod_info_on_mount,
            &mut spec.storage_capacity,
            &mut spec.requires_republish,
            &mut spec.se_linux_mount,
        ] {
            flag.get_or_insert(false);
        }
        spec.fs_group_policy.get_or_insert_with(|| "ReadWriteOnceWithFSType".into());
        if spec.volume_lifecycle_modes.as_ref().is_none_or(Vec::is_empty) {
            spec.volume_lifecycle_modes = Some(vec!["Persistent".into()]);
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<CSIDriver>(), Path::new("spec"), Causes::new());
        if object.key.name.len() > DRIVER_NAME_BYTES_MAX {
            causes.too_long(&Path::new("metadata.name"), DRIVER_NAME_BYTES_MAX);
        }
        let policies = ["File", "None", "ReadWriteOnceWithFSType"];
        causes.one_of(&path.child("fsGroupPolicy"), spec.fs_group_policy.as_deref(), &policies);
        for mode in spec.volume_lifecycle_modes.iter().flatten() {
            causes.one_of(&path.child("volumeLifecycleModes"), Some(mode), &["Ephemeral", "Persistent"]);
        }
        let requests = spec.token_requests.as_deref().unwrap_or_default();
        for (index, request) in requests.iter().enumerate() {
            let path = path.child("tokenRequests").index(index);
            if requests[..index].iter().any(|known| known.audience == request.audience) {
                causes.duplicate(&path.child("audience"), request.audience.as_str());
            }
            if let Some(seconds) = request.expiration_seconds.filter(|seconds| *seconds < 600) {
                causes.invalid(
                    &path.child("expirationSeconds"),
                    seconds,
                    "may not specify a duration less than 10 minutes",
                );
            }
        }
        let period = spec.node_allocatable_update_period_seconds;
        if let Some(seconds) = period.filter(|seconds| *seconds < UPDATE_PERIOD_SECONDS_MIN) {
            let detail = format!("must be greater than or equal to {UPDATE_PERIOD_SECONDS_MIN} seconds");
            causes.invalid(&path.child("nodeAllocatableUpdatePeriodSeconds"), seconds, detail);
        }
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new, path) = (old.spec::<CSIDriver>(), new.spec::<CSIDriver>(), Path::new("spec"));
        let mut causes = Causes::new();
        causes.immutable(&path.child("attachedRequired"), &old.attach_required, &new.attach_required);
        causes.immutable(&path.child("fsGroupPolicy"), &old.fs_group_policy, &new.fs_group_policy);
        let modes_path = path.child("volumeLifecycleModes");
        causes.immutable(&modes_path, &old.volume_lifecycle_modes, &new.volume_lifecycle_modes);
        causes.into()
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    /// Counts changes, though a new one has none.
    fn changes_generation(&self, old: &Object, new: &Object) -> bool {
        !new.same_spec(old)
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

/// The name of a driver, wherever it stands.
pub(super) fn driver_name(causes: &mut Causes, path: &Path, name: &str) {
    if name.is_empty() {
        causes.required(path, "");
    }
    if name.len() > DRIVER_NAME_BYTES_MAX {
        causes.too_long(path, DRIVER_NAME_BYTES_MAX);
    }
    causes.invalid_each(path, name, names::dns_subdomain(&name.to_lowercase()));
}

pub struct Nodes;

impl Strategy for Nodes {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let drivers = &object.spec::<CSINode>().drivers;
        for (index, driver) in drivers.iter().enumerate() {
            let path = Path::new("spec.drivers").index(index);
            driver_name(&mut causes, &path.child("name"), &driver.name);
            let id_path = path.child("nodeID");
            if driver.node_id.is_empty() {
                causes.required(&id_path, "");
            } else if driver.node_id.len() > NODE_ID_CHARACTERS_MAX {
                let detail = format!("must be {NODE_ID_CHARACTERS_MAX} characters or less");
                causes.invalid(&id_path, driver.node_id.as_str(), detail);
            }
            let count = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count);
            causes.non_negative(&path.child("allocatable.count"), count);
            if drivers[..index].iter().any(|known| known.name == driver.name) {
                causes.duplicate(&path.child("name"), driver.name.as_str());
            }
            let keys = driver.topology_keys.as_deref().unwrap_or_default();
            for (index, key) in keys.iter().enumerate() {
                if keys[..index].contains(key) {
                    causes.duplicate(&path.child("topologyKeys"), key.as_str());
                }
                causes.invalid_each(&path.child("topologyKeys"), key, names::qualified_name(key));
            }
        }
        causes.into()
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

pub struct StorageCapacities;

impl Strategy for StorageCapacities {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (capacity, mut causes) = (object.spec::<CSIStorageCapacity>(), Causes::new());
        let class = capacity.storage_class_name.as_str();
        causes.invalid_each(&Path::new("storageClassName"), class, names::dns_subdomain(class));
        for (field, amount) in [("capacity", &capacity.capacity), ("maximumVolumeSize", &capacity.maximum_volume_size)]
        {
            if let Some(amount) = amount.as_ref().filter(|amount| quantity::millis(amount) < 0) {
                causes.invalid(&Path::new(field), amount.0.as_str(), "must be greater than or equal to 0");
            }
        }
        selectors::label_selector(&mut causes, &Path::new("nodeTopology"), capacity.node_topology.as_ref());
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new) = (old.spec::<CSIStorageCapacity>(), new.spec::<CSIStorageCapacity>());
        let mut causes = Causes::new();
        causes.immutable(&Path::new("nodeTopology"), &old.node_topology, &new.node_topology);
        causes.immutable(&Path::new("storageClassName"), &old.storage_class_name, &new.storage_class_name);
        causes.into()
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

pub struct Attachments;

impl Strategy for Attachments {
    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        keep_metadata(old, new);
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<VolumeAttachment>(), Path::new("spec"), Causes::new());
        driver_name(&mut causes, &path.child("attacher"), &spec.attacher);
        let (source, source_path) = (&spec.source, path.child("source"));
        let one_of = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        match (&source.inline_volume_spec, &source.persistent_volume_name) {
            (None, None) => causes.required(&source_path, one_of),
            (Some(_), Some(_)) => causes.forbidden(&source_path, one_of),
            (None, Some(name)) if name.is_empty() => {
                let detail = "must specify non empty persistentVolumeName";
                causes.required(&source_path.child("persistentVolumeName"), detail);
            }
            (None, Some(name)) => {
                causes.invalid_each(&source_path.child("persistentVolumeName"), name, names::dns_subdomain(name));
            }
            (Some(_), None) => {}
        }
        causes.invalid_each(&path.child("nodeName"), &spec.node_name, names::dns_subdomain(&spec.node_name));
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new, mut causes) = (old.spec::<VolumeAttachment>(), new.spec::<VolumeAttachment>(), Causes::new());
        if old != new {
            causes.invalid(&Path::new("spec"), json!(new), "field is immutable");
        }
        causes.into()
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn a_driver_is_completed() {
        let mut api = Api::new::<CSIDriver>();
        let made = api.create(json!({"metadata": {"name": "csi.example.com"}, "spec": {}})).unwrap();
        assert_eq!(
            made["spec"],
            json!({
                "attachRequired": true, "fsGroupPolicy": "ReadWriteOnceWithFSType", "podInfoOnMount": false,
                "requiresRepublish": false, "seLinuxMount": false, "storageCapacity": false,
                "volumeLifecycleModes": ["Persistent"],
            })
        );
    }

    #[test]
    fn an_attachment_says_of_what_to_what() {
        let mut api = Api::new::<VolumeAttachment>();
        let spec = json!({"attacher": "d.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}});
        let made = api.create(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap();
        assert_eq!(made["status"], json!({"attached": false}));
        let nothing = json!({"attacher": "d.example.com", "nodeName": "n1", "source": {}});
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "b"}, "spec": nothing})),
            ["spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"]
        );
    }
}
