//! PodTopologyLabels: a pod carries the zone and the region of its node.
//! <https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#podtopologylabels>

use k8s_openapi::api::core::v1::{Node, Pod};

use super::{Attributes, Plugin};
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::ApiServer;

const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

pub struct PodTopologyLabels;

impl Plugin for PodTopologyLabels {
    fn kinds(&self) -> Option<Vec<&'static KindRef>> {
        Some(vec![Pod::kind()])
    }

    fn admit(&self, attributes: &mut Attributes<'_>, object: &mut Object) -> Result<(), Status> {
        if let Some(node) = object.spec::<Pod>().node_name.clone().filter(|_| attributes.creates()) {
            copy(attributes.server, &node, object);
        }
        Ok(())
    }
}

/// Gives a pod on a node the labels that it does not have yet.
pub fn copy(server: &ApiServer, node: &str, pod: &mut Object) {
    let Some(node) = server.store.get(Node::kind(), &Key::cluster(node)) else { return };
    for name in LABELS {
        if let Some(value) = node.label(name).filter(|_| pod.label(name).is_none()) {
            pod.metadata_mut().labels.get_or_insert_default().insert(name.into(), value.into());
        }
    }
}
