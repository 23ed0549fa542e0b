//! What a new cluster has of roles, bindings and other policy before anybody writes any, each kind as a table.

mod policy;
mod roles;

use std::sync::LazyLock;

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;

use crate::api::object::Object;
use crate::apiserver::strategy::strategy;
use crate::clock::Time;
use crate::random::Random;

/// The objects as they stand in a cluster that begins at a moment.
pub fn objects(now: Time, random: &mut Random) -> impl Iterator<Item = Object> {
    // Clusters share all but uid and time.
    static OBJECTS: LazyLock<Vec<Object>> = LazyLock::new(|| roles::all().chain(policy::all()).collect());
    OBJECTS.iter().map(move |object| {
        let mut object = object.clone();
        let generation = strategy(&object.kind).tracks_generation().then_some(1);
        let metadata = object.metadata_mut();
        metadata.uid = Some(random.uuid());
        metadata.creation_timestamp = Some(now.to_meta());
        metadata.generation = generation;
        if object.is::<APIService>() {
            for condition in object.status_mut::<APIService>().conditions.iter_mut().flatten() {
                condition.last_transition_time = Some(now.to_meta());
            }
        }
        object
    })
}

/// The lines of a table without its comments.
fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with('#'))
}
