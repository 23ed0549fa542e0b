//! PodSecurity: a namespace's labels say how far its pods are trusted.
//! <https://kubernetes.io/docs/concepts/security/pod-security-admission/>

mod baseline;
mod checks;
mod level;
mod restricted;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Namespace, Pod, PodSpec, PodTemplate, PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Attributes, Operation, Plugin};
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::ApiServer;
use level::{Level, LevelVersion, Policy};

/// At most so many pods are looked at when a namespace becomes stricter.
const PODS_CHECKED_MAX: usize = 3000;

pub struct PodSecurity;

impl Plugin for PodSecurity {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![
            Namespace::kind(),
            Pod::kind(),
            PodTemplate::kind(),
            ReplicationController::kind(),
            ReplicaSet::kind(),
            Deployment::kind(),
            StatefulSet::kind(),
            DaemonSet::kind(),
            Job::kind(),
            CronJob::kind(),
        ])
    }

    fn validate(&self, attributes: &mut Attributes<'_>, object: &Object) -> Result<(), Status> {
        if attributes.operation == Operation::Delete {
            return Ok(());
        }
        if object.is::<Namespace>() {
            return if attributes.request.subresource.is_empty() { namespace(attributes, object) } else { Ok(()) };
        }
        let subresource = attributes.request.subresource;
        let is_pod = object.is::<Pod>();
        if subresource == "status" || !(is_pod || subresource.is_empty()) {
            return Ok(());
        }
        let Some(policy) = policy_of(attributes.server, object) else { return Ok(()) };
        if is_pod {
            pod(attributes, &policy, object)
        } else {
            if let Some((metadata, spec)) = template(object) {
                warn(attributes, &policy, metadata, spec);
            }
            Ok(())
        }
    }
}

/// The policy of the object's namespace, unless it asks for nothing.
fn policy_of(server: &ApiServer, object: &Object) -> Option<Policy> {
    let namespace = server.store.get(Namespace::kind(), &Key::cluster(object.key.namespace.clone()))?;
    let labels = namespace.metadata().labels.as_ref()?;
    level::is_labelled(labels).then(|| Policy::of(labels).0)
}

fn pod(attributes: &mut Attributes<'_>, policy: &Policy, pod: &Object) -> Result<(), Status> {
    if attributes.old.is_some_and(|old| !is_significant(old.spec::<Pod>(), pod.spec::<Pod>())) {
        return Ok(());
    }
    let (metadata, spec) = (pod.metadata(), pod.spec::<Pod>());
    let violations = checks::violations(policy.enforce, metadata, spec);
    if !violations.is_empty() {
        let detail = format!("violates PodSecurity \"{}\": {}", policy.enforce, checks::details(&violations));
        return Err(Status::forbidden(&pod.kind, &pod.key.name, &detail));
    }
    warn(attributes, policy, metadata, spec);
    Ok(())
}

fn warn(attributes: &mut Attributes<'_>, policy: &Policy, metadata: &ObjectMeta, spec: &PodSpec) {
    let violations = checks::violations(policy.warn, metadata, spec);
    if !violations.is_empty() {
        let warning = format!("would violate PodSecurity \"{}\": {}", policy.warn, checks::details(&violations));
        attributes.warnings.push(warning);
    }
}

/// Of what can change in a pod, only images, and containers that are added, matter.
fn is_significant(old: &PodSpec, new: &PodSpec) -> bool {
    let images = |spec: &PodSpec| -> Vec<Option<String>> {
        let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
        containers.map(|container| container.image.clone()).collect()
    };
    let known = |name: &str| old.ephemeral_containers.iter().flatten().find(|container| container.name == name);
    images(old) != images(new)
        || new
            .ephemeral_containers
            .iter()
            .flatten()
            .any(|container| known(&container.name).is_none_or(|known| known.image != container.image))
}

/// The pod that a workload makes.
fn template(object: &Object) -> Option<(&ObjectMeta, &PodSpec)> {
    static NO_METADATA: LazyLock<ObjectMeta> = LazyLock::new(ObjectMeta::default);
    let template: Option<&PodTemplateSpec> = if object.is::<Deployment>() {
        Some(&object.spec::<Deployment>().template)
    } else if object.is::<ReplicaSet>() {
        object.spec::<ReplicaSet>().template.as_ref()
    } else if object.is::<StatefulSet>() {
        Some(&object.spec::<StatefulSet>().template)
    } else if object.is::<DaemonSet>() {
        Some(&object.spec::<DaemonSet>().template)
    } else if object.is::<Job>() {
        Some(&object.spec::<Job>().template)
    } else if object.is::<CronJob>() {
        object.spec::<CronJob>().job_template.spec.as_ref().map(|job| &job.template)
    } else if object.is::<ReplicationController>() {
        object.spec::<ReplicationController>().template.as_ref()
    } else if object.is::<PodTemplate>() {
        object.spec::<PodTemplate>().template.as_ref()
    } else {
        None
    };
    let template = template?;
    Some((template.metadata.as_ref().unwrap_or_else(|| &NO_METADATA), template.spec.as_ref()?))
}

/// Labels must be right; a stricter level tells of the pods that would not be let in any more.
fn namespace(attributes: &mut Attributes<'_>, namespace: &Object) -> Result<(), Status> {
    let of = |object: &Object| object.metadata().labels.as_ref().map(Policy::of).unwrap_or_default();
    let (policy, errors) = of(namespace);
    let (old_policy, old_errors) = attributes.old.map(of).unwrap_or_default();
    if !errors.is_empty() && errors != old_errors {
        return Err(Status::invalid(&namespace.kind, &namespace.key.name, errors));
    }
    let (before, after) = (old_policy.enforce, policy.enforce);
    let is_relaxed = after.level == Level::Privileged || after.version == before.version && after.level <= before.level;
    if attributes.operation == Operation::Update && after != before && !is_relaxed {
        let warnings = existing(attributes.server, &namespace.key.name, after);
        attributes.warnings.extend(warnings);
    }
    Ok(())
}

/// Which pods of a namespace violate its new level, told together where they do it alike.
fn existing(server: &ApiServer, namespace: &str, enforce: LevelVersion) -> Vec<String> {
    let pods: Vec<&Object> = server.store.list(Pod::kind(), namespace).collect();
    let (total, checked) = (pods.len(), pods.len().min(PODS_CHECKED_MAX));
    let mut violators: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in pods.into_iter().take(checked) {
        let violations = checks::violations(enforce, pod.metadata(), pod.spec::<Pod>());
        if !violations.is_empty() {
            violators.entry(checks::reasons(&violations)).or_default().push(&pod.key.name);
        }
    }
    let mut warnings = Vec::new();
    if checked < total {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
        ));
    }
    if !violators.is_empty() {
        warnings.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{enforce}\""
        ));
    }
    let mut told: Vec<String> = violators
        .into_iter()
        .map(|(reasons, pods)| match pods.as_slice() {
            [one] => format!("{one}: {reasons}"),
            [first, _] => format!("{first} (and 1 other pod): {reasons}"),
            more => format!("{} (and {} other pods): {reasons}", more[0], more.len() - 1),
        })
        .collect();
    told.sort();
    warnings.extend(told);
    warnings
}
