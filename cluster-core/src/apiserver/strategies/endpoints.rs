//! Endpoints and EndpointSlices. <https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/>

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, Endpoints};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointSlice};

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{addresses, metadata, names};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const TOPOLOGY_LABELS_MAX: usize = 16;
const HINTS_MAX: usize = 8;

/// The older kind: all endpoints of a Service in one object.
pub struct Whole;

impl Strategy for Whole {
    fn default(&self, object: &mut Object) {
        let endpoints = object.spec_mut::<Endpoints>();
        for port in endpoints.subsets.iter_mut().flatten().flat_map(|subset| &mut subset.ports).flatten() {
            port.protocol.get_or_insert_with(|| "TCP".into());
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        for (index, subset) in object.spec::<Endpoints>().subsets.iter().flatten().enumerate() {
            let path = Path::new("subsets").index(index);
            let ready = subset.addresses.as_deref().unwrap_or_default();
            let not_ready = subset.not_ready_addresses.as_deref().unwrap_or_default();
            if ready.is_empty() && not_ready.is_empty() {
                causes.required(&path, "must specify `addresses` or `notReadyAddresses`");
            }
            for (field, list) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
                for (index, address) in list.iter().enumerate() {
                    endpoint_address(&mut causes, &path.child(field).index(index), address);
                }
            }
            let ports = subset.ports.as_deref().unwrap_or_default();
            for (index, port) in ports.iter().enumerate() {
                endpoint_port(&mut causes, &path.child("ports").index(index), port, ports.len() > 1);
            }
        }
        causes.into()
    }

    fn creates_on_update(&self) -> bool {
        true
    }
}

fn endpoint_address(causes: &mut Causes, path: &Path, address: &EndpointAddress) {
    let ip_path = path.child("ip");
    let ip = addresses::ip(causes, &ip_path, &address.ip);
    if let Some(host) = address.hostname.as_deref().filter(|host| !host.is_empty()) {
        causes.invalid_each(&path.child("hostname"), host, names::dns_label(host));
    }
    if let Some(node) = &address.node_name {
        causes.invalid_each(&path.child("nodeName"), node, names::dns_subdomain(node));
    }
    if let Some(ip) = ip {
        addresses::endpoint_ip(causes, &ip_path, ip, &address.ip);
    }
}

fn endpoint_port(causes: &mut Causes, path: &Path, port: &EndpointPort, requires_name: bool) {
    match port.name.as_deref().unwrap_or_default() {
        "" if requires_name => causes.required(&path.child("name"), ""),
        "" => {}
        name => causes.invalid_each(&path.child("name"), name, names::dns_label(name)),
    }
    causes.in_range(&path.child("port"), port.port, 1, 65535);
    causes.required_one_of(&path.child("protocol"), port.protocol.as_deref(), &PROTOCOLS);
    if let Some(protocol) = &port.app_protocol {
        causes.invalid_each(&path.child("appProtocol"), protocol, names::qualified_name(protocol));
    }
}

pub struct Slices;

