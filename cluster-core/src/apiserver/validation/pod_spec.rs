//! The spec of a pod, in a Pod or in a template.
//! <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodSpec>

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Container, PodDNSConfig, PodResourceClaim, PodSpec, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::field::{Causes, Path};
use super::{containers, metadata, names, resources, scheduling, security, text, topology, volumes};

/// The good volumes of a pod, by name.
pub type Volumes<'a> = BTreeMap<&'a str, &'a Volume>;

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCHES_LENGTH_MAX: usize = 2048;
const HOSTNAME_LENGTH_MAX: usize = 64;

/// Checks a spec that stands at `path`. `pod` is the metadata of a Pod; a template has none yet.
pub fn validate(causes: &mut Causes, path: &Path, spec: &PodSpec, pod: Option<&ObjectMeta>) {
    let list = spec.volumes.as_deref().unwrap_or_default();
    let good = volumes::volumes(causes, &path.child("volumes"), list, pod);
    let claims = spec.resource_claims.as_deref().unwrap_or_default();
    resource_claims(causes, &path.child("resourceClaims"), claims);
    let claims: BTreeSet<&str> =
        claims.iter().map(|claim| claim.name.as_str()).filter(|name| !name.is_empty()).collect();
    let shared = containers::Pod { spec, volumes: &good, claims };
    containers::containers(causes, &path.child("containers"), &shared);
    containers::init_containers(causes, &path.child("initContainers"), &shared);
    containers::ephemeral_containers(causes, &path.child("ephemeralContainers"), &shared);
    resources::pod_requirements(causes, &path.child("resources"), spec, &shared.claims);
    host_network_ports(causes, &path.child("containers"), spec, pod.is_some());
    causes.required_one_of(&path.child("restartPolicy"), spec.restart_policy.as_deref(), &RESTART_POLICIES);
    causes.required_one_of(&path.child("dnsPolicy"), spec.dns_policy.as_deref(), &DNS_POLICIES);
    if let Some(labels) = &spec.node_selector {
        metadata::labels(causes, labels, &path.child("nodeSelector"));
    }
    security::pod(causes, &path.child("securityContext"), spec);
    if let Some(affinity) = &spec.affinity {
        scheduling::affinity(causes, &path.child("affinity"), affinity);
    }
    dns_config(causes, &path.child("dnsConfig"), spec.dns_config.as_ref(), text(&spec.dns_policy));
    for (index, gate) in spec.readiness_gates.iter().flatten().enumerate() {
        let place = path.child("readinessGates").index(index).child("conditionType");
        causes.invalid_each(&place, &gate.condition_type, names::qualified_name(&gate.condition_type));
    }
    let gates = spec.scheduling_gates.as_deref().unwrap_or_default();
    scheduling::scheduling_gates(causes, &path.child("schedulingGates"), gates);
    let constraints = spec.topology_spread_constraints.as_deref().unwrap_or_default();
    topology::spread_constraints(causes, &path.child("topologySpreadConstraints"), constraints);
    host_users(causes, path, spec);
    hostname_override(causes, path, spec);
    plain_fields(causes, path, spec);
    operating_system(causes, path, spec);
    file_keys(causes, path, spec, &good);
}

/// Fields that stand for themselves: names, and lists of simple things.
fn plain_fields(causes: &mut Causes, path: &Path, spec: &PodSpec) {
    let mut name = |field: &str, name: &Option<String>, check: fn(&str) -> Vec<String>| {
        if let Some(name) = name.as_deref().filter(|name| !name.is_empty()) {
            causes.invalid_each(&path.child(field), name, check(name));
        }
    };
    name("serviceAccountName", &spec.service_account_name, names::dns_subdomain);
    name("nodeName", &spec.node_name, names::dns_subdomain);
    if let Some(seconds) = spec.active_deadline_seconds {
        causes.in_range(&path.child("activeDeadlineSeconds"), seconds, 1, i32::MAX.into());
    }
    let mut name = |field: &str, name: &Option<String>, check: fn(&str) -> Vec<String>| {
        if let Some(name) = name.as_deref().filter(|name| !name.is_empty()) {
            causes.invalid_each(&path.child(field), name, check(name));
        }
    };
    name("hostname", &spec.hostname, names::dns_label);
    name("subdomain", &spec.subdomain, names::dns_label);
    scheduling::tolerations(causes, &path.child("tolerations"), spec.tolerations.as_deref().unwrap_or_default());
    for (index, alias) in spec.host_aliases.iter().flatten().enumerate() {
        let path = path.child("hostAliases").index(index);
        ip(causes, &path.child("ip"), &alias.ip);
        for (index, name) in alias.hostnames.iter().flatten().enumerate() {
            causes.invalid_each(&path.child("hostnames").index(index), name, names::dns_subdomain(name));
        }
    }
    if let Some(class) = spec.priority_class_name.as_deref().filter(|class| !class.is_empty()) {
        causes.invalid_each(&path.child("priorityClassName"), class, names::dns_subdomain(class));
    }
    if let Some(class) = &spec.runtime_class_name {
        causes.invalid_each(&path.child("runtimeClassName"), class, names::dns_subdomain(class));
    }
    if let Some(policy) = &spec.preemption_policy {
        let policies = ["PreemptLowerPriority", "Never"];
        causes.required_one_of(&path.child("preemptionPolicy"), Some(policy), &policies);
    }
    if let Some(overhead) = &spec.overhead {
        let limits =
            k8s_openapi::api::core::v1::ResourceRequirements { limits: Some(overhead.clone()), ..Default::default() };
        let holder = resources::Holder::Container;
        resources::requirements(causes, &path.child("overhead"), &limits, holder, &BTreeSet::new());
    }
}

