//! Volumes of a pod: one source each, with what that source needs.
//! <https://kubernetes.io/docs/concepts/storage/volumes/>

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    CSIVolumeSource, HostPathVolumeSource, KeyToPath, NFSVolumeSource, PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::field::{Causes, Path};
use super::pod_spec::Volumes;
use super::{metadata, names, paths, projected, resources, selectors, text};
use crate::api::quantity;

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const DRIVER_LENGTH_MAX: usize = 63;

/// All volumes, in the order in which the API looks for their source, and those fields of older ones that must be there.
const SOURCES: [(&str, &[&str]); 30] = [
    ("emptyDir", &[]),
    ("hostPath", &[]),
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &[]),
    ("nfs", &[]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flocker", &[]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("quobyte", &["registry", "volume"]),
    ("downwardAPI", &[]),
    ("fc", &[]),
    ("flexVolume", &["driver"]),
    ("configMap", &[]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("storageos", &["volumeName"]),
    ("projected", &[]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("csi", &[]),
    ("ephemeral", &[]),
    ("image", &[]),
];

/// The volumes that containers can mount, by name. `pod` is the pod's metadata; templates have none.
pub fn volumes<'a>(causes: &mut Causes, path: &Path, volumes: &'a [Volume], pod: Option<&ObjectMeta>) -> Volumes<'a> {
    let mut good = Volumes::new();
    let pod_name = pod.map_or("", |pod| text(&pod.name));
    let claims: BTreeSet<String> = volumes
        .iter()
        .filter(|volume| volume.ephemeral.is_some() && !pod_name.is_empty())
        .map(|volume| format!("{pod_name}-{}", volume.name))
        .collect();
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        let before = causes.len();
        source(causes, &path, volume, pod_name, pod.is_some());
        let name_path = path.child("name");
        if volume.name.is_empty() {
            causes.required(&name_path, "");
        } else {
            causes.invalid_each(&name_path, &volume.name, names::dns_label(&volume.name));
        }
        if good.contains_key(volume.name.as_str()) {
            causes.duplicate(&name_path, volume.name.as_str());
        }
        if causes.len() == before {
            good.insert(&volume.name, volume);
        }
        if let Some(claim) = volume.persistent_volume_claim.as_ref().filter(|claim| claims.contains(&claim.claim_name))
        {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            causes.invalid(&path.child("persistentVolumeClaim.claimName"), claim.claim_name.as_str(), detail);
        }
    }
    good
}

fn source(causes: &mut Causes, path: &Path, volume: &Volume, pod_name: &str, in_pod: bool) {
    let fields = serde_json::to_value(volume).unwrap_or_default();
    let mut found = false;
    for (source, required) in SOURCES.iter() {
        let Some(value) = fields.get(*source) else { continue };
        let path = path.child(source);
        if found {
            causes.forbidden(&path, "may not specify more than 1 volume type");
            continue;
        }
        found = true;
        let missing = |field: &&&str| match value.get(**field) {
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            other => other.is_none(),
        };
        for field in required.iter().filter(missing) {
            causes.required(&path.child(field), "");
        }
        common_source(causes, &path, volume, in_pod);
    }
    if !found {
        causes.required(path, "must specify a volume type");
    }
    if volume.ephemeral.is_some() && !pod_name.is_empty() && !volume.name.is_empty() {
        let claim = format!("{pod_name}-{}", volume.name);
        for problem in names::dns_subdomain(&claim) {
            causes.invalid(&path.child("name"), volume.name.as_str(), format!("PVC name \"{claim}\": {problem}"));
        }
    }
}

