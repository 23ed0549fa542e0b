//! `serves-file: {labels: app=page, container: writer, file: /page/index.html, port: 80}`: each Pod with these labels answers
//! at its port with what the file holds in that container.

use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::object::Object;
use cluster_core::network::connect::{Options, Origin};
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::Labelled;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServesFile {
    labels: Labelled,
    container: String,
    file: String,
    port: u16,
}

impl Property for ServesFile {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let pods = self.labels.pods(cluster);
        let address = |pod: &Object| pod.status::<Pod>().pod_ip.clone().unwrap_or_default();
        let pods: Vec<(Key, String)> = pods.iter().map(|pod| (pod.key.clone(), address(pod))).collect();
        if pods.is_empty() {
            return Err(Words::new("Podがない", "there are no Pods"));
        }
        pods.into_iter().try_for_each(|(pod, address)| self.compare(cluster, &pod, &address))
    }
}

impl ServesFile {
    fn compare(&self, cluster: &mut Cluster, pod: &Key, address: &str) -> Result<(), Words> {
        let (name, container, file) = (&pod.name, &self.container, &self.file);
        let from = cluster.machines().find(|(_, machine)| machine.powered).map(|(node, _)| Origin::Node(node.clone()));
        let Some(from) = from else { return Err(Words::new("動くノードがない", "no node has power")) };
        // On a copy: a command takes time, in which the file may change.
        let command = ["cat".to_owned(), file.clone()];
        let Some(Some(written)) = cluster.clone().exec(pod, container, &command) else {
            return Err(Words::new(
                format!("pod/{name} のコンテナ {container} が動いていない"),
                format!("pod/{name} has no running container {container}"),
            ));
        };
        let url = format!("http://{address}:{}/", self.port);
        let told = match cluster.connect(&from, &url, &Options::default()).result {
            Ok(reply) if reply.status < 400 && written.code == 0 && reply.body.trim() == written.output.trim() => {
                return Ok(());
            }
            Ok(reply) => format!("{} {}", reply.status, reply.body.lines().next().unwrap_or_default()),
            Err(failure) => failure.to_string(),
        };
        Err(Words::same(format!("pod/{name}:{} → {told}", self.port)))
    }
}
