//! Cluster DNS: the names of Services and pods, as CoreDNS answers for them.
//! <https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/>

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use super::informer::slices_of;
use crate::api::Key;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::store::Store;

/// The zone of the cluster.
pub const ZONE: &str = "cluster.local";
/// A name with fewer dots is looked for in the search list first (`options ndots:5`).
const NDOTS: usize = 5;
/// CNAMEs that are followed before a resolver gives up.
const ALIASES_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    A { name: String, address: Ipv4Addr },
    Cname { name: String, target: String },
    Srv { name: String, port: u16, target: String },
    Ptr { name: String, target: String },
}

/// What a client's resolver found: the records, in the order of the answer, aliases first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The whole name under which there was something.
    pub name: String,
    pub records: Vec<Record>,
}

impl Answer {
    pub fn addresses(&self) -> Vec<Ipv4Addr> {
        let address = |record: &Record| match record {
            Record::A { address, .. } => Some(*address),
            _ => None,
        };
        self.records.iter().filter_map(address).collect()
    }
}

/// `search` of a pod's /etc/resolv.conf.
pub fn search_list(namespace: &str) -> [String; 3] {
    [format!("{namespace}.svc.{ZONE}"), format!("svc.{ZONE}"), ZONE.to_owned()]
}

/// Whether a pod asks cluster DNS, or its node's resolver (`dnsPolicy`).
pub fn asks_cluster_dns(pod: &Object) -> bool {
    let spec = pod.spec::<Pod>();
    match spec.dns_policy.as_deref() {
        Some("Default" | "None") => false,
        Some("ClusterFirstWithHostNet") => true,
        _ => spec.host_network != Some(true),
    }
}

/// What a pod of a namespace finds under a name, by way of its search list; `None` where there is nothing.
pub fn resolve(store: &Store, namespace: &str, name: &str) -> Option<Answer> {
    let whole = name.trim_end_matches('.').to_lowercase();
    let absolute = [whole.clone()];
    let searched = search_list(namespace).map(|domain| format!("{whole}.{domain}"));
    let order: Vec<&String> = if name.ends_with('.') {
        absolute.iter().collect()
    } else if whole.matches('.').count() >= NDOTS {
        absolute.iter().chain(&searched).collect()
    } else {
        searched.iter().chain(&absolute).collect()
    };
    order.into_iter().find_map(|name| {
        let records = query(store, name);
        (!records.is_empty()).then(|| Answer { name: name.clone(), records })
    })
}

/// The records of a whole name, without the dot at its end. An alias comes with what it leads to.
pub fn query(store: &Store, name: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut name = name.to_owned();
    for _ in 0..ALIASES_MAX {
        let mut found = zone(store, &name);
        let alias = match &found[..] {
            [Record::Cname { target, .. }] => Some(target.clone()),
            _ => None,
        };
        records.append(&mut found);
        match alias {
            Some(target) => name = target,
            None => break,
        }
    }
    records
}

