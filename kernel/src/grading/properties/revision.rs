//! `revision: {of: deployment/web, is: 1}`: all Pods of the Deployment are again in the care of the ReplicaSet that was its
//! revision of this number when the exercise began.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use serde::Deserialize;

use super::Property;
use crate::grading::objects::{ObjectName, controller};
use crate::grading::words::Words;

/// Where a Deployment's controller notes the number. <https://kubernetes.io/docs/concepts/workloads/controllers/deployment/>
const REVISION: &str = "deployment.kubernetes.io/revision";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    of: ObjectName,
    is: u64,
}

impl Property for Revision {
    fn look(&self, cluster: &mut Cluster, start: &Cluster) -> Result<(), Words> {
        let Some(deployment) = self.of.find(cluster) else { return Err(self.of.gone()) };
        let number = self.is.to_string();
        let is_meant = |set: &&Object| {
            let annotations = set.metadata().annotations.as_ref();
            self.of.is_above(start, set) && annotations.and_then(|all| all.get(REVISION)) == Some(&number)
        };
        let meant = start.list::<ReplicaSet>("default").find(is_meant).map(Object::uid);
        let is_own = |set: &&Object| controller(cluster, set).is_some_and(|owner| owner.uid() == deployment.uid());
        let running = |set: &Object| set.status::<ReplicaSet>().replicas;
        let busy: Vec<&Object> =
            cluster.list::<ReplicaSet>("default").filter(is_own).filter(|set| running(set) > 0).collect();
        let wanted = deployment.spec::<Deployment>().replicas;
        match busy.as_slice() {
            [only] if Some(only.uid()) == meant && only.status::<ReplicaSet>().ready_replicas == wanted => Ok(()),
            _ => {
                let then = |set: &Object| {
                    let known = start.list::<ReplicaSet>("default").find(|known| known.uid() == set.uid())?;
                    known.metadata().annotations.as_ref()?.get(REVISION).cloned()
                };
                let told = |set: &&Object| {
                    let (name, count) = (&set.key.name, running(set));
                    match then(set) {
                        Some(number) => Words::new(
                            format!("{number}番目の版の replicaset/{name} にPodが{count}個"),
                            format!("replicaset/{name} of version {number} has {count} Pods"),
                        ),
                        None => Words::new(
                            format!("最初はなかった replicaset/{name} にPodが{count}個"),
                            format!("replicaset/{name}, which is a new one, has {count} Pods"),
                        ),
                    }
                };
                let sets: Vec<Words> = busy.iter().map(told).collect();
                let (ja, en): (Vec<String>, Vec<String>) = sets.into_iter().map(|words| (words.ja, words.en)).unzip();
                Err(Words::new(ja.join("、"), en.join("; ")))
            }
        }
    }
}
