//! What a check does to the learner's cluster on purpose: one file a fault, one line in [`ALL`].

mod containers;
mod delete_pods;
mod image;
mod lag;
mod limits;
mod nodes;
mod proxy_mode;
mod restart;

use std::fmt::Debug;

use cluster_core::Cluster;

use super::kind::{Kind, parameters};
use super::words::Words;

pub trait Fault: Debug + Send + Sync {
    /// Does it; the error says what it needed and did not find.
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words>;

    /// What was done, as it is said after "after" and before 「あと」: "deleting all Pods app=web", 「Podを消した」.
    fn words(&self) -> Words;
}

/// All faults, by the key that an exercise writes.
pub const ALL: &[Kind<dyn Fault>] = &[
    Kind { name: "add-node", read: |value| Ok(Box::new(parameters::<nodes::AddNode>(value)?)) },
    Kind { name: "autoscaler-min", read: |value| Ok(Box::new(parameters::<limits::AutoscalerMin>(value)?)) },
    Kind { name: "bring-back", read: |value| Ok(Box::new(parameters::<nodes::BringBack>(value)?)) },
    Kind { name: "crash", read: |value| Ok(Box::new(parameters::<containers::Crash>(value)?)) },
    Kind { name: "delete-pods", read: |value| Ok(Box::new(parameters::<delete_pods::DeletePods>(value)?)) },
    Kind { name: "image", read: |value| Ok(Box::new(parameters::<image::Image>(value)?)) },
    Kind { name: "lag", read: |value| Ok(Box::new(parameters::<lag::Lag>(value)?)) },
    Kind { name: "proxy-mode", read: |value| Ok(Box::new(parameters::<proxy_mode::ProxyMode>(value)?)) },
    Kind { name: "restart", read: |value| Ok(Box::new(parameters::<restart::Restart>(value)?)) },
    Kind { name: "unhealthy", read: |value| Ok(Box::new(parameters::<containers::Unhealthy>(value)?)) },
    Kind { name: "untaint", read: |value| Ok(Box::new(parameters::<nodes::Untaint>(value)?)) },
];

/// Who does it, in the trace.
const ACTOR: &str = "grader";

fn refused(status: &cluster_core::api::status::Status) -> Words {
    Words::same(status.message.clone())
}
