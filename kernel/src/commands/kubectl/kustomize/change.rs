//! What a kustomization changes in all objects: namespace, names, labels, annotations, numbers of replicas, images.

use cluster_core::api::kinds::built_in;
use serde_json::{Map, Value, json};

use super::fields::{self, SELECTORS, TEMPLATES};
use super::{Resource, text};

/// Kinds whose names stay.
const NAMED_FOR_GOOD: &[&str] = &["Namespace", "CustomResourceDefinition", "APIService"];
const SCALED: &[&str] = &["Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"];

pub fn change(kustomization: &Value, resources: &mut [Resource]) -> Result<(), String> {
    let namespace = text(kustomization, "/namespace");
    let (prefix, suffix) = (text(kustomization, "/namePrefix"), text(kustomization, "/nameSuffix"));
    for resource in resources.iter_mut() {
        if !namespace.is_empty() {
            put_into(resource, namespace);
        }
        resource.affixes.push((prefix.to_owned(), suffix.to_owned()));
        if (!prefix.is_empty() || !suffix.is_empty()) && !NAMED_FOR_GOOD.contains(&resource.kind()) {
            let name = format!("{prefix}{}{suffix}", resource.name());
            resource.rename(name);
        }
        label(&mut resource.value, kustomization);
        if let Some(annotations) = kustomization["commonAnnotations"].as_object() {
            fields::at("metadata/annotations", true, &mut resource.value, &mut |place| put(place, annotations));
            in_templates(&mut resource.value, "annotations", annotations);
        }
    }
    for entry in kustomization["replicas"].as_array().into_iter().flatten() {
        let name = text(entry, "/name");
        let mut found = false;
        for resource in resources.iter_mut().filter(|known| SCALED.contains(&known.kind()) && known.is_called(name)) {
            resource.value["spec"]["replicas"] = entry["count"].clone();
            found = true;
        }
        if !found {
            return Err(format!(
                "resource with name {name} does not match a config with the following GVK [Deployment.[noVer].[noGrp] ReplicationController.[noVer].[noGrp] ReplicaSet.[noVer].[noGrp] StatefulSet.[noVer].[noGrp]]"
            ));
        }
    }
    for image in kustomization["images"].as_array().into_iter().flatten() {
        let not_definitions = |resource: &&mut Resource| resource.kind() != "CustomResourceDefinition";
        resources.iter_mut().filter(not_definitions).for_each(|resource| in_containers(&mut resource.value, image));
    }
    Ok(())
}

fn put_into(resource: &mut Resource, namespace: &str) {
    let (group, _) = resource.group_version();
    let known = built_in().iter().find(|kind| *kind.group == *group && *kind.kind == *resource.kind());
    if known.is_none_or(|kind| kind.namespaced) {
        resource.value["metadata"]["namespace"] = namespace.into();
    }
    // An account that a binding names without being found among the objects; others are mended with their names.
    if matches!(resource.kind(), "RoleBinding" | "ClusterRoleBinding") {
        fields::at("subjects[]", false, &mut resource.value, &mut |subject| {
            if subject["kind"] == "ServiceAccount" && subject["name"] == "default" {
                subject["namespace"] = namespace.into();
            }
        });
    }
}

fn put(place: &mut Value, pairs: &Map<String, Value>) {
    for (key, value) in pairs {
        place[key] = value.clone();
    }
}

fn in_templates(object: &mut Value, field: &str, pairs: &Map<String, Value>) {
    let kind = text(object, "/kind").to_owned();
    for (_, path) in TEMPLATES.iter().filter(|(known, _)| *known == kind) {
        fields::at(&format!("{path}/{field}"), true, object, &mut |place| put(place, pairs));
    }
}

fn label(object: &mut Value, kustomization: &Value) {
    let common = json!({"pairs": kustomization["commonLabels"], "includeSelectors": true});
    for entry in kustomization["labels"].as_array().into_iter().flatten().chain([&common]) {
        let Some(pairs) = entry["pairs"].as_object() else { continue };
        fields::at("metadata/labels", true, object, &mut |place| put(place, pairs));
        if entry["includeSelectors"] == true || entry["includeTemplates"] == true {
            in_templates(object, "labels", pairs);
        }
        if entry["includeSelectors"] == true {
            fields::each(SELECTORS, object, &mut |place| put(place, pairs));
            if object["kind"] == "StatefulSet" {
                fields::at("spec/volumeClaimTemplates[]/metadata/labels", true, object, &mut |place| put(place, pairs));
            }
        }
    }
}

/// Containers are wherever a field of that name holds a list.
fn in_containers(value: &mut Value, image: &Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| in_containers(item, image)),
        Value::Object(map) => {
            for (field, inner) in map.iter_mut() {
                if matches!(field.as_str(), "containers" | "initContainers") {
                    for container in inner.as_array_mut().into_iter().flatten() {
                        if let Some(changed) = container["image"].as_str().and_then(|known| changed(known, image)) {
                            container["image"] = changed.into();
                        }
                    }
                }
                in_containers(inner, image);
            }
        }
        _ => {}
    }
}

/// Another name, tag or digest; a new tag or digest takes the place of both.
fn changed(known: &str, image: &Value) -> Option<String> {
    let (rest, digest) = known.split_once('@').map_or((known, ""), |(rest, digest)| (rest, digest));
    let slash = rest.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match rest[slash..].find(':') {
        Some(at) => (&rest[..slash + at], &rest[slash + at + 1..]),
        None => (rest, ""),
    };
    if name != text(image, "/name") {
        return None;
    }
    let wanted = |field: &str| image.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (tag, digest) = match (wanted("newTag"), wanted("digest")) {
        (None, None) => (tag, digest),
        (tag, digest) => (tag.unwrap_or_default(), digest.unwrap_or_default()),
    };
    let mut changed = wanted("newName").unwrap_or(name).to_owned();
    for (sign, part) in [(':', tag), ('@', digest)].into_iter().filter(|(_, part)| !part.is_empty()) {
        changed.push(sign);
        changed.push_str(part);
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_get_other_names_tags_and_digests() {
        let image = json!({"name": "nginx", "newTag": "1.27"});
        assert_eq!(changed("nginx", &image).unwrap(), "nginx:1.27");
        assert_eq!(changed("nginx:1@sha256:abc", &image).unwrap(), "nginx:1.27");
        assert_eq!(changed("my/nginx:1", &image), None);
        let moved = json!({"name": "host:5000/web", "newName": "web", "digest": "sha256:abc"});
        assert_eq!(changed("host:5000/web:1", &moved).unwrap(), "web@sha256:abc");
        assert_eq!(changed("host:5000/web:1", &json!({"name": "host:5000/web", "newName": "x"})).unwrap(), "x:1");
    }
}
