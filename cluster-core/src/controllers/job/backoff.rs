//! How long a Job waits before it replaces a pod that has failed: 10 s, doubling with each failure, 6 minutes at most.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-backoff-failure-policy>

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::indexes::earlier_failures;
use crate::api::object::Object;
use crate::clock::Time;
use crate::controllers::pods;

const BACKOFF: Duration = Duration::from_secs(10);
const BACKOFF_MAX: Duration = Duration::from_secs(360);

/// How long a Job still waits after failures since the last success.
pub fn wait<'a>(
    succeeded: impl Iterator<Item = &'a Object>,
    failed: impl Iterator<Item = &'a Object>,
    now: Time,
) -> Duration {
    let success = succeeded.map(finished_at).max();
    let failures = failed.map(finished_at).filter(|at| success.is_none_or(|success| *at > success));
    let (count, last) = failures.fold((0, Time::ZERO), |(count, last), at| (count + 1, last.max(at)));
    remaining(count, last, now)
}

/// The same for one index, whose last pod this is.
pub fn wait_of_index(last_failed: &Object, now: Time) -> Duration {
    let (counted, ignored) = earlier_failures(last_failed);
    remaining(counted + ignored + 1, finished_at(last_failed), now)
}

fn remaining(failures: i32, last: Time, now: Time) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let doubled = BACKOFF * (1 << (failures - 1).min(10));
    (last + doubled.min(BACKOFF_MAX)).since(now)
}

/// When a pod ended: when its last container did, else when it stopped to be ready, else when it was deleted.
pub fn finished_at(pod: &Object) -> Time {
    let by_containers = || {
        let ends = pod.status::<Pod>().container_statuses.iter().flatten().map(ended_at);
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    };
    let by_readiness = || {
        let ready = pods::condition(pod, "Ready").filter(|ready| ready.status == "False")?;
        ready.last_transition_time.as_ref().map(Time::from)
    };
    let metadata = pod.metadata();
    let by_deletion = || {
        let grace = metadata.deletion_grace_period_seconds.unwrap_or(0).max(0);
        let deadline = metadata.deletion_timestamp.as_ref().map(Time::from)?;
        Some(deadline - Duration::from_secs(grace as u64))
    };
    let created = || metadata.creation_timestamp.as_ref().map_or(Time::ZERO, Time::from);
    by_containers().or_else(by_readiness).or_else(by_deletion).unwrap_or_else(created)
}

fn ended_at(container: &ContainerStatus) -> Option<Time> {
    let terminated = container.state.as_ref()?.terminated.as_ref()?;
    terminated.finished_at.as_ref().map(Time::from)
}
