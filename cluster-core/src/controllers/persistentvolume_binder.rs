//! persistentvolume-binder-controller: gives each PersistentVolumeClaim a volume that is good enough, and reclaims the
//! volume when its claim is gone. It has keys of two kinds: a claim's has a namespace, a volume's has none.
//! <https://kubernetes.io/docs/concepts/storage/persistent-volumes/#lifecycle-of-a-volume-and-claim>

mod claims;
mod matching;
#[cfg(test)]
mod tests;
mod volumes;

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::store::Change;

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// How soon a claim that can't be met yet is looked at again (`--pvclaimbinder-sync-period`).
const SYNC_PERIOD: Duration = Duration::from_secs(15);

pub struct VolumeBinder;

impl Controller for VolumeBinder {
    fn name(&self) -> &str {
        "persistentvolume-binder-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::itself(PersistentVolumeClaim::kind()),
            Watch::with(PersistentVolumeClaim::kind(), volumes_of_claim),
            Watch::itself(PersistentVolume::kind()),
            Watch::with(PersistentVolume::kind(), claims_of_volume),
            Watch::with(StorageClass::kind(), claims_of_class),
            // Only looked up.
            Watch::with(Pod::kind(), |_, _| Vec::new()),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        if let Some(claim) = view.get::<PersistentVolumeClaim>(key) {
            claims::sync(claim, view, &mut plan);
        } else if let Some(volume) = view.get::<PersistentVolume>(key) {
            volumes::sync(volume, view, &mut plan);
        }
        plan
    }
}

/// A claim that is gone, or that has got its volume, concerns this volume; one that is gone, also those that were to be
/// its own.
fn volumes_of_claim(view: &View<'_>, change: &Change) -> Vec<Key> {
    let name = |claim: &Object| claim.spec::<PersistentVolumeClaim>().volume_name.clone().unwrap_or_default();
    let before = change.before.as_ref().map(name);
    let after = change.after.as_ref().map(name);
    let names = if before == after { None } else { Some([before, after]) };
    let named = names.into_iter().flatten().flatten().filter(|name| !name.is_empty()).map(Key::cluster);
    let is_meant =
        |volume: &&Object| matching::claim_of(volume.spec::<PersistentVolume>()).as_ref() == Some(change.key());
    let volumes = change.after.is_none().then(|| view.list::<PersistentVolume>("").filter(is_meant));
    named.chain(volumes.into_iter().flatten().map(|volume| volume.key.clone())).collect()
}

/// A volume concerns the claim that it is for; one that has become free, all that wait for one like it.
fn claims_of_volume(view: &View<'_>, change: &Change) -> Vec<Key> {
    let claimed_by = |volume: &Object| matching::claim_of(volume.spec::<PersistentVolume>());
    let owners = [&change.before, &change.after].into_iter().flatten().filter_map(claimed_by);
    let mut keys: Vec<Key> = owners.collect();
    let phase = |volume: &Object| volume.status::<PersistentVolume>().phase.clone();
    let before = change.before.as_ref().and_then(phase);
    if let Some(volume) = change.after.as_ref()
        && phase(volume).as_deref() == Some("Available")
        && before.as_deref() != Some("Available")
    {
        let class = matching::class_of_volume(volume);
        let fits = |claim: &&Object| is_pending(claim) && matching::class_of_claim(claim) == class;
        keys.extend(view.list::<PersistentVolumeClaim>("").filter(fits).map(|claim| claim.key.clone()));
    }
    keys
}

fn claims_of_class(view: &View<'_>, change: &Change) -> Vec<Key> {
    let class = &change.key().name;
    let waits = |claim: &&Object| {
        let has_none = claim.spec::<PersistentVolumeClaim>().storage_class_name.is_none();
        is_pending(claim) && (has_none || matching::class_of_claim(claim) == &**class)
    };
    let claims = change.after.is_some().then(|| view.list::<PersistentVolumeClaim>(""));
    claims.into_iter().flatten().filter(waits).map(|claim| claim.key.clone()).collect()
}

fn is_pending(claim: &Object) -> bool {
    claim.annotation(BIND_COMPLETED).is_none()
}

/// Events carry the controller's older name.
fn told(regarding: &Object, reason: &'static str, message: impl Into<String>) -> EventNote {
    EventNote::normal(regarding, reason, message).from("persistentvolume-controller")
}

fn warned(regarding: &Object, reason: &'static str, message: impl Into<String>) -> EventNote {
    EventNote::warning(regarding, reason, message).from("persistentvolume-controller")
}
