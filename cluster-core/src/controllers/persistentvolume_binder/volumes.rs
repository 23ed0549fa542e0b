//! What becomes of a volume: free, bound, or, when its claim is gone, reclaimed.
//! <https://kubernetes.io/docs/concepts/storage/persistent-volumes/#reclaiming>

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};

use super::{BOUND_BY_CONTROLLER, PROVISIONED_BY, matching, told, warned};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::controllers::cache::View;
use crate::controllers::controller::Plan;
use crate::controllers::pods;

pub(super) fn sync(volume: &Object, view: &View<'_>, plan: &mut Plan) {
    let spec = volume.spec::<PersistentVolume>();
    let uid = spec.claim_ref.as_ref().and_then(|owner| owner.uid.as_deref()).unwrap_or_default();
    let Some(key) = matching::claim_of(spec).filter(|_| !uid.is_empty()) else {
        return set_phase(volume, "Available", None, "no claim has it", plan);
    };
    let Some(claim) = view.get::<PersistentVolumeClaim>(&key).filter(|claim| claim.uid() == uid) else {
        if !is_released(volume) {
            plan.unless_exists(PersistentVolumeClaim::kind(), key.clone(), uid);
        }
        return reclaim(volume, &key, view, plan);
    };
    match claim.spec::<PersistentVolumeClaim>().volume_name.as_deref().unwrap_or_default() {
        "" if !matching::has_same_mode(volume, claim) => {
            let message = format!(
                "Cannot bind PersistentVolume to requested PersistentVolumeClaim {:?} due to incompatible volumeMode.",
                claim.key.name
            );
            plan.event(warned(volume, "VolumeMismatch", message));
            let message = format!(
                "Cannot bind PersistentVolume {:?} to requested PersistentVolumeClaim due to incompatible volumeMode.",
                volume.key.name
            );
            plan.event(warned(claim, "VolumeMismatch", message));
        }
        // The claim's own turn binds it.
        "" => {}
        name if name == &*volume.key.name => set_phase(volume, "Bound", None, "its claim has it", plan),
        _ if volume.annotation(PROVISIONED_BY).is_some() && policy(volume) == "Delete" => {
            reclaim(volume, &key, view, plan);
        }
        _ => unbind(volume, plan),
    }
}

/// Writes the phase if it is another, with a message that says why.
pub(super) fn set_phase(volume: &Object, phase: &str, message: Option<&str>, reason: &'static str, plan: &mut Plan) {
    if volume.status::<PersistentVolume>().phase.as_deref() != Some(phase) {
        let mut changed = volume.clone();
        let status = changed.status_mut::<PersistentVolume>();
        status.phase = Some(phase.to_owned());
        status.message = message.map(str::to_owned);
        plan.update_status(changed, reason);
    }
}

fn is_released(volume: &Object) -> bool {
    matches!(volume.status::<PersistentVolume>().phase.as_deref(), Some("Released" | "Failed"))
}

fn policy(volume: &Object) -> &str {
    volume.spec::<PersistentVolume>().persistent_volume_reclaim_policy.as_deref().unwrap_or("Retain")
}

/// Its claim is gone. A failure stays told while it is tried again.
fn reclaim(volume: &Object, claim: &Key, view: &View<'_>, plan: &mut Plan) {
    let mut released = volume.clone();
    if !is_released(volume) {
        set_phase(volume, "Released", None, "its claim is gone", plan);
        released.status_mut::<PersistentVolume>().phase = Some("Released".into());
        released.revision = 0;
    }
    match policy(volume) {
        "Delete" if volume.is_terminating() => {}
        "Delete" => match deleter(volume) {
            Ok(true) => drop(plan.delete(volume, "its claim is gone and its policy is Delete")),
            // Whoever provisioned it deletes it.
            Ok(false) => {}
            Err(error) => fail(&released, "VolumeFailedDelete", &error, plan),
        },
        "Recycle" => recycle(&released, claim, view, plan),
        _ => {}
    }
}

/// Whether the controller itself can delete what is behind the volume.
fn deleter(volume: &Object) -> Result<bool, String> {
    if volume.annotation(PROVISIONED_BY).is_some_and(|name| !name.is_empty() && !name.starts_with("kubernetes.io/")) {
        return Ok(false);
    }
    match &volume.spec::<PersistentVolume>().host_path {
        Some(source) if source.path.strip_prefix("/tmp/").is_some_and(|rest| !rest.is_empty()) => Ok(true),
        Some(source) => Err(format!("host_path deleter only supports /tmp/.+ but received provided {}", source.path)),
        None => {
            let name = &volume.key.name;
            Err(format!("error getting deleter volume plugin for volume {name:?}: no deletable volume plugin matched"))
        }
    }
}

fn recycle(volume: &Object, claim: &Key, view: &View<'_>, plan: &mut Plan) {
    let spec = volume.spec::<PersistentVolume>();
    let uses = |pod: &&Object| !pods::is_finished(pod) && pods::claims(pod).any(|name| name == *claim.name);
    let users: Vec<String> = view.list::<Pod>(&claim.namespace).filter(uses).map(|pod| pod.key.to_string()).collect();
    if !users.is_empty() && view.get::<PersistentVolumeClaim>(claim).is_none() {
        let message = format!("Volume is used by pods: {}", users.join(","));
        plan.event(told(volume, "VolumeFailedRecycle", message));
    } else if spec.host_path.is_none() && spec.nfs.is_none() {
        fail(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!", plan);
    } else {
        plan.event(told(volume, "VolumeRecycled", "Volume recycled"));
        unbind(volume, plan);
    }
}

fn fail(volume: &Object, reason: &'static str, message: &str, plan: &mut Plan) {
    if volume.status::<PersistentVolume>().phase.as_deref() != Some("Failed") {
        set_phase(volume, "Failed", Some(message), "it can't be reclaimed", plan);
        plan.event(warned(volume, reason, message));
    }
}

/// Takes back a binding: all of it if the controller made it; a user's reservation by name stays.
fn unbind(volume: &Object, plan: &mut Plan) {
    let mut free = volume.clone();
    if volume.annotation(BOUND_BY_CONTROLLER).is_some() {
        free.spec_mut::<PersistentVolume>().claim_ref = None;
        let annotations = &mut free.metadata_mut().annotations;
        if let Some(known) = annotations {
            known.remove(BOUND_BY_CONTROLLER);
        }
        *annotations = annotations.take().filter(|annotations| !annotations.is_empty());
    } else if let Some(owner) = &mut free.spec_mut::<PersistentVolume>().claim_ref {
        owner.uid = None;
    }
    plan.update(free.clone(), "its claim does not have it");
    free.revision = 0;
    set_phase(&free, "Available", None, "no claim has it", plan);
}
