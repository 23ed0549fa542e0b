//! `bound-by-hand: {pod: web, to: node-2}`: a learner's request, not the scheduler's, gave the Pod its node.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::trace::RequestEntry;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::Property;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundByHand {
    pod: String,
    to: String,
}

impl Property for BoundByHand {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let node = |object: Option<&Object>| object.and_then(|pod| pod.spec::<Pod>().node_name.clone());
        let gave = |request: &RequestEntry| {
            &*request.kind.kind == "Pod"
                && *request.key.name == *self.pod
                && node(request.before.as_ref()).is_none()
                && node(request.after.as_ref()).is_some()
        };
        let Some((entry, request)) = cluster.trace().writes().rev().find(|(_, request)| gave(request)) else {
            return Err(Words::new("だれもノードを割り当てていない", "nobody has given it a node"));
        };
        let to = node(request.after.as_ref()).unwrap_or_default();
        if request.subresource == "binding" && *entry.actor == *"kubectl" && to == self.to {
            return Ok(());
        }
        let (pod, actor) = (&self.pod, &entry.actor);
        Err(Words::new(format!("pod/{pod} → {to}（{actor} による）"), format!("pod/{pod} → {to} (by {actor})")))
    }
}
