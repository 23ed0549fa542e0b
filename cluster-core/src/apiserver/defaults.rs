//! What the API fills into the spec of a pod, in a Pod or in a template.
//! <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/>

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, EphemeralContainer, HTTPGetAction, Lifecycle, ObjectFieldSelector, PersistentVolumeClaimSpec, PodSpec,
    PodTemplateSpec, Probe, ResourceRequirements, Volume,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::validation::resources::is_huge_page;
use crate::api::quantity;

/// The permissions of files in volumes.
const FILE_MODE: i32 = 0o644;
const TOKEN_SECONDS: i64 = 3600;

/// The template of a workload. One that is not there becomes an empty one.
pub fn pod_template(template: &mut PodTemplateSpec) {
    template.metadata.get_or_insert_default();
    pod_spec(template.spec.get_or_insert_default());
}

/// What holds for pods and for templates.
pub fn pod_spec(spec: &mut PodSpec) {
    text(&mut spec.restart_policy, "Always");
    text(&mut spec.dns_policy, "ClusterFirst");
    text(&mut spec.scheduler_name, "default-scheduler");
    spec.termination_grace_period_seconds.get_or_insert(30);
    spec.security_context.get_or_insert_default();
    // The older name of this field goes on saying the same.
    spec.service_account_name = spec.service_account_name.take().or_else(|| spec.service_account.take());
    spec.service_account = spec.service_account_name.clone();
    spec.scheduling_group = None;
    for flag in [&mut spec.host_network, &mut spec.host_pid, &mut spec.host_ipc] {
        *flag = flag.filter(|flag| *flag);
    }
    spec.containers.iter_mut().for_each(container);
    spec.init_containers.iter_mut().flatten().for_each(container);
    spec.ephemeral_containers.iter_mut().flatten().for_each(ephemeral_container);
    spec.volumes.iter_mut().flatten().for_each(volume);
    round_up(&mut spec.overhead);
    if let Some(resources) = &mut spec.resources {
        requirements(resources);
    }
}

/// What only pods get, not yet their templates.
pub fn pod(spec: &mut PodSpec) {
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        let Some(resources) = &mut container.resources else { continue };
        if let Some(limits) = resources.limits.clone().filter(|limits| !limits.is_empty()) {
            let requests = resources.requests.get_or_insert_default();
            for (name, limit) in limits {
                requests.entry(name).or_insert(limit);
            }
        }
    }
    pod_resources(spec);
    spec.enable_service_links.get_or_insert(true);
    if spec.host_network == Some(true) {
        for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
            for port in container.ports.iter_mut().flatten() {
                if port.host_port.unwrap_or(0) == 0 {
                    port.host_port = Some(port.container_port);
                }
            }
        }
    }
}

/// The whole pod asks for what its containers ask for, and else for its limit.
fn pod_resources(spec: &mut PodSpec) {
    let Some(whole) = &mut spec.resources else { return };
    let Some(limits) = whole.limits.clone().filter(|limits| !limits.is_empty()) else { return };
    let requested = |name: &str| {
        let amounts = spec.containers.iter().filter_map(|container| {
            let resources = container.resources.as_ref()?;
            resources.requests.as_ref()?.get(name)
        });
        let amounts: Vec<&Quantity> = amounts.collect();
        (!amounts.is_empty()).then(|| quantity::sum(amounts.into_iter()))
    };
    let requests = whole.requests.get_or_insert_default();
    for name in ["cpu", "memory"] {
        if !requests.contains_key(name)
            && let Some(sum) = requested(name)
        {
            requests.insert(name.into(), sum);
        }
    }
    for (name, limit) in limits {
        if matches!(name.as_str(), "cpu" | "memory") || is_huge_page(&name) {
            requests.entry(name).or_insert(limit);
        }
    }
}

fn text(field: &mut Option<String>, default: &str) {
    if field.as_deref().unwrap_or_default().is_empty() {
        *field = Some(default.to_owned());
    }
}

