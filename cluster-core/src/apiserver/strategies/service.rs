//! Services: ports, families of addresses, and what comes and goes with the type.
//! <https://kubernetes.io/docs/concepts/services-networking/service/>

pub mod addresses;
mod families;
mod validation;

use k8s_openapi::api::core::v1::{
    ClientIPConfig, LoadBalancerIngress, Service, ServiceSpec, ServiceStatus, SessionAffinityConfig,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::names;
use crate::apiserver::{ApiServer, Moment};

pub struct Rules;

impl Strategy for Rules {
    fn check_name(&self, name: &str) -> Vec<String> {
        names::dns_label(name)
    }

    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<Service>();
        spec.type_.get_or_insert_with(|| "ClusterIP".into());
        if spec.session_affinity.get_or_insert_with(|| "None".into()) == "ClientIP" {
            let config = spec.session_affinity_config.get_or_insert_with(SessionAffinityConfig::default);
            let client = config.client_ip.get_or_insert_with(ClientIPConfig::default);
            client.timeout_seconds.get_or_insert(10_800);
        } else if spec.session_affinity.as_deref() == Some("None") {
            spec.session_affinity_config = None;
        }
        if needs_cluster_ip(spec) {
            spec.internal_traffic_policy.get_or_insert_with(|| "Cluster".into());
        }
        if is_reached_from_outside(spec) {
            spec.external_traffic_policy.get_or_insert_with(|| "Cluster".into());
        }
        if is(spec, "LoadBalancer") {
            spec.allocate_load_balancer_node_ports.get_or_insert(true);
        }
        for port in spec.ports.iter_mut().flatten() {
            port.protocol.get_or_insert_with(|| "TCP".into());
            let empty = |target: &IntOrString| match target {
                IntOrString::Int(number) => *number == 0,
                IntOrString::String(name) => name.is_empty(),
            };
            if port.target_port.as_ref().is_none_or(empty) {
                port.target_port = Some(IntOrString::Int(port.port));
            }
        }
        default_ip_modes(object);
    }

    fn prepare_status_update(&self, _: &Object, new: &mut Object, _: &Moment<'_>) {
        default_ip_modes(new);
    }

    fn prepare_create(&self, object: &mut Object, server: &ApiServer, moment: &mut Moment<'_>) -> Result<(), Status> {
        let name = object.key.name.clone();
        let spec = object.spec_mut::<Service>();
        drop_empty(spec);
        if spec.cluster_ips.is_none() {
            spec.cluster_ips = spec.cluster_ip.clone().map(|ip| vec![ip]);
        }
        families::initialize(&name, None, spec)?;
        server.addresses.assign(&name, None, spec, moment)
    }

    fn prepare_update(
        &self,
        old: &Object,
        new: &mut Object,
        server: &ApiServer,
        moment: &mut Moment<'_>,
    ) -> Result<(), Status> {
        let name = new.key.name.clone();
        if new.same_spec(old) {
            return Ok(());
        }
        let (old, spec) = (old.spec::<Service>(), new.spec_mut::<Service>());
        drop_empty(spec);
        keep_allocated(old, spec);
        align_cluster_ips(old, spec);
        drop_what_the_type_does_not_need(old, spec);
        families::initialize(&name, Some(old), spec)?;
        server.addresses.assign(&name, Some(old), spec, moment)
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        validation::validate(object.spec::<Service>(), None).into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        validation::validate_update(old.spec::<Service>(), new.spec::<Service>()).into()
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn creates_on_update(&self) -> bool {
        true
    }
}

/// Packets for a load balancer's address come to the nodes as they are (`VIP`), if nothing else is said.
fn default_ip_modes(service: &mut Object) {
    let points = |status: &ServiceStatus| status.load_balancer.clone()?.ingress;
    let Some(mut points) =
        points(service.status::<Service>()).filter(|_| is(service.spec::<Service>(), "LoadBalancer"))
    else {
        return;
    };
    let is_address = |point: &&mut LoadBalancerIngress| point.ip.as_ref().is_some_and(|ip| !ip.is_empty());
    for point in points.iter_mut().filter(is_address) {
        point.ip_mode.get_or_insert_with(|| "VIP".into());
    }
    service.status_mut::<Service>().load_balancer.get_or_insert_default().ingress = Some(points);
}

fn is(spec: &ServiceSpec, service_type: &str) -> bool {
    spec.type_.as_deref() == Some(service_type)
}

fn is_headless(spec: &ServiceSpec) -> bool {
    spec.cluster_ips.as_deref() == Some(&["None".into()]) || spec.cluster_ip.as_deref() == Some("None")
}

fn needs_cluster_ip(spec: &ServiceSpec) -> bool {
    matches!(spec.type_.as_deref(), Some("ClusterIP" | "NodePort" | "LoadBalancer"))
}

fn allocates_node_ports(spec: &ServiceSpec) -> bool {
    is(spec, "NodePort") || is(spec, "LoadBalancer") && spec.allocate_load_balancer_node_ports.unwrap_or(true)
}

fn needs_node_port(spec: &ServiceSpec) -> bool {
    is(spec, "NodePort") || is(spec, "LoadBalancer")
}

fn needs_health_check_port(spec: &ServiceSpec) -> bool {
    is(spec, "LoadBalancer") && spec.external_traffic_policy.as_deref() == Some("Local")
}

fn is_reached_from_outside(spec: &ServiceSpec) -> bool {
    needs_node_port(spec) || is(spec, "ClusterIP") && spec.external_ips.as_ref().is_some_and(|ips| !ips.is_empty())
}

/// An empty text or list is none.
fn drop_empty(spec: &mut ServiceSpec) {
    let texts = [&mut spec.cluster_ip, &mut spec.external_name, &mut spec.external_traffic_policy];
    for text in texts {
        text.take_if(|text| text.is_empty());
    }
    for list in [&mut spec.cluster_ips, &mut spec.ip_families] {
        list.take_if(|list| list.is_empty());
    }
}

/// A client that leaves out what the server gave out before wants to keep it.
fn keep_allocated(old: &ServiceSpec, spec: &mut ServiceSpec) {
    if needs_cluster_ip(old) && needs_cluster_ip(spec) {
        if spec.cluster_ip.is_none() {
            spec.cluster_ip = old.cluster_ip.clone();
        }
        if spec.cluster_ips.is_none() && spec.cluster_ip == old.cluster_ip {
            spec.cluster_ips = old.cluster_ips.clone();
        }
    }
    if needs_node_port(old) && needs_node_port(spec) {
        let used =
            |spec: &ServiceSpec| -> Vec<i32> { spec.ports.iter().flatten().filter_map(|p| p.node_port).collect() };
        let used_now = used(spec);
        for port in spec.ports.iter_mut().flatten().filter(|port| port.node_port.unwrap_or(0) == 0) {
            let same =
                old.ports.iter().flatten().rev().find(|known| {
                    known.name.as_deref().unwrap_or_default() == port.name.as_deref().unwrap_or_default()
                });
            port.node_port = same.and_then(|known| known.node_port).filter(|kept| !used_now.contains(kept));
        }
    }
    if needs_health_check_port(old) && needs_health_check_port(spec) && spec.health_check_node_port.unwrap_or(0) == 0 {
        spec.health_check_node_port = old.health_check_node_port;
    }
}

/// Old clients know only `clusterIP`: what they do to it is meant for `clusterIPs` too.
fn align_cluster_ips(old: &ServiceSpec, spec: &mut ServiceSpec) {
    if spec.cluster_ips.is_none() && spec.cluster_ip == old.cluster_ip {
        spec.cluster_ips = old.cluster_ips.clone();
    }
    if spec.cluster_ip != old.cluster_ip && spec.cluster_ips == old.cluster_ips {
        spec.cluster_ips = spec.cluster_ip.clone().map(|ip| vec![ip]);
    }
}

/// With a change of type goes what belonged to the old one, unless the writer touched it.
fn drop_what_the_type_does_not_need(old: &ServiceSpec, spec: &mut ServiceSpec) {
    if needs_cluster_ip(old) && !needs_cluster_ip(spec) {
        if spec.cluster_ips == old.cluster_ips {
            (spec.cluster_ip, spec.cluster_ips) = (None, None);
        }
        spec.ip_families.take_if(|now| Some(&*now) == old.ip_families.as_ref());
        spec.ip_family_policy.take_if(|now| Some(&*now) == old.ip_family_policy.as_ref());
        spec.internal_traffic_policy.take_if(|now| Some(&*now) == old.internal_traffic_policy.as_ref());
    }
    if needs_node_port(old) && !needs_node_port(spec) {
        let before: Vec<_> = old.ports.iter().flatten().map(|port| port.node_port).collect();
        if spec.ports.iter().flatten().map(|port| port.node_port).eq(before) {
            spec.ports.iter_mut().flatten().for_each(|port| port.node_port = None);
        }
    }
    if needs_health_check_port(old) && !needs_health_check_port(spec) {
        spec.health_check_node_port.take_if(|now| Some(&*now) == old.health_check_node_port.as_ref());
    }
    if is(old, "LoadBalancer") && !is(spec, "LoadBalancer") {
        let allocate = old.allocate_load_balancer_node_ports.as_ref();
        spec.allocate_load_balancer_node_ports.take_if(|now| Some(&*now) == allocate);
        spec.load_balancer_class.take_if(|now| Some(&*now) == old.load_balancer_class.as_ref());
    }
    if is_reached_from_outside(old) && !is_reached_from_outside(spec) {
        spec.external_traffic_policy.take_if(|now| Some(&*now) == old.external_traffic_policy.as_ref());
    }
}

#[cfg(test)]
mod tests;
