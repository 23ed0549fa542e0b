//! What a kubelet tells at `/metrics/resource` of the containers that run on its machine.
//! <https://kubernetes.io/docs/reference/instrumentation/node-metrics/>

use super::Kubelet;
use crate::api::{Key, Name};
use crate::clock::Time;
use crate::runtime::Runtime;

/// What kernel, kubelet and container runtime take themselves.
pub const SYSTEM_MILLICORES: u64 = 40;
pub const SYSTEM_MEMORY_BYTES: u64 = 400 << 20;

/// A container that runs, with what it has taken.
#[derive(Clone, Debug)]
pub struct ContainerUsage {
    pub pod: Key,
    pub container: Name,
    pub id: Name,
    pub started_at: Time,
    /// CPU time since its start.
    pub cpu_nanos: u64,
    pub memory_bytes: u64,
}

impl Kubelet {
    /// Of each container that runs, oldest first.
    pub fn usage<'a>(&self, runtime: &'a Runtime, now: Time) -> impl Iterator<Item = ContainerUsage> + 'a {
        let running = runtime.containers().filter(|(_, container)| container.is_running());
        running.map(move |(_, container)| ContainerUsage {
            pod: container.identity.pod.clone(),
            container: container.identity.name.clone(),
            id: container.id.clone(),
            started_at: container.started_at,
            cpu_nanos: container.cpu_nanos(now),
            memory_bytes: container.memory_bytes(),
        })
    }
}
