//! Parts of a pod that change through a subresource of their own: `pods/ephemeralcontainers` and `pods/resize`.
//! <https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/>

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};

use crate::api::object::Object;
use crate::api::request::{Request, Response, Verb};
use crate::api::status::{Cause, Status};
use crate::apiserver::strategies::pod::qos_class;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{internal_types, pod};
use crate::apiserver::{ApiServer, Moment, answer, decode, defaults, managed, patch, read};

pub fn ephemeral_containers(
    server: &mut ApiServer,
    request: &Request,
    moment: &mut Moment<'_>,
) -> Result<Response, Status> {
    change(server, request, moment, |old, sent, causes| {
        let mut spec = old.spec::<Pod>().clone();
        spec.ephemeral_containers = sent.ephemeral_containers.clone();
        defaults::pod_spec(&mut spec);
        pod::pod(causes, &spec, old.metadata());
        let path = Path::new("spec.ephemeralContainers");
        for before in old.spec::<Pod>().ephemeral_containers.iter().flatten() {
            let after = spec.ephemeral_containers.iter().flatten().find(|after| after.name == before.name);
            let change = match after {
                None => "removed\n".to_owned(),
                Some(after) if after != before => {
                    format!("changed\n{}", internal_types::ephemeral_container_diff(before, after))
                }
                Some(_) => continue,
            };
            let detail = format!("existing ephemeral containers {:?} may not be {change}", before.name);
            causes.forbidden(&path, &detail);
        }
        spec
    })
}

pub fn resize(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    change(server, request, moment, |old, sent, causes| {
        let before = old.spec::<Pod>();
        let mut spec = before.clone();
        spec.containers = resized(&before.containers, &sent.containers);
        spec.init_containers = before
            .init_containers
            .as_ref()
            .map(|containers| resized(containers, sent.init_containers.as_deref().unwrap_or_default()));
        spec.resources = sent.resources.clone();
        defaults::pod_spec(&mut spec);
        defaults::pod(&mut spec);
        pod::pod(causes, &spec, old.metadata());
        let path = Path::new("spec");
        if qos_class(before) != qos_class(&spec) {
            let class = old.status::<Pod>().qos_class.clone().unwrap_or_default();
            causes.invalid(&path, class, "Pod QOS Class may not change as a result of resizing");
        }
        let lists = [
            ("containers", before.containers.as_slice(), spec.containers.as_slice()),
            (
                "initContainers",
                before.init_containers.as_deref().unwrap_or_default(),
                spec.init_containers.as_deref().unwrap_or_default(),
            ),
        ];
        for (field, before, after) in lists {
            resizes(causes, &path, field, before, after);
        }
        spec
    })
}

/// The old containers with new resources. Lists that don't have the same containers are left for the checks to refuse.
fn resized(old: &[Container], new: &[Container]) -> Vec<Container> {
    let same = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.name == new.name);
    if !same {
        return new.to_vec();
    }
    let with = |(old, new): (&Container, &Container)| Container {
        resources: new.resources.clone(),
        resize_policy: new.resize_policy.clone(),
        ..old.clone()
    };
    old.iter().zip(new).map(with).collect()
}

fn resizes(causes: &mut Causes, path: &Path, field: &str, old: &[Container], new: &[Container]) {
    let list = path.child(field);
    if old.len() != new.len() {
        return causes.forbidden(&list, &format!("{field} may not be added or removed on resize"));
    }
    for (index, (old, new)) in old.iter().zip(new).enumerate() {
        if old.name != new.name {
            let detail = format!("{field} may not be renamed or reordered on resize");
            causes.forbidden(&list.index(index).child("name"), &detail);
            continue;
        }
        let empty = ResourceRequirements::default();
        let before = old.resources.as_ref().unwrap_or(&empty);
        let after = new.resources.as_ref().unwrap_or(&empty);
        let pairs = [
            ("requests", "resource requests cannot be removed", &before.requests, &after.requests),
            ("limits", "resource limits cannot be removed", &before.limits, &after.limits),
        ];
        let mut others = old.resize_policy != new.resize_policy || before.claims != after.claims;
        for (field, detail, before, after) in pairs {
            let has = |name: &String| after.as_ref().is_some_and(|after| after.contains_key(name));
            if before.iter().flatten().any(|(name, _)| !has(name)) {
                causes.forbidden(&list.index(index).child("resources").child(field), detail);
            }
            let other = |amounts: &Option<std::collections::BTreeMap<_, _>>| {
                let mut amounts = amounts.clone().unwrap_or_default();
                amounts.retain(|name: &String, _| !matches!(name.as_str(), "cpu" | "memory"));
                amounts
            };
            others |= other(before) != other(after);
        }
        if others {
            causes.forbidden(path, "only cpu and memory resources are mutable");
        }
    }
}

/// Shows the pod, or writes the spec that `make` makes of the old pod and of the one that was sent.
fn change(
    server: &mut ApiServer,
    request: &Request,
    moment: &mut Moment<'_>,
    make: impl FnOnce(&Object, &PodSpec, &mut Causes) -> PodSpec,
) -> Result<Response, Status> {
    let old = read::existing(server, request)?;
    let (sent, _) = match request.verb {
        Verb::Get => return Ok(answer(old)),
        Verb::Patch(_) => patch::apply_to(server, request, &old)?,
        _ => decode::body(request)?,
    };
    if sent.revision > 0 && sent.revision != old.revision {
        return Err(Status::stale(&old.kind, &old.key.name));
    }
    let mut causes = Causes::new();
    let spec = make(&old, sent.spec::<Pod>(), &mut causes);
    if !causes.is_empty() {
        return Err(Status::invalid(&old.kind, &old.key.name, Vec::<Cause>::from(causes)));
    }
    if spec == *old.spec::<Pod>() {
        return Ok(answer(old));
    }
    let mut pod = old.clone();
    *pod.spec_mut::<Pod>() = spec;
    managed::record(Some(&old), &mut pod, request, moment.now);
    pod.metadata_mut().generation = Some(old.metadata().generation.unwrap_or(0) + 1);
    server.put(pod, Some(old.revision), request, moment).map(answer)
}
