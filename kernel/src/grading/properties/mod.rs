//! What can be demanded of a cluster: one file a property, one line in [`ALL`].

mod all;
mod answered;
mod available;
mod bound_by_hand;
mod boxes;
mod by_path;
mod emptied;
mod etcd_key;
mod field;
mod field_never_below;
mod healed;
mod kept;
mod managers;
mod never_below;
mod next_revision;
mod nodes;
mod not_healed;
mod on_each_node;
mod one_user;
mod own_disks;
mod pods;
mod predicted;
mod repaired;
mod requests;
mod revision;
mod rolled_out;
mod routes;
mod same_content;
mod same_controller;
mod same_uids;
mod search;
mod serves_file;
mod shared_count;
mod spread;
mod start_order;
mod traffic;
mod unchanged;

use std::fmt::Debug;

use cluster_core::Cluster;
use serde_json::Value;

use super::kind::{Kind, parameters};
use super::words::Words;
use crate::search::Story;

pub trait Property: Debug + Send + Sync {
    /// The schedule in which it does not hold, if it searches for one.
    fn story(&self, _answer: &Cluster, _start: &Cluster) -> Option<Story> {
        None
    }

    /// Looks whether it holds at this moment; the error says what is there instead. The cluster is a copy that may be
    /// used up; `start` is the cluster as the exercise began.
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words>;

    /// It is the same at every moment, so that one look is enough.
    fn is_timeless(&self) -> bool {
        false
    }
}

/// What is told of a field in which something else stands than should.
fn stands_instead(field: &str, found: &Value, expected: &Value) -> Words {
    match (found, expected) {
        (Value::Null, _) => Words::new(
            format!("{field} がない（{expected} のはず）"),
            format!("{field} is absent, expected {expected}"),
        ),
        (_, Value::Null) => {
            Words::new(format!("{field} = {found}（ないはず）"), format!("{field} = {found}, expected none"))
        }
        _ => Words::new(
            format!("{field} = {found}（{expected} のはず）"),
            format!("{field} = {found}, expected {expected}"),
        ),
    }
}

/// All properties, by the key that an exercise writes.
pub const ALL: &[Kind<dyn Property>] = &[
    Kind { name: "all", read: |value| Ok(Box::new(parameters::<all::All>(value)?)) },
    Kind { name: "answered", read: |value| Ok(Box::new(parameters::<answered::Answered>(value)?)) },
    Kind { name: "available", read: |value| Ok(Box::new(parameters::<available::Available>(value)?)) },
    Kind { name: "both-added", read: |value| Ok(Box::new(parameters::<shared_count::BothAdded>(value)?)) },
    Kind { name: "bound-by-hand", read: |value| Ok(Box::new(parameters::<bound_by_hand::BoundByHand>(value)?)) },
    Kind { name: "boxes", read: |value| Ok(Box::new(parameters::<boxes::Boxes>(value)?)) },
    Kind { name: "by-path", read: |value| Ok(Box::new(parameters::<by_path::ByPath>(value)?)) },
    Kind { name: "declared", read: |value| Ok(Box::new(parameters::<managers::Declared>(value)?)) },
    Kind { name: "emptied", read: |value| Ok(Box::new(parameters::<emptied::Emptied>(value)?)) },
    Kind { name: "etcd-key", read: |value| Ok(Box::new(parameters::<etcd_key::EtcdKey>(value)?)) },
    Kind { name: "etcd-revision", read: |value| Ok(Box::new(parameters::<etcd_key::EtcdRevision>(value)?)) },
    Kind { name: "evidence", read: |value| Ok(Box::new(parameters::<boxes::Evidence>(value)?)) },
    Kind { name: "field", read: |value| Ok(Box::new(parameters::<field::Field>(value)?)) },
    Kind {
        name: "field-never-below",
        read: |value| Ok(Box::new(parameters::<field_never_below::FieldNeverBelow>(value)?)),
    },
    Kind { name: "healed-at", read: |value| Ok(Box::new(parameters::<healed::HealedAt>(value)?)) },
    Kind { name: "healers", read: |value| Ok(Box::new(parameters::<healed::Healers>(value)?)) },
    Kind { name: "kept", read: |value| Ok(Box::new(parameters::<kept::Kept>(value)?)) },
    Kind { name: "led-by", read: |value| Ok(Box::new(parameters::<routes::LedBy>(value)?)) },
    Kind { name: "managers", read: |value| Ok(Box::new(parameters::<managers::Managers>(value)?)) },
    Kind { name: "met-and-retried", read: |value| Ok(Box::new(parameters::<shared_count::MetAndRetried>(value)?)) },
    Kind { name: "never-below", read: |value| Ok(Box::new(parameters::<never_below::NeverBelow>(value)?)) },
    Kind { name: "next-revision", read: |value| Ok(Box::new(parameters::<next_revision::NextRevision>(value)?)) },
    Kind { name: "nodes", read: |value| Ok(Box::new(parameters::<nodes::Nodes>(value)?)) },
    Kind { name: "not-healed", read: |value| Ok(Box::new(parameters::<not_healed::NotHealed>(value)?)) },
    Kind { name: "on-each-node", read: |value| Ok(Box::new(parameters::<on_each_node::OnEachNode>(value)?)) },
    Kind { name: "one-user", read: |value| Ok(Box::new(parameters::<one_user::OneUser>(value)?)) },
    Kind { name: "own-disks", read: |value| Ok(Box::new(parameters::<own_disks::OwnDisks>(value)?)) },
    Kind { name: "pods", read: |value| Ok(Box::new(parameters::<pods::Pods>(value)?)) },
    Kind { name: "predicted", read: |value| Ok(Box::new(parameters::<predicted::Predicted>(value)?)) },
    Kind { name: "predicted-right", read: |value| Ok(Box::new(parameters::<predicted::PredictedRight>(value)?)) },
    Kind { name: "repaired", read: |value| Ok(Box::new(parameters::<repaired::Repaired>(value)?)) },
    Kind { name: "requests", read: |value| Ok(Box::new(parameters::<requests::Requests>(value)?)) },
    Kind { name: "revision", read: |value| Ok(Box::new(parameters::<revision::Revision>(value)?)) },
    Kind { name: "rolled-out", read: |value| Ok(Box::new(parameters::<rolled_out::RolledOut>(value)?)) },
    Kind { name: "routes", read: |value| Ok(Box::new(parameters::<routes::Routes>(value)?)) },
    Kind { name: "same-content", read: |value| Ok(Box::new(parameters::<same_content::SameContent>(value)?)) },
    Kind { name: "same-controller", read: |value| Ok(Box::new(parameters::<same_controller::SameController>(value)?)) },
    Kind { name: "same-uids", read: |value| Ok(Box::new(parameters::<same_uids::SameUids>(value)?)) },
    Kind { name: "search", read: |value| Ok(Box::new(parameters::<search::Search>(value)?)) },
    Kind { name: "serves-file", read: |value| Ok(Box::new(parameters::<serves_file::ServesFile>(value)?)) },
    Kind { name: "spread", read: |value| Ok(Box::new(parameters::<spread::Spread>(value)?)) },
    Kind { name: "start-order", read: |value| Ok(Box::new(parameters::<start_order::StartOrder>(value)?)) },
    Kind { name: "traffic", read: |value| Ok(Box::new(parameters::<traffic::Traffic>(value)?)) },
    Kind { name: "unchanged", read: |value| Ok(Box::new(parameters::<unchanged::Unchanged>(value)?)) },
    Kind { name: "watch-by-path", read: |value| Ok(Box::new(parameters::<by_path::WatchByPath>(value)?)) },
];
