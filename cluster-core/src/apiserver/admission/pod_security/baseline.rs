//! The baseline: what lets a pod out of its containers in known ways.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{LifecycleHandler, SELinuxOptions, SeccompProfile};

use super::checks::{Checked, Part, Violation, named, plural, quoted, setters, sorted, violation};

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Kernel settings of a pod that may be changed, and since which version.
const SYSCTLS: [(&str, u32); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

const SE_LINUX_TYPES: [(&str, u32); 5] =
    [("", 0), ("container_t", 0), ("container_init_t", 0), ("container_kvm_t", 0), ("container_engine_t", 31)];

const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_POD_ANNOTATION: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER_ANNOTATION: &str = "container.seccomp.security.alpha.kubernetes.io/";

pub fn app_armor_profile(pod: &Checked<'_>) -> Option<Violation> {
    let is_bad = |profile: &str| !matches!(profile, "RuntimeDefault" | "Localhost");
    let of_pod = pod.spec.security_context.as_ref().and_then(|context| context.app_armor_profile.as_ref());
    let of_pod = of_pod.map(|profile| profile.type_.as_str()).filter(|profile| is_bad(profile));
    let of_part = |part: &Part<'_>| {
        let profile = part.context.and_then(|context| context.app_armor_profile.as_ref());
        profile.map(|profile| profile.type_.clone()).filter(|profile| is_bad(profile))
    };
    let bad = pod.containers_with(|part| of_part(part).is_some());
    let values = sorted(of_pod.map(str::to_owned).into_iter().chain(pod.containers.iter().filter_map(of_part)));
    let is_forbidden = |(name, profile): &(&String, &String)| {
        name.starts_with(APP_ARMOR_ANNOTATION)
            && !(profile.is_empty() || *profile == "runtime/default" || profile.starts_with("localhost/"))
    };
    let annotations = pod.metadata.annotations.iter().flatten().filter(is_forbidden);
    let annotations: Vec<String> = annotations.map(|(name, profile)| format!("{name}={profile:?}")).collect();
    let named = (!annotations.is_empty()).then(|| plural(annotations.len(), "annotation", "annotations").to_owned());
    let who: Vec<String> = setters(of_pod.is_some(), &bad).into_iter().chain(named).collect();
    if who.is_empty() {
        return None;
    }
    let values: Vec<String> = values.into_iter().chain(annotations).collect();
    let reason = plural(values.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    violation(reason, format!("{} must not set AppArmor profile type to {}", who.join(" and "), quoted(values)))
}

pub fn capabilities(pod: &Checked<'_>) -> Option<Violation> {
    let added = |part: &Part<'_>| -> Vec<String> {
        let added = part.capabilities().and_then(|capabilities| capabilities.add.clone()).unwrap_or_default();
        added.into_iter().filter(|name| !CAPABILITIES.contains(&name.as_str())).collect()
    };
    let bad = pod.containers_with(|part| !added(part).is_empty());
    if bad.is_empty() {
        return None;
    }
    let names = quoted(sorted(pod.containers.iter().flat_map(added)));
    let detail = format!("{} must not include {names} in securityContext.capabilities.add", named(&bad));
    violation("non-default capabilities", detail)
}

