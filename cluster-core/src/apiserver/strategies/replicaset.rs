//! ReplicaSets, and what they share with the other workloads: a selector that fits the template.

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::pod;
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::metadata;

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<ReplicaSet>();
        spec.replicas.get_or_insert(1);
        if let Some(template) = &mut spec.template {
            pod::default_spec(template.spec.get_or_insert_default());
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let ReplicaSetSpec { replicas, selector, template, .. } = object.spec::<ReplicaSet>();
        validate_parts(*replicas, selector, template.as_ref().unwrap_or(&PodTemplateSpec::default()))
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        selector_kept(&old.spec::<ReplicaSet>().selector, &new.spec::<ReplicaSet>().selector)
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

/// Replicas, selector and template of a workload.
pub fn validate_parts(replicas: Option<i32>, selector: &LabelSelector, template: &PodTemplateSpec) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Some(replicas) = replicas.filter(|replicas| *replicas < 0) {
        causes.push(Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
    }
    let parsed = Selector::of(selector);
    let labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    if parsed.is_everything() {
        causes.push(Cause::required("spec.selector", ""));
        causes.push(Cause::invalid("spec.selector", serde_json::json!({}), "empty selector is invalid for deployment"));
    } else if !parsed.matches(labels) {
        let shown = labels.map(|labels| serde_json::json!(labels)).unwrap_or_default();
        causes.push(Cause::invalid(
            "spec.template.metadata.labels",
            shown,
            "`selector` does not match template `labels`",
        ));
    }
    if let Some(labels) = labels {
        let mut wrong = Causes::new();
        metadata::labels(&mut wrong, labels, &Path::new("spec.template.metadata.labels"));
        causes.extend(wrong);
    }
    let spec = template.spec.clone().unwrap_or_default();
    causes.extend(pod::validate_spec(&spec, "spec.template.spec"));
    if let Some(policy) = spec.restart_policy.as_deref().filter(|policy| *policy != "Always") {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    causes
}

pub fn selector_kept(old: &LabelSelector, new: &LabelSelector) -> Vec<Cause> {
    if old == new {
        return Vec::new();
    }
    let shown = serde_json::to_value(new).unwrap_or_default();
    vec![Cause::invalid("spec.selector", shown, "field is immutable")]
}
