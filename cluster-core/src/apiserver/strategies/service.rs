//! Services: ports, and the addresses that the server gives out.
//! <https://kubernetes.io/docs/concepts/services-networking/service/>

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::names;
use crate::apiserver::{ApiServer, Moment};
use crate::store::Change;

/// The Service network: 10.96.0.0/16.
const NETWORK: u32 = u32::from_be_bytes([10, 96, 0, 0]);
const NETWORK_SIZE: u32 = 1 << 16;
const NODE_PORTS: std::ops::RangeInclusive<i32> = 30000..=32767;

pub struct Rules;

impl Strategy for Rules {
    fn check_name(&self, name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<Service>();
        let service_type = spec.type_.get_or_insert_with(|| "ClusterIP".into()).clone();
        spec.session_affinity.get_or_insert_with(|| "None".into());
        if service_type != "ExternalName" {
            spec.internal_traffic_policy.get_or_insert_with(|| "Cluster".into());
            spec.ip_families.get_or_insert_with(|| vec!["IPv4".into()]);
            spec.ip_family_policy.get_or_insert_with(|| "SingleStack".into());
        }
        if matches!(service_type.as_str(), "NodePort" | "LoadBalancer") {
            spec.external_traffic_policy.get_or_insert_with(|| "Cluster".into());
        }
        if service_type == "LoadBalancer" {
            spec.allocate_load_balancer_node_ports.get_or_insert(true);
        }
        for port in spec.ports.iter_mut().flatten() {
            port.protocol.get_or_insert_with(|| "TCP".into());
            let number = port.port;
            port.target_port.get_or_insert(IntOrString::Int(number));
        }
    }

    fn prepare_create(&self, object: &mut Object, server: &ApiServer, moment: &mut Moment<'_>) -> Result<(), Status> {
        server.addresses.assign(object.spec_mut::<Service>(), moment);
        Ok(())
    }

    fn prepare_update(&self, old: &Object, new: &mut Object, _: &ApiServer, _: &mut Moment<'_>) -> Result<(), Status> {
        let (old, new) = (old.spec::<Service>(), new.spec_mut::<Service>());
        if new.cluster_ip.is_none() && new.type_.as_deref() != Some("ExternalName") {
            new.cluster_ip = old.cluster_ip.clone();
            new.cluster_ips = old.cluster_ips.clone();
        }
        for port in new.ports.iter_mut().flatten().filter(|port| port.node_port.is_none()) {
            let same =
                old.ports.iter().flatten().find(|known| known.port == port.port && known.protocol == port.protocol);
            port.node_port = same.and_then(|known| known.node_port);
        }
        Ok(())
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let spec = object.spec::<Service>();
        let mut causes = Vec::new();
        let headless = spec.cluster_ip.as_deref() == Some("None");
        let external = spec.type_.as_deref() == Some("ExternalName");
        let ports = spec.ports.as_deref().unwrap_or_default();
        if ports.is_empty() && !headless && !external {
            causes.push(Cause::required("spec.ports", ""));
        }
        for (index, port) in ports.iter().enumerate() {
            let path = format!("spec.ports[{index}]");
            if ports.len() > 1 && port.name.as_deref().unwrap_or_default().is_empty() {
                causes.push(Cause::required(format!("{path}.name"), ""));
            }
            if !(1..=65535).contains(&port.port) {
                causes.push(Cause::invalid(
                    format!("{path}.port"),
                    port.port,
                    "must be between 1 and 65535, inclusive",
                ));
            }
        }
        let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        if let Some(service_type) = spec.type_.as_deref().filter(|known| !types.contains(known)) {
            causes.push(Cause::unsupported("spec.type", service_type, &types));
        }
        causes
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new) = (old.spec::<Service>(), new.spec::<Service>());
        match (&old.cluster_ip, &new.cluster_ip) {
            (Some(before), Some(after)) if before != after && new.type_.as_deref() != Some("ExternalName") => {
                vec![Cause::invalid("spec.clusterIPs[0]", after.as_str(), "may not change once set")]
            }
            _ => Vec::new(),
        }
    }
}

/// Addresses and ports in use.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    cluster_ips: imbl::OrdSet<u32>,
    node_ports: imbl::OrdSet<i32>,
}

impl Addresses {
    fn assign(&self, spec: &mut k8s_openapi::api::core::v1::ServiceSpec, moment: &mut Moment<'_>) {
        let service_type = spec.type_.as_deref().unwrap_or("ClusterIP");
        if service_type == "ExternalName" {
            return;
        }
        let address = match spec.cluster_ip.as_deref() {
            None | Some("") => self.free_address(moment).to_string(),
            Some(given) => given.to_owned(),
        };
        spec.cluster_ips = Some(vec![address.clone()]);
        spec.cluster_ip = Some(address);
        if matches!(service_type, "NodePort" | "LoadBalancer") {
            for port in spec.ports.iter_mut().flatten() {
                port.node_port.get_or_insert_with(|| self.free_node_port(moment));
            }
        }
    }

    /// A free address, drawn from the upper part of the network, which Kubernetes keeps for those it chooses.
    fn free_address(&self, moment: &mut Moment<'_>) -> Ipv4Addr {
        let low = 256;
        loop {
            let address = NETWORK + low + moment.random.below(u64::from(NETWORK_SIZE - low - 1)) as u32;
            if !self.cluster_ips.contains(&address) {
                return Ipv4Addr::from(address);
            }
        }
    }

    fn free_node_port(&self, moment: &mut Moment<'_>) -> i32 {
        loop {
            let port = NODE_PORTS.start() + moment.random.below(2768) as i32;
            if !self.node_ports.contains(&port) {
                return port;
            }
        }
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
            let ports: Vec<i32> = spec.ports.iter().flatten().filter_map(|port| port.node_port).collect();
            (addresses, ports)
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
