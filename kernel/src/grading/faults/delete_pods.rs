//! `delete-pods: {labels: app=web, count: 1}`: deletes the oldest so many Pods with these labels, without `count` all.

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Request;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::{ACTOR, Fault, refused};
use crate::grading::objects::Labelled;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeletePods {
    labels: Labelled,
    #[serde(default)]
    count: Option<usize>,
}

impl Fault for DeletePods {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        let pods: Vec<Key> = self.labels.pods(cluster).iter().map(|pod| pod.key.clone()).collect();
        for key in pods.into_iter().take(self.count.unwrap_or(usize::MAX)) {
            let request = Request::delete(&ACTOR.into(), KindRef::of::<Pod>(), key);
            cluster.request(request.because("a check of the exercise")).map_err(|status| refused(&status))?;
        }
        Ok(())
    }

    fn words(&self) -> Words {
        let labels = &self.labels;
        match self.count {
            Some(count) => {
                Words::new(format!("{labels} のPodを{count}個消した"), format!("deleting {count} of the Pods {labels}"))
            }
            None => Words::new(format!("{labels} のPodを全部消した"), format!("deleting all Pods {labels}")),
        }
    }
}
