//! Security contexts of pods and containers.
//! <https://kubernetes.io/docs/tasks/configure-pod-container/security-context/>

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    AppArmorProfile, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext, Sysctl,
};
use serde_json::json;

use super::field::{Causes, Path};
use super::{paths, text};

const SYSCTL_LENGTH_MAX: usize = 253;
const SYSCTL: &str = "must have at most 253 characters and match regex \
     ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const PROFILE_LENGTH_MAX: usize = 4095;
const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

fn id(causes: &mut Causes, path: &Path, id: Option<i64>) {
    if let Some(id) = id {
        causes.in_range(path, id, 0, i32::MAX.into());
    }
}

pub fn pod(causes: &mut Causes, path: &Path, spec: &PodSpec) {
    let Some(context) = &spec.security_context else { return };
    id(causes, &path.child("fsGroup"), context.fs_group);
    id(causes, &path.child("runAsUser"), context.run_as_user);
    id(causes, &path.child("runAsGroup"), context.run_as_group);
    for (index, group) in context.supplemental_groups.iter().flatten().enumerate() {
        id(causes, &path.child("supplementalGroups").index(index), Some(*group));
    }
    if spec.share_process_namespace == Some(true) && spec.host_pid == Some(true) {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        causes.invalid(&path.child("shareProcessNamespace"), true, detail);
    }
    sysctls(causes, &path.child("sysctls"), context.sysctls.as_deref().unwrap_or_default(), spec);
    modes(causes, path, context);
}

fn modes(causes: &mut Causes, path: &Path, context: &PodSecurityContext) {
    if let Some(policy) = &context.fs_group_change_policy {
        causes.one_of(&path.child("fsGroupChangePolicy"), Some(policy), &["Always", "OnRootMismatch"]);
    }
    seccomp(causes, &path.child("seccompProfile"), context.seccomp_profile.as_ref());
    app_armor(causes, &path.child("appArmorProfile"), context.app_armor_profile.as_ref());
    if let Some(policy) = &context.supplemental_groups_policy {
        causes.one_of(&path.child("supplementalGroupsPolicy"), Some(policy), &["Merge", "Strict"]);
    }
    if let Some(policy) = &context.se_linux_change_policy {
        causes.one_of(&path.child("seLinuxChangePolicy"), Some(policy), &["Recursive"]);
    }
}

fn is_sysctl(name: &str) -> bool {
    let end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let part = |part: &str| end(part.bytes().next()) && end(part.bytes().last()) && part.bytes().all(inner);
    name.len() <= SYSCTL_LENGTH_MAX && name.split(['.', '/']).all(part)
}

fn sysctls(causes: &mut Causes, path: &Path, sysctls: &[Sysctl], spec: &PodSpec) {
    let mut seen = BTreeSet::new();
    for (index, sysctl) in sysctls.iter().enumerate() {
        let (path, name) = (path.index(index).child("name"), sysctl.name.as_str());
        if name.is_empty() {
            causes.required(&path, "");
        } else if !is_sysctl(name) {
            causes.invalid(&path, name, SYSCTL);
        } else if seen.contains(name) {
            causes.duplicate(&path, name);
        }
        let dotted = name.replace('/', ".");
        if spec.host_network == Some(true) && dotted.starts_with("net.") {
            causes.invalid(&path, name, "may not be specified when 'hostNetwork' is true");
        }
        let shared_memory = ["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."];
        if spec.host_ipc == Some(true) && shared_memory.iter().any(|prefix| dotted.starts_with(prefix)) {
            causes.invalid(&path, name, "may not be specified when 'hostIPC' is true");
        }
        seen.insert(name);
    }
}

pub fn container(causes: &mut Causes, path: &Path, context: &SecurityContext, host_users: bool) {
    id(causes, &path.child("runAsUser"), context.run_as_user);
    id(causes, &path.child("runAsGroup"), context.run_as_group);
    if let Some(mount) = &context.proc_mount {
        causes.one_of(&path.child("procMount"), Some(mount), &["Default", "Unmasked"]);
        if host_users && mount == "Unmasked" {
            causes.invalid(&path.child("procMount"), mount.as_str(), "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(causes, &path.child("seccompProfile"), context.seccomp_profile.as_ref());
    if context.allow_privilege_escalation == Some(false) {
        let contradicts = |causes: &mut Causes, what: &str| {
            let detail = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
            causes.invalid(path, json!(context), detail);
        };
        if context.privileged == Some(true) {
            contradicts(causes, "`privileged` to true");
        }
        let added = context.capabilities.as_ref().and_then(|capabilities| capabilities.add.as_ref());
        for _ in added.into_iter().flatten().filter(|capability| *capability == "CAP_SYS_ADMIN") {
            contradicts(causes, "`capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    app_armor(causes, &path.child("appArmorProfile"), context.app_armor_profile.as_ref());
}

fn seccomp(causes: &mut Causes, path: &Path, profile: Option<&SeccompProfile>) {
    let Some(profile) = profile else { return };
    match profile.type_.as_str() {
        "" => causes.required(&path.child("type"), "type is required when seccompProfile is set"),
        other => causes.one_of(&path.child("type"), Some(other), &PROFILE_TYPES),
    }
    let place = path.child("localhostProfile");
    match (&profile.localhost_profile, profile.type_ == "Localhost") {
        (None, true) => causes.required(&place, "must be set when seccomp type is Localhost"),
        (Some(file), true) => paths::descending(causes, &place, file),
        (Some(_), false) => causes.invalid(&place, json!(profile), "can only be set when seccomp type is Localhost"),
        (None, false) => {}
    }
}

fn app_armor(causes: &mut Causes, path: &Path, profile: Option<&AppArmorProfile>) {
    let Some(profile) = profile else { return };
    let (place, name) = (path.child("localhostProfile"), text(&profile.localhost_profile));
    match profile.type_.as_str() {
        "" => causes.required(&path.child("type"), "type is required when appArmorProfile is set"),
        "Localhost" => {
            if name.trim() != name {
                causes.invalid(&place, name, "must not be padded with whitespace");
            } else if name.is_empty() {
                causes.required(&place, "must be set when AppArmor type is Localhost");
            }
            if name.len() > PROFILE_LENGTH_MAX {
                causes.too_long(&place, PROFILE_LENGTH_MAX);
            }
        }
        "RuntimeDefault" | "Unconfined" if profile.localhost_profile.is_some() => {
            causes.invalid(&place, name, "can only be set when AppArmor type is Localhost");
        }
        "RuntimeDefault" | "Unconfined" => {}
        other => causes.not_supported(&path.child("type"), other, &PROFILE_TYPES),
    }
}
