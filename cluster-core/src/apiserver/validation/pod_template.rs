//! Templates of pods, in everything that makes pods.

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use super::field::{Causes, Path};
use super::{metadata, pod, pod_spec, selectors};
use crate::api::selector::Selector;

/// A template that stands at `path`.
pub fn validate(causes: &mut Causes, path: &Path, template: &PodTemplateSpec) {
    let meta = template.metadata.clone().unwrap_or_default();
    let spec = template.spec.clone().unwrap_or_default();
    if let Some(labels) = &meta.labels {
        metadata::labels(causes, labels, &path.child("labels"));
    }
    if let Some(annotations) = &meta.annotations {
        metadata::annotations(causes, annotations, &path.child("annotations"));
    }
    pod::annotations(causes, &path.child("annotations"), &meta, &spec);
    let place = path.child("spec");
    pod_spec::validate(causes, &place, &spec, None);
    pod::seccomp_agrees(causes, &place, &spec, &meta);
    if spec.ephemeral_containers.as_ref().is_some_and(|containers| !containers.is_empty()) {
        causes.forbidden(&place.child("ephemeralContainers"), "ephemeral containers not allowed in pod template");
    }
}

/// The selector of a workload: there, well formed, not empty. `noun` names the kind as the API does in this message.
pub fn selector(causes: &mut Causes, path: &Path, selector: &LabelSelector, noun: &str) {
    if is_missing(selector) {
        return causes.required(path, "");
    }
    selectors::label_selector(causes, path, Some(selector));
    not_empty(causes, path, selector, noun);
}

/// A selector that was sent as `{}` has labels, though none; one that was not sent has nothing.
fn is_missing(selector: &LabelSelector) -> bool {
    selector.match_labels.is_none() && selector.match_expressions.is_none()
}

pub fn not_empty(causes: &mut Causes, path: &Path, selector: &LabelSelector, noun: &str) {
    if !is_missing(selector) && Selector::of(selector).is_everything() {
        causes.invalid(path, json!({}), format!("empty selector is invalid for {noun}"));
    }
}

/// A workload finds the pods that it makes. Without a selector it finds none.
pub fn selected(causes: &mut Causes, path: &Path, template: &PodTemplateSpec, selector: &LabelSelector) {
    let labels = template.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
    if is_missing(selector) || !Selector::of(selector).matches(labels) {
        not_selected(causes, path, template);
    }
}

pub fn not_selected(causes: &mut Causes, path: &Path, template: &PodTemplateSpec) {
    let labels = template.metadata.as_ref().and_then(|meta| meta.labels.as_ref());
    let shown = labels.map_or(Value::Null, |labels| json!(labels));
    causes.invalid(&path.child("metadata.labels"), shown, "`selector` does not match template `labels`");
}

/// Pods that are replaced for ever restart their containers, and don't end by themselves.
pub fn runs_for_ever(causes: &mut Causes, path: &Path, spec: &PodSpec, noun: &str) {
    let path = path.child("spec");
    causes.one_of(&path.child("restartPolicy"), spec.restart_policy.as_deref(), &["Always"]);
    if spec.active_deadline_seconds.is_some() {
        let detail = format!("activeDeadlineSeconds in {noun} is not Supported");
        causes.forbidden(&path.child("activeDeadlineSeconds"), &detail);
    }
}

/// The spec of a template, which may be left out.
pub fn spec_of(template: &PodTemplateSpec) -> std::borrow::Cow<'_, PodSpec> {
    match &template.spec {
        Some(spec) => std::borrow::Cow::Borrowed(spec),
        None => std::borrow::Cow::Owned(PodSpec::default()),
    }
}
