//! Containers of all three sorts: those that run, those that run before, those that join to look around.
//! <https://kubernetes.io/docs/concepts/containers/>

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerResizePolicy, ContainerRestartRule, EphemeralContainer, PodSpec};
use serde_json::Value;

use super::field::{Causes, Path};
use super::pod_spec::Volumes;
use super::{env, mounts, names, ports, probes, resources, security, text};

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const RESTART_RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";
const NOT_INIT: &str = "may not be set for init containers without restartPolicy=Always";

/// What the containers of one pod have in common.
pub struct Pod<'a> {
    pub spec: &'a PodSpec,
    pub volumes: &'a Volumes<'a>,
    /// The names of its resource claims.
    pub claims: BTreeSet<&'a str>,
}

pub fn containers(causes: &mut Causes, path: &Path, pod: &Pod<'_>) {
    if pod.spec.containers.is_empty() {
        return causes.required(path, "");
    }
    let mut names_seen = BTreeSet::new();
    for (index, container) in pod.spec.containers.iter().enumerate() {
        let path = path.index(index);
        common(causes, &path, container, pod);
        if !names_seen.insert(container.name.as_str()) {
            causes.duplicate(&path.child("name"), container.name.as_str());
        }
        running(causes, &path, container, pod);
        restart_policy(causes, &path, container);
    }
    ports::host_port_conflicts(causes, path, &pod.spec.containers);
}

pub fn init_containers(causes: &mut Causes, path: &Path, pod: &Pod<'_>) {
    let mut names_seen: BTreeSet<&str> = pod.spec.containers.iter().map(|other| other.name.as_str()).collect();
    for (index, container) in pod.spec.init_containers.iter().flatten().enumerate() {
        let item = path.index(index);
        common(causes, &item, container, pod);
        restart_policy(causes, &item, container);
        let sidecar = container.restart_policy.as_deref() == Some("Always");
        if names_seen.contains(container.name.as_str()) {
            causes.duplicate(&item.child("name"), container.name.as_str());
        } else if !container.name.is_empty() {
            names_seen.insert(&container.name);
        }
        // They run one after the other, so that only the ports of one container can conflict.
        ports::host_port_conflicts(causes, path, std::slice::from_ref(container));
        if sidecar {
            running(causes, &item, container, pod);
        } else {
            let forbidden = [
                ("lifecycle", container.lifecycle.is_some()),
                ("livenessProbe", container.liveness_probe.is_some()),
                ("readinessProbe", container.readiness_probe.is_some()),
                ("startupProbe", container.startup_probe.is_some()),
            ];
            for (field, _) in forbidden.iter().filter(|(_, present)| *present) {
                causes.forbidden(&item.child(field), NOT_INIT);
            }
            for (index, policy) in container.resize_policy.iter().flatten().enumerate() {
                if policy.restart_policy == "RestartContainer" {
                    let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                    let place = item.child("resizePolicy").index(index).child("restartPolicy");
                    causes.invalid(&place, policy.restart_policy.as_str(), detail);
                }
            }
        }
    }
}

pub fn ephemeral_containers(causes: &mut Causes, path: &Path, pod: &Pod<'_>) {
    let others = pod.spec.containers.iter().chain(pod.spec.init_containers.iter().flatten());
    let others: BTreeSet<&str> = others.map(|other| other.name.as_str()).collect();
    let mut names_seen = others.clone();
    for (index, ephemeral) in pod.spec.ephemeral_containers.iter().flatten().enumerate() {
        let path = path.index(index);
        let container = as_container(ephemeral);
        common(causes, &path, &container, pod);
        trimmed_image(causes, &path, &container);
        if !names_seen.insert(&ephemeral.name) {
            causes.duplicate(&path.child("name"), ephemeral.name.as_str());
        }
        let target = text(&ephemeral.target_container_name);
        if !target.is_empty() && !others.contains(target) {
            causes.not_found(&path.child("targetContainerName"), target);
        }
        let fields = serde_json::to_value(&container).unwrap_or_default();
        let set = |field: &str| match fields.get(field) {
            None | Some(Value::Null) => false,
            Some(Value::Object(fields)) => field != "resources" || !fields.is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
        };
        let forbidden = [
            "ports",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ];
        for field in forbidden.into_iter().filter(|field| set(field)) {
            causes.forbidden(&path.child(field), NOT_EPHEMERAL);
        }
        for (index, mount) in ephemeral.volume_mounts.iter().flatten().enumerate() {
            let path = path.child("volumeMounts").index(index);
            if !text(&mount.sub_path).is_empty() {
                causes.forbidden(&path.child("subPath"), NOT_EPHEMERAL);
            }
            if !text(&mount.sub_path_expr).is_empty() {
                causes.forbidden(&path.child("subPathExpr"), NOT_EPHEMERAL);
            }
        }
    }
}

