//! What can be demanded of a cluster: one file a property, one line in [`ALL`].

mod all;
mod available;
mod bound_by_hand;
mod emptied;
mod field;
mod fits;
mod kept;
mod never_below;
mod nodes;
mod on_each_node;
mod own_disks;
mod pods;
mod repaired;
mod requests;
mod revision;
mod rolled_out;
mod same_content;
mod same_controller;
mod same_uids;
mod serves_file;
mod start_order;
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
    Kind { name: "all", read: |value| Ok(Box::new(parameters::<all::All>(value)?)) },
    Kind { name: "available", read: |value| Ok(Box::new(parameters::<available::Available>(value)?)) },
    Kind { name: "bound-by-hand", read: |value| Ok(Box::new(parameters::<bound_by_hand::BoundByHand>(value)?)) },
    Kind { name: "emptied", read: |value| Ok(Box::new(parameters::<emptied::Emptied>(value)?)) },
    Kind { name: "field", read: |value| Ok(Box::new(parameters::<field::Field>(value)?)) },
    Kind { name: "fits", read: |value| Ok(Box::new(parameters::<fits::Fits>(value)?)) },
    Kind { name: "kept", read: |value| Ok(Box::new(parameters::<kept::Kept>(value)?)) },
    Kind { name: "never-below", read: |value| Ok(Box::new(parameters::<never_below::NeverBelow>(value)?)) },
    Kind { name: "nodes", read: |value| Ok(Box::new(parameters::<nodes::Nodes>(value)?)) },
    Kind { name: "on-each-node", read: |value| Ok(Box::new(parameters::<on_each_node::OnEachNode>(value)?)) },
    Kind { name: "own-disks", read: |value| Ok(Box::new(parameters::<own_disks::OwnDisks>(value)?)) },
    Kind { name: "pods", read: |value| Ok(Box::new(parameters::<pods::Pods>(value)?)) },
    Kind { name: "repaired", read: |value| Ok(Box::new(parameters::<repaired::Repaired>(value)?)) },
    Kind { name: "requests", read: |value| Ok(Box::new(parameters::<requests::Requests>(value)?)) },
    Kind { name: "revision", read: |value| Ok(Box::new(parameters::<revision::Revision>(value)?)) },
    Kind { name: "rolled-out", read: |value| Ok(Box::new(parameters::<rolled_out::RolledOut>(value)?)) },
    Kind { name: "same-content", read: |value| Ok(Box::new(parameters::<same_content::SameContent>(value)?)) },
    Kind { name: "same-controller", read: |value| Ok(Box::new(parameters::<same_controller::SameController>(value)?)) },
    Kind { name: "same-uids", read: |value| Ok(Box::new(parameters::<same_uids::SameUids>(value)?)) },
    Kind { name: "serves-file", read: |value| Ok(Box::new(parameters::<serves_file::ServesFile>(value)?)) },
    Kind { name: "start-order", read: |value| Ok(Box::new(parameters::<start_order::StartOrder>(value)?)) },
    Kind { name: "traffic", read: |value| Ok(Box::new(parameters::<traffic::Traffic>(value)?)) },
    Kind { name: "unchanged", read: |value| Ok(Box::new(parameters::<unchanged::Unchanged>(value)?)) },
];