pub fn host_namespaces(pod: &Checked<'_>) -> Option<Violation> {
    let spec = pod.spec;
    let shared = [("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)];
    let shared = shared.into_iter().filter(|(_, is_shared)| *is_shared == Some(true));
    let shared: Vec<String> = shared.map(|(name, _)| format!("{name}=true")).collect();
    if shared.is_empty() { None } else { violation("host namespaces", shared.join(", ")) }
}

pub fn host_path_volumes(pod: &Checked<'_>) -> Option<Violation> {
    let of_host = pod.spec.volumes.iter().flatten().filter(|volume| volume.host_path.is_some());
    let names: Vec<&str> = of_host.map(|volume| volume.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    violation("hostPath volumes", format!("{} {}", plural(names.len(), "volume", "volumes"), quoted(names)))
}

pub fn host_ports(pod: &Checked<'_>) -> Option<Violation> {
    let ports = |part: &Part<'_>| part.host_ports.iter().filter(|port| **port != 0).map(i32::to_string).collect();
    let bad = pod.containers_with(|part| part.host_ports.iter().any(|port| *port != 0));
    if bad.is_empty() {
        return None;
    }
    let ports: BTreeSet<String> = pod.containers.iter().flat_map(|part| -> Vec<String> { ports(part) }).collect();
    let (uses, noun) = (plural(bad.len(), "uses", "use"), plural(ports.len(), "hostPort", "hostPorts"));
    let ports = ports.into_iter().collect::<Vec<_>>().join(", ");
    violation("hostPort", format!("{} {uses} {noun} {ports}", named(&bad)))
}

pub fn host_probes(pod: &Checked<'_>) -> Option<Violation> {
    fn of_handler(handler: &LifecycleHandler) -> [Option<&String>; 2] {
        let http = handler.http_get.as_ref().and_then(|action| action.host.as_ref());
        [http, handler.tcp_socket.as_ref().and_then(|action| action.host.as_ref())]
    }
    let hosts = |part: &Part<'_>| -> Vec<String> {
        let probed = part.probes.iter().flat_map(|probe| {
            let http = probe.http_get.as_ref().and_then(|action| action.host.as_ref());
            [http, probe.tcp_socket.as_ref().and_then(|action| action.host.as_ref())]
        });
        let handlers = part.lifecycle.iter().flat_map(|lifecycle| [&lifecycle.post_start, &lifecycle.pre_stop]);
        let called = handlers.flatten().flat_map(of_handler);
        probed.chain(called).flatten().filter(|host| !host.is_empty()).cloned().collect()
    };
    let bad: Vec<&str> = sorted(pod.containers_with(|part| !hosts(part).is_empty())).into_iter().collect();
    if bad.is_empty() {
        return None;
    }
    let hosts = sorted(pod.containers.iter().flat_map(hosts));
    let uses = plural(bad.len(), "uses", "use");
    let noun = plural(hosts.len(), "probe or lifecycle host", "probe or lifecycle hosts");
    violation("probe or lifecycle host", format!("{} {uses} {noun} {}", named(&bad), quoted(hosts)))
}

pub fn privileged(pod: &Checked<'_>) -> Option<Violation> {
    let bad = pod.contexts_with(|context| context.privileged == Some(true));
    if bad.is_empty() {
        return None;
    }
    violation("privileged", format!("{} must not set securityContext.privileged=true", named(&bad)))
}

pub fn proc_mount(pod: &Checked<'_>) -> Option<Violation> {
    if pod.minor >= 35 && pod.has_user_namespace() { None } else { unmasked(pod) }
}

/// A container that sees more of `/proc` than it should.
pub fn unmasked(pod: &Checked<'_>) -> Option<Violation> {
    let mount = |part: &Part<'_>| {
        let mount = part.context.and_then(|context| context.proc_mount.clone());
        mount.filter(|mount| mount != "Default")
    };
    let bad = pod.containers_with(|part| mount(part).is_some());
    if bad.is_empty() {
        return None;
    }
    let mounts = quoted(sorted(pod.containers.iter().filter_map(mount)));
    violation("procMount", format!("{} must not set securityContext.procMount to {mounts}", named(&bad)))
}

pub fn se_linux_options(pod: &Checked<'_>) -> Option<Violation> {
    let allowed = |name: &str| SE_LINUX_TYPES.iter().any(|(known, since)| *known == name && pod.minor >= *since);
    let is_set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    let bad_type = |options: &SELinuxOptions| options.type_.clone().filter(|name| !allowed(name));
    let is_bad =
        |options: &SELinuxOptions| bad_type(options).is_some() || is_set(&options.user) || is_set(&options.role);
    let of_pod = pod.spec.security_context.as_ref().and_then(|context| context.se_linux_options.as_ref());
    let bad = pod.contexts_with(|context| context.se_linux_options.as_ref().is_some_and(is_bad));
    let who = setters(of_pod.is_some_and(is_bad), &bad)?;
    let of_parts = pod.containers.iter().filter_map(|part| part.context?.se_linux_options.as_ref());
    let all: Vec<&SELinuxOptions> = of_pod.into_iter().chain(of_parts).collect();
    let types = sorted(all.iter().filter_map(|options| bad_type(options)));
    let mut what = Vec::new();
    if !types.is_empty() {
        what.push(format!("{} {}", plural(types.len(), "type", "types"), quoted(&types)));
    }
    if all.iter().any(|options| is_set(&options.user)) {
        what.push("user may not be set".into());
    }
    if all.iter().any(|options| is_set(&options.role)) {
        what.push("role may not be set".into());
    }
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", what.join("; "));
    violation("seLinuxOptions", detail)
}

pub fn seccomp_profile(pod: &Checked<'_>) -> Option<Violation> {
    if pod.minor < 19 { seccomp_annotations(pod) } else { bad_seccomp_profile(pod) }
}

fn seccomp_annotations(pod: &Checked<'_>) -> Option<Violation> {
    let names = pod.containers.iter().map(|part| format!("{SECCOMP_CONTAINER_ANNOTATION}{}", part.name));
    let is_fine =
        |profile: &str| matches!(profile, "runtime/default" | "docker/default") || profile.starts_with("localhost/");
    let forbidden = names.chain([SECCOMP_POD_ANNOTATION.to_owned()]).filter_map(|name| {
        let profile = pod.metadata.annotations.as_ref()?.get(&name).filter(|profile| !is_fine(profile))?;
        Some(format!("{name}={profile:?}"))
    });
    let forbidden: Vec<String> = sorted(forbidden).into_iter().collect();
    if forbidden.is_empty() {
        return None;
    }
    let noun = plural(forbidden.len(), "annotation", "annotations");
    violation("seccompProfile", format!("forbidden {noun} {}", forbidden.join(", ")))
}

pub fn is_bad_seccomp(profile: &SeccompProfile) -> bool {
    !matches!(profile.type_.as_str(), "RuntimeDefault" | "Localhost")
}

/// Profiles that somebody set, and that are none.
pub fn bad_seccomp_profile(pod: &Checked<'_>) -> Option<Violation> {
    let of_pod = pod.spec.security_context.as_ref().and_then(|context| context.seccomp_profile.as_ref());
    let bad = pod.contexts_with(|context| context.seccomp_profile.as_ref().is_some_and(is_bad_seccomp));
    let who = setters(of_pod.is_some_and(is_bad_seccomp), &bad)?;
    let of_parts = pod.containers.iter().filter_map(|part| part.context?.seccomp_profile.as_ref());
    let values = of_pod.into_iter().chain(of_parts).filter(|profile| is_bad_seccomp(profile));
    let values = quoted(sorted(values.map(|profile| profile.type_.as_str())));
    violation("seccompProfile", format!("{who} must not set securityContext.seccompProfile.type to {values}"))
}

pub fn sysctls(pod: &Checked<'_>) -> Option<Violation> {
    let allowed = |name: &str| SYSCTLS.iter().any(|(known, since)| *known == name && pod.minor >= *since);
    let set = pod.spec.security_context.iter().flat_map(|context| context.sysctls.iter().flatten());
    let forbidden: Vec<&str> = set.map(|sysctl| sysctl.name.as_str()).filter(|name| !allowed(name)).collect();
    if forbidden.is_empty() { None } else { violation("forbidden sysctls", forbidden.join(", ")) }
}

pub fn windows_host_process(pod: &Checked<'_>) -> Option<Violation> {
    let of_pod = pod.spec.security_context.as_ref().and_then(|context| context.windows_options.as_ref());
    let is_set = of_pod.is_some_and(|options| options.host_process == Some(true));
    let bad = pod.contexts_with(|context| {
        context.windows_options.as_ref().is_some_and(|options| options.host_process == Some(true))
    });
    let who = setters(is_set, &bad)?;
    violation("hostProcess", format!("{who} must not set securityContext.windowsOptions.hostProcess=true"))
}
