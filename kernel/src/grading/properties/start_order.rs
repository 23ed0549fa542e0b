//! `start-order: [db-0, db-1, db-2]`: of the Pods of these names that are there, each was made when the one before it was
//! Ready.

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::trace::Sequence;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::is_ready;
use crate::grading::words::Words;

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct StartOrder {
    pods: Vec<String>,
}

impl Property for StartOrder {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let mut before: Option<(&String, Option<Sequence>)> = None;
        for name in &self.pods {
            let Some(pod) = cluster.get::<Pod>("default", name) else {
                return Err(Words::new(format!("pod/{name} がない"), format!("there is no pod/{name}")));
            };
            let (made, ready) = (first(cluster, pod, |_| true), first(cluster, pod, is_ready));
            if let Some((other, ready)) = before
                && ready.is_none_or(|ready| made.is_none_or(|made| made < ready))
            {
                return Err(Words::new(
                    format!("pod/{name} は pod/{other} がReadyになる前に作られた"),
                    format!("pod/{name} was made before pod/{other} was Ready"),
                ));
            }
            before = Some((name, ready));
        }
        Ok(())
    }
}

/// The first write after which this very Pod was so.
fn first(cluster: &Cluster, pod: &Object, is_so: fn(&Object) -> bool) -> Option<Sequence> {
    let mut writes = cluster.trace().writes();
    let found = writes
        .find(|(_, request)| request.after.as_ref().is_some_and(|after| after.uid() == pod.uid() && is_so(after)));
    found.map(|(entry, _)| entry.sequence)
}
