//! `kubectl debug POD --copy-to=NAME`: the same pod once more, changed so that it can be looked into.
//! <https://kubernetes.io/docs/tasks/debug/debug-application/debug-running-pod/#debugging-using-a-copy-of-the-pod>

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Options, Verb as ApiVerb};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::super::super::client;
use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::resources::Item;
use super::super::super::verb::Call;
use super::Wish;
use super::container::{debug_container, default_name};

/// Flags that keep what would bring requests, or restarts, to a container that is looked into.
const PROBES: [(&str, &str); 3] =
    [("keep-liveness", "livenessProbe"), ("keep-readiness", "readinessProbe"), ("keep-startup", "startupProbe")];

pub fn debug(call: &mut Call<'_, '_>, pod: &Item, wish: &Wish) -> Outcome {
    let copy = copy(call, &pod.value, wish)?;
    let kind = KindRef::of::<Pod>();
    call.create(kind, &pod.namespace, copy, Options::default())?;
    if call.parsed.switch("replace") {
        call.send_for_object(client::request(ApiVerb::Delete, kind, &pod.namespace, &pod.name))?;
    }
    Ok(())
}

fn copy(call: &mut Call<'_, '_>, pod: &Value, wish: &Wish) -> Result<Value, Failure> {
    let mut spec = pod["spec"].clone();
    let remove = |value: &mut Value, field: &str| drop(value.as_object_mut().map(|fields| fields.remove(field)));
    remove(&mut spec, "ephemeralContainers");
    if call.parsed.has("share-processes") {
        spec["shareProcessNamespace"] = call.parsed.switch("share-processes").into();
    }
    if !call.parsed.switch("same-node") {
        remove(&mut spec, "nodeName");
    }
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        let image_of = |name: &str| wish.images.iter().rev().find(|(known, _)| known == name).map(|(_, image)| image);
        let image = image_of(container["name"].as_str().unwrap_or_default()).or_else(|| image_of("*"));
        if let Some(image) = image {
            container["image"] = image.as_str().into();
        }
    }
    let metadata = |labels: &Value, annotations: &Value| json!({"name": call.parsed.text("copy-to"), "labels": labels, "annotations": annotations});
    let all = metadata(&pod["metadata"]["labels"], &pod["metadata"]["annotations"]);
    let Some(name) = container(call, &mut spec, pod, wish)? else {
        return Ok(json!({"apiVersion": "v1", "kind": "Pod", "metadata": all, "spec": spec}));
    };
    wish.profile.of_copy(&mut spec, &name);
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        for (_, probe) in PROBES.iter().filter(|(flag, _)| !call.parsed.switch(flag)) {
            remove(container, probe);
        }
    }
    if !call.parsed.switch_or_on("keep-init-containers") {
        remove(&mut spec, "initContainers");
    }
    let mut kept = all;
    for (flag, field) in [("keep-labels", "labels"), ("keep-annotations", "annotations")] {
        if !call.parsed.switch(flag) {
            remove(&mut kept, field);
        }
    }
    Ok(json!({"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}))
}

/// Changes the container that is named, or adds one; its name. None if only images change.
fn container(call: &mut Call<'_, '_>, spec: &mut Value, pod: &Value, wish: &Wish) -> Result<Option<String>, Failure> {
    let wanted = call.parsed.text("container").unwrap_or_default().to_owned();
    let mut containers = spec["containers"].as_array().cloned().unwrap_or_default();
    let known = containers.iter().position(|container| container["name"] == *wanted);
    let place = match known {
        Some(place) => place,
        None if call.parsed.text("image").is_none_or(str::is_empty) => {
            return match wish.images.is_empty() {
                true => message("you must specify image when creating new container"),
                false => Ok(None),
            };
        }
        None => {
            let name = if wanted.is_empty() { default_name(call, pod) } else { wanted };
            containers.push(json!({"name": name, "terminationMessagePolicy": "File"}));
            containers.len() - 1
        }
    };
    debug_container(call, wish, &mut containers[place])?;
    let name = containers[place]["name"].as_str().unwrap_or_default().to_owned();
    spec["containers"] = containers.into();
    Ok(Some(name))
}