fn zone(store: &Store, name: &str) -> Vec<Record> {
    if let Some(address) = name.strip_suffix(".in-addr.arpa") {
        return pointers(store, name, address);
    }
    let Some(labels) = name.strip_suffix(ZONE).and_then(|rest| rest.strip_suffix('.')) else { return Vec::new() };
    let labels: Vec<&str> = labels.split('.').collect();
    match labels[..] {
        [service, namespace, "svc"] => service_records(store, name, &Key::new(namespace, service)),
        [host, service, namespace, "svc"] => host_records(store, name, host, &Key::new(namespace, service)),
        [port, protocol, service, namespace, "svc"] => match (port.strip_prefix('_'), protocol.strip_prefix('_')) {
            (Some(port), Some(protocol)) => port_records(store, name, port, protocol, &Key::new(namespace, service)),
            _ => Vec::new(),
        },
        [address, namespace, "pod"]
            if store
                .get(KindRef::of::<k8s_openapi::api::core::v1::Namespace>(), &Key::cluster(namespace))
                .is_some() =>
        {
            let address = address.replace('-', ".").parse().ok();
            address.map(|address| Record::A { name: name.into(), address }).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Whose address it is, read from its last number to its first: that of a Service, or of a pod that a headless one names.
fn pointers(store: &Store, name: &str, address: &str) -> Vec<Record> {
    let numbers: Vec<&str> = address.split('.').rev().collect();
    let address = numbers.join(".");
    let ptr = |target: String| Record::Ptr { name: name.into(), target };
    let has = |service: &&Object| service.spec::<Service>().cluster_ip.as_deref() == Some(address.as_str());
    if let Some(service) = store.list(KindRef::of::<Service>(), "").find(has) {
        return vec![ptr(format!("{}.{}.svc.{ZONE}", service.key.name, service.key.namespace))];
    }
    let Ok(address) = address.parse::<Ipv4Addr>() else { return Vec::new() };
    let headless = store.list(KindRef::of::<Service>(), "").filter(|service| is_headless(store, &service.key));
    let named = headless.flat_map(|service| {
        let found = ready_endpoints(store, &service.key).into_iter().filter(|endpoint| endpoint.address == address);
        let (name, namespace) = (&service.key.name, &service.key.namespace);
        found.map(|endpoint| ptr(format!("{}.{name}.{namespace}.svc.{ZONE}", endpoint.host))).collect::<Vec<_>>()
    });
    named.collect()
}

fn service_records(store: &Store, name: &str, key: &Key) -> Vec<Record> {
    let Some(service) = store.get(KindRef::of::<Service>(), key) else { return Vec::new() };
    let spec = service.spec::<Service>();
    if spec.type_.as_deref() == Some("ExternalName") {
        let target = spec.external_name.as_deref().unwrap_or_default().trim_end_matches('.').to_owned();
        return vec![Record::Cname { name: name.into(), target }];
    }
    let a = |address| Record::A { name: name.into(), address };
    match spec.cluster_ip.as_deref().and_then(|ip| ip.parse().ok()) {
        Some(address) => vec![a(address)],
        None => ready_endpoints(store, key).into_iter().map(|endpoint| a(endpoint.address)).collect(),
    }
}

/// Pods that a headless Service names, by the host name of their endpoint or by their address with dashes.
fn host_records(store: &Store, name: &str, host: &str, key: &Key) -> Vec<Record> {
    if !is_headless(store, key) {
        return Vec::new();
    }
    let found = ready_endpoints(store, key).into_iter().filter(|endpoint| endpoint.host == host);
    found.map(|endpoint| Record::A { name: name.into(), address: endpoint.address }).collect()
}

fn port_records(store: &Store, name: &str, port: &str, protocol: &str, key: &Key) -> Vec<Record> {
    let Some(service) = store.get(KindRef::of::<Service>(), key) else { return Vec::new() };
    let base = format!("{}.{}.svc.{ZONE}", key.name, key.namespace);
    let ports = service.spec::<Service>().ports.iter().flatten();
    let mut wanted = ports.filter(|known| {
        known.name.as_deref() == Some(port) && known.protocol.as_deref().unwrap_or("TCP").eq_ignore_ascii_case(protocol)
    });
    let Some(wanted) = wanted.next() else { return Vec::new() };
    let srv = |port, target| Record::Srv { name: name.into(), port, target };
    if !is_headless(store, key) {
        return vec![srv(u16::try_from(wanted.port).unwrap_or(0), base)];
    }
    let mut records = Vec::new();
    for slice in slices_of(store.objects(KindRef::of::<EndpointSlice>()), key) {
        let slice = slice.spec::<EndpointSlice>();
        let named = slice.ports.iter().flatten().filter(|known| known.name.as_deref() == Some(port));
        for number in named.filter_map(|known| known.port.and_then(|number| u16::try_from(number).ok())) {
            let ready = slice.endpoints.iter().flatten().filter_map(Known::of);
            records.extend(ready.map(|endpoint| srv(number, format!("{}.{base}", endpoint.host))));
        }
    }
    records
}

fn is_headless(store: &Store, key: &Key) -> bool {
    let service = store.get(KindRef::of::<Service>(), key);
    service.is_some_and(|service| service.spec::<Service>().cluster_ip.as_deref() == Some("None"))
}

struct Known {
    address: Ipv4Addr,
    host: String,
}

impl Known {
    /// An endpoint that is ready, as its slice counts it (not-ready pods count as ready with
    /// `publishNotReadyAddresses`).
    fn of(endpoint: &Endpoint) -> Option<Known> {
        let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true);
        let address: Ipv4Addr = endpoint.addresses.first().filter(|_| ready)?.parse().ok()?;
        let host = endpoint.hostname.clone().unwrap_or_else(|| address.to_string().replace('.', "-"));
        Some(Known { address, host })
    }
}

fn ready_endpoints(store: &Store, key: &Key) -> Vec<Known> {
    let slices =
        slices_of(store.objects(KindRef::of::<EndpointSlice>()), key).map(|slice| slice.spec::<EndpointSlice>());
    let endpoints = slices.flat_map(|slice| slice.endpoints.iter().flatten());
    let mut found: Vec<Known> = endpoints.filter_map(Known::of).collect();
    found.sort_by_key(|endpoint| endpoint.address);
    found.dedup_by_key(|endpoint| endpoint.address);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::kind::Resource;

    fn store() -> Store {
        let mut store = Store::new(crate::api::kinds::built_in().len());
        let mut put = |object: Object| store.put(object, None, None, 1).map(|_| ()).unwrap();
        fn service(name: &str, spec: Value) -> Object {
            let service = json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec});
            Object::from_json(Service::kind(), service).unwrap()
        }
        put(service("web", json!({"clusterIP": "10.96.1.1", "ports": [{"name": "http", "port": 80}]})));
        put(service("db", json!({"clusterIP": "None", "ports": [{"name": "sql", "port": 5432}]})));
        put(service("alias", json!({"type": "ExternalName", "externalName": "web.default.svc.cluster.local"})));
        put(service("away", json!({"type": "ExternalName", "externalName": "example.com"})));
        let slice = json!({
            "metadata": {"name": "db-x", "namespace": "default", "labels": {"kubernetes.io/service-name": "db"}},
            "addressType": "IPv4", "ports": [{"name": "sql", "port": 5432}],
            "endpoints": [
                {"addresses": ["10.244.1.2"], "hostname": "db-0", "conditions": {"ready": true}},
                {"addresses": ["10.244.2.2"], "conditions": {"ready": true}},
                {"addresses": ["10.244.3.2"], "conditions": {"ready": false}},
            ],
        });
        put(Object::from_json(EndpointSlice::kind(), slice).unwrap());
        store
    }

    fn found(namespace: &str, name: &str) -> Option<(String, Vec<String>)> {
        let answer = resolve(&store(), namespace, name)?;
        let addresses = answer.addresses().iter().map(Ipv4Addr::to_string).collect();
        Some((answer.name, addresses))
    }

    #[test]
    fn short_names_are_found_by_the_search_list() {
        let whole = "web.default.svc.cluster.local".to_owned();
        let expected = Some((whole, vec!["10.96.1.1".to_owned()]));
        for name in ["web", "web.default", "web.default.svc", "web.default.svc.cluster.local", "WEB"] {
            assert_eq!(found("default", name), expected, "{name}");
        }
        assert_eq!(found("other", "web"), None);
        assert_eq!(found("other", "web.default"), expected);
        assert_eq!(found("default", "web."), None);
    }

    #[test]
    fn a_headless_service_is_its_ready_pods() {
        assert_eq!(found("default", "db").unwrap().1, ["10.244.1.2", "10.244.2.2"]);
        assert_eq!(found("default", "db-0.db").unwrap().1, ["10.244.1.2"]);
        assert_eq!(found("default", "10-244-2-2.db").unwrap().1, ["10.244.2.2"]);
        assert_eq!(found("default", "10-244-3-2.db"), None);
        let records = query(&store(), "_sql._tcp.db.default.svc.cluster.local");
        let target = "db-0.db.default.svc.cluster.local".to_owned();
        let name = "_sql._tcp.db.default.svc.cluster.local".to_owned();
        assert_eq!(records[0], Record::Srv { name, port: 5432, target });
        assert_eq!(records.len(), 2);
        let target = "web.default.svc.cluster.local".to_owned();
        let name = "1.1.96.10.in-addr.arpa".to_owned();
        assert_eq!(query(&store(), &name), [Record::Ptr { name, target }]);
        let name = "2.1.244.10.in-addr.arpa".to_owned();
        let target = "db-0.db.default.svc.cluster.local".to_owned();
        assert_eq!(query(&store(), &name), [Record::Ptr { name, target }]);
    }

    #[test]
    fn an_external_name_is_an_alias() {
        let answer = resolve(&store(), "default", "alias").unwrap();
        assert_eq!(answer.addresses(), [Ipv4Addr::new(10, 96, 1, 1)]);
        assert!(
            matches!(&answer.records[0], Record::Cname { target, .. } if target == "web.default.svc.cluster.local")
        );
        assert!(resolve(&store(), "default", "away").unwrap().addresses().is_empty());
    }
}
