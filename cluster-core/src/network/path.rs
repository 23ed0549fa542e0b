//! The way of a packet: past the rules of a node and the policies of both ends, to the container that listens.

use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

use super::addresses;
use super::client::Client;
use super::connect::{Network, Way};
use super::policy::Direction;
use super::policy_agent::Bar;
use super::proxy::Route;
use super::reply::Failure;
use super::rules::{Backend, Mode, Verdict};
use crate::api::kind::KindRef;
use crate::api::{Key, Name};
use crate::cluster::Machine;
use crate::runtime::container::{Container, Handle, Sandbox};

/// How long a kernel repeats a SYN that nobody answers (`net.ipv4.tcp_syn_retries`: 6).
const SYN_TIMEOUT: Duration = Duration::from_secs(134);
/// How long it takes to see that no machine has an address.
const ARP_TIMEOUT: Duration = Duration::from_millis(3060);

/// A protocol and one of its ports: `("TCP", 80)`.
pub(super) type Port<'a> = (&'a str, u16);

/// Where the rules send a packet.
pub(super) struct Hop {
    /// Who it seems to come from.
    pub source: Ipv4Addr,
    pub peer: (Ipv4Addr, u16),
    /// It does not stay on its own machine's loopback.
    pub passes_policies: bool,
}

