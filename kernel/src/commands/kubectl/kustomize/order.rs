//! The order in which `kubectl kustomize` shows objects: first what others need.
//! (`LegacyOrderTransformer` of sigs.k8s.io/kustomize)

use serde_json::Value;

use super::text;

const FIRST: &[&str] = &[
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];
const LAST: &[&str] = &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

pub fn legacy(objects: &mut [Value]) {
    objects.sort_by_cached_key(|object| {
        let kind = text(object, "/kind");
        let place = |list: &[&str]| list.iter().position(|known| *known == kind);
        let rank = match (place(FIRST), place(LAST)) {
            (Some(place), _) => place,
            (_, Some(place)) => FIRST.len() + 1 + place,
            _ => FIRST.len(),
        };
        let or = |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { text.to_owned() };
        let api_version = text(object, "/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = format!("{}_{}_{}", or(group, "~G"), or(version, "~V"), kind);
        let name = format!("{}|{}", or(text(object, "/metadata/namespace"), "~X"), text(object, "/metadata/name"));
        (rank, kind, name)
    });
}
