//! Places in objects: paths such as `spec/template/spec/containers[]/image`, for some kinds or all.

use serde_json::{Value, json};

/// A path in objects of a kind, of any if that is empty.
pub struct Field {
    pub kind: &'static str,
    pub path: &'static str,
    /// It is made where it is not there.
    pub made: bool,
}

pub const fn made(kind: &'static str, path: &'static str) -> Field {
    Field { kind, path, made: true }
}

pub const fn if_there(kind: &'static str, path: &'static str) -> Field {
    Field { kind, path, made: false }
}

/// Lets `act` change the value at each field of an object that fits.
pub fn each(fields: &[Field], object: &mut Value, act: &mut dyn FnMut(&mut Value)) {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    for field in fields.iter().filter(|field| field.kind.is_empty() || field.kind == kind) {
        at(field.path, field.made, object, act);
    }
}

/// Lets `act` change every value at a path.
pub fn at(path: &str, made: bool, value: &mut Value, act: &mut dyn FnMut(&mut Value)) {
    if path.is_empty() {
        return act(value);
    }
    let (step, rest) = path.split_once('/').unwrap_or((path, ""));
    let (name, is_list) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
    let Some(map) = value.as_object_mut() else { return };
    if made && !is_list && map.get(name).is_none_or(Value::is_null) {
        map.insert(name.to_owned(), json!({}));
    }
    match map.get_mut(name) {
        Some(Value::Array(items)) if is_list => items.iter_mut().for_each(|item| at(rest, made, item, act)),
        Some(inner) if !is_list => at(rest, made, inner, act),
        _ => {}
    }
}

/// Where templates of pods carry metadata, by kind.
pub const TEMPLATES: &[(&str, &str)] = &[
    ("ReplicationController", "spec/template/metadata"),
    ("Deployment", "spec/template/metadata"),
    ("ReplicaSet", "spec/template/metadata"),
    ("DaemonSet", "spec/template/metadata"),
    ("StatefulSet", "spec/template/metadata"),
    ("Job", "spec/template/metadata"),
    ("CronJob", "spec/jobTemplate/metadata"),
    ("CronJob", "spec/jobTemplate/spec/template/metadata"),
];

/// Where labels select, by kind.
pub const SELECTORS: &[Field] = &[
    made("Service", "spec/selector"),
    made("ReplicationController", "spec/selector"),
    made("Deployment", "spec/selector/matchLabels"),
    if_there(
        "Deployment",
        "spec/template/spec/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution[]/podAffinityTerm/labelSelector/matchLabels",
    ),
    if_there(
        "Deployment",
        "spec/template/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution[]/labelSelector/matchLabels",
    ),
    if_there(
        "Deployment",
        "spec/template/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution[]/podAffinityTerm/labelSelector/matchLabels",
    ),
    if_there(
        "Deployment",
        "spec/template/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution[]/labelSelector/matchLabels",
    ),
    if_there("Deployment", "spec/template/spec/topologySpreadConstraints[]/labelSelector/matchLabels"),
    made("ReplicaSet", "spec/selector/matchLabels"),
    made("DaemonSet", "spec/selector/matchLabels"),
    made("StatefulSet", "spec/selector/matchLabels"),
    if_there("StatefulSet", "spec/template/spec/topologySpreadConstraints[]/labelSelector/matchLabels"),
    if_there("Job", "spec/selector/matchLabels"),
    if_there("CronJob", "spec/jobTemplate/spec/selector/matchLabels"),
    if_there("PodDisruptionBudget", "spec/selector/matchLabels"),
    if_there("NetworkPolicy", "spec/podSelector/matchLabels"),
    if_there("NetworkPolicy", "spec/ingress[]/from[]/podSelector/matchLabels"),
    if_there("NetworkPolicy", "spec/egress[]/to[]/podSelector/matchLabels"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_through_lists_and_make_what_is_missing() {
        let mut value = json!({"kind": "Pod", "spec": {"containers": [{"image": "a"}, {}, {"image": "b"}]}});
        let mut seen = Vec::new();
        at("spec/containers[]/image", false, &mut value, &mut |image| seen.push(image.clone()));
        assert_eq!(seen, [json!("a"), json!("b")]);
        each(&[made("Pod", "metadata/labels"), made("Job", "spec/x")], &mut value, &mut |labels| {
            labels["a"] = json!("b")
        });
        assert_eq!(value["metadata"], json!({"labels": {"a": "b"}}));
        assert_eq!(value["spec"].get("x"), None);
    }
}
