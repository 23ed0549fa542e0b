//! Which volume a claim gets: one that was made for it, or else the smallest that offers what it asks for.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::CLASS;
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::api::{Key, quantity};
use crate::controllers::cache::View;

/// The claim that a volume is bound to or reserved for.
pub(super) fn claim_of(volume: &PersistentVolumeSpec) -> Option<Key> {
    let reference = volume.claim_ref.as_ref()?;
    Some(Key::new(reference.namespace.as_deref()?, reference.name.as_deref()?))
}

/// The volume is for this claim, by name, and by uid if it says one.
pub(super) fn is_for(volume: &Object, claim: &Object) -> bool {
    let spec = volume.spec::<PersistentVolume>();
    let uid = spec.claim_ref.as_ref().and_then(|reference| reference.uid.as_deref()).unwrap_or_default();
    claim_of(spec).as_ref() == Some(&claim.key) && (uid.is_empty() || uid == claim.uid())
}

pub(super) fn class_of_claim(claim: &Object) -> &str {
    let class = claim.spec::<PersistentVolumeClaim>().storage_class_name.as_deref();
    claim.annotation(CLASS).or(class).unwrap_or_default()
}

pub(super) fn class_of_volume(volume: &Object) -> &str {
    let class = volume.spec::<PersistentVolume>().storage_class_name.as_deref();
    volume.annotation(CLASS).or(class).unwrap_or_default()
}

/// The best volume for a claim. If a pod decides where the claim is met, only one that is for it already.
pub(super) fn best<'a>(claim: &Object, view: &View<'a>, waits_for_pod: bool) -> Option<&'a Object> {
    let wish = claim.spec::<PersistentVolumeClaim>();
    let selector = wish.selector.as_ref().map(Selector::of);
    let is_free = |volume: &Object| {
        volume.spec::<PersistentVolume>().claim_ref.is_none()
            && volume.status::<PersistentVolume>().phase.as_deref() == Some("Available")
            && class_of_volume(volume) == class_of_claim(claim)
            && selector.as_ref().is_none_or(|selector| selector.matches(volume.metadata().labels.as_ref()))
    };
    let fits = |volume: &Object| {
        !volume.is_terminating()
            && has_same_mode(volume, claim)
            && offers_access(volume, claim)
            && capacity(volume) >= requested(claim)
    };
    // Those that offer nothing beyond the access modes asked for come first.
    let size = |volume: &Object| (access_modes(volume).len(), capacity(volume));
    let mut smallest: Option<&Object> = None;
    for volume in view.list::<PersistentVolume>("") {
        let is_reserved = is_for(volume, claim);
        if is_reserved && fits(volume) {
            return Some(volume);
        }
        let may_be_had = !is_reserved && !waits_for_pod && is_free(volume) && fits(volume);
        if may_be_had && smallest.is_none_or(|smallest| size(volume) < size(smallest)) {
            smallest = Some(volume);
        }
    }
    smallest
}

/// Why a volume that was asked for by name can't be had.
pub(super) fn mismatch(volume: &Object, claim: &Object) -> Option<String> {
    let reasons = [
        (volume.is_terminating(), format!("the volume is marked for deletion {:?}", volume.key.name)),
        (capacity(volume) < requested(claim), "requested PV is too small".into()),
        (class_of_volume(volume) != class_of_claim(claim), "storageClassName does not match".into()),
        (!has_same_mode(volume, claim), "incompatible volumeMode".into()),
        (!offers_access(volume, claim), "incompatible accessMode".into()),
    ];
    reasons.into_iter().find_map(|(is_so, reason)| is_so.then_some(reason))
}

pub(super) fn has_same_mode(volume: &Object, claim: &Object) -> bool {
    let offered = volume.spec::<PersistentVolume>().volume_mode.as_deref().unwrap_or("Filesystem");
    offered == claim.spec::<PersistentVolumeClaim>().volume_mode.as_deref().unwrap_or("Filesystem")
}

fn access_modes(volume: &Object) -> &[String] {
    volume.spec::<PersistentVolume>().access_modes.as_deref().unwrap_or_default()
}

fn offers_access(volume: &Object, claim: &Object) -> bool {
    let mut wanted = claim.spec::<PersistentVolumeClaim>().access_modes.iter().flatten();
    wanted.all(|mode| access_modes(volume).contains(mode))
}

/// In bytes, as all sizes here.
fn capacity(volume: &Object) -> i64 {
    let capacity = volume.spec::<PersistentVolume>().capacity.as_ref();
    capacity.and_then(|capacity| capacity.get("storage")).map_or(0, quantity::units)
}

fn requested(claim: &Object) -> i64 {
    let resources = claim.spec::<PersistentVolumeClaim>().resources.as_ref();
    let storage: Option<&Quantity> = resources.and_then(|resources| resources.requests.as_ref()?.get("storage"));
    storage.map_or(0, quantity::units)
}
