//! `traffic: {service: web, port: 80, to: deployment/web}`: every request to the Service, wherever it is sent from, is
//! answered by a Pod of that object.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use cluster_core::Cluster;
use cluster_core::network::connect::{Connection, Options, Origin};
use k8s_openapi::api::core::v1::{Pod, Service};
use serde::Deserialize;

use super::Property;
use crate::grading::objects::{ObjectName, is_ready};
use crate::grading::words::Words;

const NAMESPACE: &str = "default";
/// From each place. A wrong backend among five is missed by all of them together less than once in a million times.
const REQUESTS: usize = 10;
const CLIENT_PODS_MAX: usize = 5;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    service: String,
    port: u16,
    to: ObjectName,
}

impl Property for Traffic {
    fn look(&self, cluster: &mut Cluster, _start: &Cluster) -> Result<(), Words> {
        let Some(service) = cluster.get::<Service>(NAMESPACE, &self.service) else {
            let name = &self.service;
            return Err(Words::new(format!("Service {name} がない"), format!("there is no Service {name}")));
        };
        let address =
            service.spec::<Service>().cluster_ip.clone().filter(|address| address.parse::<Ipv4Addr>().is_ok());
        let (mut sent, mut astray) = (0, BTreeMap::<String, usize>::new());
        for (from, host) in clients(cluster, &self.service, address.as_deref()) {
            let url = format!("http://{host}:{}/", self.port);
            for _ in 0..REQUESTS {
                let connection = cluster.connect(&from, &url, &Options::default());
                sent += 1;
                if let Some(end) = self.went_astray(cluster, &connection) {
                    *astray.entry(end).or_default() += 1;
                }
            }
        }
        if astray.is_empty() {
            return Ok(());
        }
        let lost: usize = astray.values().sum();
        let ends: Vec<String> = astray.iter().map(|(end, count)| format!("{end} ×{count}")).collect();
        let ends = ends.join(", ");
        Err(Words::new(format!("{sent}回のうち{lost}回: {ends}"), format!("{lost} of {sent} requests: {ends}")))
    }
}

impl Traffic {
    /// Where a request ended that did not end where it should.
    fn went_astray(&self, cluster: &Cluster, connection: &Connection) -> Option<String> {
        match &connection.result {
            Err(failure) => return Some(failure.to_string()),
            Ok(reply) if reply.status >= 400 => return Some(reply.status.to_string()),
            Ok(_) => {}
        }
        let backend = connection.backend.as_ref();
        let pod = backend.and_then(|key| cluster.get::<Pod>(&key.namespace, &key.name));
        if pod.is_some_and(|pod| self.to.is_above(cluster, pod)) {
            return None;
        }
        Some(backend.map_or_else(|| "?".to_owned(), |key| format!("→ pod/{}", key.name)))
    }
}

/// Who sends, and to which host: all nodes to the address, for they know no names of Services; some Pods to the name, which
/// is all that a headless Service has.
fn clients(cluster: &Cluster, name: &str, address: Option<&str>) -> Vec<(Origin, String)> {
    let nodes = cluster.machines().filter(|(_, machine)| machine.powered).map(|(name, _)| Origin::Node(name.clone()));
    let to_address = nodes.filter_map(|node| Some((node, address?.to_owned())));
    let ready = cluster.list::<Pod>(NAMESPACE).filter(|pod| is_ready(pod) && !pod.is_terminating());
    let pods = ready.take(CLIENT_PODS_MAX).map(|pod| Origin::Pod(pod.key.clone()));
    to_address.chain(pods.map(|pod| (pod, name.to_owned()))).collect()
}
