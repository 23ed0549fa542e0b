//! ttl-after-finished-controller: deletes Jobs some time after they have ended, their pods first.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/>

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use super::jobs;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::request::Propagation;
use crate::clock::Time;

pub struct TtlAfterFinishedController;

impl Controller for TtlAfterFinishedController {
    fn name(&self) -> &str {
        "ttl-after-finished-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::itself(Job::kind())]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(job) = view.get::<Job>(key).filter(|job| !job.is_terminating()) else { return plan };
        let Some(ttl_seconds) = job.spec::<Job>().ttl_seconds_after_finished else { return plan };
        let Some(ended) = jobs::end(job).and_then(|end| end.last_transition_time.as_ref()) else { return plan };
        let left = (Time::from(ended) + Duration::from_secs(ttl_seconds.max(0) as u64)).since(view.now);
        if left.is_zero() {
            let reason = "it ended long enough ago";
            plan.delete(job, reason).request.options.propagation = Some(Propagation::Foreground);
        } else {
            plan.requeue_after(left);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{control_plane, create, patch_status, settle};
    use super::*;

    #[test]
    fn a_job_goes_some_time_after_it_has_ended() {
        let mut cluster = control_plane();
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
        let spec = json!({"suspend": true, "ttlSecondsAfterFinished": 30, "template": template});
        create::<Job>(&mut cluster, json!({"metadata": {"name": "once"}, "spec": spec}));
        settle(&mut cluster);
        let condition =
            |name: &str| json!({"type": name, "status": "True", "lastTransitionTime": cluster.now().to_meta()});
        let conditions = json!([condition("FailureTarget"), condition("Failed")]);
        let status = json!({"startTime": cluster.now().to_meta(), "conditions": conditions});
        patch_status::<Job>(&mut cluster, "once", json!({"status": status})).unwrap();
        cluster.advance(Duration::from_secs(25), |_| true);
        assert!(cluster.get::<Job>("default", "once").is_some());
        cluster.advance(Duration::from_secs(10), |_| true);
        settle(&mut cluster);
        assert!(cluster.get::<Job>("default", "once").is_none());
    }
}
