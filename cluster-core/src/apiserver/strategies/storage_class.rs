//! StorageClasses and VolumeAttributesClasses. <https://kubernetes.io/docs/concepts/storage/storage-classes/>

use std::collections::BTreeMap;

use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttributesClass};

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;

const PARAMETERS_MAX: usize = 512;
/// All keys and values together.
const PARAMETERS_BYTES_MAX: usize = 256 << 10;

pub struct StorageClasses;

impl Strategy for StorageClasses {
    fn default(&self, object: &mut Object) {
        let class = object.spec_mut::<StorageClass>();
        class.reclaim_policy.get_or_insert_with(|| "Delete".into());
        class.volume_binding_mode.get_or_insert_with(|| "Immediate".into());
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (class, mut causes) = (object.spec::<StorageClass>(), Causes::new());
        provisioner(&mut causes, &Path::new("provisioner"), &class.provisioner);
        parameters(&mut causes, class.parameters.as_ref());
        causes.one_of(&Path::new("reclaimPolicy"), class.reclaim_policy.as_deref(), &["Delete", "Retain"]);
        let modes = ["Immediate", "WaitForFirstConsumer"];
        causes.one_of(&Path::new("volumeBindingMode"), class.volume_binding_mode.as_deref(), &modes);
        causes.into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new, mut causes) = (old.spec::<StorageClass>(), new.spec::<StorageClass>(), Causes::new());
        causes.immutable(&Path::new("parameters"), &old.parameters, &new.parameters);
        causes.immutable(&Path::new("provisioner"), &old.provisioner, &new.provisioner);
        causes.immutable(&Path::new("reclaimPolicy"), &old.reclaim_policy, &new.reclaim_policy);
        causes.immutable(&Path::new("volumeBindingMode"), &old.volume_binding_mode, &new.volume_binding_mode);
        causes.into()
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

/// <https://kubernetes.io/docs/concepts/storage/volume-attributes-classes/>
pub struct AttributesClasses;

impl Strategy for AttributesClasses {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (class, mut causes) = (object.spec::<VolumeAttributesClass>(), Causes::new());
        provisioner(&mut causes, &Path::new("driverName"), &class.driver_name);
        if class.parameters.as_ref().is_none_or(BTreeMap::is_empty) {
            causes.required(&Path::new("parameters"), "must contain at least one key/value pair");
        }
        parameters(&mut causes, class.parameters.as_ref());
        causes.into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new) = (old.spec::<VolumeAttributesClass>(), new.spec::<VolumeAttributesClass>());
        let mut causes = Causes::new();
        causes.immutable(&Path::new("driverName"), &old.driver_name, &new.driver_name);
        causes.immutable(&Path::new("parameters"), &old.parameters, &new.parameters);
        causes.into()
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

fn provisioner(causes: &mut Causes, path: &Path, name: &str) {
    if name.is_empty() {
        causes.required(path, "");
    } else {
        let lower = name.to_lowercase();
        causes.invalid_each(path, &lower, names::qualified_name(&lower));
    }
}

fn parameters(causes: &mut Causes, parameters: Option<&BTreeMap<String, String>>) {
    let (Some(parameters), path) = (parameters, Path::new("parameters")) else { return };
    if parameters.len() > PARAMETERS_MAX {
        return causes.too_long(&path, PARAMETERS_MAX);
    }
    if parameters.contains_key("") {
        causes.invalid(&path, "", "field can not be empty.");
    }
    if parameters.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() > PARAMETERS_BYTES_MAX {
        causes.too_long(&path, PARAMETERS_BYTES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn a_class_is_completed_and_stays_as_it_is() {
        let mut api = Api::new::<StorageClass>();
        let made = api.create(json!({"metadata": {"name": "a"}, "provisioner": "example.com/p"})).unwrap();
        assert_eq!((&made["reclaimPolicy"], &made["volumeBindingMode"]), (&json!("Delete"), &json!("Immediate")));
        let change = json!({"provisioner": "example.com/q", "parameters": {"a": "b"}});
        assert_eq!(
            api.merge_refusal("a", change),
            [
                "parameters: Invalid value: {\"a\":\"b\"}: field is immutable",
                "provisioner: Invalid value: \"example.com/q\": field is immutable",
            ]
        );
        assert_eq!(api.merge("a", json!({"allowVolumeExpansion": true})).unwrap()["allowVolumeExpansion"], true);
        assert_eq!(api.refusal(json!({"metadata": {"name": "b"}})), ["provisioner: Required value"]);
        assert_eq!(api.delete("a").unwrap()["kind"], "StorageClass");
    }
}
