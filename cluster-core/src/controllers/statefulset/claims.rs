//! The claims of a set's pods, and who owns them: that decides whether they go when the set shrinks or is deleted.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#persistentvolumeclaim-retention>

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::pods::ordinals;
use crate::api::Key;
use crate::api::object::Object;

/// The names of the volumes of a pod that are claims, and of these claims.
pub(super) fn names(set: &Object, ordinal: i32) -> impl Iterator<Item = (&str, String)> {
    templates(set).map(move |template| {
        let name = template.metadata.name.as_deref().unwrap_or_default();
        (name, format!("{name}-{}-{ordinal}", set.key.name))
    })
}

pub(super) fn keys(set: &Object, ordinal: i32) -> impl Iterator<Item = Key> {
    names(set, ordinal).map(|(_, claim)| Key::new(set.key.namespace.clone(), claim))
}

/// The claims of one pod, as they are made.
pub(super) fn build(set: &Object, ordinal: i32) -> impl Iterator<Item = Object> {
    templates(set).zip(keys(set, ordinal)).map(|(template, key)| {
        let spec = template.spec.clone().unwrap_or_default();
        let mut claim = Object::new::<PersistentVolumeClaim>(&key.namespace, &key.name, spec);
        *claim.metadata_mut() = template.metadata.clone();
        claim.rename(key);
        let selected = set.spec::<StatefulSet>().selector.match_labels.clone().unwrap_or_default();
        claim.metadata_mut().labels.get_or_insert_default().extend(selected);
        claim
    })
}

fn templates(set: &Object) -> impl Iterator<Item = &PersistentVolumeClaim> {
    set.spec::<StatefulSet>().volume_claim_templates.iter().flatten()
}

/// What a set says of the owners of a claim.
pub(super) struct Owners {
    /// What `metadata.ownerReferences` should be, if it is something else.
    pub change: Option<Vec<OwnerReference>>,
    /// Somebody else controls the claim, so that the policy can't be kept.
    pub is_in_conflict: bool,
}

pub(super) fn owners(set: &Object, pod: &Object, ordinal: i32, claim: &Object) -> Owners {
    let references = claim.metadata().owner_references.as_deref().unwrap_or_default();
    let names = |owner: &Object, reference: &OwnerReference| {
        reference.api_version == owner.kind.api_version()
            && reference.kind == *owner.kind.kind
            && reference.name == *owner.key.name
    };
    let is_stale = |reference: &OwnerReference| {
        [set, pod].into_iter().any(|owner| names(owner, reference) && reference.uid != owner.uid())
    };
    // A set or a pod of that name, now gone, owns it: the garbage collector will have its way.
    if references.iter().any(is_stale) {
        return Owners { change: None, is_in_conflict: deletes_any(set) };
    }
    let (ours, others): (Vec<_>, Vec<_>) =
        references.iter().cloned().partition(|reference| names(set, reference) || names(pod, reference));
    let is_in_conflict = deletes_any(set) && others.iter().any(|reference| reference.controller == Some(true));
    let wanted = if is_in_conflict { None } else { wanted_owner(set, pod, ordinal) };
    let is_right = match (&ours[..], &wanted) {
        ([], None) => true,
        ([reference], Some(wanted)) => reference.uid == wanted.uid && reference.controller == Some(true),
        _ => false,
    };
    Owners { change: (!is_right).then(|| others.into_iter().chain(wanted).collect()), is_in_conflict }
}

/// Some claims go with something.
fn deletes_any(set: &Object) -> bool {
    deletes(set).0 || deletes(set).1
}

/// Whether claims go when the set is scaled down, and when it is deleted.
fn deletes(set: &Object) -> (bool, bool) {
    let policy = set.spec::<StatefulSet>().persistent_volume_claim_retention_policy.as_ref();
    let is_delete = |policy: Option<&String>| policy.is_some_and(|policy| policy == "Delete");
    let scaled = is_delete(policy.and_then(|policy| policy.when_scaled.as_ref()));
    (scaled, is_delete(policy.and_then(|policy| policy.when_deleted.as_ref())))
}

/// When a set shrinks, the claim goes with the pod; otherwise, perhaps, with the set.
fn wanted_owner(set: &Object, pod: &Object, ordinal: i32) -> Option<OwnerReference> {
    let (when_scaled, when_deleted) = deletes(set);
    let is_condemned = !ordinals(set.spec::<StatefulSet>()).contains(&ordinal);
    match (when_scaled && is_condemned, when_deleted) {
        (true, _) => Some(pod.controller_reference()),
        (false, true) => Some(set.controller_reference()),
        (false, false) => None,
    }
}

/// A pod of this name that is gone still owns the claim, which will go with it: a new pod can't use it.
pub(super) fn is_of_gone_pod(set: &Object, ordinal: i32, claim: &Object) -> bool {
    let name = format!("{}-{ordinal}", set.key.name);
    let references = claim.metadata().owner_references.as_deref().unwrap_or_default();
    deletes(set).0 && references.iter().any(|reference| reference.kind == "Pod" && reference.name == name)
}
