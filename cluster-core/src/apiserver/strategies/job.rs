//! Jobs: a selector made from the Job's own uid, and a template that does not change once pods were made of it.

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Affinity, Container, PodTemplateSpec};
use serde_json::json;

use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{job, job_status, names, pod_template, selectors};
use crate::apiserver::{ApiServer, Moment, defaults, warnings};

const JOB_NAME: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const CONTROLLER_UID: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<Job>();
        if spec.completions.is_none() && spec.parallelism.is_none() {
            spec.completions = Some(1);
        }
        spec.parallelism.get_or_insert(1);
        spec.backoff_limit.get_or_insert(if spec.backoff_limit_per_index.is_some() { i32::MAX } else { 6 });
        spec.completion_mode.get_or_insert_with(|| "NonIndexed".into());
        spec.suspend.get_or_insert(false);
        let replace = if spec.pod_failure_policy.is_some() { "Failed" } else { "TerminatingOrFailed" };
        spec.pod_replacement_policy.get_or_insert_with(|| replace.into());
        spec.manual_selector.get_or_insert(false);
        job_template(spec);
    }

    fn prepare_create(&self, object: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        let (name, uid) = (object.key.name.to_string(), object.uid().to_owned());
        let spec = object.spec_mut::<Job>();
        let labels = spec.template.metadata.get_or_insert_default().labels.get_or_insert_default();
        if spec.manual_selector != Some(true) {
            for (keys, value) in [(JOB_NAME, &name), (CONTROLLER_UID, &uid)] {
                for key in keys {
                    labels.entry(key.into()).or_insert_with(|| value.clone());
                }
            }
            let selector = spec.selector.get_or_insert_default().match_labels.get_or_insert_default();
            selector.entry(CONTROLLER_UID[1].into()).or_insert(uid);
        }
        let labels = labels.clone();
        if object.metadata().labels.as_ref().is_none_or(|labels| labels.is_empty()) && !labels.is_empty() {
            object.metadata_mut().labels = Some(labels);
        }
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let spec = object.spec::<Job>();
        generated_selector(&mut causes, object, spec);
        validate_spec(&mut causes, spec);
        let completions = spec.completions.filter(|completions| *completions > 0);
        if let Some(completions) = completions.filter(|_| spec.completion_mode.as_deref() == Some("Indexed")) {
            let hostname = format!("{}-{}", object.key.name, completions - 1);
            if !names::dns_label(&hostname).is_empty() {
                let detail = format!("will not able to create pod with invalid DNS label: {hostname}");
                causes.invalid(&Path::new("metadata.name"), &*object.key.name, detail);
            }
        }
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (mut causes, path) = (Causes::new(), Path::new("spec"));
        let (before, after) = (old.spec::<Job>(), new.spec::<Job>());
        validate_spec(&mut causes, after);
        completions(&mut causes, &path.child("completions"), before, after);
        causes.immutable(&path.child("selector"), &before.selector, &after.selector);
        template(&mut causes, &path, old, after);
        causes.immutable(&path.child("completionMode"), &before.completion_mode, &after.completion_mode);
        causes.immutable(&path.child("podFailurePolicy"), &before.pod_failure_policy, &after.pod_failure_policy);
        let per_index = path.child("backoffLimitPerIndex");
        causes.immutable(&per_index, &before.backoff_limit_per_index, &after.backoff_limit_per_index);
        causes.immutable(&path.child("managedBy"), &before.managed_by, &after.managed_by);
        causes.immutable(&path.child("successPolicy"), &before.success_policy, &after.success_policy);
        causes.into()
    }

    fn validate_status_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        job_status::update(&mut causes, new.spec::<Job>(), old.status::<Job>(), new.status::<Job>());
        causes.into()
    }

    fn warnings(&self, old: Option<&Object>, new: &Object) -> Vec<String> {
        warnings::workload(old, new, || warnings::job("spec", new.spec::<Job>()))
    }

    fn orphans_dependents(&self) -> bool {
        true
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

/// What the template of a CronJob gets as well.
pub fn job_template(spec: &mut JobSpec) {
    defaults::pod_template(&mut spec.template);
    let rules = spec.pod_failure_policy.iter_mut().flat_map(|policy| &mut policy.rules);
    for pattern in rules.filter_map(|rule| rule.on_pod_conditions.as_mut()).flatten() {
        pattern.status.get_or_insert_with(|| "True".into());
    }
}

fn validate_spec(causes: &mut Causes, spec: &JobSpec) {
    let path = Path::new("spec");
    job::spec(causes, &path, spec);
    match &spec.selector {
        None => causes.required(&path.child("selector"), ""),
        Some(selector) => selectors::label_selector(causes, &path.child("selector"), Some(selector)),
    }
    let labels = spec.template.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
    if !spec.selector.as_ref().is_some_and(|selector| Selector::of(selector).matches(labels)) {
        pod_template::not_selected(causes, &path.child("template"), &spec.template);
    }
}

/// The labels by which a Job knows its pods are its own.
fn generated_selector(causes: &mut Causes, object: &Object, spec: &JobSpec) {
    let Some(selector) = spec.selector.as_ref().filter(|_| spec.manual_selector != Some(true)) else { return };
    let path = Path::new("spec.template.metadata");
    let empty = Default::default();
    let labels = spec.template.metadata.as_ref().and_then(|meta| meta.labels.as_ref()).unwrap_or(&empty);
    let (name, uid) = (&*object.key.name, object.uid());
    let mut expected = crate::api::selector::Labels::new();
    for index in 0..2 {
        for (key, value) in [(CONTROLLER_UID[index], uid), (JOB_NAME[index], name)] {
            let detail = format!("must be '{value}'");
            match labels.get(key) {
                None => causes.required(&path.child("labels").key(key), &detail),
                Some(found) if found != value => causes.invalid(&path.child("labels").key(key), json!(labels), detail),
                Some(_) => {}
            }
            expected.insert(key.into(), value.into());
        }
    }
    if !Selector::of(selector).matches(Some(&expected)) {
        causes.invalid(&Path::new("spec.selector"), json!(selector), "`selector` not auto-generated");
    }
}

fn completions(causes: &mut Causes, path: &Path, old: &JobSpec, new: &JobSpec) {
    if new.completion_mode.as_deref() != Some("Indexed") {
        return causes.immutable(path, &old.completions, &new.completions);
    }
    if let Some(completions) = new.completions.filter(|_| old.completions != new.completions)
        && Some(completions) != new.parallelism
    {
        causes.invalid(path, completions, "can only be modified in tandem with spec.parallelism");
    }
}

/// While a Job is suspended and has no pods, its pods can be sent elsewhere and be given other resources.
/// <https://kubernetes.io/docs/concepts/workloads/controllers/job/#mutable-scheduling-directives>
fn template(causes: &mut Causes, path: &Path, old: &Object, new: &JobSpec) {
    let (spec, status) = (old.spec::<Job>(), old.status::<Job>());
    let suspended = spec.suspend == Some(true);
    let stands = status.conditions.iter().flatten().any(|one| one.type_ == "Suspended" && one.status == "True");
    let mutable = suspended && (status.start_time.is_none() || stands) && status.active.unwrap_or(0) == 0;
    let mut kept = spec.template.clone();
    if mutable {
        scheduling_of(&new.template, &mut kept);
        resources_of(&new.template, &mut kept);
    }
    if kept == new.template {
        return;
    }
    if mutable && kept.spec != new.template.spec {
        causes.invalid(&path.child("template.spec"), json!(new.template.spec), "field is immutable");
    } else if !mutable {
        causes.invalid(&path.child("template"), json!(new.template), "field is immutable");
    }
}

fn scheduling_of(new: &PodTemplateSpec, kept: &mut PodTemplateSpec) {
    let (labels, annotations) =
        new.metadata.as_ref().map(|meta| (meta.labels.clone(), meta.annotations.clone())).unwrap_or_default();
    let meta = kept.metadata.get_or_insert_default();
    (meta.labels, meta.annotations) = (labels, annotations);
    let (Some(new), Some(kept)) = (&new.spec, &mut kept.spec) else { return };
    kept.node_selector = new.node_selector.clone();
    kept.tolerations = new.tolerations.clone();
    kept.scheduling_gates = new.scheduling_gates.clone();
    let nodes = new.affinity.as_ref().and_then(|affinity| affinity.node_affinity.clone());
    let affinity = kept.affinity.get_or_insert_default();
    affinity.node_affinity = nodes;
    if *affinity == Affinity::default() && new.affinity.is_none() {
        kept.affinity = None;
    }
}

fn resources_of(new: &PodTemplateSpec, kept: &mut PodTemplateSpec) {
    let (Some(new), Some(kept)) = (&new.spec, &mut kept.spec) else { return };
    let copy = |new: &[Container], kept: &mut [Container]| {
        if new.len() == kept.len() {
            for (kept, new) in kept.iter_mut().zip(new).filter(|(kept, new)| kept.name == new.name) {
                kept.resources = new.resources.clone();
            }
        }
    };
    copy(&new.containers, &mut kept.containers);
    if let (Some(new), Some(kept)) = (&new.init_containers, &mut kept.init_containers) {
        copy(new, kept);
    }
}