fn number(field: &mut Option<i32>, default: i32) {
    if field.unwrap_or(0) == 0 {
        *field = Some(default);
    }
}

fn container(container: &mut Container) {
    let policy = pull_policy(container.image.as_deref().unwrap_or_default());
    text(&mut container.image_pull_policy, policy);
    text(&mut container.termination_message_path, "/dev/termination-log");
    text(&mut container.termination_message_policy, "File");
    requirements(container.resources.get_or_insert_default());
    for port in container.ports.iter_mut().flatten() {
        text(&mut port.protocol, "TCP");
        port.host_port = port.host_port.filter(|port| *port != 0);
    }
    for source in container.env.iter_mut().flatten().filter_map(|variable| variable.value_from.as_mut()) {
        if let Some(field) = &mut source.field_ref {
            field_version(field);
        }
        if let Some(resource) = &mut source.resource_field_ref {
            resource.divisor.get_or_insert_with(|| Quantity("0".into()));
        }
    }
    let probes = [&mut container.liveness_probe, &mut container.readiness_probe, &mut container.startup_probe];
    probes.into_iter().flatten().for_each(probe);
    if let Some(hooks) = &mut container.lifecycle {
        lifecycle(hooks);
        if *hooks == Lifecycle::default() {
            container.lifecycle = None;
        }
    }
}

/// An ephemeral container has the fields of a container, and gets the same defaults.
fn ephemeral_container(ephemeral: &mut EphemeralContainer) {
    let policy = pull_policy(ephemeral.image.as_deref().unwrap_or_default());
    text(&mut ephemeral.image_pull_policy, policy);
    text(&mut ephemeral.termination_message_path, "/dev/termination-log");
    text(&mut ephemeral.termination_message_policy, "File");
    requirements(ephemeral.resources.get_or_insert_default());
    for port in ephemeral.ports.iter_mut().flatten() {
        text(&mut port.protocol, "TCP");
    }
    for source in ephemeral.env.iter_mut().flatten().filter_map(|variable| variable.value_from.as_mut()) {
        if let Some(field) = &mut source.field_ref {
            field_version(field);
        }
        if let Some(resource) = &mut source.resource_field_ref {
            resource.divisor.get_or_insert_with(|| Quantity("0".into()));
        }
    }
    let probes = [&mut ephemeral.liveness_probe, &mut ephemeral.readiness_probe, &mut ephemeral.startup_probe];
    probes.into_iter().flatten().for_each(probe);
}

/// An image whose tag may move is pulled anew each time.
/// <https://kubernetes.io/docs/concepts/containers/images/#imagepullpolicy-defaulting>
fn pull_policy(image: &str) -> &'static str {
    let name = image.split('@').next().unwrap_or_default();
    let last = name.rsplit('/').next().unwrap_or_default();
    let tag = last.split_once(':').map(|(_, tag)| tag);
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-/:".contains(&byte);
    let path = name.strip_suffix(tag.unwrap_or_default()).unwrap_or(name);
    let readable = !last.is_empty() && path.bytes().all(letters);
    let latest = match tag {
        None => !image.contains('@'),
        Some(tag) => tag == "latest",
    };
    if readable && latest { "Always" } else { "IfNotPresent" }
}

fn field_version(field: &mut ObjectFieldSelector) {
    text(&mut field.api_version, "v1");
}

fn probe(probe: &mut Probe) {
    number(&mut probe.timeout_seconds, 1);
    number(&mut probe.period_seconds, 10);
    number(&mut probe.success_threshold, 1);
    number(&mut probe.failure_threshold, 3);
    probe.initial_delay_seconds = probe.initial_delay_seconds.filter(|seconds| *seconds != 0);
    if let Some(http) = &mut probe.http_get {
        http_get(http);
    }
    if let Some(grpc) = &mut probe.grpc {
        grpc.service.get_or_insert_default();
    }
}

