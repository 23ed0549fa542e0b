//! `restart: deployment/web`: replaces all its Pods by way of a new template, as `kubectl rollout restart` does.

use cluster_core::Cluster;
use cluster_core::api::request::{PatchType, Request};
use serde::Deserialize;
use serde_json::json;

use super::{ACTOR, Fault, refused};
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Restart {
    of: ObjectName,
}

impl Fault for Restart {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        let Some(object) = self.of.find(cluster) else { return Err(self.of.gone()) };
        let (kind, key) = (object.kind.clone(), object.key.clone());
        let restarted = cluster.now().timestamp().to_string();
        let annotations = json!({"kubectl.kubernetes.io/restartedAt": restarted});
        let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
        let request = Request::patch(&ACTOR.into(), &kind, key, PatchType::StrategicMerge, patch);
        cluster.request(request.because("a check of the exercise")).map(drop).map_err(|status| refused(&status))
    }

    fn words(&self) -> Words {
        let of = &self.of;
        Words::new(format!("{of} のPodを新しい版に入れ替えた"), format!("restarting {of}, which replaces its Pods"))
    }
}
