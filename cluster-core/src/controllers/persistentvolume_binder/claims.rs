//! What becomes of a claim: it is bound, waits, has a volume made for it, or has lost its volume.

use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;

use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, SYNC_PERIOD, is_pending, matching, told, volumes, warned,
};
use crate::api::Key;
use crate::api::object::Object;
use crate::controllers::cache::View;
use crate::controllers::controller::Plan;
use crate::controllers::pods;

const IS_DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// Under both names, provisioners learn that a claim is theirs.
const PROVISIONER: [&str; 2] =
    ["volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner"];

pub(super) fn sync(claim: &Object, view: &View<'_>, plan: &mut Plan) {
    let wished = claim.spec::<PersistentVolumeClaim>().volume_name.as_deref().unwrap_or_default();
    match (is_pending(claim), wished) {
        (true, "") => find_volume(claim, view, plan),
        (true, name) => take_volume(claim, view.get::<PersistentVolume>(&Key::cluster(name)), plan),
        (false, name) => check_bound(claim, name, view, plan),
    }
}

/// It takes any volume.
fn find_volume(claim: &Object, view: &View<'_>, plan: &mut Plan) {
    let class_name = matching::class_of_claim(claim);
    let class = view.get::<StorageClass>(&Key::cluster(class_name));
    let mode = class.and_then(|class| class.spec::<StorageClass>().volume_binding_mode.as_deref());
    let waits_for_pod = mode == Some("WaitForFirstConsumer");
    if let Some(volume) = matching::best(claim, view, waits_for_pod) {
        return bind(volume, claim, plan);
    }
    if let Some(default) = default_class(claim, view) {
        let mut classed = claim.clone();
        classed.spec_mut::<PersistentVolumeClaim>().storage_class_name = Some(default.key.name.to_string());
        plan.update(classed, "there is a default class now");
        return;
    }
    if waits_for_pod && claim.annotation(SELECTED_NODE).is_none() {
        let (reason, message) = what_pod_is_waited_for(claim, view);
        plan.event(told(claim, reason, message));
        stay_pending(claim, plan);
    } else if class_name.is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set";
        plan.event(told(claim, "FailedBinding", message));
        stay_pending(claim, plan);
    } else {
        provision(claim, class_name, class, plan);
    }
    plan.requeue_after(SYNC_PERIOD);
}

/// The newest class that is the default, for a claim that names none.
fn default_class<'a>(claim: &Object, view: &View<'a>) -> Option<&'a Object> {
    let has_class = claim.spec::<PersistentVolumeClaim>().storage_class_name.is_some();
    if has_class || claim.annotation(super::CLASS).is_some() {
        return None;
    }
    let is_default = |class: &&Object| IS_DEFAULT_CLASS.iter().any(|name| class.annotation(name) == Some("true"));
    let classes = view.list::<StorageClass>("").filter(is_default);
    classes.max_by_key(|class| (class.metadata().creation_timestamp.clone(), std::cmp::Reverse(&class.key.name)))
}

fn what_pod_is_waited_for(claim: &Object, view: &View<'_>) -> (&'static str, String) {
    let uses = |pod: &&Object| pods::claims(pod).any(|name| name == *claim.key.name);
    let unscheduled = |pod: &&Object| pod.spec::<Pod>().node_name.is_none() && !pods::is_finished(pod);
    let namespace = &claim.key.namespace;
    let pods: Vec<&str> =
        view.list::<Pod>(namespace).filter(unscheduled).filter(uses).map(|pod| &*pod.key.name).collect();
    match &pods[..] {
        [] => ("WaitForFirstConsumer", "waiting for first consumer to be created before binding".into()),
        [pod] => ("WaitForPodScheduled", format!("waiting for pod {pod} to be scheduled")),
        several => ("WaitForPodScheduled", format!("waiting for pods {} to be scheduled", several.join(","))),
    }
}

/// A volume is to be made by whoever the class names; none of the provisioners of Kubernetes' own is left.
fn provision(claim: &Object, class_name: &str, class: Option<&Object>, plan: &mut Plan) {
    let Some(class) = class else {
        let message = format!("storageclass.storage.k8s.io {class_name:?} not found");
        return plan.event(warned(claim, "ProvisioningFailed", message));
    };
    let provisioner = &class.spec::<StorageClass>().provisioner;
    if provisioner.starts_with("kubernetes.io/") {
        let message = format!("no volume plugin matched name: {provisioner}");
        return plan.event(warned(claim, "ProvisioningFailed", message));
    }
    if claim.annotation(PROVISIONER[1]) != Some(provisioner) {
        let mut told = claim.clone();
        let annotations = told.metadata_mut().annotations.get_or_insert_default();
        annotations.extend(PROVISIONER.map(|name| (name.to_owned(), provisioner.clone())));
        plan.update(told, "its class names who makes its volume");
    }
    let message = format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the \
         system administrator. If volume creation is delayed, please verify that the provisioner is running and \
         correctly registered."
    );
    plan.event(told(claim, "ExternalProvisioning", message));
}

