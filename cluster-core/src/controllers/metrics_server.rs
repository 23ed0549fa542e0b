//! metrics-server: asks the kubelets what their containers use and serves that as an API of its own. No part of
//! Kubernetes: without it there is no metrics API. It reads machines, not objects, so that as a controller it wants
//! nothing; `cluster/metrics_server.rs` has its loop.
//! <https://kubernetes.io/docs/tasks/debug/debug-cluster/resource-metrics-pipeline/>

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use crate::api::Key;

/// As `%start` names it.
pub const NAME: &str = "metrics-server";

pub struct MetricsServer;

impl Controller for MetricsServer {
    fn name(&self) -> &str {
        NAME
    }

    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }

    fn reconcile(&self, _: &Key, _: &View<'_>) -> Plan {
        Plan::done()
    }
}
