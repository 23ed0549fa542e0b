//! Namespaces: held by the `kubernetes` finalizer until they are empty, labelled with their own name.

use k8s_openapi::api::core::v1::Namespace;

use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::names;
use crate::apiserver::{ApiServer, Moment};

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
        object.spec_mut::<Namespace>().finalizers = Some(vec!["kubernetes".into()]);
        object.status_mut::<Namespace>().phase = Some("Active".into());
        Ok(())
    }
}
