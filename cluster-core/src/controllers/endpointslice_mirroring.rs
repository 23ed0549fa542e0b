//! endpointslicemirroring-controller: what is written by hand into the Endpoints of a Service without selector shows in
//! EndpointSlices, too.
//! <https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#endpointslice-mirroring>

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{self as core, EndpointAddress, EndpointSubset, Endpoints, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use super::endpoint_ports;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::selector::Labels;
use crate::store::Change;

/// `--mirroring-max-endpoints-per-subset`.
const ENDPOINTS_MAX: usize = 1000;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations that are about the Endpoints only.
const NOT_COPIED: [&str; 2] =
    ["endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration"];

pub struct EndpointSliceMirroringController;

impl Controller for EndpointSliceMirroringController {
    fn name(&self) -> &str {
        "endpointslicemirroring-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::with(Endpoints::kind(), written_by_hand),
            Watch::with(Service::kind(), selects_now),
            Watch::with(EndpointSlice::kind(), mirrors),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let mut slices: Vec<&Object> =
            view.list::<EndpointSlice>(&key.namespace).filter(|slice| is_mirror_of(slice, &key.name)).collect();
        let service = view.get::<Service>(key);
        let endpoints = view.get::<Endpoints>(key).filter(|endpoints| should_mirror(endpoints));
        match endpoints.filter(|_| service.is_some_and(|service| !selects(service))) {
            Some(endpoints) => mirror(endpoints, &mut slices, &mut plan),
            None => {
                for slice in slices {
                    plan.delete(slice, "there is nothing to mirror");
                }
            }
        }
        plan
    }
}

fn selects(service: &Object) -> bool {
    service.spec::<Service>().selector.is_some()
}

fn should_mirror(endpoints: &Object) -> bool {
    endpoints.label(SKIP_MIRROR) != Some("true") && endpoints.annotation(LEADER).is_none()
}

fn is_mirror_of(slice: &Object, service: &str) -> bool {
    slice.label(MANAGED_BY) == Some(MANAGER) && slice.label(SERVICE_NAME) == Some(service)
}

/// Endpoints of a Service that selects are the endpoints controller's.
fn written_by_hand(view: &View<'_>, change: &Change) -> Vec<Key> {
    let key = change.key();
    if view.get::<Service>(key).is_some_and(selects) { Vec::new() } else { vec![key.clone()] }
}

fn selects_now(view: &View<'_>, change: &Change) -> Vec<Key> {
    let is_same = change.before.as_ref().map(selects) == change.after.as_ref().map(selects);
    let may_matter = view.get::<Endpoints>(change.key()).is_some();
    if is_same || !may_matter { Vec::new() } else { vec![change.key().clone()] }
}

fn mirrors(_: &View<'_>, change: &Change) -> Vec<Key> {
    let slice = change.object();
    let service = slice.label(SERVICE_NAME).filter(|service| is_mirror_of(slice, service));
    service.map(|service| Key::new(slice.key.namespace.clone(), service)).into_iter().collect()
}

/// What is wanted: slices by address type and ports.
type Wanted = BTreeMap<(&'static str, String), (Vec<EndpointPort>, Vec<Endpoint>)>;

fn mirror(endpoints: &Object, slices: &mut Vec<&Object>, plan: &mut Plan) {
    let mut missing = Vec::new();
    for ((family, id), (ports, list)) in wanted(endpoints, plan) {
        let is_its = |slice: &Object| {
            let spec = slice.spec::<EndpointSlice>();
            spec.address_type == family && id_of(spec.ports.as_deref().unwrap_or_default()) == id
        };
        match slices.iter().position(|slice| is_its(slice)) {
            Some(at) => {
                let known = slices.remove(at);
                let new = filled(known.clone(), endpoints, ports, list);
                if !(new.same_spec(known) && same_marks(&new, known)) {
                    plan.update(new, "the Endpoints have changed");
                }
            }
            None => missing.push((family, ports, list)),
        }
    }
    for (family, ports, list) in missing {
        // A slice that is not wanted any more is used again before a new one is made.
        match slices.iter().position(|slice| slice.spec::<EndpointSlice>().address_type == family) {
            Some(at) => {
                let used = slices.remove(at).clone();
                plan.update(filled(used, endpoints, ports, list), "the Endpoints have changed");
            }
            None if endpoints.is_terminating() => {}
            None => {
                let slice = filled(new_slice(endpoints, family), endpoints, ports, list);
                plan.create(slice, "the Endpoints have no slice").tolerate(&["NamespaceTerminating"]);
            }
        }
    }
    for slice in slices.iter() {
        plan.delete(slice, "the Endpoints have no such ports any more");
    }
}

fn same_marks(a: &Object, b: &Object) -> bool {
    let none = Labels::new();
    let annotations = |slice: &Object| slice.metadata().annotations.clone().unwrap_or_default();
    let labels = |slice: &Object| slice.metadata().labels.as_ref().unwrap_or(&none).clone();
    labels(a) == labels(b) && annotations(a) == annotations(b)
}

fn new_slice(endpoints: &Object, family: &str) -> Object {
    let spec = EndpointSlice { address_type: family.to_owned(), ..EndpointSlice::default() };
    let mut slice = Object::new::<EndpointSlice>(&endpoints.key.namespace, "", spec);
    let metadata = slice.metadata_mut();
    metadata.generate_name = Some(format!("{}-", endpoints.key.name));
    metadata.owner_references = Some(vec![endpoints.controller_reference()]);
    slice
}

/// The slice with these contents, and with the labels and annotations of the Endpoints.
fn filled(mut slice: Object, endpoints: &Object, ports: Vec<EndpointPort>, list: Vec<Endpoint>) -> Object {
    let metadata = slice.metadata_mut();
    let labels = metadata.labels.insert(endpoints.metadata().labels.clone().unwrap_or_default());
    labels.insert(SERVICE_NAME.into(), endpoints.key.name.to_string());
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    let mut annotations = endpoints.metadata().annotations.clone().unwrap_or_default();
    annotations.retain(|name, _| !NOT_COPIED.contains(&name.as_str()));
    metadata.annotations = (!annotations.is_empty()).then_some(annotations);
    let spec = slice.spec_mut::<EndpointSlice>();
    spec.ports = (!ports.is_empty()).then_some(ports);
    // Those that are there already keep their places.
    let mut rest = list;
    let mut kept: Vec<Endpoint> = Vec::new();
    for known in spec.endpoints.iter().flatten() {
        if let Some(at) = rest.iter().position(|endpoint| endpoint == known) {
            kept.push(rest.remove(at));
        }
    }
    kept.extend(rest);
    spec.endpoints = Some(kept);
    slice
}

fn id_of(ports: &[EndpointPort]) -> String {
    let mut ports: Vec<String> = ports.iter().filter_map(|port| serde_json::to_string(port).ok()).collect();
    ports.sort();
    ports.join(",")
}

fn wanted(endpoints: &Object, plan: &mut Plan) -> Wanted {
    let mut wanted = Wanted::new();
    let (mut invalid, mut skipped) = (0, 0);
    for (ports, addresses) in repacked(endpoints.spec::<Endpoints>().subsets.as_deref().unwrap_or_default()) {
        let mut ports: Vec<EndpointPort> = ports.into_iter().map(slice_port).collect();
        endpoint_ports::sort(&mut ports);
        let mut taken = 0;
        for (address, ready) in addresses {
            if taken >= ENDPOINTS_MAX {
                skipped += 1;
                continue;
            }
            let family = match address.ip.parse() {
                Ok(IpAddr::V4(_)) => "IPv4",
                Ok(IpAddr::V6(_)) => "IPv6",
                Err(_) => {
                    invalid += 1;
                    continue;
                }
            };
            taken += 1;
            let entry = wanted.entry((family, id_of(&ports))).or_insert_with(|| (ports.clone(), Vec::new()));
            entry.1.push(endpoint(address, ready));
        }
    }
    if invalid > 0 {
        let text = format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
        plan.event(EventNote::warning(endpoints, "InvalidIPAddress", text));
    }
    if skipped > 0 {
        let text = format!(
            "A max of {ENDPOINTS_MAX} addresses can be mirrored to EndpointSlices per Endpoints subset. {skipped} addresses \
             were skipped"
        );
        plan.event(EventNote::warning(endpoints, "TooManyAddressesToMirror", text));
    }
    wanted
}

fn slice_port(port: core::EndpointPort) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.unwrap_or_default()),
        port: Some(port.port),
        protocol: Some(port.protocol.unwrap_or_else(|| "TCP".into())),
        app_protocol: port.app_protocol,
    }
}

