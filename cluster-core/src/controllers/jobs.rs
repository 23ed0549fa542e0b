//! What controllers ask of a Job: has it ended, and how.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/job/#terminal-job-conditions>

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};

use crate::api::object::Object;

/// A condition that stands.
pub fn condition<'a>(status: &'a JobStatus, name: &str) -> Option<&'a JobCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == name && condition.status == "True")
}

/// The condition that says that it has ended: `Complete` or `Failed`.
pub fn end(job: &Object) -> Option<&JobCondition> {
    let status = job.status::<Job>();
    condition(status, "Complete").or_else(|| condition(status, "Failed"))
}
