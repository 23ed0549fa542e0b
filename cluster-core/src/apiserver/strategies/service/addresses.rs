//! What the server gives out to Services: cluster IPs, node ports, ports for health checks.
//! <https://kubernetes.io/docs/concepts/services-networking/cluster-ip-allocation/>

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};

use super::{allocates_node_ports, is_headless, needs_cluster_ip, needs_health_check_port, needs_node_port};
use crate::api::object::Object;
use crate::api::status::Status;
use crate::apiserver::Moment;
use crate::apiserver::validation::field::{Causes, Path};
use crate::store::Change;

/// The Service network: 10.96.0.0/16.
const NETWORK: u32 = u32::from_be_bytes([10, 96, 0, 0]);
const NETWORK_SIZE: u32 = 1 << 16;
/// The lower part is for those who choose an address themselves.
const CHOSEN_BY_HAND: u32 = 256;
const NODE_PORTS: RangeInclusive<i32> = 30000..=32767;

/// Addresses and ports in use.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    cluster_ips: imbl::OrdSet<u32>,
    node_ports: imbl::OrdSet<i32>,
}

impl Addresses {
    /// Completes a new Service, or one that is written over `old` and may keep what that had.
    pub fn assign(
        &self,
        name: &str,
        old: Option<&ServiceSpec>,
        spec: &mut ServiceSpec,
        moment: &mut Moment<'_>,
    ) -> Result<(), Status> {
        if needs_cluster_ip(spec) && !old.is_some_and(needs_cluster_ip) {
            self.assign_cluster_ip(name, spec, moment)?;
        }
        let mut taken = Taken { known: self, now: Vec::new() };
        if needs_node_port(spec) {
            let kept = old.filter(|old| needs_node_port(old));
            match kept {
                Some(old) => taken.update_ports(name, old, spec, moment)?,
                None => taken.assign_ports(name, spec, moment)?,
            }
        }
        if needs_health_check_port(spec) && !old.is_some_and(needs_health_check_port) {
            let wanted = spec.health_check_node_port.filter(|port| *port != 0);
            spec.health_check_node_port = Some(match wanted {
                Some(port) => {
                    let internal = |detail| {
                        Status::internal(format!("failed to allocate requested HealthCheck NodePort {port}: {detail}"))
                    };
                    taken.take(port).map_err(internal)?;
                    port
                }
                None => taken.take_next(moment)?,
            });
        }
        Ok(())
    }

    fn assign_cluster_ip(&self, name: &str, spec: &mut ServiceSpec, moment: &mut Moment<'_>) -> Result<(), Status> {
        if is_headless(spec) {
            return Ok(());
        }
        let address = match spec.cluster_ips.as_deref().unwrap_or_default() {
            [] => self.free_address(moment)?.to_string(),
            [given, ..] => {
                let detail = match given.parse::<Ipv4Addr>().map(u32::from) {
                    Ok(address) if self.cluster_ips.contains(&address) => "provided IP is already allocated",
                    Ok(address) if (1..NETWORK_SIZE - 1).contains(&address.wrapping_sub(NETWORK)) => "",
                    _ => "the provided network does not match the current range",
                };
                if !detail.is_empty() {
                    let mut causes = Causes::new();
                    let detail = format!("failed to allocate IP {given}: {detail}");
                    causes.invalid(&Path::new("spec.clusterIPs"), spec.cluster_ips.clone(), detail);
                    return Err(refused(name, causes));
                }
                given.clone()
            }
        };
        spec.cluster_ip = Some(address.clone());
        spec.cluster_ips = Some(vec![address]);
        Ok(())
    }

    /// A free address, by chance; from the lower part of the network only when the upper one is full.
    fn free_address(&self, moment: &mut Moment<'_>) -> Result<Ipv4Addr, Status> {
        let upper = CHOSEN_BY_HAND..NETWORK_SIZE - 1;
        let start = moment.random.below(u64::from(upper.end - upper.start)) as u32;
        let from_start = (upper.start + start..upper.end).chain(upper.start..upper.start + start);
        let free = from_start.chain(1..upper.start).map(|offset| NETWORK + offset);
        let full = || Status::internal("failed to allocate a serviceIP: range is full");
        free.into_iter().find(|address| !self.cluster_ips.contains(address)).map(Ipv4Addr::from).ok_or_else(full)
    }

