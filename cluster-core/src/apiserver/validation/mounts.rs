//! Where a container sees the volumes of its pod.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, Volume, VolumeMount};

use super::field::{Causes, Path};
use super::pod_spec::Volumes;
use super::{paths, text};

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];

pub fn volume_mounts(causes: &mut Causes, path: &Path, container: &Container, volumes: &Volumes<'_>) {
    let devices = container.volume_devices.as_deref().unwrap_or_default();
    let mut paths_seen = BTreeSet::new();
    for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
        let item = path.index(index);
        if mount.name.is_empty() {
            causes.required(&item.child("name"), "");
        }
        if !volumes.contains_key(mount.name.as_str()) {
            causes.not_found(&item.child("name"), mount.name.as_str());
        }
        if mount.mount_path.is_empty() {
            causes.required(&item.child("mountPath"), "");
        }
        if !paths_seen.insert(mount.mount_path.as_str()) {
            causes.invalid(&item.child("mountPath"), mount.mount_path.as_str(), "must be unique");
        }
        if devices.iter().any(|device| device.name == mount.name) {
            causes.invalid(&item.child("name"), mount.name.as_str(), "must not already exist in volumeDevices");
        }
        if devices.iter().any(|device| device.device_path == mount.mount_path) {
            let detail = "must not already exist as a path in volumeDevices";
            causes.invalid(&item.child("mountPath"), mount.mount_path.as_str(), detail);
        }
        sub_paths(causes, path, &item, mount);
        propagation(causes, path, mount, container);
    }
}

/// The API names the list here, not its item.
fn sub_paths(causes: &mut Causes, path: &Path, item: &Path, mount: &VolumeMount) {
    let (plain, expanded) = (text(&mount.sub_path), text(&mount.sub_path_expr));
    if !plain.is_empty() {
        paths::descending(causes, &path.child("subPath"), plain);
    }
    if expanded.is_empty() {
        return;
    }
    if !plain.is_empty() {
        causes.invalid(&item.child("subPathExpr"), expanded, "subPathExpr and subPath are mutually exclusive");
    }
    paths::descending(causes, &path.child("subPathExpr"), expanded);
}

fn propagation(causes: &mut Causes, path: &Path, mount: &VolumeMount, container: &Container) {
    if let Some(mode) = &mount.mount_propagation {
        let path = path.child("mountPropagation");
        causes.one_of(&path, Some(mode), &PROPAGATIONS);
        let privileged = container.security_context.as_ref().is_some_and(|context| context.privileged == Some(true));
        if mode == "Bidirectional" && !privileged {
            causes.forbidden(&path, "Bidirectional mount propagation is available only to privileged containers");
        }
    }
    let Some(recursive) = &mount.recursive_read_only else { return };
    let path = path.child("recursiveReadOnly");
    causes.one_of(&path, Some(recursive), &RECURSIVE);
    if !matches!(recursive.as_str(), "Enabled" | "IfPossible") {
        return;
    }
    if mount.read_only != Some(true) {
        causes.forbidden(&path, "may only be specified when readOnly is true");
    }
    if mount.mount_propagation.as_deref().is_some_and(|mode| mode != "None") {
        causes.forbidden(&path, "may only be specified when mountPropagation is None or not specified");
    }
}

pub fn volume_devices(causes: &mut Causes, path: &Path, container: &Container, volumes: &Volumes<'_>) {
    let mounts = container.volume_mounts.as_deref().unwrap_or_default();
    let is_block = |volume: &Volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some();
    let (mut names_seen, mut paths_seen) = (BTreeSet::new(), BTreeSet::new());
    for (index, device) in container.volume_devices.iter().flatten().enumerate() {
        let (name_path, device_path) = (path.index(index).child("name"), path.index(index).child("devicePath"));
        let (name, target) = (device.name.as_str(), device.device_path.as_str());
        if name.is_empty() {
            causes.required(&name_path, "");
        }
        if names_seen.contains(name) {
            causes.invalid(&name_path, name, "must be unique");
        }
        match volumes.get(name) {
            None => causes.not_found(&name_path, name),
            Some(volume) if !is_block(volume) => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                causes.invalid(&name_path, name, detail);
            }
            Some(_) => {}
        }
        if target.is_empty() {
            causes.required(&device_path, "");
        }
        if paths_seen.contains(target) {
            causes.invalid(&device_path, target, "must be unique");
        }
        if target.split('/').any(|part| part == "..") {
            causes.invalid(&device_path, target, "can not contain backsteps ('..')");
        } else {
            paths_seen.insert(target);
        }
        if mounts.iter().any(|mount| mount.name == name) {
            causes.invalid(&name_path, name, "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|mount| mount.mount_path == target) {
            causes.invalid(&device_path, target, "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names_seen.insert(name);
        }
    }
}