impl Strategy for Slices {
    fn default(&self, object: &mut Object) {
        for port in object.spec_mut::<EndpointSlice>().ports.iter_mut().flatten() {
            port.name.get_or_insert_default();
            port.protocol.get_or_insert_with(|| "TCP".into());
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (slice, mut causes) = (object.spec::<EndpointSlice>(), Causes::new());
        let types = ["FQDN", "IPv4", "IPv6"];
        causes.required_one_of(&Path::new("addressType"), Some(&slice.address_type), &types);
        slice_ports(&mut causes, &Path::new("ports"), slice);
        let (endpoints, path) = (slice_endpoints(slice), Path::new("endpoints"));
        if endpoints.len() > ENDPOINTS_MAX {
            causes.too_many(&path, endpoints.len(), ENDPOINTS_MAX);
        } else {
            for (index, endpoint) in endpoints.iter().enumerate() {
                slice_endpoint(&mut causes, &path.index(index), endpoint, &slice.address_type);
            }
        }
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        let address_type = |slice: &Object| slice.spec::<EndpointSlice>().address_type.clone();
        causes.immutable(&Path::new("addressType"), &address_type(old), &address_type(new));
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn changes_generation(&self, old: &Object, new: &Object) -> bool {
        !new.same_spec(old) || new.metadata().labels != old.metadata().labels
    }
}

fn slice_endpoints(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

fn slice_ports(causes: &mut Causes, path: &Path, slice: &EndpointSlice) {
    let ports = slice.ports.as_deref().unwrap_or_default();
    if ports.len() > PORTS_MAX {
        return causes.too_many(path, ports.len(), PORTS_MAX);
    }
    let mut known = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (path, name) = (path.index(index), port.name.as_deref().unwrap_or_default());
        if !name.is_empty() {
            causes.invalid_each(&path.child("name"), name, names::dns_label(name));
        }
        if !known.insert(name) {
            causes.duplicate(&path.child("name"), name);
        }
        causes.one_of(&path.child("protocol"), port.protocol.as_deref(), &PROTOCOLS);
        if let Some(protocol) = &port.app_protocol {
            causes.invalid_each(&path.child("appProtocol"), protocol, names::qualified_name(protocol));
        }
    }
}

fn slice_endpoint(causes: &mut Causes, path: &Path, endpoint: &Endpoint, address_type: &str) {
    let addresses_path = path.child("addresses");
    if endpoint.addresses.is_empty() {
        causes.required(&addresses_path, "must contain at least 1 address");
    } else if endpoint.addresses.len() > ADDRESSES_MAX {
        causes.too_many(&addresses_path, endpoint.addresses.len(), ADDRESSES_MAX);
    }
    for (index, text) in endpoint.addresses.iter().enumerate() {
        let place = addresses_path.index(index);
        match address_type {
            "IPv4" | "IPv6" => {
                let Some(ip) = addresses::ip(causes, &place, text) else { continue };
                if ip.is_ipv4() != (address_type == "IPv4") {
                    causes.invalid(&addresses_path, text.as_str(), format!("must be an {address_type} address"));
                }
                addresses::endpoint_ip(causes, &place, ip, text);
            }
            "FQDN" => fully_qualified(causes, &place, text),
            _ => {}
        }
    }
    if let Some(node) = &endpoint.node_name {
        causes.invalid_each(&path.child("nodeName"), node, names::dns_subdomain(node));
    }
    if let Some(topology) = &endpoint.deprecated_topology {
        let path = path.child("deprecatedTopology");
        if topology.len() > TOPOLOGY_LABELS_MAX {
            causes.too_many(&path, topology.len(), TOPOLOGY_LABELS_MAX);
        }
        metadata::labels(causes, topology, &path);
    }
    if let Some(host) = &endpoint.hostname {
        causes.invalid_each(&path.child("hostname"), host, names::dns_label(host));
    }
    if let Some(given) = &endpoint.hints {
        hints(causes, &path.child("hints"), given);
    }
}

fn fully_qualified(causes: &mut Causes, path: &Path, name: &str) {
    if name.is_empty() {
        return causes.required(path, "");
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let wrong = names::dns_subdomain(name);
    if wrong.is_empty() && name.split('.').count() < 2 {
        causes.invalid(path, name, "should be a domain with at least two segments separated by dots");
    }
    causes.invalid_each(path, name, wrong);
}

fn hints(causes: &mut Causes, path: &Path, hints: &EndpointHints) {
    let zones: Vec<&str> = hints.for_zones.iter().flatten().map(|zone| &*zone.name).collect();
    let nodes: Vec<&str> = hints.for_nodes.iter().flatten().map(|node| &*node.name).collect();
    for (field, hinted) in [("forZones", zones), ("forNodes", nodes)] {
        let path = path.child(field);
        if hinted.len() > HINTS_MAX {
            causes.too_many(&path, hinted.len(), HINTS_MAX);
            continue;
        }
        for (index, name) in hinted.iter().enumerate() {
            let path = path.index(index).child("name");
            if hinted[..index].contains(name) {
                causes.duplicate(&path, *name);
            }
            causes.invalid_each(&path, name, names::label_value(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn a_slice_is_completed_and_checked() {
        let mut api = Api::new::<EndpointSlice>();
        let slice = json!({
            "metadata": {"name": "s"}, "addressType": "IPv4",
            "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80}],
        });
        let made = api.create(slice).unwrap();
        assert_eq!(made["ports"][0], json!({"name": "", "port": 80, "protocol": "TCP"}));
        assert_eq!(made["endpoints"][0]["conditions"], json!({}));
        let labelled = api.merge("s", json!({"metadata": {"labels": {"a": "b"}}})).unwrap();
        assert_eq!((&made["metadata"]["generation"], &labelled["metadata"]["generation"]), (&json!(1), &json!(2)));
        let wrong = json!({
            "metadata": {"name": "t"}, "addressType": "IPv4",
            "endpoints": [{"addresses": ["2001:db8::1"]}, {"addresses": []}, {"addresses": ["127.0.0.1"]}],
            "ports": [{"port": 1}, {"port": 2}],
        });
        assert_eq!(
            api.refusal(wrong),
            [
                "ports[1].name: Duplicate value: \"\"",
                "endpoints[0].addresses: Invalid value: \"2001:db8::1\": must be an IPv4 address",
                "endpoints[1].addresses: Required value: must contain at least 1 address",
                "endpoints[2].addresses[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, \
                 ::1/128)",
            ]
        );
    }

    #[test]
    fn a_put_creates_endpoints() {
        let mut api = Api::new::<Endpoints>();
        let subsets = json!([{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]);
        let made = api.put(json!({"metadata": {"name": "e"}, "subsets": subsets})).unwrap();
        assert_eq!(made["subsets"][0]["ports"][0]["protocol"], "TCP");
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "f"}, "subsets": [{}]})),
            ["subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"]
        );
    }
}
