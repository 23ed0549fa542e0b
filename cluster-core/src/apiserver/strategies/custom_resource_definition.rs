//! CustomResourceDefinitions. What becomes of them once they are written stands in `custom/lifecycle.rs`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionNames, CustomResourceDefinitionStatus,
};

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::custom::{definition, lifecycle};
use crate::apiserver::strategy::{Strategy, keep_metadata};
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::{ApiServer, Moment};

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<CustomResourceDefinition>();
        let kind = spec.names.kind.clone();
        if !kind.is_empty() {
            spec.names.singular.get_or_insert_with(|| kind.to_lowercase());
            spec.names.list_kind.get_or_insert_with(|| format!("{kind}List"));
        }
        let none = || CustomResourceConversion { strategy: "None".into(), ..Default::default() };
        let conversion = spec.conversion.get_or_insert_with(none);
        let client = conversion.webhook.as_mut().and_then(|webhook| webhook.client_config.as_mut());
        if let Some(service) = client.and_then(|client| client.service.as_mut()) {
            service.port.get_or_insert(443);
        }
    }

    /// A definition begins with no accepted names; see [`lifecycle::settle`].
    fn prepare_create(&self, object: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        let stored = storage_version(object);
        *object.status_mut::<CustomResourceDefinition>() = CustomResourceDefinitionStatus {
            accepted_names: Some(CustomResourceDefinitionNames::default()),
            stored_versions: Some(stored.into_iter().collect()),
            ..Default::default()
        };
        Ok(())
    }

    fn prepare_update(&self, _: &Object, new: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        if let Some(version) = storage_version(new) {
            let known = new.status::<CustomResourceDefinition>().stored_versions.as_deref().unwrap_or_default();
            if !known.contains(&version) {
                new.status_mut::<CustomResourceDefinition>().stored_versions.get_or_insert_default().push(version);
            }
        }
        Ok(())
    }

    /// Its resources go first.
    fn begin_end(&self, object: &mut Object, moment: &Moment<'_>) -> bool {
        let finalizers = object.metadata_mut().finalizers.get_or_insert_default();
        if !finalizers.iter().any(|known| known == lifecycle::CLEANUP) {
            finalizers.push(lifecycle::CLEANUP.to_owned());
        }
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        let condition = ("Terminating", "True", "InstanceDeletionPending", message);
        lifecycle::set_condition(object.status_mut::<CustomResourceDefinition>(), condition, moment);
        true
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = definition::validate(object);
        check_stored_versions(&mut causes, object);
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let (before, after) = (old.spec::<CustomResourceDefinition>(), new.spec::<CustomResourceDefinition>());
        if lifecycle::has_condition(old, "Established") {
            let path = Path::new("spec");
            causes.immutable(&path.child("scope"), &before.scope, &after.scope);
            causes.immutable(&path.child("names.kind"), &before.names.kind, &after.names.kind);
        }
        causes.immutable(&Path::new("spec.group"), &before.group, &after.group);
        causes.immutable(&Path::new("spec.names.plural"), &before.names.plural, &after.names.plural);
        causes.into()
    }

    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        keep_metadata(old, new);
    }

    fn validate_status_update(&self, _: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        check_stored_versions(&mut causes, new);
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn storage_version(object: &Object) -> Option<String> {
    let versions = &object.spec::<CustomResourceDefinition>().versions;
    versions.iter().find(|version| version.storage).map(|version| version.name.clone())
}

/// A version that objects may be stored in has to stay. An empty list says nothing of the storage version.
fn check_stored_versions(causes: &mut Causes, object: &Object) {
    let path = Path::new("status.storedVersions");
    let stored = object.status::<CustomResourceDefinition>().stored_versions.as_deref().unwrap_or_default();
    let versions = &object.spec::<CustomResourceDefinition>().versions;
    if stored.is_empty() {
        causes.invalid(&path, serde_json::json!(stored), "must have at least one stored version");
    }
    for (index, version) in stored.iter().enumerate() {
        if !versions.iter().any(|known| known.name == *version) {
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {version} and removes {version} from \
                 status.storedVersions"
            );
            causes.invalid(&path.index(index), version.as_str(), detail);
        }
    }
    if let Some(storage) = storage_version(object)
        && !stored.is_empty()
        && !stored.contains(&storage)
    {
        causes.invalid(&path, serde_json::json!(stored), format!("must have the storage version {storage}"));
    }
}
