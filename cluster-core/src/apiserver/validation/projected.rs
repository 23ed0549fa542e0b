//! Projected volumes: files from several sources in one directory, and files of the downward API.
//! <https://kubernetes.io/docs/concepts/storage/projected-volumes/>

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    ClusterTrustBundleProjection, DownwardAPIVolumeFile, KeyToPath, PodCertificateProjection, ProjectedVolumeSource,
    VolumeProjection,
};
use serde_json::json;

use super::field::{Causes, Path};
use super::{env, names, paths, selectors, text, volumes};

const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const TOKEN_SECONDS_MIN: i64 = 10 * 60;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// The files that are in a volume already.
#[derive(Default)]
struct Files(BTreeSet<String>);

impl Files {
    /// No two sources can write one file; `who` is what the message names.
    fn add(&mut self, causes: &mut Causes, volume: &Path, file: &str, who: &str) {
        if !file.is_empty() && !self.0.insert(file.to_owned()) {
            causes.invalid(volume, who, "conflicting duplicate paths");
        }
    }
}

pub fn projected(causes: &mut Causes, path: &Path, volume: &ProjectedVolumeSource) {
    paths::file_mode(causes, &path.child("defaultMode"), volume.default_mode);
    let mut files = Files::default();
    for (index, projection) in volume.sources.iter().flatten().enumerate() {
        let place = path.child("sources").index(index);
        source(causes, path, &place, projection, &mut files);
    }
}

fn source(causes: &mut Causes, volume: &Path, path: &Path, projection: &VolumeProjection, files: &mut Files) {
    let VolumeProjection {
        cluster_trust_bundle,
        config_map,
        downward_api,
        pod_certificate,
        secret,
        service_account_token,
    } = projection;
    if let Some(secret) = secret {
        items(causes, volume, &path.child("secret"), &secret.name, secret.items.as_deref(), files);
    }
    if let Some(map) = config_map {
        items(causes, volume, &path.child("configMap"), &map.name, map.items.as_deref(), files);
    }
    if let Some(downward) = downward_api {
        for file in downward.items.iter().flatten() {
            downward_file(causes, &path.child("downwardAPI"), file);
            files.add(causes, volume, &file.path, &file.path);
        }
    }
    if let Some(token) = service_account_token {
        let seconds = token.expiration_seconds.unwrap_or(0);
        let place = path.child("serviceAccountToken.expirationSeconds");
        if seconds < TOKEN_SECONDS_MIN {
            causes.invalid(&place, seconds, "may not specify a duration less than 10 minutes");
        }
        if seconds > TOKEN_SECONDS_MAX {
            causes.invalid(&place, seconds, "may not specify a duration larger than 2^32 seconds");
        }
        if token.path.is_empty() {
            causes.required(&volume.child("path"), "");
        } else {
            paths::not_reserved(causes, &volume.child("path"), &token.path);
        }
    }
    if let Some(bundle) = cluster_trust_bundle {
        trust_bundle(causes, &path.child("clusterTrustBundle"), bundle);
        files.add(causes, volume, &bundle.path, &bundle.path);
    }
    if let Some(certificate) = pod_certificate {
        pod_certificate_files(causes, volume, &path.child("podCertificate"), certificate, files);
    }
    let kinds = [
        cluster_trust_bundle.is_some(),
        config_map.is_some(),
        downward_api.is_some(),
        pod_certificate.is_some(),
        secret.is_some(),
        service_account_token.is_some(),
    ];
    if kinds.iter().filter(|present| **present).count() > 1 {
        causes.forbidden(path, "may not specify more than 1 volume type per source");
    }
}

fn items(causes: &mut Causes, volume: &Path, path: &Path, name: &str, items: Option<&[KeyToPath]>, files: &mut Files) {
    if name.is_empty() {
        causes.required(&path.child("name"), "");
    }
    for (index, item) in items.unwrap_or_default().iter().enumerate() {
        volumes::key_to_path(causes, &path.child("items").index(index), item);
        files.add(causes, volume, &item.path, name);
    }
}

fn trust_bundle(causes: &mut Causes, path: &Path, bundle: &ClusterTrustBundleProjection) {
    match (bundle.name.as_deref(), bundle.signer_name.as_deref()) {
        (Some(_), Some(_)) => causes.invalid(path, json!(bundle), "only one of name and signerName may be used"),
        (None, None) => causes.required(path, "either name or signerName must be specified"),
        (Some(name), None) => {
            let place = path.child("name");
            if name.is_empty() {
                causes.required(&place, "must be a valid object name");
            }
            let problems = names::dns_subdomain(name).into_iter();
            let problems = problems.map(|problem| format!("not a valid clustertrustbundlename: {problem}")).collect();
            causes.invalid_each(&place, name, problems);
            if let Some(selector) = &bundle.label_selector {
                let detail = "labelSelector must be unset if name is specified";
                causes.invalid(&path.child("labelSelector"), json!(selector), detail);
            }
        }
        (None, Some(signer)) => {
            if signer.is_empty() {
                causes.required(&path.child("signerName"), "must be a valid signer name");
            }
            selectors::label_selector(causes, &path.child("labelSelector"), bundle.label_selector.as_ref());
        }
    }
    if bundle.path.is_empty() {
        causes.required(&path.child("path"), "");
    }
    paths::not_reserved(causes, &path.child("path"), &bundle.path);
}

fn pod_certificate_files(
    causes: &mut Causes,
    volume: &Path,
    path: &Path,
    certificate: &PodCertificateProjection,
    files: &mut Files,
) {
    causes.one_of(&path.child("keyType"), Some(&certificate.key_type), &KEY_TYPES);
    if let Some(seconds) = certificate.max_expiration_seconds.filter(|seconds| *seconds < 3600) {
        let detail = "if provided, maxExpirationSeconds must be >= 3600";
        causes.invalid(&path.child("maxExpirationSeconds"), seconds, detail);
    }
    let written = [
        ("credentialBundlePath", text(&certificate.credential_bundle_path)),
        ("keyPath", text(&certificate.key_path)),
        ("certificateChainPath", text(&certificate.certificate_chain_path)),
    ];
    for (field, file) in written.iter().filter(|(_, file)| !file.is_empty()) {
        paths::not_reserved(causes, &path.child(field), file);
        files.add(causes, volume, file, file);
    }
    if written.iter().all(|(_, file)| file.is_empty()) {
        causes.required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath");
    }
}

/// A file that shows a field of the pod, or a resource of one of its containers.
pub fn downward_file(causes: &mut Causes, path: &Path, file: &DownwardAPIVolumeFile) {
    if file.path.is_empty() {
        causes.required(&path.child("path"), "");
    }
    paths::not_reserved(causes, &path.child("path"), &file.path);
    match (&file.field_ref, &file.resource_field_ref) {
        (Some(field), resource) => {
            env::object_field(causes, &path.child("fieldRef"), field, &env::FILE_FIELDS);
            if resource.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                causes.invalid(path, "resource", detail);
            }
        }
        (None, Some(resource)) => env::resource_field(causes, &path.child("resourceFieldRef"), resource, true),
        (None, None) => causes.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    paths::file_mode(causes, &path.child("mode"), file.mode);
}
