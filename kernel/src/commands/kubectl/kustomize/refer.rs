//! Names by which objects refer to others, mended once all have the names that they keep.
//! (`namereference.go` of sigs.k8s.io/kustomize/api/internal/konfig/builtinpluginconsts)

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Resource, fields, text};

/// Where pods refer to something, below the spec of a pod.
const IN_PODS: &[(&str, &str)] = &[
    ("ConfigMap", "volumes[]/configMap/name"),
    ("ConfigMap", "volumes[]/projected/sources[]/configMap/name"),
    ("ConfigMap", "containers[]/env[]/valueFrom/configMapKeyRef/name"),
    ("ConfigMap", "containers[]/envFrom[]/configMapRef/name"),
    ("ConfigMap", "initContainers[]/env[]/valueFrom/configMapKeyRef/name"),
    ("ConfigMap", "initContainers[]/envFrom[]/configMapRef/name"),
    ("Secret", "volumes[]/secret/secretName"),
    ("Secret", "volumes[]/projected/sources[]/secret/name"),
    ("Secret", "containers[]/env[]/valueFrom/secretKeyRef/name"),
    ("Secret", "containers[]/envFrom[]/secretRef/name"),
    ("Secret", "initContainers[]/env[]/valueFrom/secretKeyRef/name"),
    ("Secret", "initContainers[]/envFrom[]/secretRef/name"),
    ("Secret", "imagePullSecrets[]/name"),
    ("ServiceAccount", "serviceAccountName"),
    ("PersistentVolumeClaim", "volumes[]/persistentVolumeClaim/claimName"),
    ("PriorityClass", "priorityClassName"),
];
/// Where the specs of pods are, by kind.
const SPECS: &[(&str, &str)] = &[
    ("Pod", "spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicaSet", "spec/template/spec"),
    ("ReplicationController", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
];
/// Who refers where to what.
const OTHERS: &[(&str, &str, &str)] = &[
    ("Ingress", "spec/defaultBackend/service/name", "Service"),
    ("Ingress", "spec/rules[]/http/paths[]/backend/service/name", "Service"),
    ("Ingress", "spec/tls[]/secretName", "Secret"),
    ("Ingress", "spec/ingressClassName", "IngressClass"),
    ("StatefulSet", "spec/serviceName", "Service"),
    ("ServiceAccount", "imagePullSecrets[]/name", "Secret"),
    ("ServiceAccount", "secrets[]/name", "Secret"),
    ("PersistentVolumeClaim", "spec/volumeName", "PersistentVolume"),
    ("PersistentVolumeClaim", "spec/storageClassName", "StorageClass"),
    ("PersistentVolume", "spec/storageClassName", "StorageClass"),
    ("StatefulSet", "spec/volumeClaimTemplates[]/spec/storageClassName", "StorageClass"),
];

/// Final name and namespace of each object, by kind and former name; and what it has passed.
type Known = BTreeMap<(String, String), Vec<(String, String, Vec<(String, String)>)>>;

pub fn mend(resources: &mut [Resource]) {
    let mut known = Known::new();
    for resource in resources.iter() {
        for name in resource.names.iter().map(String::as_str).chain([resource.name()]) {
            let place = known.entry((resource.kind().to_owned(), name.to_owned())).or_default();
            place.push((resource.name().to_owned(), resource.namespace().to_owned(), resource.affixes.clone()));
        }
    }
    for resource in resources {
        let affixes = resource.affixes.clone();
        let find = |kind: &str, name: &Value| {
            let found = known.get(&(kind.to_owned(), name.as_str()?.to_owned()))?;
            found.iter().find(|(.., passed)| *passed == affixes).or_else(|| found.first())
        };
        let mend = |path: &str, kind: &str, value: &mut Value| {
            fields::at(path, false, value, &mut |name| {
                if let Some((new, ..)) = find(kind, name) {
                    *name = new.as_str().into();
                }
            });
        };
        let value = &mut resource.value;
        let own = text(value, "/kind").to_owned();
        for (_, spec) in SPECS.iter().filter(|(kind, _)| *kind == own) {
            for (kind, path) in IN_PODS {
                mend(&format!("{spec}/{path}"), kind, value);
            }
        }
        for (_, path, kind) in OTHERS.iter().filter(|(kind, ..)| *kind == own) {
            mend(path, kind, value);
        }
        // References that name the kind themselves.
        let typed = match own.as_str() {
            "HorizontalPodAutoscaler" => "spec/scaleTargetRef",
            "RoleBinding" | "ClusterRoleBinding" => "roleRef",
            _ => "",
        };
        if !typed.is_empty() {
            fields::at(typed, false, value, &mut |reference| {
                if let Some((new, ..)) = find(text(reference, "/kind"), &reference["name"]) {
                    reference["name"] = new.as_str().into();
                }
            });
        }
        if matches!(own.as_str(), "RoleBinding" | "ClusterRoleBinding") {
            fields::at("subjects[]", false, value, &mut |subject| {
                let account = find("ServiceAccount", &subject["name"]).filter(|_| subject["kind"] == "ServiceAccount");
                if let Some((new, namespace, _)) = account {
                    subject["name"] = new.as_str().into();
                    if !namespace.is_empty() {
                        subject["namespace"] = namespace.as_str().into();
                    }
                }
            });
        }
    }
}
