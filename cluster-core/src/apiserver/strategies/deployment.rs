//! Deployments: rolling update by a quarter unless told otherwise, a selector that never changes.

use k8s_openapi::api::apps::v1::{Deployment, RollingUpdateDeployment};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::replicaset;
use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::Moment;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{replica_status, rollout};
use crate::apiserver::{defaults, warnings};

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<Deployment>();
        spec.replicas.get_or_insert(1);
        spec.revision_history_limit.get_or_insert(10);
        spec.progress_deadline_seconds.get_or_insert(600);
        let strategy = spec.strategy.get_or_insert_default();
        let rolling = strategy.type_.get_or_insert_with(|| "RollingUpdate".into()) == "RollingUpdate";
        if rolling {
            let quarter = || IntOrString::String("25%".into());
            let update = strategy.rolling_update.get_or_insert_with(RollingUpdateDeployment::default);
            update.max_surge.get_or_insert_with(quarter);
            update.max_unavailable.get_or_insert_with(quarter);
        }
        defaults::pod_template(&mut spec.template);
    }

    /// deployment-controller writes the revision, an annotation, together with the status.
    fn prepare_status_update(&self, old: &Object, new: &mut Object, _: &Moment<'_>) {
        if new.metadata().labels != old.metadata().labels {
            new.metadata_mut().labels = old.metadata().labels.clone();
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (mut causes, path) = (Causes::new(), Path::new("spec"));
        let spec = object.spec::<Deployment>();
        causes.non_negative(&path.child("replicas"), spec.replicas);
        replicaset::selector_and_template(&mut causes, &path, &spec.selector, &spec.template);
        if let Some(strategy) = &spec.strategy {
            rollout::deployment(&mut causes, &path.child("strategy"), strategy);
        }
        causes.non_negative(&path.child("minReadySeconds"), spec.min_ready_seconds);
        causes.non_negative(&path.child("revisionHistoryLimit"), spec.revision_history_limit);
        if let Some(seconds) = spec.progress_deadline_seconds {
            let path = path.child("progressDeadlineSeconds");
            causes.non_negative(&path, Some(seconds));
            if seconds <= spec.min_ready_seconds.unwrap_or(0) {
                causes.invalid(&path, seconds, "must be greater than minReadySeconds");
            }
        }
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        replicaset::selector_kept(&old.spec::<Deployment>().selector, &new.spec::<Deployment>().selector)
    }

    fn validate_status_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (before, status) = (old.status::<Deployment>(), new.status::<Deployment>());
        let count = |count: Option<i32>| i64::from(count.unwrap_or(0));
        let mut causes = Causes::new();
        causes.non_negative(&Path::new("status.observedGeneration"), status.observed_generation);
        let counts = replica_status::Counts {
            replicas: count(status.replicas),
            parts: &[
                ("updatedReplicas", count(status.updated_replicas)),
                ("readyReplicas", count(status.ready_replicas)),
                ("availableReplicas", count(status.available_replicas)),
            ],
            others: &[
                ("unavailableReplicas", status.unavailable_replicas.map(i64::from)),
                ("terminatingReplicas", status.terminating_replicas.map(i64::from)),
                ("collisionCount", status.collision_count.map(i64::from)),
            ],
            ready_noun: "readyReplicas",
        };
        replica_status::counts(&mut causes, &counts);
        replica_status::collisions(&mut causes, before.collision_count, status.collision_count);
        causes.into()
    }

    fn warnings(&self, old: Option<&Object>, new: &Object) -> Vec<String> {
        let template = &new.spec::<Deployment>().template;
        warnings::workload(old, new, || warnings::pod_template("spec.template", template))
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn changes_generation(&self, old: &Object, new: &Object) -> bool {
        !new.same_spec(old) || new.metadata().annotations != old.metadata().annotations
    }
}
