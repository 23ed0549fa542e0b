//! DefaultStorageClass: a claim that says nothing about its class gets the default one.
//! <https://kubernetes.io/docs/concepts/storage/storage-classes/#default-storageclass>

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;

use super::{Attributes, Plugin};
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::ApiServer;

const IS_DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// How claims named their class before there was a field.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![PersistentVolumeClaim::kind()])
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        let has_class = object.spec::<PersistentVolumeClaim>().storage_class_name.is_some();
        if !attributes.creates() || has_class || object.annotation(CLASS).is_some() {
            return Ok(());
        }
        if let Some(class) = default_of(attributes.server, StorageClass::kind(), &IS_DEFAULT) {
            object.spec_mut::<PersistentVolumeClaim>().storage_class_name = Some(class.key.name.to_string());
        }
        Ok(())
    }
}

/// The object of a kind that an annotation marks as the default: of several the newest, then the first by name.
pub fn default_of<'a>(server: &'a ApiServer, kind: &KindRef, annotations: &[&str]) -> Option<&'a Object> {
    let is_default = |object: &&Object| annotations.iter().any(|name| object.annotation(name) == Some("true"));
    let created = |object: &Object| object.metadata().creation_timestamp.as_ref().map(|time| time.0);
    server
        .store
        .objects(kind)
        .values()
        .filter(is_default)
        .max_by(|one, other| created(one).cmp(&created(other)).then_with(|| other.key.cmp(&one.key)))
}
