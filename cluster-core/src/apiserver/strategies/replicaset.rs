//! ReplicaSets, and what they share with Deployments: a selector that fits the template.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{pod_template, replica_status};
use crate::apiserver::{defaults, warnings};

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<ReplicaSet>();
        spec.replicas.get_or_insert(1);
        defaults::pod_template(spec.template.get_or_insert_default());
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (mut causes, path) = (Causes::new(), Path::new("spec"));
        let spec = object.spec::<ReplicaSet>();
        causes.non_negative(&path.child("replicas"), spec.replicas);
        causes.non_negative(&path.child("minReadySeconds"), spec.min_ready_seconds);
        let template = spec.template.clone().unwrap_or_default();
        selector_and_template(&mut causes, &path, &spec.selector, &template);
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        selector_kept(&old.spec::<ReplicaSet>().selector, &new.spec::<ReplicaSet>().selector)
    }

    fn validate_status_update(&self, _: &Object, new: &Object) -> Vec<Cause> {
        let status = new.status::<ReplicaSet>();
        let count = |count: Option<i32>| i64::from(count.unwrap_or(0));
        let mut causes = Causes::new();
        let counts = replica_status::Counts {
            replicas: status.replicas.into(),
            parts: &[
                ("fullyLabeledReplicas", count(status.fully_labeled_replicas)),
                ("readyReplicas", count(status.ready_replicas)),
                ("availableReplicas", count(status.available_replicas)),
            ],
            others: &[
                ("observedGeneration", status.observed_generation),
                ("terminatingReplicas", status.terminating_replicas.map(i64::from)),
            ],
            ready_noun: "readyReplicas",
        };
        replica_status::counts(&mut causes, &counts);
        causes.into()
    }

    fn warnings(&self, old: Option<&Object>, new: &Object) -> Vec<String> {
        let template = new.spec::<ReplicaSet>().template.as_ref();
        warnings::workload(old, new, || {
            template.map(|template| warnings::pod_template("spec.template", template)).unwrap_or_default()
        })
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

/// The selector of a Deployment or ReplicaSet, and the template of the pods that it selects.
pub fn selector_and_template(causes: &mut Causes, path: &Path, selector: &LabelSelector, template: &PodTemplateSpec) {
    pod_template::selector(causes, &path.child("selector"), selector, "deployment");
    let path = path.child("template");
    pod_template::selected(causes, &path, template, selector);
    pod_template::validate(causes, &path, template);
    pod_template::runs_for_ever(causes, &path, &pod_template::spec_of(template), "ReplicaSet");
}

pub fn selector_kept(old: &LabelSelector, new: &LabelSelector) -> Vec<Cause> {
    let mut causes = Causes::new();
    causes.immutable(&Path::new("spec.selector"), old, new);
    causes.into()
}
