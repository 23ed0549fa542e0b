//! What the levels forbid: one line a check, in the order in which they are told.
//! <https://kubernetes.io/docs/concepts/security/pod-security-standards/>

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EphemeralContainer, Lifecycle, PodSpec, Probe, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::level::{Level, LevelVersion};
use super::{baseline, restricted};

/// What a check forbids: in a word, and where it was found.
pub struct Violation {
    pub reason: String,
    pub detail: String,
}

/// A pod as checks see it, under a version of the standards.
pub struct Checked<'a> {
    pub metadata: &'a ObjectMeta,
    pub spec: &'a PodSpec,
    pub minor: u32,
    /// Init containers, containers, ephemeral containers.
    pub containers: Vec<Part<'a>>,
}

/// What checks look at in a container of any sort.
pub struct Part<'a> {
    pub name: &'a str,
    pub context: Option<&'a SecurityContext>,
    pub host_ports: Vec<i32>,
    pub probes: Vec<&'a Probe>,
    pub lifecycle: Option<&'a Lifecycle>,
}

type Check = fn(&Checked<'_>) -> Option<Violation>;

/// A check of the baseline: the first version that has it, and the versions in which the restricted level has a
/// stricter one instead.
const BASELINE: &[(u32, Option<u32>, Check)] = &[
    (0, None, baseline::app_armor_profile),
    (0, Some(22), baseline::capabilities),
    (0, None, baseline::host_namespaces),
    (0, Some(0), baseline::host_path_volumes),
    (0, None, baseline::host_ports),
    (34, None, baseline::host_probes),
    (0, None, baseline::privileged),
    (0, Some(35), baseline::proc_mount),
    (0, None, baseline::se_linux_options),
    (0, Some(19), baseline::seccomp_profile),
    (0, None, baseline::sysctls),
    (0, None, baseline::windows_host_process),
];

/// The further checks of the restricted level.
const RESTRICTED: &[(u32, Check)] = &[
    (8, restricted::allow_privilege_escalation),
    (22, restricted::capabilities),
    (35, restricted::proc_mount),
    (0, restricted::volumes),
    (0, restricted::run_as_non_root),
    (23, restricted::run_as_user),
    (19, restricted::seccomp_profile),
];

/// What a level forbids of a pod.
pub fn violations(level: LevelVersion, metadata: &ObjectMeta, spec: &PodSpec) -> Vec<Violation> {
    if level.level == Level::Privileged {
        return Vec::new();
    }
    let (minor, is_restricted) = (level.minor(), level.level == Level::Restricted);
    let pod = Checked { metadata, spec, minor, containers: parts(spec) };
    let baseline = BASELINE.iter().filter(|(since, overridden, _)| {
        minor >= *since && !(is_restricted && overridden.is_some_and(|overridden| minor >= overridden))
    });
    let restricted = RESTRICTED.iter().filter(|(since, _)| is_restricted && minor >= *since);
    let checks = baseline.map(|(.., check)| check).chain(restricted.map(|(_, check)| check));
    checks.filter_map(|check| check(&pod)).collect()
}

/// `privileged (container "a" must not …), hostPort (…)`
pub fn details(violations: &[Violation]) -> String {
    let one = |violation: &Violation| format!("{} ({})", violation.reason, violation.detail);
    violations.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `privileged, hostPort`
pub fn reasons(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.reason.as_str()).collect::<Vec<_>>().join(", ")
}

fn parts(spec: &PodSpec) -> Vec<Part<'_>> {
    fn part(container: &Container) -> Part<'_> {
        let probes = [&container.liveness_probe, &container.readiness_probe, &container.startup_probe];
        Part {
            name: &container.name,
            context: container.security_context.as_ref(),
            host_ports: container.ports.iter().flatten().filter_map(|port| port.host_port).collect(),
            probes: probes.into_iter().flatten().collect(),
            lifecycle: container.lifecycle.as_ref(),
        }
    }
    fn ephemeral(container: &EphemeralContainer) -> Part<'_> {
        let context = container.security_context.as_ref();
        Part { name: &container.name, context, host_ports: Vec::new(), probes: Vec::new(), lifecycle: None }
    }
    let init = spec.init_containers.iter().flatten().map(part);
    let debugging = spec.ephemeral_containers.iter().flatten().map(ephemeral);
    init.chain(spec.containers.iter().map(part)).chain(debugging).collect()
}

impl<'a> Checked<'a> {
    /// The names of containers of which something is true.
    pub fn containers_with(&self, is: impl Fn(&Part<'a>) -> bool) -> Vec<&'a str> {
        self.containers.iter().filter(|part| is(part)).map(|part| part.name).collect()
    }

    /// The same, of their security contexts, where they have one.
    pub fn contexts_with(&self, is: impl Fn(&SecurityContext) -> bool) -> Vec<&'a str> {
        self.containers_with(|part| part.context.is_some_and(&is))
    }

    pub fn is_windows(&self) -> bool {
        self.spec.os.as_ref().is_some_and(|os| os.name == "windows")
    }

    /// The pod has users of its own, to whom root means little.
    pub fn has_user_namespace(&self) -> bool {
        self.spec.host_users == Some(false)
    }
}

impl Part<'_> {
    pub fn capabilities(&self) -> Option<&Capabilities> {
        self.context?.capabilities.as_ref()
    }
}

pub fn violation(reason: impl Into<String>, detail: impl Into<String>) -> Option<Violation> {
    Some(Violation { reason: reason.into(), detail: detail.into() })
}

/// `container "a"`, `containers "a", "b"`
pub fn named(containers: &[&str]) -> String {
    format!("{} {}", plural(containers.len(), "container", "containers"), quoted(containers))
}

/// `pod and container "a"`: who set something wrong, if anybody did.
pub fn setters(is_pod: bool, containers: &[&str]) -> Option<String> {
    let pod = is_pod.then(|| "pod".to_owned());
    let setters: Vec<String> = pod.into_iter().chain((!containers.is_empty()).then(|| named(containers))).collect();
    (!setters.is_empty()).then(|| setters.join(" and "))
}

pub fn plural<'a>(count: usize, one: &'a str, more: &'a str) -> &'a str {
    if count == 1 { one } else { more }
}

/// `"a", "b"`
pub fn quoted<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    texts.into_iter().map(|text| format!("\"{}\"", text.as_ref())).collect::<Vec<_>>().join(", ")
}

/// Without doubles, in order.
pub fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    items.into_iter().collect()
}
