//! PersistentVolumes. <https://kubernetes.io/docs/concepts/storage/persistent-volumes/>

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeSpec};
use serde_json::{Value, json};

use super::volume_claim::{VOLUME_MODES, access_modes};
use crate::api::object::Object;
use crate::api::quantity;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{internal_types, names, selectors};
use crate::apiserver::{ApiServer, Moment, warnings};

const RECLAIM_POLICIES: [&str; 3] = ["Delete", "Recycle", "Retain"];

/// Every field of a volume that says where it is.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<PersistentVolume>();
        spec.persistent_volume_reclaim_policy.get_or_insert_with(|| "Retain".into());
        spec.volume_mode.get_or_insert_with(|| "Filesystem".into());
        if let Some(path) = &mut spec.host_path {
            path.type_.get_or_insert_default();
        }
        if let Some(iscsi) = &mut spec.iscsi {
            iscsi.iscsi_interface.get_or_insert_with(|| "default".into());
        }
    }

    fn prepare_create(&self, object: &mut Object, _: &ApiServer, moment: &mut Moment<'_>) -> Result<(), Status> {
        let status = object.status_mut::<PersistentVolume>();
        status.phase = Some("Pending".into());
        status.last_phase_transition_time = Some(moment.now.to_meta());
        Ok(())
    }

    fn prepare_status_update(&self, old: &Object, new: &mut Object, moment: &Moment<'_>) {
        let before = old.status::<PersistentVolume>();
        let after = new.status::<PersistentVolume>();
        let untouched = after.last_phase_transition_time == before.last_phase_transition_time;
        if after.phase != before.phase && (untouched || after.last_phase_transition_time.is_none()) {
            new.status_mut::<PersistentVolume>().last_phase_transition_time = Some(moment.now.to_meta());
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        volume(&mut causes, &Path::new("spec"), object.spec::<PersistentVolume>());
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (before, after) = (old.spec::<PersistentVolume>(), new.spec::<PersistentVolume>());
        let mut causes = Causes::new();
        let sources = |spec: &PersistentVolumeSpec| -> Vec<Value> {
            let spec = json!(spec);
            SOURCES.iter().map(|source| spec[source].clone()).collect()
        };
        if sources(before) != sources(after) {
            let diff = internal_types::volume_source_diff(before, after);
            let detail = format!("spec.persistentvolumesource is immutable after creation\n{diff}");
            causes.forbidden(&Path::new("spec.persistentvolumesource"), &detail);
        }
        causes.immutable(&Path::new("spec.volumeMode"), &before.volume_mode, &after.volume_mode);
        if before.node_affinity.is_some() {
            causes.immutable(&Path::new("spec.nodeAffinity"), &before.node_affinity, &after.node_affinity);
        }
        causes.into()
    }

    fn warnings(&self, _: Option<&Object>, new: &Object) -> Vec<String> {
        warnings::volume(new)
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

fn volume(causes: &mut Causes, path: &Path, spec: &PersistentVolumeSpec) {
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    if modes.is_empty() {
        causes.required(&path.child("accessModes"), "");
    }
    access_modes(causes, &path.child("accessModes"), modes);
    capacity(causes, &path.child("capacity"), spec);
    if let Some(policy) = &spec.persistent_volume_reclaim_policy {
        causes.one_of(&path.child("persistentVolumeReclaimPolicy"), Some(policy), &RECLAIM_POLICIES);
    }
    if let Some(required) = spec.node_affinity.as_ref().map(|affinity| &affinity.required) {
        let path = path.child("nodeAffinity.required");
        match required {
            None => causes.required(&path, "must specify required node constraints"),
            Some(selector) => selectors::node_selector(causes, &path, selector),
        }
    }
    source(causes, path, spec);
    if let Some(class) = spec.storage_class_name.as_deref().filter(|class| !class.is_empty()) {
        causes.invalid_each(&path.child("storageClassName"), class, names::dns_subdomain(class));
    }
    if let Some(mode) = &spec.volume_mode {
        causes.one_of(&path.child("volumeMode"), Some(mode), &VOLUME_MODES);
    }
    if let Some(class) = &spec.volume_attributes_class_name {
        let class_path = path.child("volumeAttributesClassName");
        if class.is_empty() {
            causes.required(&class_path, "an empty string is disallowed");
        } else {
            causes.invalid_each(&class_path, class, names::dns_subdomain(class));
        }
        if spec.csi.is_none() {
            causes.required(&path.child("csi"), "has to be specified when using volumeAttributesClassName");
        }
    }
}

fn capacity(causes: &mut Causes, path: &Path, spec: &PersistentVolumeSpec) {
    let capacity = spec.capacity.clone().unwrap_or_default();
    if capacity.is_empty() {
        causes.required(path, "");
    }
    if capacity.len() != 1 || !capacity.contains_key("storage") {
        causes.not_supported(path, json!(spec.capacity), &["storage"]);
    }
    for (name, amount) in &capacity {
        if quantity::millis(amount) <= 0 {
            causes.invalid(&path.key(name), amount.0.as_str(), "must be greater than zero");
        }
    }
}

fn source(causes: &mut Causes, path: &Path, spec: &PersistentVolumeSpec) {
    let fields = json!(spec);
    let mut given = SOURCES.iter().filter(|source| fields.get(source).is_some_and(|value| !value.is_null()));
    if given.next().is_none() {
        causes.required(path, "must specify a volume type");
    }
    for other in given {
        causes.forbidden(&path.child(other), "may not specify more than 1 volume type");
    }
    if let Some(host) = &spec.host_path {
        let path = path.child("hostPath");
        if host.path.is_empty() {
            causes.required(&path.child("path"), "");
        } else if host.path.split('/').any(|part| part == "..") {
            causes.invalid(&path.child("path"), host.path.as_str(), "must not contain '..'");
        }
    }
    if let Some(nfs) = &spec.nfs {
        let path = path.child("nfs");
        for (field, text) in [("server", &nfs.server), ("path", &nfs.path)] {
            if text.is_empty() {
                causes.required(&path.child(field), "");
            }
        }
        if !nfs.path.is_empty() && !nfs.path.starts_with('/') {
            causes.invalid(&path.child("path"), nfs.path.as_str(), "must be an absolute path");
        }
    }
    if let Some(local) = &spec.local {
        if local.path.is_empty() {
            causes.required(&path.child("local.path"), "");
        }
        if spec.node_affinity.is_none() {
            causes.required(&path.child("nodeAffinity"), "Local volume requires node affinity");
        }
    }
    if let Some(csi) = &spec.csi {
        super::csi::driver_name(causes, &path.child("csi.driver"), &csi.driver);
        if csi.volume_handle.is_empty() {
            causes.required(&path.child("csi.volumeHandle"), "");
        }
    }
    let recycles = spec.persistent_volume_reclaim_policy.as_deref() == Some("Recycle");
    if recycles && spec.host_path.as_ref().is_some_and(|host| host.path.trim_end_matches('/').is_empty()) {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        causes.forbidden(&path.child("persistentVolumeReclaimPolicy"), detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kind::Resource;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn what_is_old_of_a_volume_is_warned_of() {
        let warnings = |spec: Value| {
            let volume = json!({"kind": "PersistentVolume", "metadata": {"name": "a"}, "spec": spec});
            Rules.warnings(None, &Object::from_json(PersistentVolume::kind(), volume).unwrap())
        };
        assert!(warnings(json!({"hostPath": {"path": "/d"}})).is_empty());
        let told = warnings(json!({"persistentVolumeReclaimPolicy": "Recycle", "rbd": {"image": "i", "monitors": []}}));
        assert!(told[0].starts_with("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated."));
        assert_eq!(told[1..], ["spec.rbd: deprecated in v1.28, non-functional in v1.31+"]);
    }

    #[test]
    fn a_volume_is_completed_protected_and_keeps_its_source() {
        let mut api = Api::new::<PersistentVolume>();
        let spec =
            json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/d"}});
        let made = api.create(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap();
        assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pv-protection"]));
        assert_eq!(made["spec"]["persistentVolumeReclaimPolicy"], "Retain");
        assert_eq!(made["spec"]["hostPath"], json!({"path": "/d", "type": ""}));
        assert_eq!(made["status"]["phase"], "Pending");
        assert_eq!(
            api.merge_refusal("a", json!({"spec": {"hostPath": {"path": "/e"}}})),
            [
                "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n@@ -2,7 \
                 +2,7 @@\n  \"GCEPersistentDisk\": null,\n  \"AWSElasticBlockStore\": null,\n  \"HostPath\": {\n-  \"Path\": \
                 \"/d\",\n+  \"Path\": \"/e\",\n   \"Type\": \"\"\n  },\n  \"Glusterfs\": null,\n"
            ]
        );
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "b"}, "spec": {"accessModes": ["Often"]}})),
            [
                "spec.accessModes: Unsupported value: \"Often\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \
                 \"ReadWriteOnce\", \"ReadWriteOncePod\"",
                "spec.capacity: Required value",
                "spec.capacity: Unsupported value: null: supported values: \"storage\"",
                "spec: Required value: must specify a volume type",
            ]
        );
    }
}