    /// Follows Services as they come and go.
    pub fn observe(&mut self, change: &Change) {
        if !change.object().is::<Service>() {
            return;
        }
        let parts = |object: &Object| {
            let spec = object.spec::<Service>();
            let addresses: Vec<u32> =
                spec.cluster_ips.iter().flatten().filter_map(|ip| ip.parse::<Ipv4Addr>().ok()).map(u32::from).collect();
            let ports = spec.ports.iter().flatten().filter_map(|port| port.node_port);
            (addresses, ports.chain(spec.health_check_node_port).filter(|port| *port != 0).collect::<Vec<_>>())
        };
        if let Some((addresses, ports)) = change.before.as_ref().map(parts) {
            for address in addresses {
                self.cluster_ips.remove(&address);
            }
            for port in ports {
                self.node_ports.remove(&port);
            }
        }
        if let Some((addresses, ports)) = change.after.as_ref().map(parts) {
            self.cluster_ips.extend(addresses);
            self.node_ports.extend(ports);
        }
    }
}

/// The ports in use, with those that one request is about to take.
struct Taken<'a> {
    known: &'a Addresses,
    now: Vec<i32>,
}

impl Taken<'_> {
    /// Takes a port, or says why not.
    fn take(&mut self, port: i32) -> Result<(), &'static str> {
        if !NODE_PORTS.contains(&port) {
            return Err("provided port is not in the valid range. The range of valid ports is 30000-32767");
        }
        if self.known.node_ports.contains(&port) || self.now.contains(&port) {
            return Err("provided port is already allocated");
        }
        self.now.push(port);
        Ok(())
    }

    fn take_next(&mut self, moment: &mut Moment<'_>) -> Result<i32, Status> {
        let (first, last) = (*NODE_PORTS.start(), *NODE_PORTS.end());
        let start = first + moment.random.below(u64::from((last - first + 1).unsigned_abs())) as i32;
        let free = (start..=last).chain(first..start).find(|port| self.take(*port).is_ok());
        free.ok_or_else(|| Status::internal("failed to allocate a nodePort: range is full"))
    }

    fn take_for(&mut self, name: &str, index: usize, port: i32) -> Result<(), Status> {
        self.take(port).map_err(|detail| {
            let mut causes = Causes::new();
            causes.invalid(&Path::new("spec.ports").index(index).child("nodePort"), port, detail);
            refused(name, causes)
        })
    }

    /// Ports of one number, of several protocols, share a node port.
    fn assign_ports(&mut self, name: &str, spec: &mut ServiceSpec, moment: &mut Moment<'_>) -> Result<(), Status> {
        let allocates = allocates_node_ports(spec);
        let ports = spec.ports.as_deref_mut().unwrap_or_default();
        let asked = |ports: &[ServicePort], number: i32| {
            ports.iter().find_map(|port| (port.port == number).then(|| asked_for(port)).flatten())
        };
        let mut by_number: BTreeMap<i32, i32> = BTreeMap::new();
        for index in 0..ports.len() {
            let (number, own) = (ports[index].port, asked_for(&ports[index]));
            if own.is_none() && !allocates {
                continue;
            }
            let node_port = match (by_number.get(&number), own) {
                (None, _) => match asked(ports, number) {
                    Some(port) => {
                        self.take_for(name, index, port)?;
                        port
                    }
                    None => self.take_next(moment)?,
                },
                (Some(shared), None) => *shared,
                (Some(shared), Some(own)) => {
                    if own != *shared {
                        self.take_for(name, index, own)?;
                    }
                    own
                }
            };
            by_number.entry(number).or_insert(node_port);
            ports[index].node_port = Some(node_port);
        }
        Ok(())
    }

    fn update_ports(
        &mut self,
        name: &str,
        old: &ServiceSpec,
        spec: &mut ServiceSpec,
        moment: &mut Moment<'_>,
    ) -> Result<(), Status> {
        let allocates = allocates_node_ports(spec);
        let had: Vec<i32> = old.ports.iter().flatten().filter_map(asked_for).collect();
        for (index, port) in spec.ports.iter_mut().flatten().enumerate() {
            match asked_for(port) {
                Some(given) if had.contains(&given) || self.now.contains(&given) => {}
                Some(given) => self.take_for(name, index, given)?,
                None if allocates => port.node_port = Some(self.take_next(moment)?),
                None => {}
            }
        }
        Ok(())
    }
}

fn asked_for(port: &ServicePort) -> Option<i32> {
    port.node_port.filter(|port| *port != 0)
}

pub(super) fn refused(name: &str, causes: Causes) -> Status {
    Status::invalid(crate::api::kind::KindRef::of::<Service>(), name, causes.into())
}
