//! Deployments: rolling update by a quarter unless told otherwise, a selector that never changes.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, RollingUpdateDeployment};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{pod, replicaset};
use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;

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
        pod::default_spec(spec.template.spec.get_or_insert_default());
    }

    /// deployment-controller writes the revision, an annotation, together with the status.
    fn prepare_status_update(&self, old: &Object, new: &mut Object) {
        if new.metadata().labels != old.metadata().labels {
            new.metadata_mut().labels = old.metadata().labels.clone();
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let DeploymentSpec { replicas, selector, template, .. } = object.spec::<Deployment>();
        let mut causes = replicaset::validate_parts(*replicas, selector, template);
        let strategy = object.spec::<Deployment>().strategy.as_ref();
        let kinds = ["Recreate", "RollingUpdate"];
        if let Some(kind) = strategy.and_then(|s| s.type_.as_deref()).filter(|kind| !kinds.contains(kind)) {
            causes.push(Cause::unsupported("spec.strategy.type", kind, &kinds));
        }
        causes
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        replicaset::selector_kept(&old.spec::<Deployment>().selector, &new.spec::<Deployment>().selector)
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}
