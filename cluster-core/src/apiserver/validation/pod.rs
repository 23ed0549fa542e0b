//! Pods as they are created, and what annotations of pods may say.

use k8s_openapi::api::core::v1::{PodSpec, SeccompProfile};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::field::{Causes, Path};
use super::{containers, paths, pod_spec, text};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub const MIRROR: &str = "kubernetes.io/config.mirror";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// A new pod, but for its metadata.
pub fn create(causes: &mut Causes, spec: &PodSpec, metadata: &ObjectMeta) {
    let path = Path::new("spec");
    pod(causes, spec, metadata);
    if spec.ephemeral_containers.as_ref().is_some_and(|containers| !containers.is_empty()) {
        causes.forbidden(&path.child("ephemeralContainers"), "cannot be set on create");
    }
    let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    if gated && !text(&spec.node_name).is_empty() {
        causes.forbidden(&path.child("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
    seccomp_agrees(causes, &path, spec, metadata);
}

/// What holds for a pod whenever it is written.
pub fn pod(causes: &mut Causes, spec: &PodSpec, metadata: &ObjectMeta) {
    let path = Path::new("spec");
    annotations(causes, &Path::new("metadata.annotations"), metadata, spec);
    pod_spec::validate(causes, &path, spec, Some(metadata));
    if text(&spec.service_account_name).is_empty() {
        for (index, volume) in spec.volumes.iter().flatten().enumerate() {
            let sources = volume.projected.as_ref().and_then(|projected| projected.sources.as_ref());
            for (source_index, source) in sources.into_iter().flatten().enumerate() {
                if source.service_account_token.is_some() {
                    let place = path.child("volumes").index(index).child("projected.sources").index(source_index);
                    let detail = "must not be specified when serviceAccountName is not set";
                    causes.forbidden(&place.child("serviceAccountToken"), detail);
                }
            }
        }
    }
    let lists = [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())];
    for (field, list) in lists {
        for (index, container) in list.into_iter().flatten().enumerate() {
            containers::trimmed_image(causes, &path.child(field).index(index), container);
        }
    }
}

/// Annotations that the API knows.
pub fn annotations(causes: &mut Causes, path: &Path, metadata: &ObjectMeta, spec: &PodSpec) {
    let Some(annotations) = &metadata.annotations else { return };
    if let Some(value) = annotations.get(MIRROR).filter(|_| text(&spec.node_name).is_empty()) {
        causes.invalid(&path.key(MIRROR), value.as_str(), "must set spec.nodeName if mirror pod annotation is set");
    }
    if let Some(cost) = annotations.get(DELETION_COST) {
        let leading = cost.starts_with('+') || cost.len() > 1 && cost.starts_with('0');
        if leading || cost.parse::<i32>().is_err() {
            causes.invalid(&path.key(DELETION_COST), cost.as_str(), "must be a 32bit integer");
        }
    }
    if let Some(profile) = annotations.get(SECCOMP_POD) {
        seccomp_annotation(causes, &path.child(SECCOMP_POD), profile);
    }
    for (key, profile) in annotations.iter().filter(|(key, _)| key.starts_with(SECCOMP_CONTAINER)) {
        seccomp_annotation(causes, &path.child(key), profile);
    }
    for (key, profile) in annotations {
        let Some(name) = key.strip_prefix(APP_ARMOR) else { continue };
        let mut found = false;
        pod_spec::each_container(spec, path, |container, _| found |= container.name == name);
        if !found {
            causes.invalid(&path.key(key), name, "container not found");
        }
        if !matches!(profile.as_str(), "" | "runtime/default" | "unconfined") && !profile.starts_with("localhost/") {
            let detail = format!("invalid AppArmor profile name: {profile:?}");
            causes.invalid(&path.key(key), profile.as_str(), detail);
        }
    }
}

fn seccomp_annotation(causes: &mut Causes, path: &Path, profile: &str) {
    match profile.strip_prefix("localhost/") {
        Some(file) => paths::descending(causes, path, file),
        None if matches!(profile, "runtime/default" | "docker/default" | "unconfined") => {}
        None => causes.invalid(path, profile, "must be a valid seccomp profile"),
    }
}

/// Who says it twice, as a field and as the annotation that was there before, says the same.
pub fn seccomp_agrees(causes: &mut Causes, path: &Path, spec: &PodSpec, metadata: &ObjectMeta) {
    let Some(annotations) = &metadata.annotations else { return };
    let pod = spec.security_context.as_ref().and_then(|context| context.seccomp_profile.as_ref());
    if let (Some(profile), Some(annotation)) = (pod, annotations.get(SECCOMP_POD)) {
        seccomp_pair(causes, &path.child("securityContext.seccompProfile"), annotation, profile);
    }
    pod_spec::each_container(spec, path, |container, path| {
        let profile = container.security_context.as_ref().and_then(|context| context.seccomp_profile.as_ref());
        if let (Some(profile), Some(annotation)) =
            (profile, annotations.get(&format!("{SECCOMP_CONTAINER}{}", container.name)))
        {
            seccomp_pair(causes, &path.child("securityContext.seccompProfile"), annotation, profile);
        }
    });
}

fn seccomp_pair(causes: &mut Causes, path: &Path, annotation: &str, profile: &SeccompProfile) {
    let type_agrees = match profile.type_.as_str() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => matches!(annotation, "runtime/default" | "docker/default"),
        "Localhost" => annotation.starts_with("localhost/"),
        _ => true,
    };
    if !type_agrees {
        causes.forbidden(&path.child("type"), "seccomp type in annotation and field must match");
    } else if profile.type_ == "Localhost"
        && annotation.strip_prefix("localhost/") != profile.localhost_profile.as_deref()
    {
        causes.forbidden(&path.child("localhostProfile"), "seccomp profile in annotation and field must match");
    }
}