/// An ephemeral container is a container with a target.
pub fn as_container(ephemeral: &EphemeralContainer) -> Container {
    let fields = serde_json::to_value(ephemeral).unwrap_or_default();
    serde_json::from_value(fields).unwrap_or_default()
}

/// What holds for every container.
fn common(causes: &mut Causes, path: &Path, container: &Container, pod: &Pod<'_>) {
    if container.name.is_empty() {
        causes.required(&path.child("name"), "");
    } else {
        causes.invalid_each(&path.child("name"), &container.name, names::dns_label(&container.name));
    }
    if text(&container.image).is_empty() {
        causes.required(&path.child("image"), "");
    }
    let policy = container.termination_message_policy.as_deref();
    causes.required_one_of(&path.child("terminationMessagePolicy"), policy, &["File", "FallbackToLogsOnError"]);
    ports::container_ports(causes, &path.child("ports"), container.ports.as_deref().unwrap_or_default());
    env::env(causes, &path.child("env"), container.env.as_deref().unwrap_or_default());
    env::env_from(causes, &path.child("envFrom"), container.env_from.as_deref().unwrap_or_default());
    mounts::volume_mounts(causes, &path.child("volumeMounts"), container, pod.volumes);
    mounts::volume_devices(causes, &path.child("volumeDevices"), container, pod.volumes);
    causes.required_one_of(&path.child("imagePullPolicy"), container.image_pull_policy.as_deref(), &PULL_POLICIES);
    if let Some(requirements) = &container.resources {
        let holder = resources::Holder::Container;
        resources::requirements(causes, &path.child("resources"), requirements, holder, &pod.claims);
    }
    resize_policies(causes, &path.child("resizePolicy"), container.resize_policy.as_deref(), pod.spec);
    if let Some(context) = &container.security_context {
        security::container(causes, &path.child("securityContext"), context, pod.spec.host_users != Some(false));
    }
}

/// Hooks and probes of a container that goes on running.
fn running(causes: &mut Causes, path: &Path, container: &Container, pod: &Pod<'_>) {
    if let Some(hooks) = &container.lifecycle {
        probes::lifecycle(causes, &path.child("lifecycle"), hooks, pod.spec.termination_grace_period_seconds);
    }
    if let Some(probe) = &container.liveness_probe {
        probes::liveness(causes, &path.child("livenessProbe"), probe);
    }
    if let Some(probe) = &container.readiness_probe {
        probes::readiness(causes, &path.child("readinessProbe"), probe);
    }
    if let Some(probe) = &container.startup_probe {
        probes::startup(causes, &path.child("startupProbe"), probe);
    }
}

/// <https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-restart-rules>
fn restart_policy(causes: &mut Causes, path: &Path, container: &Container) {
    let rules = container.restart_policy_rules.as_deref().unwrap_or_default();
    match &container.restart_policy {
        None if rules.is_empty() => return,
        None => {
            let detail = "must specify restartPolicy when restart rules are used";
            causes.required(&path.child("restartPolicy"), detail);
        }
        Some(policy) => causes.one_of(&path.child("restartPolicy"), Some(policy), &RESTART_POLICIES),
    }
    if rules.len() > RESTART_RULES_MAX {
        causes.too_many(&path.child("restartPolicyRules"), rules.len(), RESTART_RULES_MAX);
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.child("restartPolicyRules").index(index);
        let ContainerRestartRule { action, exit_codes } = rule;
        causes.one_of(&path.child("action"), Some(action), &["Restart", "RestartAllContainers"]);
        let Some(codes) = exit_codes else {
            causes.required(&path.child("exitCodes"), "must be specified");
            continue;
        };
        causes.one_of(&path.child("exitCodes.operator"), Some(&codes.operator), &["In", "NotIn"]);
        let count = codes.values.as_ref().map_or(0, Vec::len);
        if count > EXIT_CODES_MAX {
            causes.too_many(&path.child("exitCodes.values"), count, EXIT_CODES_MAX);
        }
    }
}

fn resize_policies(causes: &mut Causes, path: &Path, policies: Option<&[ContainerResizePolicy]>, spec: &PodSpec) {
    let mut seen = BTreeSet::new();
    for (index, policy) in policies.unwrap_or_default().iter().enumerate() {
        let (resource, restart) = (policy.resource_name.as_str(), policy.restart_policy.as_str());
        if !seen.insert(resource) {
            causes.duplicate(&path.index(index), resource);
        }
        causes.required_one_of(path, Some(resource), &["cpu", "memory"]);
        causes.required_one_of(path, Some(restart), &["NotRequired", "RestartContainer"]);
        if spec.restart_policy.as_deref() == Some("Never") && restart != "NotRequired" {
            causes.invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
        }
    }
}

/// The image of a pod, though not of a template, has no blanks around it.
pub fn trimmed_image(causes: &mut Causes, path: &Path, container: &Container) {
    let image = text(&container.image);
    if image.trim() != image {
        causes.invalid(&path.child("image"), image, "must not have leading or trailing whitespace");
    }
}
