//! The rules that kube-proxy programs into its node's kernel, as data: for each port of each Service the addresses it
//! answers at and the backends behind it.
//! <https://kubernetes.io/docs/reference/networking/virtual-ips/>

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::policy::covers;
use crate::api::object::Object;
use crate::api::{Key, Name};

/// How kube-proxy programs its node (`--proxy-mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A backend drawn at random for each connection, found by a walk along the rules.
    #[default]
    Iptables,
    /// Backends in turn, found by a hash table.
    Ipvs,
    /// At random as with iptables, found by a map.
    Nftables,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Iptables => "iptables",
            Mode::Ipvs => "ipvs",
            Mode::Nftables => "nftables",
        }
    }
}

/// What a node knows about one Service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceRules {
    pub service: Key,
    pub cluster_ip: Ipv4Addr,
    pub external_ips: Vec<Ipv4Addr>,
    pub load_balancer_ips: Vec<Ipv4Addr>,
    /// Who may come by a load balancer (`loadBalancerSourceRanges`); everybody if there are none.
    pub source_ranges: Vec<String>,
    /// How long a client stays with its backend (`sessionAffinity: ClientIP`).
    pub affinity: Option<Duration>,
    /// `internalTrafficPolicy: Local`.
    pub internal_local: bool,
    /// `externalTrafficPolicy: Local`.
    pub external_local: bool,
    pub ports: Vec<PortRules>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PortRules {
    pub name: Name,
    /// `TCP`, `UDP`, `SCTP`.
    pub protocol: Name,
    pub port: u16,
    pub node_port: Option<u16>,
    /// In the order in which kube-proxy writes them.
    pub backends: Vec<Backend>,
}

/// An endpoint that a connection may be sent to.
#[derive(Clone, Debug, PartialEq)]
pub struct Backend {
    pub address: Ipv4Addr,
    pub port: u16,
    pub node: Option<Name>,
    pub pod: Option<Key>,
    pub ready: bool,
    pub serving: bool,
    pub terminating: bool,
}

impl ServiceRules {
    /// The rules for a Service with the given slices; none for a Service that has no virtual address.
    pub fn of<'a>(service: &Object, slices: impl Iterator<Item = &'a Object>) -> Option<ServiceRules> {
        let spec = service.spec::<Service>();
        let cluster_ip: Ipv4Addr = spec.cluster_ip.as_deref()?.parse().ok()?;
        if spec.type_.as_deref() == Some("ExternalName") || service.label(PROXY_NAME_LABEL).is_some() {
            return None;
        }
        let slices: Vec<&EndpointSlice> = slices.map(|slice| slice.spec::<EndpointSlice>()).collect();
        let port_rules = |port: &k8s_openapi::api::core::v1::ServicePort| PortRules {
            name: port.name.as_deref().unwrap_or_default().into(),
            protocol: port.protocol.as_deref().unwrap_or("TCP").into(),
            port: u16::try_from(port.port).unwrap_or(0),
            node_port: port.node_port.and_then(|number| u16::try_from(number).ok()),
            backends: backends(&slices, port.name.as_deref().unwrap_or_default()),
        };
        let balancers = service.status::<Service>().load_balancer.iter().flat_map(|status| status.ingress.iter());
        let is_proxied = |mode: &Option<String>| mode.as_deref() == Some("Proxy");
        let balancers = balancers.flatten().filter(|ingress| !is_proxied(&ingress.ip_mode));
        let balancers = balancers.filter_map(|ingress| ingress.ip.as_deref());
        let timeout = spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref());
        let timeout = timeout.and_then(|client| client.timeout_seconds).unwrap_or(10_800);
        let sticky = spec.session_affinity.as_deref() == Some("ClientIP");
        Some(ServiceRules {
            service: service.key.clone(),
            cluster_ip,
            external_ips: spec.external_ips.iter().flatten().filter_map(|ip| ip.parse().ok()).collect(),
            load_balancer_ips: balancers.filter_map(|ip| ip.parse().ok()).collect(),
            source_ranges: spec.load_balancer_source_ranges.iter().flatten().map(|range| range.trim().into()).collect(),
            affinity: sticky.then(|| Duration::from_secs(u64::try_from(timeout).unwrap_or(0))),
            internal_local: spec.internal_traffic_policy.as_deref() == Some("Local"),
            external_local: spec.external_traffic_policy.as_deref() == Some("Local"),
            ports: spec.ports.iter().flatten().map(port_rules).collect(),
        })
    }

    /// Where it is reached from outside, beside node ports, and how kube-proxy calls such an address.
    pub fn outside_ips(&self) -> impl Iterator<Item = (Ipv4Addr, &'static str)> {
        let external = self.external_ips.iter().map(|ip| (*ip, "external IP"));
        external.chain(self.load_balancer_ips.iter().map(|ip| (*ip, "loadbalancer IP")))
    }

    /// Load balancers' addresses that are only for some, if there are such.
    pub fn guarded_ips(&self) -> &[Ipv4Addr] {
        if self.source_ranges.is_empty() { &[] } else { &self.load_balancer_ips }
    }

    /// The source ranges keep a client from this address.
    pub fn keeps_out(&self, client: Ipv4Addr, address: Ipv4Addr) -> bool {
        self.guarded_ips().contains(&address) && !self.source_ranges.iter().any(|range| covers(range, client))
    }

    /// How many different addresses can get a new connection.
    pub fn ready_count(&self) -> usize {
        self.ports.iter().map(|port| port.backends.iter().filter(|b| b.ready).count()).max().unwrap_or(0)
    }
}