fn http_get(http: &mut HTTPGetAction) {
    text(&mut http.path, "/");
    text(&mut http.scheme, "HTTP");
}

fn lifecycle(hooks: &mut Lifecycle) {
    // A signal of one's own is not offered yet.
    hooks.stop_signal = None;
    let hooks = [&mut hooks.post_start, &mut hooks.pre_stop].into_iter().flatten();
    hooks.filter_map(|hook| hook.http_get.as_mut()).for_each(http_get);
}

fn requirements(resources: &mut ResourceRequirements) {
    round_up(&mut resources.limits);
    round_up(&mut resources.requests);
}

/// Amounts of resources have no parts smaller than a thousandth.
fn round_up(amounts: &mut Option<BTreeMap<String, Quantity>>) {
    for amount in amounts.iter_mut().flatten().map(|(_, amount)| amount) {
        *amount = quantity::rounded(amount);
    }
}

fn volume(volume: &mut Volume) {
    if *volume == (Volume { name: volume.name.clone(), ..Volume::default() }) {
        volume.empty_dir = Some(Default::default());
    }
    if let Some(image) = &mut volume.image {
        text(&mut image.pull_policy, pull_policy(image.reference.as_deref().unwrap_or_default()));
    }
    if let Some(path) = &mut volume.host_path {
        path.type_.get_or_insert_default();
    }
    if let Some(secret) = &mut volume.secret {
        secret.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(map) = &mut volume.config_map {
        map.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(downward) = &mut volume.downward_api {
        downward.default_mode.get_or_insert(FILE_MODE);
        downward.items.iter_mut().flatten().filter_map(|file| file.field_ref.as_mut()).for_each(field_version);
    }
    if let Some(projected) = &mut volume.projected {
        projected.default_mode.get_or_insert(FILE_MODE);
        for source in projected.sources.iter_mut().flatten() {
            if let Some(token) = &mut source.service_account_token {
                token.expiration_seconds.get_or_insert(TOKEN_SECONDS);
            }
            let files = source.downward_api.iter_mut().filter_map(|downward| downward.items.as_mut()).flatten();
            files.filter_map(|file| file.field_ref.as_mut()).for_each(field_version);
        }
    }
    let template = volume.ephemeral.as_mut().and_then(|ephemeral| ephemeral.volume_claim_template.as_mut());
    if let Some(template) = template {
        claim_spec(&mut template.spec);
    }
    network_disks(volume);
}

/// The spec of a claim, wherever it stands.
pub fn claim_spec(spec: &mut PersistentVolumeClaimSpec) {
    text(&mut spec.volume_mode, "Filesystem");
    let resources = spec.resources.get_or_insert_default();
    round_up(&mut resources.limits);
    round_up(&mut resources.requests);
}

fn network_disks(volume: &mut Volume) {
    if let Some(iscsi) = &mut volume.iscsi {
        text(&mut iscsi.iscsi_interface, "default");
    }
    if let Some(rbd) = &mut volume.rbd {
        text(&mut rbd.pool, "rbd");
        text(&mut rbd.user, "admin");
        text(&mut rbd.keyring, "/etc/ceph/keyring");
    }
    if let Some(disk) = &mut volume.azure_disk {
        text(&mut disk.caching_mode, "ReadWrite");
        text(&mut disk.fs_type, "ext4");
        text(&mut disk.kind, "Shared");
        disk.read_only.get_or_insert(false);
    }
    if let Some(scale_io) = &mut volume.scale_io {
        text(&mut scale_io.storage_mode, "ThinProvisioned");
        text(&mut scale_io.fs_type, "xfs");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moving_tag_is_pulled_always() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.29", "IfNotPresent"),
            ("registry.example.com:5000/nginx", "Always"),
            ("nginx@sha256:0123", "IfNotPresent"),
            ("nginx:latest@sha256:0123", "Always"),
            ("", "IfNotPresent"),
            ("Not A Name", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
