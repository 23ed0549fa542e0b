//! StorageObjectInUseProtection: volumes, claims and classes of volume attributes are born with a finalizer that holds them while they are in use.
//! <https://kubernetes.io/docs/concepts/storage/persistent-volumes/#storage-object-in-use-protection>

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;

use super::{Attributes, Plugin};
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;

const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";
const CLASS_FINALIZER: &str = "kubernetes.io/vac-protection";

pub struct StorageObjectInUseProtection;

impl Plugin for StorageObjectInUseProtection {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![PersistentVolume::kind(), PersistentVolumeClaim::kind(), VolumeAttributesClass::kind()])
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        let wanted = if object.is::<PersistentVolume>() {
            VOLUME_FINALIZER
        } else if object.is::<PersistentVolumeClaim>() {
            CLAIM_FINALIZER
        } else {
            CLASS_FINALIZER
        };
        let known = object.metadata().finalizers.iter().flatten().any(|finalizer| finalizer == wanted);
        if attributes.creates() && !known {
            object.metadata_mut().finalizers.get_or_insert_default().push(wanted.into());
        }
        Ok(())
    }
}
