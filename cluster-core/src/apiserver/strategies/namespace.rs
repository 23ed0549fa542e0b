//! Namespaces: held by the `kubernetes` finalizer until they are empty, labelled with their own name.

use k8s_openapi::api::core::v1::Namespace;

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;
use crate::apiserver::{ApiServer, Moment};

const FINALIZER: &str = "kubernetes";
const STANDARD_FINALIZERS: [&str; 3] = [FINALIZER, "orphan", "foregroundDeletion"];

pub struct Rules;

impl Strategy for Rules {
    fn check_name(&self, name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn default(&self, object: &mut Object) {
        let name = object.key.name.to_string();
        if !name.is_empty() && object.label("kubernetes.io/metadata.name") != Some(&name) {
            let labels = object.metadata_mut().labels.get_or_insert_default();
            labels.insert("kubernetes.io/metadata.name".into(), name);
        }
    }

    fn prepare_create(&self, object: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        let finalizers = object.spec_mut::<Namespace>().finalizers.get_or_insert_default();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            finalizers.push(FINALIZER.into());
        }
        object.status_mut::<Namespace>().phase = Some("Active".into());
        Ok(())
    }

    /// `spec.finalizers` changes by way of `finalize` only.
    fn prepare_update(&self, old: &Object, new: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        if !new.same_spec(old) {
            new.set_spec_part(old.spec_part().clone());
        }
        Ok(())
    }

    /// The namespace controller empties it first.
    fn begin_end(&self, object: &mut Object, _: &Moment<'_>) -> bool {
        object.status_mut::<Namespace>().phase = Some("Terminating".into());
        true
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        for (index, finalizer) in object.spec::<Namespace>().finalizers.iter().flatten().enumerate() {
            let path = Path::new("spec.finalizers").index(index);
            causes.invalid_each(&path, finalizer, names::qualified_name(finalizer));
            if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer.as_str()) {
                let detail = "name is neither a standard finalizer name nor is it fully qualified";
                causes.invalid(&path, finalizer.as_str(), detail);
            }
        }
        causes.into()
    }

    fn validate_status_update(&self, _: &Object, new: &Object) -> Vec<Cause> {
        let (phase, empty) = if new.is_terminating() { ("Terminating", "not empty") } else { ("Active", "empty") };
        let mut causes = Causes::new();
        let sent = new.status::<Namespace>().phase.as_deref().unwrap_or_default();
        if sent != phase {
            let detail = format!("may only be '{phase}' if `deletionTimestamp` is {empty}");
            causes.invalid(&Path::new("status.Phase"), sent, detail);
        }
        causes.into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::strategies::testing::{Api, told};

    #[test]
    fn the_phase_of_a_namespace_follows_its_deletion() {
        let mut api = Api::new::<Namespace>();
        api.create(json!({"metadata": {"name": "x"}})).unwrap();
        assert_eq!(
            told(api.merge_status("x", json!({"status": {"phase": "Terminating"}}))),
            ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"]
        );
        api.delete("x").unwrap();
        assert_eq!(
            told(api.merge_status("x", json!({"status": {"phase": "Active"}}))),
            ["status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"]
        );
    }
}
