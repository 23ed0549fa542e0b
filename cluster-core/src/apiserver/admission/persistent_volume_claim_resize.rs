//! PersistentVolumeClaimResize: a claim grows only if it is bound and its class allows it.
//! <https://kubernetes.io/docs/concepts/storage/persistent-volumes/#expanding-persistent-volumes-claims>

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec};
use k8s_openapi::api::storage::v1::StorageClass;

use super::{Attributes, Plugin};
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::quantity;
use crate::api::status::Status;

pub struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![PersistentVolumeClaim::kind()])
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        let Some(old) = attributes.old.filter(|_| attributes.updates()) else { return Ok(()) };
        let (before, after) = (old.spec::<PersistentVolumeClaim>(), object.spec::<PersistentVolumeClaim>());
        if requested(after) <= requested(before) {
            return Ok(());
        }
        let refused = |detail: &str| Err(Status::forbidden(&object.kind, &object.key.name, detail));
        if old.status::<PersistentVolumeClaim>().phase.as_deref() != Some("Bound") {
            return refused("Only bound persistent volume claims can be expanded");
        }
        let class =
            after.storage_class_name.as_deref().filter(|_| after.storage_class_name == before.storage_class_name);
        let class = class.and_then(|name| attributes.server.store.get(StorageClass::kind(), &Key::cluster(name)));
        if class.is_some_and(|class| class.spec::<StorageClass>().allow_volume_expansion == Some(true)) {
            return Ok(());
        }
        refused(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support \
             resize",
        )
    }
}

fn requested(spec: &PersistentVolumeClaimSpec) -> quantity::Millis {
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    requests.and_then(|all| all.get("storage")).and_then(|storage| quantity::parse(&storage.0)).unwrap_or(0)
}
