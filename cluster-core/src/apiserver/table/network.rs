//! Services, endpoints, ingresses, policies of the network.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR};
use serde_json::Value;

use super::age::age;
use super::{cells, labels_text, or_none, printers, selector_text};
use crate::api::object::Object;
use crate::clock::Time;

printers! {
    Service: "Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*" => service,
    Endpoints: "Name, Endpoints, Age" => endpoints,
    EndpointSlice: "Name, AddressType, Ports, Endpoints, Age" => endpoint_slice,
    Ingress: "Name, Class, Hosts, Address, Ports, Age" => ingress,
    IngressClass: "Name, Controller, Parameters, Age" => ingress_class,
    NetworkPolicy: "Name, Pod-Selector, Age" => network_policy,
    IPAddress: "Name, ParentRef" => ip_address,
    ServiceCIDR: "Name, CIDRs, Age" => service_cidr,
}

/// So many entries of a list are shown.
const SHOWN_MAX: usize = 3;

/// Lists are cut after a few entries: `10.0.0.1:80,10.0.0.2:80 + 3 more...`.
fn some_of(list: &[String], empty: &str) -> String {
    match list.len() {
        0 => empty.into(),
        count if count > SHOWN_MAX => format!("{} + {} more...", list[..SHOWN_MAX].join(","), count - SHOWN_MAX),
        _ => list.join(","),
    }
}

/// The addresses that a load balancer has given, each once.
fn given<'a>(addresses: impl Iterator<Item = (Option<&'a String>, Option<&'a String>)>) -> Vec<String> {
    let all: BTreeSet<&String> = addresses.filter_map(|(ip, hostname)| ip.or(hostname)).collect();
    all.into_iter().filter(|address| !address.is_empty()).cloned().collect()
}

/// `10.0.0.1:80`, `[fd00::1]:80`
fn with_port(address: &str, port: i32) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

fn service(object: &Object, now: Time) -> Vec<Value> {
    let spec = object.spec::<Service>();
    let type_ = spec.type_.as_deref().unwrap_or("ClusterIP");
    cells![
        &*object.key.name,
        type_,
        or_none(spec.cluster_ips.iter().flatten().next().map(String::as_str).or(spec.cluster_ip.as_deref())),
        external_address(object, type_),
        service_ports(object),
        age(object, now),
        labels_text(spec.selector.iter().flatten()),
    ]
}

fn external_address(object: &Object, type_: &str) -> String {
    let spec = object.spec::<Service>();
    let external = spec.external_ips.clone().unwrap_or_default();
    match type_ {
        "ExternalName" => spec.external_name.clone().unwrap_or_default(),
        "LoadBalancer" => {
            let balancer = object.status::<Service>().load_balancer.as_ref();
            let ingress = balancer.and_then(|status| status.ingress.as_deref()).unwrap_or_default();
            let mut all = given(ingress.iter().map(|ingress| (ingress.ip.as_ref(), ingress.hostname.as_ref())));
            all.extend(external);
            if all.is_empty() { "<pending>".into() } else { all.join(",") }
        }
        _ if external.is_empty() => "<none>".into(),
        _ => external.join(","),
    }
}

fn service_ports(object: &Object) -> String {
    let ports: Vec<String> = object
        .spec::<Service>()
        .ports
        .iter()
        .flatten()
        .map(|port| {
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            match port.node_port.filter(|node_port| *node_port > 0) {
                Some(node_port) => format!("{}:{node_port}/{protocol}", port.port),
                None => format!("{}/{protocol}", port.port),
            }
        })
        .collect();
    if ports.is_empty() { "<none>".into() } else { ports.join(",") }
}

fn endpoints(object: &Object, now: Time) -> Vec<Value> {
    let subsets = object.spec::<Endpoints>().subsets.as_deref().unwrap_or_default();
    let mut list = Vec::new();
    for subset in subsets {
        let addresses = || subset.addresses.iter().flatten();
        match subset.ports.as_deref().unwrap_or_default() {
            [] => list.extend(addresses().map(|address| address.ip.clone())),
            ports => {
                for port in ports {
                    list.extend(addresses().map(|address| with_port(&address.ip, port.port)));
                }
            }
        }
    }
    // Of subsets that are not ready nothing is shown.
    let empty = if subsets.is_empty() { "<none>" } else { "" };
    cells![&*object.key.name, some_of(&list, empty), age(object, now)]
}

fn endpoint_slice(object: &Object, now: Time) -> Vec<Value> {
    let slice = object.spec::<EndpointSlice>();
    let ports: Vec<String> = slice
        .ports
        .iter()
        .flatten()
        .map(|port| match (port.port, port.name.as_deref().unwrap_or_default()) {
            (Some(number), _) => number.to_string(),
            (None, "") => "*".into(),
            (None, name) => name.into(),
        })
        .collect();
    let addresses: Vec<String> =
        slice.endpoints.iter().flatten().flat_map(|endpoint| endpoint.addresses.clone()).collect();
    cells![
        &*object.key.name,
        slice.address_type.as_str(),
        some_of(&ports, "<unset>"),
        some_of(&addresses, "<unset>"),
        age(object, now),
    ]
}

fn ingress(object: &Object, now: Time) -> Vec<Value> {
    let spec = object.spec::<Ingress>();
    let hosts: Vec<String> = spec.rules.iter().flatten().filter_map(|rule| rule.host.clone()).collect();
    let balancer = object.status::<Ingress>().load_balancer.as_ref();
    let ingress = balancer.and_then(|status| status.ingress.as_deref()).unwrap_or_default();
    let addresses = given(ingress.iter().map(|ingress| (ingress.ip.as_ref(), ingress.hostname.as_ref())));
    cells![
        &*object.key.name,
        or_none(spec.ingress_class_name.as_deref()),
        some_of(&hosts, "*"),
        addresses.join(","),
        if spec.tls.as_ref().is_some_and(|tls| !tls.is_empty()) { "80, 443" } else { "80" },
        age(object, now),
    ]
}

fn ingress_class(object: &Object, now: Time) -> Vec<Value> {
    let spec = object.spec::<IngressClass>();
    let parameters = spec.parameters.as_ref().map_or("<none>".to_owned(), |reference| {
        let group = reference.api_group.as_ref().map_or(String::new(), |group| format!(".{group}"));
        format!("{}{group}/{}", reference.kind, reference.name)
    });
    let is_default = object.annotation("ingressclass.kubernetes.io/is-default-class") == Some("true");
    let name = format!("{}{}", object.key.name, if is_default { " (default)" } else { "" });
    cells![name, spec.controller.as_deref().unwrap_or_default(), parameters, age(object, now)]
}

fn network_policy(object: &Object, now: Time) -> Vec<Value> {
    let selector = object.spec::<NetworkPolicy>().pod_selector.as_ref().map_or("<none>".into(), selector_text);
    cells![&*object.key.name, selector, age(object, now)]
}

fn ip_address(object: &Object, _: Time) -> Vec<Value> {
    let parent = &object.spec::<IPAddress>().parent_ref;
    let place: Vec<&str> = [parent.namespace.as_deref(), Some(parent.name.as_str())].into_iter().flatten().collect();
    let group =
        parent.group.as_deref().filter(|group| !group.is_empty()).map_or(String::new(), |group| format!(".{group}"));
    cells![&*object.key.name, format!("{}{group}/{}", parent.resource, place.join("/"))]
}

fn service_cidr(object: &Object, now: Time) -> Vec<Value> {
    let cidrs = object.spec::<ServiceCIDR>().cidrs.clone().unwrap_or_default();
    cells![&*object.key.name, cidrs.join(","), age(object, now)]
}
