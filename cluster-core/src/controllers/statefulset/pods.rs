//! What makes a pod a member of its set: the ordinal in its name, the labels that follow from it, its volumes.

use std::ops::Range;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume};

use super::claims;
use crate::api::Key;
use crate::api::object::Object;
use crate::clock::Time;
use crate::controllers::pods;

pub(super) const REVISION_LABEL: &str = "controller-revision-hash";
const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// The ordinals that a set's pods should have.
pub(super) fn ordinals(spec: &StatefulSetSpec) -> Range<i32> {
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0);
    start..start.saturating_add(spec.replicas.unwrap_or(1).max(0))
}

/// `web-2` is the third pod of the set `web`.
pub(super) fn ordinal(set: &Object, pod: &Object) -> Option<i32> {
    let digits = pod.key.name.strip_prefix(&*set.key.name)?.strip_prefix('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// A pod that isn't there yet.
pub(super) fn build(set: &Object, ordinal: i32, template: &PodTemplateSpec, revision: &str) -> Object {
    let mut pod = pods::from_template(template, set, set.controller_reference());
    let name = format!("{}-{ordinal}", set.key.name);
    pod.rename(Key::new(set.key.namespace.clone(), name.as_str()));
    identify(&mut pod, ordinal);
    pod.metadata_mut().labels.get_or_insert_default().insert(REVISION_LABEL.into(), revision.into());
    let volumes = with_claims(set, ordinal, pod.spec::<Pod>().volumes.as_deref().unwrap_or_default());
    let spec = pod.spec_mut::<Pod>();
    spec.hostname = Some(name);
    spec.subdomain = set.spec::<StatefulSet>().service_name.clone().filter(|service| !service.is_empty());
    spec.volumes = (!volumes.is_empty()).then_some(volumes);
    pod
}

/// The pod as the set wants it to be, if it isn't: with its labels and its claims.
pub(super) fn mended(set: &Object, ordinal: i32, pod: &Object) -> Option<Object> {
    let volumes = pod.spec::<Pod>().volumes.as_deref().unwrap_or_default();
    let has_claims = claims::names(set, ordinal).all(|(volume, claim)| {
        let source = volumes.iter().find(|known| known.name == volume);
        let source = source.and_then(|volume| volume.persistent_volume_claim.as_ref());
        source.is_some_and(|source| source.claim_name == claim)
    });
    if has_claims && pod.label(NAME_LABEL) == Some(&*pod.key.name) {
        return None;
    }
    let mut mended = pod.clone();
    identify(&mut mended, ordinal);
    if !has_claims {
        mended.spec_mut::<Pod>().volumes = Some(with_claims(set, ordinal, volumes));
    }
    Some(mended)
}

fn identify(pod: &mut Object, ordinal: i32) {
    let name = pod.key.name.to_string();
    let labels = pod.metadata_mut().labels.get_or_insert_default();
    labels.insert(NAME_LABEL.into(), name);
    labels.insert(INDEX_LABEL.into(), ordinal.to_string());
}

/// The volumes of the claims, then the others; a claim's volume takes the place of another of its name.
fn with_claims(set: &Object, ordinal: i32, others: &[Volume]) -> Vec<Volume> {
    let of_claim = |(name, claim_name): (&str, String)| {
        let source = PersistentVolumeClaimVolumeSource { claim_name, ..Default::default() };
        Volume { name: name.into(), persistent_volume_claim: Some(source), ..Volume::default() }
    };
    let mut volumes: Vec<Volume> = claims::names(set, ordinal).map(of_claim).collect();
    let claimed = volumes.len();
    for other in others {
        if volumes[..claimed].iter().all(|known| known.name != other.name) {
            volumes.push(other.clone());
        }
    }
    volumes
}

pub(super) fn revision(pod: &Object) -> &str {
    pod.label(REVISION_LABEL).unwrap_or_default()
}

pub(super) fn phase(pod: &Object) -> &str {
    pod.status::<Pod>().phase.as_deref().unwrap_or_default()
}

pub(super) fn is_running_and_ready(pod: &Object) -> bool {
    phase(pod) == "Running" && pods::is_ready(pod)
}

/// It is running, and has been ready for long enough.
pub(super) fn is_available(pod: &Object, min_ready_seconds: i32, now: Time) -> bool {
    let wait = pods::available_in(pod, min_ready_seconds, now);
    phase(pod) == "Running" && wait.is_some_and(|wait| wait.is_zero())
}
