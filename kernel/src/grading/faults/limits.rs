//! `autoscaler-min: {of: horizontalpodautoscaler/web, to: 5}`: the autoscaler finds that it needs so many Pods.

use cluster_core::Cluster;
use cluster_core::api::request::{PatchType, Request};
use serde::Deserialize;
use serde_json::json;

use super::{ACTOR, Fault, refused};
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AutoscalerMin {
    of: ObjectName,
    to: u32,
}

impl Fault for AutoscalerMin {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        let Some(object) = self.of.find(cluster) else { return Err(self.of.gone()) };
        let (kind, key) = (object.kind.clone(), object.key.clone());
        let patch = json!({"spec": {"minReplicas": self.to}});
        let request = Request::patch(&ACTOR.into(), &kind, key, PatchType::Merge, patch);
        cluster.request(request.because("a check of the exercise")).map(drop).map_err(|status| refused(&status))
    }

    fn words(&self) -> Words {
        Words::new(
            format!("{} の最小値を{}にした", self.of, self.to),
            format!("{} asking for {} at least", self.of, self.to),
        )
    }
}