/// Services with this label belong to another proxy.
const PROXY_NAME_LABEL: &str = "service.kubernetes.io/service-proxy-name";

fn backends(slices: &[&EndpointSlice], port_name: &str) -> Vec<Backend> {
    let mut found = Vec::new();
    for slice in slices.iter().filter(|slice| slice.address_type == "IPv4") {
        let ports = slice.ports.iter().flatten();
        for port in ports.filter(|port| port.name.as_deref().unwrap_or_default() == port_name) {
            let Some(number) = port.port.and_then(|number| u16::try_from(number).ok()) else { continue };
            for endpoint in slice.endpoints.iter().flatten() {
                let Some(address) = endpoint.addresses.first().and_then(|address| address.parse().ok()) else {
                    continue;
                };
                let conditions = endpoint.conditions.as_ref();
                let ready = conditions.and_then(|c| c.ready).unwrap_or(true);
                let target = endpoint.target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"));
                found.push(Backend {
                    address,
                    port: number,
                    node: endpoint.node_name.as_deref().map(Name::from),
                    pod: target.map(|pod| {
                        let part = |text: &Option<String>| Name::from(text.as_deref().unwrap_or_default());
                        Key { namespace: part(&pod.namespace), name: part(&pod.name) }
                    }),
                    ready,
                    serving: conditions.and_then(|c| c.serving).unwrap_or(ready),
                    terminating: conditions.and_then(|c| c.terminating).unwrap_or(false),
                });
            }
        }
    }
    found.sort_by_cached_key(|backend| format!("{}:{}", backend.address, backend.port));
    found.dedup_by(|a, b| (a.address, a.port) == (b.address, b.port));
    found
}

/// By which of its addresses a Service was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    ClusterIp,
    NodePort,
    /// An external address or a load balancer's.
    External,
}

/// What the rules do with a new connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict<'a> {
    /// It goes to one of these.
    Backends(Vec<&'a Backend>),
    /// REJECT: the client is refused at once.
    Refuse,
    /// DROP: the client waits in vain. A `Local` policy has endpoints, but none on this node.
    Drop,
}