/// An address in a field that has always been read leniently.
pub fn ip(causes: &mut Causes, path: &Path, text: &str) {
    if text.parse::<IpAddr>().is_err() {
        causes.invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
}

fn resource_claims(causes: &mut Causes, path: &Path, claims: &[PodResourceClaim]) {
    let mut seen = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let path = path.index(index);
        if claim.name.is_empty() {
            causes.required(&path.child("name"), "");
        } else if !seen.insert(claim.name.as_str()) {
            causes.duplicate(&path.child("name"), claim.name.as_str());
        } else {
            causes.invalid_each(&path.child("name"), &claim.name, names::dns_label(&claim.name));
        }
        // The API shows its own, internal names of the fields here.
        let shown = json!({
            "Name": claim.name, "ResourceClaimName": claim.resource_claim_name,
            "ResourceClaimTemplateName": claim.resource_claim_template_name,
        });
        match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
            (Some(_), Some(_)) => {
                let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                causes.invalid(&path, shown, detail);
            }
            (None, None) => {
                let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                causes.invalid(&path, shown, detail);
            }
            _ => {}
        }
        let named = [
            ("resourceClaimName", &claim.resource_claim_name),
            ("resourceClaimTemplateName", &claim.resource_claim_template_name),
        ];
        for (field, name) in named {
            if let Some(name) = name {
                causes.invalid_each(&path.child(field), name, names::dns_subdomain(name));
            }
        }
    }
}