impl Network<'_> {
    /// Where the rules on the way send a packet to an address.
    pub(super) fn lead(
        &mut self,
        client: &Client,
        address: Ipv4Addr,
        (protocol, port): Port<'_>,
        way: &mut Way,
    ) -> Result<Hop, Failure> {
        let hop = |source, peer| Hop { source, peer, passes_policies: true };
        let Some(address) = self.beyond_loopback(client, address) else {
            let stays = Hop { passes_policies: false, ..hop(client.address, (client.address, port)) };
            return client.node.as_ref().map(|_| stays).ok_or(Failure::Refused);
        };
        let machine = self.machines.keys().find(|name| addresses::machine_address(name) == address).cloned();
        let (node, front) = match (&machine, &client.node) {
            // A node port is looked up where it arrives.
            (Some(machine), _) => {
                self.powered(machine, way)?;
                (machine.clone(), Ipv4Addr::UNSPECIFIED)
            }
            (None, Some(node)) => (node.clone(), address),
            (None, None) => (self.entrance(address, (protocol, port)).ok_or_else(|| timeout(way))?, address),
        };
        let inside = client.node.is_some();
        let world = &mut *self.world;
        let proxy = self.machines.get_mut(&node).map(|machine| &mut machine.proxy);
        match proxy.and_then(|proxy| proxy.route(client.address, inside, (front, (protocol, port)), world)) {
            None => Ok(hop(client.address, (address, port))),
            Some(Route { service, masquerade, to }) => {
                way.service = Some(service);
                match to {
                    Ok(Backend { address, port, pod, .. }) => {
                        way.backend = pod;
                        let source = if masquerade { addresses::machine_address(&node) } else { client.address };
                        Ok(hop(source, (address, port)))
                    }
                    Err(Verdict::Drop) => Err(timeout(way)),
                    Err(_) => Err(Failure::Refused),
                }
            }
        }
    }

    /// Where the rules see a connection go. Only the rules of iptables know the loopback address of a machine, as another
    /// name of it, for the sake of node ports (`route_localnet`).
    fn beyond_loopback(&self, client: &Client, address: Ipv4Addr) -> Option<Ipv4Addr> {
        if !address.is_loopback() {
            return Some(address);
        }
        let node = client.node.as_ref().filter(|node| addresses::machine_address(node) == client.address)?;
        let mode = self.machines.get(node)?.proxy.mode();
        (mode == Mode::Iptables).then_some(client.address)
    }

    /// The node by which a load balancer or a router lets an external address in.
    fn entrance(&mut self, address: Ipv4Addr, port: Port<'_>) -> Option<Name> {
        let takes = |machine: &Machine| machine.powered && machine.proxy.lets_in(address, port);
        let is_excluded = |name: &Name| {
            let node = self.world.apiserver.store.get(KindRef::of::<Node>(), &Key::cluster(name.clone()));
            node.is_some_and(|node| node.label(addresses::EXCLUDED_FROM_BALANCERS_LABEL).is_some())
        };
        let takers = self.machines.iter().filter(|(name, machine)| takes(machine) && !is_excluded(name));
        let nodes: Vec<Name> = takers.map(|(name, _)| name.clone()).collect();
        // Only external addresses are routed to nodes from outside: those of Services are known on the nodes alone.
        if address.octets()[..2] == [10, 96] || nodes.is_empty() {
            return None;
        }
        nodes.get(self.world.random.below(nodes.len() as u64) as usize).cloned()
    }

    pub(super) fn powered(&self, machine: &Name, way: &mut Way) -> Result<&Machine, Failure> {
        self.machines.get(machine).filter(|machine| machine.powered).ok_or_else(|| timeout(way))
    }

    /// What the policies of both ends say about a packet from one to the other.
    pub(super) fn admit(
        &self,
        client: &Client,
        source: Ipv4Addr,
        protocol: &str,
        peer: (Ipv4Addr, u16),
        way: &mut Way,
    ) -> Result<(), Failure> {
        way.barred_by = self.barred_out(client, peer.0, (protocol, peer.1));
        if way.barred_by.is_empty() {
            way.barred_by = self.barred_in(client, source, protocol, peer);
        }
        if way.barred_by.is_empty() { Ok(()) } else { Err(timeout(way)) }
    }

    fn barred_in(
        &self,
        client: &Client,
        source: Ipv4Addr,
        protocol: &str,
        (address, port): (Ipv4Addr, u16),
    ) -> Vec<Bar> {
        if address == client.address {
            return Vec::new();
        }
        let machine = self.machines.iter().find(|(name, _)| addresses::is_pod_of(address, name)).map(|(_, m)| m);
        let text = address.to_string();
        let called = machine.and_then(|machine| {
            let sandbox = machine.runtime.sandboxes().find(|sandbox| sandbox.ready && *sandbox.ip == *text)?;
            Some((machine, &sandbox.pod))
        });
        called.map_or_else(Vec::new, |(machine, pod)| {
            machine.policies.barred_by(Direction::Ingress, pod, source, (protocol, port))
        })
    }

    /// The container that has an address and listens, and the machine that it is on.
    pub(super) fn reach(
        &self,
        (address, _): (Ipv4Addr, u16),
        listens: impl Fn(&Container) -> bool,
        way: &mut Way,
    ) -> Result<(Name, Handle), Failure> {
        let has = |name: &Name| addresses::is_pod_of(address, name) || addresses::machine_address(name) == address;
        let Some(name) = self.machines.keys().find(|name| has(name)).cloned() else { return Err(timeout(way)) };
        let machine = self.powered(&name, way)?;
        let text = address.to_string();
        let sandboxes = || machine.runtime.sandboxes().filter(|sandbox| sandbox.ready && *sandbox.ip == *text);
        let Some(first) = sandboxes().next() else {
            if addresses::machine_address(&name) == address {
                return Err(Failure::Refused);
            }
            way.waited += ARP_TIMEOUT;
            return Err(Failure::NoRoute);
        };
        let listener = |sandbox: &Sandbox| {
            let mut containers = machine.runtime.containers();
            containers.find(|(_, container)| container.identity.pod_uid == sandbox.pod_uid && listens(container))
        };
        let Some((handle, container)) = sandboxes().find_map(listener) else {
            if addresses::is_pod_of(address, &name) {
                way.backend = Some(first.pod.clone());
            }
            return Err(Failure::Refused);
        };
        way.backend = Some(container.identity.pod.clone());
        way.container = Some(container.id.clone());
        Ok((name, handle))
    }
}

/// Nobody answers, ever.
pub(super) fn timeout(way: &mut Way) -> Failure {
    way.waited += SYN_TIMEOUT;
    Failure::TimedOut
}
