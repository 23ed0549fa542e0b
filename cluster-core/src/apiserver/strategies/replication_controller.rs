//! ReplicationControllers: a selector of plain labels, which is the template's if there is none.

use k8s_openapi::api::core::v1::ReplicationController;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{pod_template, replica_status};
use crate::apiserver::{defaults, warnings};

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<ReplicationController>();
        spec.replicas.get_or_insert(1);
        let Some(template) = &mut spec.template else { return };
        defaults::pod_template(template);
        let Some(labels) = template.metadata.as_ref().and_then(|meta| meta.labels.clone()) else { return };
        if spec.selector.as_ref().is_none_or(|selector| selector.is_empty()) {
            spec.selector = Some(labels.clone());
        }
        if object.metadata().labels.as_ref().is_none_or(|labels| labels.is_empty()) {
            object.metadata_mut().labels = Some(labels);
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (mut causes, path) = (Causes::new(), Path::new("spec"));
        let spec = object.spec::<ReplicationController>();
        causes.non_negative(&path.child("minReadySeconds"), spec.min_ready_seconds);
        let empty = Default::default();
        let selector = spec.selector.as_ref().unwrap_or(&empty);
        if selector.is_empty() {
            causes.required(&path.child("selector"), "");
        }
        causes.non_negative(&path.child("replicas"), spec.replicas);
        let template_path = path.child("template");
        let Some(template) = &spec.template else {
            causes.required(&template_path, "");
            return causes.into();
        };
        let labels = template.metadata.as_ref().and_then(|meta| meta.labels.as_ref()).unwrap_or(&empty);
        if !selector.iter().all(|(key, value)| labels.get(key) == Some(value)) {
            pod_template::not_selected(&mut causes, &template_path, template);
        }
        pod_template::validate(&mut causes, &template_path, template);
        let spec = pod_template::spec_of(template);
        pod_template::runs_for_ever(&mut causes, &template_path, &spec, "ReplicationController");
        causes.into()
    }

    fn validate_status_update(&self, _: &Object, new: &Object) -> Vec<Cause> {
        let status = new.status::<ReplicationController>();
        let count = |count: Option<i32>| i64::from(count.unwrap_or(0));
        let mut causes = Causes::new();
        let counts = replica_status::Counts {
            replicas: status.replicas.into(),
            parts: &[
                ("fullyLabeledReplicas", count(status.fully_labeled_replicas)),
                ("readyReplicas", count(status.ready_replicas)),
                ("availableReplicas", count(status.available_replicas)),
            ],
            others: &[("observedGeneration", status.observed_generation)],
            ready_noun: "readyReplicas",
        };
        replica_status::counts(&mut causes, &counts);
        causes.into()
    }

    fn warnings(&self, old: Option<&Object>, new: &Object) -> Vec<String> {
        let template = new.spec::<ReplicationController>().template.as_ref();
        warnings::workload(old, new, || {
            template.map(|template| warnings::pod_template("spec.template", template)).unwrap_or_default()
        })
    }

    fn orphans_dependents(&self) -> bool {
        true
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}