impl PortRules {
    /// The backends that new connections on a node go to: ready ones; if there are none, those that still serve while
    /// they terminate.
    pub fn usable(&self, only_on: Option<&str>) -> Vec<&Backend> {
        let here = |backend: &&Backend| only_on.is_none_or(|node| backend.node.as_deref() == Some(node));
        let ready: Vec<_> = self.backends.iter().filter(|b| b.ready).filter(here).collect();
        if ready.is_empty() {
            self.backends.iter().filter(|b| b.serving && b.terminating).filter(here).collect()
        } else {
            ready
        }
    }
}

impl ServiceRules {
    pub fn is_local(&self, front: Front) -> bool {
        match front {
            Front::ClusterIp => self.internal_local,
            Front::NodePort | Front::External => self.external_local,
        }
    }

    /// What the rules of `node` say about a connection to a port, with only local backends if `local`.
    pub fn verdict<'a>(&self, port: &'a PortRules, local: bool, node: &str) -> Verdict<'a> {
        let everywhere = port.usable(None);
        if everywhere.is_empty() {
            return Verdict::Refuse;
        }
        if !local {
            return Verdict::Backends(everywhere);
        }
        match port.usable(Some(node)) {
            local if local.is_empty() => Verdict::Drop,
            local => Verdict::Backends(local),
        }
    }
}

/// The rules of one node: what its kernel holds, whether its kube-proxy lives or not. Nodes that were told the same
/// share one.
#[derive(Clone, Debug, Default)]
pub struct Table {
    services: imbl::OrdMap<Key, Arc<ServiceRules>>,
    /// Which Service and which of its ports answers at an address. Node ports stand at the unspecified address.
    fronts: imbl::OrdMap<(Ipv4Addr, u16, Name), (Front, Key, usize)>,
}

impl Table {
    pub fn services(&self) -> impl Iterator<Item = &Arc<ServiceRules>> {
        self.services.values()
    }

    pub fn get(&self, service: &Key) -> Option<&Arc<ServiceRules>> {
        self.services.get(service)
    }

    /// How many ports of Services there are, which is how far a connection walks along the iptables rules.
    pub fn port_count(&self) -> usize {
        self.services.values().map(|service| service.ports.len()).sum()
    }

    /// The Service that a packet to this address is for, and the number of its port.
    pub fn find(&self, address: Ipv4Addr, (protocol, port): (&str, u16)) -> Option<(Front, &Arc<ServiceRules>, usize)> {
        let (front, service, index) = self.fronts.get(&(address, port, protocol.into()))?;
        Some((*front, self.services.get(service)?, *index))
    }

    /// Puts the rules of a Service in place of those it had. Equal rules keep what is shared.
    pub fn set(&mut self, service: &Key, rules: Option<ServiceRules>) {
        let before = self.services.get(service).cloned();
        if before.as_deref() == rules.as_ref() {
            return;
        }
        if let Some(before) = before {
            for (front, ..) in fronts(&before) {
                self.fronts.remove(&front);
            }
            self.services.remove(service);
        }
        if let Some(rules) = rules {
            for (address, front, index) in fronts(&rules) {
                self.fronts.insert(address, (front, service.clone(), index));
            }
            self.services.insert(service.clone(), Arc::new(rules));
        }
    }
}

type Address = (Ipv4Addr, u16, Name);

fn fronts(rules: &ServiceRules) -> impl Iterator<Item = (Address, Front, usize)> {
    rules.ports.iter().enumerate().flat_map(move |(index, port)| {
        let at = move |address: Ipv4Addr, number: u16, front| ((address, number, port.protocol.clone()), front, index);
        let external = rules.outside_ips().map(move |(ip, _)| at(ip, port.port, Front::External));
        let node_port = port.node_port.map(|number| at(Ipv4Addr::UNSPECIFIED, number, Front::NodePort));
        [at(rules.cluster_ip, port.port, Front::ClusterIp)].into_iter().chain(external).chain(node_port)
    })
}