/// What the sources of today need, beside fields that must be there.
fn common_source(causes: &mut Causes, path: &Path, volume: &Volume, in_pod: bool) {
    let limit = volume.empty_dir.as_ref().and_then(|directory| directory.size_limit.as_ref());
    if limit.and_then(|limit| quantity::parse(&limit.0)).is_some_and(|bytes| bytes < 0) {
        causes.forbidden(&path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
    } else if let Some(host) = &volume.host_path {
        host_path(causes, path, host);
    } else if let Some(repository) = &volume.git_repo {
        paths::descending(causes, &path.child("directory"), text(&repository.directory));
    } else if let Some(secret) = &volume.secret {
        if text(&secret.secret_name).is_empty() {
            causes.required(&path.child("secretName"), "");
        }
        paths::file_mode(causes, &path.child("defaultMode"), secret.default_mode);
        items(causes, path, secret.items.as_deref().unwrap_or_default());
    } else if let Some(nfs) = &volume.nfs {
        nfs_export(causes, path, nfs);
    } else if let Some(downward) = &volume.downward_api {
        paths::file_mode(causes, &path.child("defaultMode"), downward.default_mode);
        for file in downward.items.iter().flatten() {
            projected::downward_file(causes, path, file);
        }
    } else if let Some(map) = &volume.config_map {
        if map.name.is_empty() {
            causes.required(&path.child("name"), "");
        }
        paths::file_mode(causes, &path.child("defaultMode"), map.default_mode);
        items(causes, path, map.items.as_deref().unwrap_or_default());
    } else if let Some(sources) = &volume.projected {
        projected::projected(causes, path, sources);
    } else if let Some(driver) = &volume.csi {
        csi(causes, path, driver);
    } else if let Some(ephemeral) = &volume.ephemeral {
        match &ephemeral.volume_claim_template {
            None => causes.required(&path.child("volumeClaimTemplate"), ""),
            Some(template) => claim_template(causes, &path.child("volumeClaimTemplate"), template),
        }
    } else if let Some(image) = &volume.image {
        if in_pod && text(&image.reference).is_empty() {
            causes.required(&path.child("reference"), "");
        }
        causes.required_one_of(&path.child("pullPolicy"), image.pull_policy.as_deref(), &PULL_POLICIES);
    }
}

fn host_path(causes: &mut Causes, path: &Path, host: &HostPathVolumeSource) {
    if host.path.is_empty() {
        return causes.required(&path.child("path"), "");
    }
    paths::no_backsteps(causes, &path.child("path"), &host.path);
    causes.one_of(&path.child("type"), host.type_.as_deref(), &HOST_PATH_TYPES);
}

fn nfs_export(causes: &mut Causes, path: &Path, nfs: &NFSVolumeSource) {
    if nfs.server.is_empty() {
        causes.required(&path.child("server"), "");
    }
    if nfs.path.is_empty() {
        causes.required(&path.child("path"), "");
    }
    if !nfs.path.starts_with('/') {
        causes.invalid(&path.child("path"), nfs.path.as_str(), "must be an absolute path");
    }
}

fn csi(causes: &mut Causes, path: &Path, source: &CSIVolumeSource) {
    csi_driver_name(causes, &path.child("driver"), &source.driver);
    if let Some(secret) = &source.node_publish_secret_ref {
        if secret.name.is_empty() {
            causes.required(&path.child("nodePublishSecretRef.name"), "");
        } else {
            causes.invalid_each(&path.child("name"), &secret.name, names::dns_subdomain(&secret.name));
        }
    }
}

/// The name of a CSI driver, which is a domain name.
pub fn csi_driver_name(causes: &mut Causes, path: &Path, name: &str) {
    if name.is_empty() {
        return causes.required(path, "");
    }
    if name.len() > DRIVER_LENGTH_MAX {
        causes.too_long(path, DRIVER_LENGTH_MAX);
    }
    causes.invalid_each(path, name, names::dns_subdomain(&name.to_lowercase()));
}

fn claim_template(causes: &mut Causes, path: &Path, template: &PersistentVolumeClaimTemplate) {
    if let Some(meta) = &template.metadata {
        let path = path.child("metadata");
        if let Some(annotations) = &meta.annotations {
            metadata::annotations(causes, annotations, &path.child("annotations"));
        }
        if let Some(labels) = &meta.labels {
            metadata::labels(causes, labels, &path.child("labels"));
        }
        let others = serde_json::to_value(meta).unwrap_or_default();
        for field in others.as_object().into_iter().flat_map(|fields| fields.keys()) {
            if !matches!(field.as_str(), "annotations" | "labels") {
                causes.forbidden(&path.child(field), "cannot be set");
            }
        }
    }
    claim_spec(causes, &path.child("spec"), &template.spec);
}

/// What a claim asks for.
pub fn claim_spec(causes: &mut Causes, path: &Path, spec: &PersistentVolumeClaimSpec) {
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    if modes.is_empty() {
        causes.required(&path.child("accessModes"), "at least 1 access mode is required");
    }
    selectors::label_selector(causes, &path.child("selector"), spec.selector.as_ref());
    for mode in modes {
        causes.one_of(&path.child("accessModes"), Some(mode), &ACCESS_MODES);
    }
    let storage = path.child("resources").key("storage");
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    match requests.and_then(|requests| requests.get("storage")) {
        None => causes.required(&storage, ""),
        Some(amount) if quantity::parse(&amount.0).unwrap_or(0) <= 0 => {
            causes.invalid(&storage, amount.0.as_str(), "must be greater than zero");
        }
        Some(amount) => resources::amount(causes, &storage, "storage", amount),
    }
    if let Some(class) = spec.storage_class_name.as_deref().filter(|class| !class.is_empty()) {
        causes.invalid_each(&path.child("storageClassName"), class, names::dns_subdomain(class));
    }
    if let Some(mode) = &spec.volume_mode {
        causes.one_of(&path.child("volumeMode"), Some(mode), &["Block", "Filesystem"]);
    }
}

fn items(causes: &mut Causes, path: &Path, items: &[KeyToPath]) {
    for (index, item) in items.iter().enumerate() {
        key_to_path(causes, &path.child("items").index(index), item);
    }
}

/// A key of a ConfigMap or Secret, and the file that shows it.
pub fn key_to_path(causes: &mut Causes, path: &Path, item: &KeyToPath) {
    if item.key.is_empty() {
        causes.required(&path.child("key"), "");
    }
    if item.path.is_empty() {
        causes.required(&path.child("path"), "");
    }
    paths::not_reserved(causes, &path.child("path"), &item.path);
    paths::file_mode(causes, &path.child("mode"), item.mode);
}
