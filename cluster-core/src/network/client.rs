//! Who opens a connection: a pod, a node, or somebody outside; and how it finds the address of a name.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use super::connect::{Network, Way};
use super::policy::Direction;
use super::policy_agent::Bar;
use super::reply::Failure;
use super::{addresses, dns};
use crate::api::kind::KindRef;
use crate::api::{Key, Name};

/// A client outside of the cluster, as the nodes see it.
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 10);

/// How long a resolver waits for a server that never answers: 5 seconds, twice (`resolv.conf`: timeout, attempts).
pub(super) const DNS_TIMEOUT: Duration = Duration::from_secs(10);
/// Where a connection is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Pod(Key),
    Node(Name),
    /// Somewhere that reaches the nodes, but neither pods nor Services.
    Outside,
}

/// `default/client`, `node-1`, `outside`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Pod(pod) => pod.fmt(f),
            Origin::Node(node) => f.write_str(node),
            Origin::Outside => f.write_str("outside"),
        }
    }
}

/// Who opens a connection, as the network sees it.
pub(super) struct Client {
    pub address: Ipv4Addr,
    /// The machine whose rules its packets meet first; none outside.
    pub node: Option<Name>,
    /// The namespace whose search list it resolves names with, if it asks cluster DNS.
    pub namespace: Option<Name>,
    /// A pod with an address of its own, to which policies apply.
    pub pod: Option<Key>,
}

impl Network<'_> {
    pub(super) fn client(&self, from: &Origin) -> Result<Client, Failure> {
        let no_origin = |why: String| Err(Failure::NoOrigin(why));
        match from {
            Origin::Outside => Ok(Client { address: OUTSIDE, node: None, namespace: None, pod: None }),
            Origin::Node(name) => match self.machines.get(name) {
                None => no_origin(format!("there is no node {name}")),
                Some(machine) if !machine.powered => no_origin(format!("{name} has no power")),
                Some(_) => {
                    let address = addresses::machine_address(name);
                    Ok(Client { address, node: Some(name.clone()), namespace: None, pod: None })
                }
            },
            Origin::Pod(key) => {
                let pod = self.world.apiserver.store.get(KindRef::of::<Pod>(), key);
                let node = pod.and_then(|pod| pod.spec::<Pod>().node_name.as_deref()).map(Name::from);
                let machine = node.as_ref().and_then(|node| self.machines.get(node));
                let running = machine.filter(|machine| machine.powered).and_then(|machine| {
                    let uid = pod.map(|pod| Name::from(pod.uid()))?;
                    let sandbox = machine.runtime.sandbox(&uid).filter(|sandbox| sandbox.ready)?;
                    let mut containers = machine.runtime.containers();
                    containers.any(|(_, c)| c.identity.pod_uid == uid && c.is_running()).then_some(sandbox)
                });
                let Some(address) = running.and_then(|sandbox| sandbox.ip.parse().ok()) else {
                    return no_origin(format!("no container of pod {key} is running"));
                };
                let asks = pod.is_some_and(dns::asks_cluster_dns);
                let is_own = node.as_ref().is_some_and(|node| addresses::is_pod_of(address, node));
                let (namespace, pod) = (asks.then(|| key.namespace.clone()), is_own.then(|| key.clone()));
                Ok(Client { address, node, namespace, pod })
            }
        }
    }

    /// The addresses of a name, as the client finds them.
    pub(super) fn resolve(&mut self, client: &Client, host: &str, way: &mut Way) -> Vec<Ipv4Addr> {
        if let Ok(address) = host.parse() {
            return vec![address];
        }
        if host == "localhost" {
            return vec![Ipv4Addr::LOCALHOST];
        }
        let Some(namespace) = &client.namespace else {
            // The hosts file of machines.
            let known = self.machines.contains_key(&Name::from(host));
            return known.then(|| addresses::machine_address(host)).into_iter().collect();
        };
        way.barred_by = self.barred_out(client, addresses::CLUSTER_DNS, ("UDP", 53));
        if !way.barred_by.is_empty() {
            way.waited += DNS_TIMEOUT;
            return Vec::new();
        }
        let answer = dns::resolve(&self.world.apiserver.store, namespace, host);
        let mut addresses = answer.map(|answer| answer.addresses()).unwrap_or_default();
        if addresses.len() > 1 {
            // CoreDNS shuffles its answers (`loadbalance`).
            let by = self.world.random.below(addresses.len() as u64) as usize;
            addresses.rotate_left(by);
        }
        addresses
    }

    /// The policies that keep the client from a port of an address.
    pub(super) fn barred_out(&self, client: &Client, address: Ipv4Addr, port: (&str, u16)) -> Vec<Bar> {
        let machine = client.node.as_ref().and_then(|node| self.machines.get(node));
        match (machine, &client.pod) {
            (Some(machine), Some(pod)) if address != client.address => {
                machine.policies.barred_by(Direction::Egress, pod, address, port)
            }
            _ => Vec::new(),
        }
    }
}