/// It asks for one volume by name.
fn take_volume(claim: &Object, volume: Option<&Object>, plan: &mut Plan) {
    match volume {
        None => stay_pending(claim, plan),
        Some(volume) if matching::is_for(volume, claim) => return bind(volume, claim, plan),
        Some(volume) if volume.spec::<PersistentVolume>().claim_ref.is_none() => {
            let Some(reason) = matching::mismatch(volume, claim) else { return bind(volume, claim, plan) };
            let message = format!("Cannot bind to requested volume {:?}: {reason}", volume.key.name);
            plan.event(warned(claim, "VolumeMismatch", message));
            stay_pending(claim, plan);
        }
        Some(volume) => {
            let message = format!("volume {:?} already bound to a different claim.", volume.key.name);
            plan.event(warned(claim, "FailedBinding", message));
            stay_pending(claim, plan);
        }
    }
    plan.requeue_after(SYNC_PERIOD);
}

fn check_bound(claim: &Object, name: &str, view: &View<'_>, plan: &mut Plan) {
    let volume = view.get::<PersistentVolume>(&Key::cluster(name));
    let owner = |volume: &Object| volume.spec::<PersistentVolume>().claim_ref.as_ref().map(|owner| owner.uid.clone());
    match volume {
        None if name.is_empty() => {
            lose(
                claim,
                "ClaimLost",
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
                plan,
            );
        }
        None => {
            lose(claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!", plan)
        }
        Some(volume) => match owner(volume) {
            Some(uid) if uid.as_deref() != Some(claim.uid()) => {
                let message = "Two claims are bound to the same volume, this one is bound incorrectly";
                lose(claim, "ClaimMisbound", message, plan);
            }
            _ => bind(volume, claim, plan),
        },
    }
}

fn lose(claim: &Object, reason: &'static str, message: &str, plan: &mut Plan) {
    if let Some(lost) = with_phase(claim, "Lost", None)
        && claim.status::<PersistentVolumeClaim>().phase.as_deref() != Some("Lost")
    {
        plan.update_status(lost, "it has no volume any more").event(warned(claim, reason, message));
    }
}

fn stay_pending(claim: &Object, plan: &mut Plan) {
    if let Some(pending) = with_phase(claim, "Pending", None) {
        plan.update_status(pending, "it has no volume yet");
    }
}

/// The claim with this phase, and with what its volume offers, if that is news.
fn with_phase(claim: &Object, phase: &str, volume: Option<&Object>) -> Option<Object> {
    let mut changed = claim.clone();
    let becomes = claim.status::<PersistentVolumeClaim>().phase.as_deref() != Some(phase);
    let status = changed.status_mut::<PersistentVolumeClaim>();
    status.phase = Some(phase.to_owned());
    let offer = volume.map(|volume| volume.spec::<PersistentVolume>());
    status.access_modes = offer.and_then(|offer| offer.access_modes.clone());
    match offer {
        None => status.capacity = None,
        // Later the claim may say less than the volume: its file system grows after it.
        Some(offer) if becomes => status.capacity = offer.capacity.clone(),
        Some(_) => {}
    }
    (!changed.same_status(claim)).then_some(changed)
}

/// Ties a volume and a claim to each other, the volume first. Only what isn't so yet is written.
fn bind(volume: &Object, claim: &Object, plan: &mut Plan) {
    const REASON: &str = "volume and claim belong together";
    let spec = volume.spec::<PersistentVolume>();
    let is_whole = spec.claim_ref.as_ref().is_some_and(|owner| owner.uid.as_deref() == Some(claim.uid()));
    let mut bound = volume.clone();
    if !is_whole || !matching::is_for(volume, claim) {
        if !matching::is_for(volume, claim) {
            annotate(&mut bound, BOUND_BY_CONTROLLER);
        }
        bound.spec_mut::<PersistentVolume>().claim_ref = Some(reference(claim));
        plan.update(bound.clone(), REASON);
        bound.revision = 0;
    }
    volumes::set_phase(&bound, "Bound", None, REASON, plan);

    let mut owner = claim.clone();
    let names_it = claim.spec::<PersistentVolumeClaim>().volume_name.as_deref() == Some(&*volume.key.name);
    if !names_it || is_pending(claim) {
        if !names_it {
            owner.spec_mut::<PersistentVolumeClaim>().volume_name = Some(volume.key.name.to_string());
            annotate(&mut owner, BOUND_BY_CONTROLLER);
        }
        annotate(&mut owner, BIND_COMPLETED);
        plan.update(owner.clone(), REASON);
        owner.revision = 0;
    }
    if let Some(owner) = with_phase(&owner, "Bound", Some(volume)) {
        plan.update_status(owner, REASON);
    }
}

fn annotate(object: &mut Object, name: &str) {
    object.metadata_mut().annotations.get_or_insert_default().insert(name.into(), "yes".into());
}

fn reference(claim: &Object) -> ObjectReference {
    ObjectReference {
        api_version: Some(claim.kind.api_version()),
        kind: Some(claim.kind.kind.to_string()),
        name: Some(claim.key.name.to_string()),
        namespace: Some(claim.key.namespace.to_string()),
        uid: Some(claim.uid().to_owned()),
        resource_version: (claim.revision > 0).then(|| claim.revision.to_string()),
        field_path: None,
    }
}