/// In the network of its node, a container's port is the node's.
fn host_network_ports(causes: &mut Causes, path: &Path, spec: &PodSpec, in_pod: bool) {
    if spec.host_network != Some(true) {
        return;
    }
    for (index, container) in spec.containers.iter().enumerate() {
        for (port_index, port) in container.ports.iter().flatten().enumerate() {
            let host_port = port.host_port.unwrap_or(0);
            if (in_pod || host_port != 0) && host_port != port.container_port {
                let place = path.index(index).child("ports").index(port_index).child("hostPort");
                causes.invalid(&place, host_port, "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

fn dns_config(causes: &mut Causes, path: &Path, config: Option<&PodDNSConfig>, policy: &str) {
    let nameservers = config.and_then(|config| config.nameservers.as_deref()).unwrap_or_default();
    if policy == "None" && config.is_none() {
        return causes.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
    }
    if policy == "None" && nameservers.is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        return causes.required(&path.child("nameservers"), detail);
    }
    let Some(config) = config else { return };
    if nameservers.len() > NAMESERVERS_MAX {
        let detail = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        causes.invalid(&path.child("nameservers"), Value::from(nameservers), detail);
    }
    for (index, server) in nameservers.iter().enumerate() {
        ip(causes, &path.child("nameservers").index(index), server);
    }
    let (place, searches) = (path.child("searches"), config.searches.as_deref().unwrap_or_default());
    if searches.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        causes.invalid(&place, Value::from(searches), detail);
    }
    if searches.join(" ").len() > SEARCHES_LENGTH_MAX {
        let detail =
            format!("must not have more than {SEARCHES_LENGTH_MAX} characters (including spaces) in the search list");
        causes.invalid(&place, Value::from(searches), detail);
    }
    for (index, search) in searches.iter().enumerate().filter(|(_, search)| *search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        causes.invalid_each(&place.index(index), search, names::dns_subdomain_with_underscore(search));
    }
    for (index, option) in config.options.iter().flatten().enumerate() {
        if text(&option.name).is_empty() {
            causes.required(&path.child("options").index(index), "must not be empty");
        }
    }
}

/// <https://kubernetes.io/docs/concepts/workloads/pods/user-namespaces/>
fn host_users(causes: &mut Causes, path: &Path, spec: &PodSpec) {
    if spec.host_users != Some(false) {
        return;
    }
    let shared = [("hostNetwork", spec.host_network), ("HostPID", spec.host_pid), ("HostIPC", spec.host_ipc)];
    for (field, _) in shared.iter().filter(|(_, value)| *value == Some(true)) {
        causes.forbidden(&path.child(field), "when `hostUsers` is false");
    }
    each_container(spec, path, |container, path| {
        if container.volume_devices.as_ref().is_some_and(|devices| !devices.is_empty()) {
            causes.forbidden(&path.child("volumeDevices"), "when `hostUsers` is false");
        }
    });
}

fn hostname_override(causes: &mut Causes, path: &Path, spec: &PodSpec) {
    let Some(name) = &spec.hostname_override else { return };
    let path = path.child("hostnameOverride");
    if spec.set_hostname_as_fqdn == Some(true) {
        causes.forbidden(&path, "may not be specified when setHostnameAsFQDN is true");
    }
    if spec.host_network == Some(true) {
        causes.forbidden(&path, "may not be specified when hostNetwork is true");
    }
    if name.len() > HOSTNAME_LENGTH_MAX {
        causes.too_long(&path, HOSTNAME_LENGTH_MAX);
    }
    causes.invalid_each(&path, name, names::dns_subdomain(name));
}

/// What makes no sense on the operating system that a pod asks for.
fn operating_system(causes: &mut Causes, path: &Path, spec: &PodSpec) {
    let Some(os) = &spec.os else { return };
    let (of_linux, of_windows): (&[&str], &str) = match os.name.as_str() {
        "" => return causes.required(&path.child("os.name"), ""),
        "linux" => (&["windowsOptions"], "windows options cannot be set for a linux pod"),
        "windows" => (
            &[
                "appArmorProfile",
                "seLinuxOptions",
                "seccompProfile",
                "fsGroup",
                "fsGroupChangePolicy",
                "sysctls",
                "capabilities",
                "readOnlyRootFilesystem",
                "privileged",
                "allowPrivilegeEscalation",
                "procMount",
                "runAsUser",
                "runAsGroup",
                "supplementalGroups",
                "supplementalGroupsPolicy",
                "seLinuxChangePolicy",
            ],
            "cannot be set for a windows pod",
        ),
        other => return causes.not_supported(&path.child("os"), other, &["linux", "windows"]),
    };
    let mut check = |path: &Path, context: Value| {
        for field in of_linux.iter().filter(|field| context.get(**field).is_some()) {
            causes.forbidden(&path.child("securityContext").child(field), of_windows);
        }
    };
    check(path, json!(spec.security_context));
    each_container(spec, path, |container, path| check(path, json!(container.security_context)));
}

/// A file of environment variables is in an emptyDir, where an init container has put it.
fn file_keys(causes: &mut Causes, path: &Path, spec: &PodSpec, volumes: &Volumes<'_>) {
    each_container(spec, path, |container, path| {
        for (index, variable) in container.env.iter().flatten().enumerate() {
            let Some(key) = variable.value_from.as_ref().and_then(|source| source.file_key_ref.as_ref()) else {
                continue;
            };
            let place = path.child("env").index(index).child("valueFrom.fileKeyRef.volumeName");
            match volumes.get(key.volume_name.as_str()) {
                None => causes.not_found(&place, key.volume_name.as_str()),
                Some(volume) if volume.empty_dir.is_none() => {
                    let detail = "referenced volume must be of type emptyDir";
                    causes.invalid(&place, key.volume_name.as_str(), detail);
                }
                Some(_) => {}
            }
        }
    });
}

/// All containers with their places: init containers, containers, ephemeral containers.
pub fn each_container(spec: &PodSpec, path: &Path, mut visit: impl FnMut(&Container, &Path)) {
    for (index, container) in spec.init_containers.iter().flatten().enumerate() {
        visit(container, &path.child("initContainers").index(index));
    }
    for (index, container) in spec.containers.iter().enumerate() {
        visit(container, &path.child("containers").index(index));
    }
    for (index, ephemeral) in spec.ephemeral_containers.iter().flatten().enumerate() {
        visit(&containers::as_container(ephemeral), &path.child("ephemeralContainers").index(index));
    }
}
