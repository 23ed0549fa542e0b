//! What can be demanded of a cluster: one file a property, one line in [`ALL`].

mod pods;
mod same_controller;
mod traffic;
mod unchanged;

use std::fmt::Debug;

use cluster_core::Cluster;

use super::kind::{Kind, parameters};
use super::words::Words;

pub trait Property: Debug + Send + Sync {
    /// Looks whether it holds at this moment; the error says what is there instead. The cluster is a copy that may be
    /// used up; `start` is the cluster as the exercise began.
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words>;
}

/// All properties, by the key that an exercise writes.
pub const ALL: &[Kind<dyn Property>] = &[
    Kind { name: "pods", read: |value| Ok(Box::new(parameters::<pods::Pods>(value)?)) },
    Kind { name: "same-controller", read: |value| Ok(Box::new(parameters::<same_controller::SameController>(value)?)) },
    Kind { name: "traffic", read: |value| Ok(Box::new(parameters::<traffic::Traffic>(value)?)) },
    Kind { name: "unchanged", read: |value| Ok(Box::new(parameters::<unchanged::Unchanged>(value)?)) },
];
