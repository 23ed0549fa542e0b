//! Control loops: the shape of one, what they share (caches, queues, the runner), then one file each.

pub mod cache;
pub mod controller;
pub mod queue;
pub mod runner;

use std::sync::Arc;

use controller::Controller;

/// The loops of kube-controller-manager: one line each.
pub fn all() -> Vec<Arc<dyn Controller>> {
    vec![]
}
