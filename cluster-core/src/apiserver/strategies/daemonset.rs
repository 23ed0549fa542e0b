//! DaemonSets: one pod a node, and an annotation that counts templates.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::replicaset;
use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{pod_template, replica_status, rollout, selectors};
use crate::apiserver::{ApiServer, Moment, defaults, warnings};

/// Where a field of an older version of this API lives on.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<DaemonSet>();
        let strategy = spec.update_strategy.get_or_insert_default();
        if strategy.type_.get_or_insert_with(|| "RollingUpdate".into()) == "RollingUpdate" {
            let rolling = strategy.rolling_update.get_or_insert_default();
            rolling.max_unavailable.get_or_insert(IntOrString::Int(1));
            rolling.max_surge.get_or_insert(IntOrString::Int(0));
        }
        spec.revision_history_limit.get_or_insert(10);
        defaults::pod_template(&mut spec.template);
    }

    fn prepare_create(&self, object: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        let generation = template_generation(object).max(1);
        set_template_generation(object, generation);
        Ok(())
    }

    fn prepare_update(&self, old: &Object, new: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        let changed = old.spec::<DaemonSet>().template != new.spec::<DaemonSet>().template;
        set_template_generation(new, template_generation(old) + i64::from(changed));
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (mut causes, path) = (Causes::new(), Path::new("spec"));
        let spec = object.spec::<DaemonSet>();
        selectors::label_selector(&mut causes, &path.child("selector"), Some(&spec.selector));
        let template_path = path.child("template");
        pod_template::selected(&mut causes, &template_path, &spec.template, &spec.selector);
        pod_template::not_empty(&mut causes, &path.child("selector"), &spec.selector, "daemonset");
        pod_template::validate(&mut causes, &template_path, &spec.template);
        let pod = pod_template::spec_of(&spec.template);
        pod_template::runs_for_ever(&mut causes, &template_path, &pod, "DaemonSet");
        causes.non_negative(&path.child("minReadySeconds"), spec.min_ready_seconds);
        if let Some(strategy) = &spec.update_strategy {
            rollout::daemon_set(&mut causes, &path.child("updateStrategy"), strategy);
        }
        causes.non_negative(&path.child("revisionHistoryLimit"), spec.revision_history_limit);
        causes.into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let selectors = (&old.spec::<DaemonSet>().selector, &new.spec::<DaemonSet>().selector);
        let mut causes = replicaset::selector_kept(selectors.0, selectors.1);
        causes.extend(self.validate(new));
        causes
    }

    fn validate_status_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (before, status) = (old.status::<DaemonSet>(), new.status::<DaemonSet>());
        let (mut causes, path) = (Causes::new(), Path::new("status"));
        causes.non_negative(&path.child("currentNumberScheduled"), Some(status.current_number_scheduled));
        causes.non_negative(&path.child("numberMisscheduled"), Some(status.number_misscheduled));
        causes.non_negative(&path.child("desiredNumberScheduled"), Some(status.desired_number_scheduled));
        causes.non_negative(&path.child("numberReady"), Some(status.number_ready));
        causes.non_negative(&path.child("observedGeneration"), status.observed_generation);
        causes.non_negative(&path.child("updatedNumberScheduled"), status.updated_number_scheduled);
        causes.non_negative(&path.child("numberAvailable"), status.number_available);
        causes.non_negative(&path.child("numberUnavailable"), status.number_unavailable);
        causes.non_negative(&path.child("collisionCount"), status.collision_count);
        replica_status::collisions(&mut causes, before.collision_count, status.collision_count);
        causes.into()
    }

    fn warnings(&self, old: Option<&Object>, new: &Object) -> Vec<String> {
        if old.is_some_and(|old| template_generation(old) == template_generation(new)) {
            return Vec::new();
        }
        warnings::pod_template("spec.template", &new.spec::<DaemonSet>().template)
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn template_generation(object: &Object) -> i64 {
    object.annotation(TEMPLATE_GENERATION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_template_generation(object: &mut Object, generation: i64) {
    let text = generation.to_string();
    if object.annotation(TEMPLATE_GENERATION) != Some(&text) {
        let annotations = object.metadata_mut().annotations.get_or_insert_default();
        annotations.insert(TEMPLATE_GENERATION.into(), text);
    }
}
