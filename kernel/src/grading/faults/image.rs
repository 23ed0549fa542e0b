//! `image: {of: deployment/web, to: "nginx:1.28"}`: gives the first container of its Pods another image, as the next version
//! of an application does.

use cluster_core::Cluster;
use cluster_core::api::request::{PatchType, Request};
use serde::Deserialize;
use serde_json::json;

use super::{ACTOR, Fault, refused};
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    of: ObjectName,
    to: String,
}

impl Fault for Image {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        let Some(object) = self.of.find(cluster) else { return Err(self.of.gone()) };
        let (kind, key) = (object.kind.clone(), object.key.clone());
        let patch = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": self.to}]);
        let request = Request::patch(&ACTOR.into(), &kind, key, PatchType::Json, patch);
        cluster.request(request.because("a check of the exercise")).map(drop).map_err(|status| refused(&status))
    }

    fn words(&self) -> Words {
        let (of, to) = (&self.of, &self.to);
        Words::new(format!("{of} のイメージを {to} に更新した"), format!("updating {of} to the image {to}"))
    }
}
