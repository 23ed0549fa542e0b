//! PersistentVolumeClaims.
//! <https://kubernetes.io/docs/concepts/storage/persistent-volumes/#persistentvolumeclaims>

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, TypedLocalObjectReference, TypedObjectReference,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::api::object::Object;
use crate::api::quantity;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{internal_types, names, selectors};
use crate::apiserver::{ApiServer, Moment, warnings};

pub(super) const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
pub(super) const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<PersistentVolumeClaim>();
        spec.volume_mode.get_or_insert_with(|| "Filesystem".into());
        align_data_sources(spec);
    }

    fn prepare_create(&self, object: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        object.status_mut::<PersistentVolumeClaim>().phase = Some("Pending".into());
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        claim(&mut causes, &Path::new("spec"), object.spec::<PersistentVolumeClaim>());
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (before, after) = (old.spec::<PersistentVolumeClaim>(), new.spec::<PersistentVolumeClaim>());
        let (mut causes, path) = (Causes::new(), Path::new("spec"));
        let is_bound = new.status::<PersistentVolumeClaim>().phase.as_deref() == Some("Bound");
        let kept = with_mutable_parts_of(before, after, is_bound);
        if kept != *before {
            let diff = internal_types::claim_spec_diff(before, &kept);
            let detail = format!(
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
                 claims\n{diff}"
            );
            causes.forbidden(&path, &detail);
        }
        let size = |spec: &PersistentVolumeClaimSpec| requested(spec).map_or(0, quantity::millis);
        if size(after) < size(before) {
            let capacity = new.status::<PersistentVolumeClaim>().capacity.as_ref();
            let given = capacity.and_then(|capacity| capacity.get("storage")).map_or(0, quantity::millis);
            // Down to the size that was given: that undoes a growth that failed.
            if size(after) <= given {
                let detail = "field can not be less than status.capacity";
                causes.forbidden(&path.child("resources.requests.storage"), detail);
            }
        }
        causes.immutable(&path.child("volumeMode"), &before.volume_mode, &after.volume_mode);
        causes.into()
    }

    fn warnings(&self, _: Option<&Object>, new: &Object) -> Vec<String> {
        warnings::claim(new)
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

/// `dataSource` and its successor `dataSourceRef` say the same.
fn align_data_sources(spec: &mut PersistentVolumeClaimSpec) {
    match (&spec.data_source, &spec.data_source_ref) {
        (Some(source), None) => {
            let TypedLocalObjectReference { api_group, kind, name } = source.clone();
            spec.data_source_ref = Some(TypedObjectReference { api_group, kind, name, namespace: None });
        }
        (None, Some(TypedObjectReference { api_group, kind, name, namespace: None })) => {
            let (api_group, kind, name) = (api_group.clone(), kind.clone(), name.clone());
            spec.data_source = Some(TypedLocalObjectReference { api_group, kind, name });
        }
        _ => {}
    }
}

fn requested(spec: &PersistentVolumeClaimSpec) -> Option<&Quantity> {
    spec.resources.as_ref()?.requests.as_ref()?.get("storage")
}

/// The new spec, with everything that may change put back: a claim may be given its volume once, and a bound one may ask
/// for more, or for another class of attributes.
fn with_mutable_parts_of(
    before: &PersistentVolumeClaimSpec,
    after: &PersistentVolumeClaimSpec,
    is_bound: bool,
) -> PersistentVolumeClaimSpec {
    let mut after = after.clone();
    if before.volume_name.as_deref().unwrap_or_default().is_empty() {
        after.volume_name = before.volume_name.clone();
    }
    // The controller gives the default class to claims that asked for none before there was one.
    if before.storage_class_name.is_none() {
        after.storage_class_name = None;
    }
    if is_bound {
        after.volume_attributes_class_name = before.volume_attributes_class_name.clone();
        let requests = after.resources.as_mut().and_then(|resources| resources.requests.as_mut());
        if let (Some(requests), Some(size)) = (requests, requested(before)) {
            requests.insert("storage".into(), size.clone());
        }
    }
    after
}

fn claim(causes: &mut Causes, path: &Path, spec: &PersistentVolumeClaimSpec) {
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    if modes.is_empty() {
        causes.required(&path.child("accessModes"), "at least 1 access mode is required");
    }
    selectors::label_selector(causes, &path.child("selector"), spec.selector.as_ref());
    access_modes(causes, &path.child("accessModes"), modes);
    let size_path = path.child("resources").key("storage");
    match requested(spec) {
        None => causes.required(&size_path, ""),
        Some(size) if quantity::millis(size) <= 0 => {
            causes.invalid(&size_path, size.0.as_str(), "must be greater than zero");
        }
        Some(_) => {}
    }
    if let Some(class) = spec.storage_class_name.as_deref().filter(|class| !class.is_empty()) {
        causes.invalid_each(&path.child("storageClassName"), class, names::dns_subdomain(class));
    }
    if let Some(mode) = &spec.volume_mode {
        causes.one_of(&path.child("volumeMode"), Some(mode), &VOLUME_MODES);
    }
    if let Some(TypedLocalObjectReference { api_group, kind, name }) = &spec.data_source {
        data_source(causes, &path.child("dataSource"), api_group.as_deref(), kind, name);
    }
    if let Some(TypedObjectReference { api_group, kind, name, .. }) = &spec.data_source_ref {
        data_source(causes, &path.child("dataSourceRef"), api_group.as_deref(), kind, name);
    }
    if let Some(class) = spec.volume_attributes_class_name.as_deref().filter(|class| !class.is_empty()) {
        causes.invalid_each(&path.child("volumeAttributesClassName"), class, names::dns_subdomain(class));
    }
}

pub(super) fn access_modes(causes: &mut Causes, path: &Path, modes: &[String]) {
    for mode in modes {
        causes.one_of(path, Some(mode), &ACCESS_MODES);
    }
    let is_exclusive = |mode: &String| mode == "ReadWriteOncePod";
    if modes.iter().any(is_exclusive) && !modes.iter().all(is_exclusive) {
        causes.forbidden(path, "may not use ReadWriteOncePod with other access modes");
    }
}

fn data_source(causes: &mut Causes, path: &Path, group: Option<&str>, kind: &str, name: &str) {
    for (field, text) in [("name", name), ("kind", kind)] {
        if text.is_empty() {
            causes.required(&path.child(field), "");
        }
    }
    match group.unwrap_or_default() {
        "" if kind != "PersistentVolumeClaim" => {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            causes.invalid(path, kind, detail);
        }
        "" => {}
        group => causes.invalid_each(&path.child("apiGroup"), group, names::dns_subdomain(group)),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::storage::v1::StorageClass;
    use serde_json::json;

    use super::*;
    use crate::apiserver::strategies::testing::{Api, told};

    #[test]
    fn a_claim_gets_the_default_class_unless_it_asks_for_none() {
        let mut api = Api::new::<StorageClass>();
        let annotations = json!({"storageclass.kubernetes.io/is-default-class": "true"});
        api.create(json!({"metadata": {"name": "fast", "annotations": annotations}, "provisioner": "x.io/p"})).unwrap();
        let mut api = api.of::<PersistentVolumeClaim>();
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        let made = api.create(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap();
        assert_eq!(
            (&made["spec"]["storageClassName"], &made["spec"]["volumeMode"]),
            (&json!("fast"), &json!("Filesystem"))
        );
        assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
        let mut none = spec.clone();
        none["storageClassName"] = "".into();
        let made = api.create(json!({"metadata": {"name": "b"}, "spec": none})).unwrap();
        assert_eq!(made["spec"]["storageClassName"], "");
    }

    #[test]
    fn only_a_bound_claim_grows() {
        let mut classes = Api::new::<StorageClass>();
        classes
            .create(json!({"metadata": {"name": "fast"}, "provisioner": "p", "allowVolumeExpansion": true}))
            .unwrap();
        let mut api = classes.of::<PersistentVolumeClaim>();
        let requests = json!({"requests": {"storage": "1Gi"}});
        let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": requests});
        api.create(json!({"metadata": {"name": "a"}, "spec": spec})).unwrap();
        let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        let refused = [
            "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for \
             bound claims\n@@ -6,7 +6,7 @@\n  \"Resources\": {\n   \"Limits\": null,\n   \"Requests\": {\n-   \"storage\": \
             \"1Gi\"\n+   \"storage\": \"2Gi\"\n   }\n  },\n  \"VolumeName\": \"\",\n",
        ];
        assert_eq!(api.merge_refusal("a", more.clone()), refused);
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        assert_eq!(told(api.merge_status("a", bound)), [""; 0]);
        assert_eq!(api.merge("a", more).unwrap()["spec"]["resources"]["requests"]["storage"], "2Gi");
        let less = json!({"spec": {"resources": {"requests": {"storage": "512Mi"}}}});
        assert_eq!(
            api.merge_refusal("a", less),
            ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]
        );
    }
}
