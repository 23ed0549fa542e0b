//! Environment variables and where they get their values from.
//! <https://kubernetes.io/docs/tasks/inject-data-application/environment-variable-expose-pod-information/>

use k8s_openapi::api::core::v1::{
    EnvFromSource, EnvVar, EnvVarSource, FileKeySelector, ObjectFieldSelector, ResourceFieldSelector,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::field::{Causes, Path};
use super::{names, paths, text};
use crate::api::quantity;

/// Fields of a pod that an environment variable can hold.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields of a pod that a file of a volume can hold.
pub const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// Fields that the downward API knows, though not everywhere.
const FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const BYTE_DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

pub fn env(causes: &mut Causes, path: &Path, variables: &[EnvVar]) {
    for (index, variable) in variables.iter().enumerate() {
        let path = path.index(index);
        if variable.name.is_empty() {
            causes.required(&path.child("name"), "");
        } else {
            causes.invalid_each(&path.child("name"), &variable.name, names::env_var_name(&variable.name));
        }
        if let Some(source) = &variable.value_from {
            value_from(causes, &path.child("valueFrom"), source, text(&variable.value));
        }
    }
}

fn value_from(causes: &mut Causes, path: &Path, source: &EnvVarSource, value: &str) {
    let mut sources = 0;
    if let Some(field) = &source.field_ref {
        sources += 1;
        object_field(causes, &path.child("fieldRef"), field, &ENV_FIELDS);
    }
    if let Some(resource) = &source.resource_field_ref {
        sources += 1;
        resource_field(causes, &path.child("resourceFieldRef"), resource, false);
    }
    if let Some(key) = &source.config_map_key_ref {
        sources += 1;
        object_key(causes, &path.child("configMapKeyRef"), &key.name, &key.key);
    }
    if let Some(key) = &source.secret_key_ref {
        sources += 1;
        object_key(causes, &path.child("secretKeyRef"), &key.name, &key.key);
    }
    if let Some(key) = &source.file_key_ref {
        sources += 1;
        file_key(causes, &path.child("fileKeyRef"), key);
    }
    let detail = match sources {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    causes.invalid(path, "", detail);
}

/// A field of the pod, one of `supported` or a label or annotation by its key.
pub fn object_field(causes: &mut Causes, path: &Path, field: &ObjectFieldSelector, supported: &[&str]) {
    let version = text(&field.api_version);
    if version.is_empty() {
        return causes.required(&path.child("apiVersion"), "");
    }
    if field.field_path.is_empty() {
        return causes.required(&path.child("fieldPath"), "");
    }
    let place = path.child("fieldPath");
    let subscript =
        field.field_path.strip_suffix("']").and_then(|text| text.split_once("['")).filter(|(path, _)| !path.is_empty());
    let problem = match subscript {
        _ if version != "v1" => format!("unsupported pod version: {version}"),
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            return causes.invalid_each(path, &key, names::qualified_name(&key));
        }
        Some(("metadata.labels", key)) => return causes.invalid_each(path, key, names::qualified_name(key)),
        Some(_) => format!("field label does not support subscript: {}", field.field_path),
        None if FIELDS.contains(&field.field_path.as_str()) => {
            return causes.one_of(&place, Some(&field.field_path), supported);
        }
        None => format!("field label not supported: {}", field.field_path),
    };
    causes.invalid(&place, field.field_path.as_str(), format!("error converting fieldPath: {problem}"));
}

/// A resource of a container. A volume, which belongs to no container, has to name it.
pub fn resource_field(causes: &mut Causes, path: &Path, field: &ResourceFieldSelector, in_volume: bool) {
    let resource = field.resource.as_str();
    let huge_pages = ["requests.hugepages-", "limits.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if in_volume && text(&field.container_name).is_empty() {
        causes.required(&path.child("containerName"), "");
    } else if resource.is_empty() {
        causes.required(&path.child("resource"), "");
    } else if !huge_pages {
        causes.one_of(&path.child("resource"), Some(resource), &RESOURCES);
    }
    let Some(Quantity(divisor)) = field.divisor.as_ref().filter(|divisor| quantity::parse(&divisor.0) != Some(0))
    else {
        return;
    };
    let (noun, divisors): (_, &[&str]) = match resource.split_once('.').map_or("", |(_, name)| name) {
        "cpu" => ("cpu", &["1m", "1"]),
        "memory" => ("memory", &BYTE_DIVISORS),
        "ephemeral-storage" => ("local ephemeral storage", &BYTE_DIVISORS),
        _ if huge_pages => ("hugepages", &BYTE_DIVISORS),
        _ => return,
    };
    if !divisors.contains(&divisor.as_str()) {
        let list = if divisors.len() == 2 { divisors.join(" and ") } else { divisors.join(", ") };
        let detail = format!("only divisor's values {list} are supported with the {noun} resource");
        causes.invalid(&path.child("divisor"), resource, detail);
    }
}

/// A key of a ConfigMap or Secret.
fn object_key(causes: &mut Causes, path: &Path, name: &str, key: &str) {
    causes.invalid_each(&path.child("name"), name, names::dns_subdomain(name));
    if key.is_empty() {
        causes.required(&path.child("key"), "");
    } else {
        causes.invalid_each(&path.child("key"), key, names::config_map_key(key));
    }
}

fn file_key(causes: &mut Causes, path: &Path, file: &FileKeySelector) {
    if file.key.is_empty() {
        causes.required(&path.child("key"), "");
    } else {
        causes.invalid_each(&path.child("key"), &file.key, names::env_var_name(&file.key));
    }
    if file.volume_name.is_empty() {
        causes.required(&path.child("volumeName"), "");
    } else {
        causes.invalid_each(&path.child("volumeName"), &file.volume_name, names::dns_label(&file.volume_name));
    }
    if file.path.is_empty() {
        causes.required(&path.child("path"), "");
    } else {
        paths::no_backsteps(causes, &path.child("path"), &file.path);
    }
}

pub fn env_from(causes: &mut Causes, path: &Path, sources: &[EnvFromSource]) {
    for (index, source) in sources.iter().enumerate() {
        let item = path.index(index);
        let prefix = text(&source.prefix);
        if !prefix.is_empty() {
            causes.invalid_each(&item.child("prefix"), prefix, names::env_var_name(prefix));
        }
        let named = [
            ("configMapRef", source.config_map_ref.as_ref().map(|map| map.name.as_str())),
            ("secretRef", source.secret_ref.as_ref().map(|secret| secret.name.as_str())),
        ];
        for (field, name) in named {
            let place = item.child(field).child("name");
            match name {
                None => {}
                Some("") => causes.required(&place, ""),
                // The server takes this name for the beginning of one.
                Some(name) => causes.invalid_each(&place, name, names::dns_subdomain(&names::as_prefix(name))),
            }
        }
        match named.iter().filter(|(_, name)| name.is_some()).count() {
            0 => causes.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => causes.invalid(path, "", "may not have more than one field specified at a time"),
        }
    }
}
