//! `routes: {ingress: site, host: example.com, paths: {/shop: deployment/shop}}`: each request from outside of the cluster, for
//! this host and one of these paths, to the address that the Ingress tells, is answered by a Pod of that object.
//! `led-by: {ingress: site, controller: ingress-nginx}`: that address was written by this controller.

use std::collections::BTreeMap;

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use cluster_core::network::connect::{Options, Origin};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::Ingress;
use serde::Deserialize;

use super::Property;
use crate::grading::objects::ObjectName;
use crate::grading::words::Words;

const NAMESPACE: &str = "default";
/// To each path. A wrong backend among three is missed by all of them together less than once in a thousand times.
const REQUESTS: usize = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Routes {
    ingress: String,
    host: String,
    paths: BTreeMap<String, ObjectName>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedBy {
    ingress: String,
    controller: String,
}

impl Property for Routes {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let address = address(find(cluster, &self.ingress)?).ok_or_else(|| no_address(&self.ingress))?;
        let options = Options { host: Some(self.host.clone()), ..Options::default() };
        for (path, to) in &self.paths {
            for _ in 0..REQUESTS {
                let connection = cluster.connect(&Origin::Outside, &format!("http://{address}{path}"), &options);
                let pod = connection.backend.and_then(|key| cluster.get::<Pod>(&key.namespace, &key.name));
                let found = match connection.result {
                    Ok(reply) if reply.status >= 400 => reply.status.to_string(),
                    Ok(_) if pod.is_some_and(|pod| to.is_above(cluster, pod)) => continue,
                    Ok(_) => format!("pod/{}", pod.map_or("?", |pod| &*pod.key.name)),
                    Err(failure) => failure.to_string(),
                };
                return Err(Words::same(format!("http://{}{path} → {found}", self.host)));
            }
        }
        Ok(())
    }
}

impl Property for LedBy {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let ingress = find(cluster, &self.ingress)?;
        let told = address(ingress).ok_or_else(|| no_address(&self.ingress))?;
        let mut writes = cluster.trace().writes().rev().filter(|(_, write)| {
            write.object().is_some_and(|object| object.uid() == ingress.uid())
                && write.before.as_ref().and_then(address) != write.after.as_ref().and_then(address)
        });
        let writer = writes.next().map(|(entry, _)| entry.actor.clone()).unwrap_or_default();
        if *writer == *self.controller {
            return Ok(());
        }
        Err(Words::new(format!("{told} と書いたのは {writer}"), format!("it was {writer} who wrote {told}")))
    }
}

fn find<'a>(cluster: &'a Cluster, name: &str) -> Result<&'a Object, Words> {
    let gone = || Words::new(format!("Ingress {name} がない"), format!("there is no Ingress {name}"));
    cluster.get::<Ingress>(NAMESPACE, name).ok_or_else(gone)
}

fn address(ingress: &Object) -> Option<String> {
    let status = ingress.status::<Ingress>().load_balancer.as_ref()?;
    status.ingress.iter().flatten().find_map(|point| point.ip.clone())
}

fn no_address(name: &str) -> Words {
    Words::new(format!("Ingress {name} に住所がない"), format!("the Ingress {name} has no address"))
}