fn endpoint(address: EndpointAddress, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![address.ip],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.filter(|hostname| !hostname.is_empty()),
        node_name: address.node_name,
        target_ref: address.target_ref,
        ..Endpoint::default()
    }
}

/// Addresses with their readiness, by address and by the uid of what they stand for.
type Addresses = BTreeMap<(String, String), (EndpointAddress, bool)>;

/// Ports, and the addresses that have all of them.
type Packed = (Vec<core::EndpointPort>, Vec<(EndpointAddress, bool)>);

/// The subsets, packed anew: ports with the same addresses stand together. Where an address is said to be both, it is
/// not ready.
fn repacked(subsets: &[EndpointSubset]) -> Vec<Packed> {
    let mut by_port: BTreeMap<String, (Option<core::EndpointPort>, Addresses)> = BTreeMap::new();
    for subset in subsets {
        let mut ports: Vec<Option<core::EndpointPort>> = subset.ports.iter().flatten().cloned().map(Some).collect();
        if ports.is_empty() {
            ports.push(None);
        }
        for port in ports {
            let id = serde_json::to_string(&port).unwrap_or_default();
            let (_, addresses) = by_port.entry(id).or_insert_with(|| (port, Addresses::new()));
            let ready = subset.addresses.iter().flatten().map(|address| (address, true));
            let unready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
            for (address, is_ready) in ready.chain(unready) {
                let uid = address.target_ref.as_ref().and_then(|target| target.uid.clone()).unwrap_or_default();
                let known = addresses.entry((address.ip.clone(), uid)).or_insert_with(|| (address.clone(), is_ready));
                known.1 &= is_ready;
            }
        }
    }
    let mut packed: Vec<(Vec<core::EndpointPort>, Addresses)> = Vec::new();
    for (port, addresses) in by_port.into_values() {
        match packed.iter_mut().find(|(_, known)| *known == addresses) {
            Some((ports, _)) => ports.extend(port),
            None => packed.push((port.into_iter().collect(), addresses)),
        }
    }
    packed.into_iter().map(|(ports, addresses)| (ports, addresses.into_values().collect())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Cluster;
    use crate::controllers::testing::*;

    /// Family, ports and addresses with their readiness, of each slice.
    fn slices(cluster: &Cluster) -> Vec<(String, Vec<i32>, Vec<String>)> {
        let mut slices: Vec<_> = cluster
            .list::<EndpointSlice>("default")
            .filter(|slice| is_mirror_of(slice, "web"))
            .map(|slice| {
                let spec = slice.spec::<EndpointSlice>();
                let ports = spec.ports.iter().flatten().filter_map(|port| port.port).collect();
                let endpoint = |endpoint: &Endpoint| {
                    let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready);
                    format!("{} {}", endpoint.addresses[0], ready.unwrap())
                };
                let endpoints = spec.endpoints.iter().flatten().map(endpoint).collect();
                (spec.address_type.clone(), ports, endpoints)
            })
            .collect();
        slices.sort();
        slices
    }

    fn with(subsets: Value) -> Cluster {
        let mut cluster = control_plane();
        create::<Service>(&mut cluster, json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}));
        create::<Endpoints>(
            &mut cluster,
            json!({"metadata": {"name": "web", "labels": {"k": "v"}, "annotations": {"x": "y"}}, "subsets": subsets}),
        );
        settle(&mut cluster);
        cluster
    }

    #[test]
    fn what_is_written_by_hand_shows_in_a_slice_and_follows() {
        let mut cluster = with(json!([{"addresses": [{"ip": "192.0.2.1"}], "notReadyAddresses": [{"ip": "192.0.2.3"}],
            "ports": [{"port": 5432}]}]));
        let expected = vec!["192.0.2.1 true".to_owned(), "192.0.2.3 false".to_owned()];
        assert_eq!(slices(&cluster), [("IPv4".into(), vec![5432], expected)]);
        let slice = cluster.list::<EndpointSlice>("default").find(|slice| is_mirror_of(slice, "web")).unwrap().clone();
        assert_eq!((slice.label("k"), slice.annotation("x")), (Some("v"), Some("y")));
        patch::<Endpoints>(
            &mut cluster,
            "web",
            json!({"subsets": [{"addresses": [{"ip": "192.0.2.9"}], "ports": [{"port": 5433}]}]}),
        )
        .unwrap();
        settle(&mut cluster);
        assert_eq!(slices(&cluster), [("IPv4".into(), vec![5433], vec!["192.0.2.9 true".to_owned()])]);
        assert!(cluster.list::<EndpointSlice>("default").any(|known| known.uid() == slice.uid()), "it is used again");
        patch::<Service>(&mut cluster, "web", json!({"spec": {"selector": {"app": "web"}}})).unwrap();
        settle(&mut cluster);
        assert!(slices(&cluster).is_empty());
    }

    #[test]
    fn ports_with_the_same_addresses_share_a_slice_and_families_do_not() {
        let cluster = with(json!([
            {"addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}], "ports": [{"name": "a", "port": 1}]},
            {"addresses": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}], "ports": [{"name": "b", "port": 2}]},
        ]));
        assert_eq!(
            slices(&cluster),
            [
                ("IPv4".into(), vec![2, 1], vec!["192.0.2.1 true".to_owned()]),
                ("IPv6".into(), vec![2, 1], vec!["2001:db8::1 true".to_owned()]),
            ]
        );
    }

    #[test]
    fn those_that_ask_not_to_be_mirrored_are_not() {
        let mut cluster = with(json!([{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 1}]}]));
        patch::<Endpoints>(&mut cluster, "web", json!({"metadata": {"labels": {SKIP_MIRROR: "true"}}})).unwrap();
        settle(&mut cluster);
        assert!(slices(&cluster).is_empty());
    }
}
