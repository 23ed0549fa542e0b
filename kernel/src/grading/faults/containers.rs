//! `unhealthy: {labels: app=web, count: 1}` and `crash: {labels: app=web, container: web}`: the programs in the oldest so many
//! Pods, without `count` all, answer with errors, or end.

use cluster_core::Cluster;
use cluster_core::api::Key;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::Fault;
use crate::grading::objects::Labelled;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Containers {
    labels: Labelled,
    #[serde(default)]
    count: Option<usize>,
    /// Without it all.
    #[serde(default)]
    container: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Unhealthy {
    of: Containers,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Crash {
    of: Containers,
}

impl Containers {
    fn strike(&self, cluster: &mut Cluster, hit: fn(&mut Cluster, &Key, &str) -> bool) -> Result<(), Words> {
        let pods = self.labels.pods(cluster).into_iter().take(self.count.unwrap_or(usize::MAX));
        let meant = |name: &str| self.container.as_deref().is_none_or(|meant| meant == name);
        let targets: Vec<(Key, String)> = pods
            .flat_map(|pod| {
                let containers = pod.spec::<Pod>().containers.iter().filter(|container| meant(&container.name));
                containers.map(|container| (pod.key.clone(), container.name.clone())).collect::<Vec<_>>()
            })
            .collect();
        let struck = targets.iter().filter(|(pod, container)| hit(cluster, pod, container)).count();
        if struck > 0 {
            return Ok(());
        }
        Err(Words::new("動いているコンテナがない", "no such container is running"))
    }

    fn of(&self) -> Words {
        let container = self.container.as_deref().map(|name| format!(" {name} ")).unwrap_or_default();
        let containers =
            self.container.as_deref().map_or("the containers".to_owned(), |name| format!("container {name}"));
        let labels = &self.labels;
        match self.count {
            Some(count) => Words::new(
                format!("{labels} のPod {count}個のコンテナ{container}"),
                format!("{containers} of {count} of the Pods {labels}"),
            ),
            None => Words::new(
                format!("{labels} の全Podのコンテナ{container}"),
                format!("{containers} of all Pods {labels}"),
            ),
        }
    }
}

impl Fault for Unhealthy {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        self.of
            .strike(cluster, |cluster, pod, container| cluster.set_healthy(&pod.namespace, &pod.name, container, false))
    }

    fn words(&self) -> Words {
        let Words { ja, en } = self.of.of();
        Words::new(format!("{ja}がエラーしか返さなくなった"), format!("{en} began to answer with errors only"))
    }
}

impl Fault for Crash {
    fn strike(&self, cluster: &mut Cluster) -> Result<(), Words> {
        self.of.strike(cluster, |cluster, pod, container| cluster.kill_container(&pod.namespace, &pod.name, container))
    }

    fn words(&self) -> Words {
        let Words { ja, en } = self.of.of();
        Words::new(format!("{ja}を強制終了した"), format!("crashing {en}"))
    }
}
