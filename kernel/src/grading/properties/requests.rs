//! `requests: {labels: app=web, cpu: 1}`: each Pod with these labels is Ready and requests at least so many cores.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::api::quantity;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::{Labelled, is_ready};
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    labels: Labelled,
    cpu: i64,
}

impl Property for Requests {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let pods = self.labels.pods(cluster);
        if pods.is_empty() {
            return Err(Words::new("Podがない", "there are no Pods"));
        }
        for pod in pods {
            let name = &pod.key.name;
            if !is_ready(pod) {
                return Err(Words::new(format!("pod/{name} はReadyでない"), format!("pod/{name} is not Ready")));
            }
            let millis = millis(pod);
            if millis < self.cpu * 1000 {
                let wanted = self.cpu * 1000;
                return Err(Words::new(
                    format!("pod/{name}: requests.cpu = {millis}m（{wanted}m 以上のはず）"),
                    format!("pod/{name}: requests.cpu = {millis}m, expected {wanted}m or more"),
                ));
            }
        }
        Ok(())
    }
}

/// What its containers request together, in thousandths of a core.
pub fn millis(pod: &Object) -> i64 {
    let requests = pod.spec::<Pod>().containers.iter().filter_map(|container| {
        let cpu = container.resources.as_ref()?.requests.as_ref()?.get("cpu")?;
        Some(quantity::millis(cpu))
    });
    requests.sum()
}
