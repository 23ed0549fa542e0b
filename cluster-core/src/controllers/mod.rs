//! Control loops: the shape of one, what they share (caches, queues, the runner; claims, pods), then one file each.

pub mod cache;
pub mod claim;
pub mod controller;
pub mod pods;
pub mod queue;
pub mod runner;

pub mod deployment;
pub mod replicaset;

#[cfg(test)]
pub mod testing;

use std::sync::Arc;

use controller::Controller;

/// The loops of kube-controller-manager: one line each.
pub fn all() -> Vec<Arc<dyn Controller>> {
    vec![Arc::new(deployment::DeploymentController), Arc::new(replicaset::ReplicaSetController)]
}
