//! Pods that outlive their Job are held by nobody any more: this loop takes the finalizer away with which the Job
//! counts them, whether the Job is finished, deleted, or has let the pod go.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/job/#job-tracking-with-finalizers>

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;

use super::{is_managed_elsewhere, is_tracked, release};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::controllers::cache::View;
use crate::controllers::controller::{Controller, Plan, Watch};
use crate::controllers::jobs;
use crate::store::Change;

pub struct JobOrphanController;

impl Controller for JobOrphanController {
    fn name(&self) -> &str {
        "job-orphan-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::with(Pod::kind(), orphan), Watch::with(Job::kind(), pods_of_ended)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        if let Some(pod) = view.get::<Pod>(key).filter(|pod| is_orphan(pod, view)) {
            release(pod, "its Job does not count it any more", &mut plan);
        }
        plan
    }
}

fn is_orphan(pod: &Object, view: &View<'_>) -> bool {
    let job = |owner: &str| view.get::<Job>(&Key::new(pod.key.namespace.clone(), owner));
    is_tracked(pod)
        && pod.controller().is_none_or(|owner| {
            owner.kind == "Job"
                && job(&owner.name)
                    .filter(|job| job.uid() == owner.uid)
                    .is_none_or(|job| jobs::end(job).is_some() && !is_managed_elsewhere(job))
        })
}

fn orphan(view: &View<'_>, change: &Change) -> Vec<Key> {
    change.after.iter().filter(|pod| is_orphan(pod, view)).map(|pod| pod.key.clone()).collect()
}

fn pods_of_ended(view: &View<'_>, change: &Change) -> Vec<Key> {
    if change.after.as_ref().is_some_and(|job| jobs::end(job).is_none()) {
        return Vec::new();
    }
    view.controlled::<Pod>(change.object().uid()).filter(|pod| is_tracked(pod)).map(|pod| pod.key.clone()).collect()
}
