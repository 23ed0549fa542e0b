//! The restricted level: what a hardened pod does without, beyond the baseline.

use k8s_openapi::api::core::v1::Volume;

use super::baseline::{bad_seccomp_profile, unmasked};
use super::checks::{Checked, Part, Violation, named, plural, quoted, setters, sorted, violation};

pub fn allow_privilege_escalation(pod: &Checked<'_>) -> Option<Violation> {
    if pod.minor >= 25 && pod.is_windows() {
        return None;
    }
    let forbids =
        |part: &Part<'_>| part.context.is_some_and(|context| context.allow_privilege_escalation == Some(false));
    let bad = pod.containers_with(|part| !forbids(part));
    if bad.is_empty() {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", named(&bad));
    violation("allowPrivilegeEscalation != false", detail)
}

pub fn capabilities(pod: &Checked<'_>) -> Option<Violation> {
    if pod.minor >= 25 && pod.is_windows() {
        return None;
    }
    let drops_all = |part: &Part<'_>| {
        part.capabilities().is_some_and(|capabilities| capabilities.drop.iter().flatten().any(|name| name == "ALL"))
    };
    let added = |part: &Part<'_>| -> Vec<String> {
        let added = part.capabilities().and_then(|capabilities| capabilities.add.clone()).unwrap_or_default();
        added.into_iter().filter(|name| name != "NET_BIND_SERVICE").collect()
    };
    let keeping = pod.containers_with(|part| !drops_all(part));
    let adding = pod.containers_with(|part| !added(part).is_empty());
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", named(&keeping)));
    }
    if !adding.is_empty() {
        let names = quoted(sorted(pod.containers.iter().flat_map(added)));
        details.push(format!("{} must not include {names} in securityContext.capabilities.add", named(&adding)));
    }
    if details.is_empty() { None } else { violation("unrestricted capabilities", details.join("; ")) }
}

pub fn proc_mount(pod: &Checked<'_>) -> Option<Violation> {
    unmasked(pod)
}

pub fn volumes(pod: &Checked<'_>) -> Option<Violation> {
    let bad: Vec<(&str, &str)> = pod
        .spec
        .volumes
        .iter()
        .flatten()
        .filter_map(|volume| Some((volume.name.as_str(), restricted_type(volume)?)))
        .collect();
    if bad.is_empty() {
        return None;
    }
    let types = sorted(bad.iter().map(|(_, volume_type)| *volume_type));
    let detail = format!(
        "{} {} {} {} {}",
        plural(bad.len(), "volume", "volumes"),
        quoted(bad.iter().map(|(name, _)| *name)),
        plural(bad.len(), "uses", "use"),
        plural(types.len(), "restricted volume type", "restricted volume types"),
        quoted(&types)
    );
    violation("restricted volume types", detail)
}

/// The type of a volume that is none of those that a restricted pod may have.
fn restricted_type(volume: &Volume) -> Option<&'static str> {
    let is_fine = volume.config_map.is_some()
        || volume.csi.is_some()
        || volume.downward_api.is_some()
        || volume.empty_dir.is_some()
        || volume.ephemeral.is_some()
        || volume.image.is_some()
        || volume.persistent_volume_claim.is_some()
        || volume.projected.is_some()
        || volume.secret.is_some();
    if is_fine {
        return None;
    }
    let types = [
        ("hostPath", volume.host_path.is_some()),
        ("gcePersistentDisk", volume.gce_persistent_disk.is_some()),
        ("awsElasticBlockStore", volume.aws_elastic_block_store.is_some()),
        ("gitRepo", volume.git_repo.is_some()),
        ("nfs", volume.nfs.is_some()),
        ("iscsi", volume.iscsi.is_some()),
        ("glusterfs", volume.glusterfs.is_some()),
        ("rbd", volume.rbd.is_some()),
        ("flexVolume", volume.flex_volume.is_some()),
        ("cinder", volume.cinder.is_some()),
        ("cephfs", volume.cephfs.is_some()),
        ("flocker", volume.flocker.is_some()),
        ("fc", volume.fc.is_some()),
        ("azureFile", volume.azure_file.is_some()),
        ("vsphereVolume", volume.vsphere_volume.is_some()),
        ("quobyte", volume.quobyte.is_some()),
        ("azureDisk", volume.azure_disk.is_some()),
        ("photonPersistentDisk", volume.photon_persistent_disk.is_some()),
        ("portworxVolume", volume.portworx_volume.is_some()),
        ("scaleIO", volume.scale_io.is_some()),
        ("storageos", volume.storageos.is_some()),
    ];
    types.into_iter().find(|(_, is)| *is).map_or(Some("unknown"), |(name, _)| Some(name))
}

pub fn run_as_non_root(pod: &Checked<'_>) -> Option<Violation> {
    if pod.minor >= 35 && pod.has_user_namespace() {
        return None;
    }
    const REASON: &str = "runAsNonRoot != true";
    let of_pod = pod.spec.security_context.as_ref().and_then(|context| context.run_as_non_root);
    let bad = pod.contexts_with(|context| context.run_as_non_root == Some(false));
    if let Some(who) = setters(of_pod == Some(false), &bad) {
        return violation(REASON, format!("{who} must not set securityContext.runAsNonRoot=false"));
    }
    let is_said = |part: &Part<'_>| part.context.is_some_and(|context| context.run_as_non_root.is_some());
    let unsaid = pod.containers_with(|part| of_pod != Some(true) && !is_said(part));
    if unsaid.is_empty() {
        return None;
    }
    violation(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", named(&unsaid)))
}

pub fn run_as_user(pod: &Checked<'_>) -> Option<Violation> {
    if pod.minor >= 35 && pod.has_user_namespace() {
        return None;
    }
    let is_root = pod.spec.security_context.as_ref().and_then(|context| context.run_as_user) == Some(0);
    let who = setters(is_root, &pod.contexts_with(|context| context.run_as_user == Some(0)))?;
    violation("runAsUser=0", format!("{who} must not set runAsUser=0"))
}

pub fn seccomp_profile(pod: &Checked<'_>) -> Option<Violation> {
    if pod.minor >= 25 && pod.is_windows() {
        return None;
    }
    if let Some(bad) = bad_seccomp_profile(pod) {
        return Some(bad);
    }
    let of_pod = pod.spec.security_context.as_ref().is_some_and(|context| context.seccomp_profile.is_some());
    let is_said = |part: &Part<'_>| part.context.is_some_and(|context| context.seccomp_profile.is_some());
    let unsaid = pod.containers_with(|part| !of_pod && !is_said(part));
    if unsaid.is_empty() {
        return None;
    }
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        named(&unsaid)
    );
    violation("seccompProfile", detail)
}
