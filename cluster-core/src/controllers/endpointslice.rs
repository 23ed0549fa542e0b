//! endpointslice-controller: which pods stand behind a Service, on which ports, and whether they take traffic.
//! <https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/>

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use super::{endpoint_ports, pods};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::selector::{Labels, Selector};
use crate::clock::Time;
use crate::store::Change;

/// `--max-endpoints-per-slice`.
const ENDPOINTS_MAX: usize = 100;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const HEADLESS: &str = "service.kubernetes.io/headless";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

pub struct EndpointSliceController;

impl Controller for EndpointSliceController {
    fn name(&self) -> &str {
        "endpointslice-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::itself(Service::kind()),
            Watch::owner(EndpointSlice::kind(), Service::kind()),
            Watch::with(Pod::kind(), services_of),
            Watch::with(Node::kind(), services_that_missed),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(service) = view.get::<Service>(key) else { return plan };
        let spec = service.spec::<Service>();
        let Some(labels) = spec.selector.as_ref().filter(|selector| !selector.is_empty()) else { return plan };
        if service.is_terminating() || spec.type_.as_deref() == Some("ExternalName") {
            return plan;
        }
        let selector = Selector::of_labels(labels);
        let selected: Vec<&Object> = view.select::<Pod>(&key.namespace, &selector).collect();
        let families = spec.ip_families.clone().unwrap_or_else(|| vec!["IPv4".into()]);
        for family in families {
            reconcile_family(service, &family, &selected, view, &mut plan);
        }
        plan
    }
}

/// A pod concerns the Services that select it, or did, if anything changed that a slice shows.
pub fn services_of(view: &View<'_>, change: &Change) -> Vec<Key> {
    if let (Some(before), Some(after)) = (&change.before, &change.after)
        && shows_the_same(before, after)
    {
        return Vec::new();
    }
    let labels: Vec<Option<&Labels>> =
        [&change.before, &change.after].into_iter().flatten().map(|pod| pod.metadata().labels.as_ref()).collect();
    let selects = |service: &&Object| {
        let selector = service.spec::<Service>().selector.as_ref().filter(|selector| !selector.is_empty());
        let selector = selector.map(Selector::of_labels);
        selector.is_some_and(|selector| labels.iter().any(|labels| selector.matches(*labels)))
    };
    view.list::<Service>(&change.key().namespace).filter(selects).map(|service| service.key.clone()).collect()
}

fn shows_the_same(before: &Object, after: &Object) -> bool {
    let flags = |pod: &Object| (pods::is_ready(pod), pods::is_finished(pod), pod.is_terminating());
    flags(before) == flags(after)
        && before.status::<Pod>().pod_ips == after.status::<Pod>().pod_ips
        && before.spec::<Pod>().node_name == after.spec::<Pod>().node_name
        && before.metadata().labels == after.metadata().labels
}

/// A node that was not there yet hid its pods.
fn services_that_missed(view: &View<'_>, change: &Change) -> Vec<Key> {
    if change.before.is_some() {
        return Vec::new();
    }
    let namespaces: std::collections::BTreeSet<_> =
        view.pods_on(&change.key().name).map(|pod| pod.key.namespace.clone()).collect();
    let services = |namespace| view.list::<Service>("").filter(move |service| service.key.namespace == namespace);
    namespaces.into_iter().flat_map(services).map(|service| service.key.clone()).collect()
}

/// Brings the slices of one address family up to date: pods with the same ports share slices.
fn reconcile_family(service: &Object, family: &str, selected: &[&Object], view: &View<'_>, plan: &mut Plan) {
    let mut wanted: BTreeMap<String, (Vec<EndpointPort>, BTreeMap<&str, Endpoint>)> = BTreeMap::new();
    for pod in selected {
        if let Some(endpoint) = endpoint_of(pod, service, family, view) {
            let ports = ports_of(pod, service);
            let group = wanted.entry(id_of(&ports)).or_insert_with(|| (ports, BTreeMap::new()));
            group.1.insert(pod.uid(), endpoint);
        }
    }
    let mut known: BTreeMap<String, Vec<&Object>> = BTreeMap::new();
    for slice in view.controlled::<EndpointSlice>(service.uid()).filter(|slice| !slice.is_terminating()) {
        let spec = slice.spec::<EndpointSlice>();
        if spec.address_type == family && slice.label(MANAGED_BY) == Some(MANAGER) {
            known.entry(id_of(spec.ports.as_deref().unwrap_or_default())).or_default().push(slice);
        }
    }
    if wanted.is_empty() {
        // A Service without pods has one slice that says so.
        wanted.insert(id_of(&[]), (Vec::new(), BTreeMap::new()));
    }
    for (id, (ports, endpoints)) in wanted {
        let slices = known.remove(&id).unwrap_or_default();
        Group { service, family, ports, view }.reconcile(slices, endpoints, plan);
    }
    for slice in known.into_values().flatten() {
        plan.delete(slice, "no pod has these ports any more");
    }
}

/// Pods of one Service with the same ports.
struct Group<'a> {
    service: &'a Object,
    family: &'a str,
    ports: Vec<EndpointPort>,
    view: &'a View<'a>,
}

impl Group<'_> {
    /// Moves no endpoint from slice to slice: changes what changed, takes out what is gone, fills up changed slices,
    /// then the fullest that has room for the rest, then new ones.
    fn reconcile(&self, slices: Vec<&Object>, mut wanted: BTreeMap<&str, Endpoint>, plan: &mut Plan) {
        let count = wanted.len();
        let mut touched: Vec<(Object, Vec<Endpoint>)> = Vec::new();
        let mut untouched: Vec<&Object> = Vec::new();
        let mut emptied: Vec<&Object> = Vec::new();
        for slice in slices {
            let present: Vec<&Endpoint> = endpoints_of(slice).iter().collect();
            let kept: Vec<Endpoint> = present.iter().filter_map(|known| wanted.remove(uid_of(known)?)).collect();
            if kept.is_empty() && count > 0 {
                emptied.push(slice);
            } else if !kept.iter().eq(present) || self.labels() != slice.metadata().labels {
                touched.push((slice.clone(), kept));
            } else {
                untouched.push(slice);
            }
        }
        if count == 0 && touched.is_empty() && untouched.is_empty() {
            touched.push((self.new_slice(), Vec::new()));
        }
        // Surplus placeholders of a Service without pods.
        if count == 0 {
            emptied.extend(untouched.drain(..).skip(1));
        }
        let mut rest: Vec<Endpoint> = wanted.into_values().collect();
        for (_, endpoints) in &mut touched {
            let room = ENDPOINTS_MAX.saturating_sub(endpoints.len()).min(rest.len());
            endpoints.extend(rest.drain(..room));
        }
        let size = |slice: &Object| endpoints_of(slice).len();
        let fits = |slice: &&&Object| size(slice) + rest.len() <= ENDPOINTS_MAX;
        if !rest.is_empty()
            && rest.len() < ENDPOINTS_MAX
            && let Some(slice) = untouched.iter().filter(fits).max_by_key(|slice| size(slice))
        {
            let mut endpoints = endpoints_of(slice).to_vec();
            endpoints.append(&mut rest);
            touched.push(((*slice).clone(), endpoints));
        }
        while !rest.is_empty() {
            let room = ENDPOINTS_MAX.min(rest.len());
            // What was emptied is used again before a new one is made.
            let slice = emptied.pop().cloned().unwrap_or_else(|| self.new_slice());
            touched.push((slice, rest.drain(..room).collect()));
        }
        for (slice, endpoints) in touched {
            self.write(slice, endpoints, plan);
        }
        for slice in emptied {
            plan.delete(slice, "it has no endpoints any more");
        }
    }

    fn write(&self, mut slice: Object, endpoints: Vec<Endpoint>, plan: &mut Plan) {
        let trigger = self.trigger_time(&slice, &endpoints);
        let labels = self.labels();
        let metadata = slice.metadata_mut();
        metadata.labels = labels;
        let annotations = metadata.annotations.get_or_insert_default();
        match trigger {
            Some(time) => annotations.insert(TRIGGER_TIME.into(), time.timestamp().to_string()),
            None => annotations.remove(TRIGGER_TIME),
        };
        if annotations.is_empty() {
            metadata.annotations = None;
        }
        slice.spec_mut::<EndpointSlice>().endpoints = (!endpoints.is_empty()).then_some(endpoints);
        if slice.revision == 0 {
            plan.create(slice, "pods have come that no slice shows").tolerate(&["NamespaceTerminating"]);
        } else {
            plan.update(slice, "pods have come, gone or changed");
        }
    }

    fn new_slice(&self) -> Object {
        let spec = EndpointSlice {
            address_type: self.family.to_owned(),
            ports: (!self.ports.is_empty()).then(|| self.ports.clone()),
            ..EndpointSlice::default()
        };
        let mut slice = Object::new::<EndpointSlice>(&self.service.key.namespace, "", spec);
        let metadata = slice.metadata_mut();
        metadata.generate_name = Some(format!("{}-", self.service.key.name));
        metadata.owner_references = Some(vec![self.service.controller_reference()]);
        slice
    }

    /// The Service's labels and what says whose the slice is.
    fn labels(&self) -> Option<Labels> {
        let mut labels = self.service.metadata().labels.clone().unwrap_or_default();
        labels.retain(|name, _| ![SERVICE_NAME, MANAGED_BY, HEADLESS].contains(&name.as_str()));
        labels.insert(SERVICE_NAME.into(), self.service.key.name.to_string());
        labels.insert(MANAGED_BY.into(), MANAGER.into());
        if self.service.spec::<Service>().cluster_ip.as_deref() == Some("None") {
            labels.insert(HEADLESS.into(), String::new());
        }
        Some(labels)
    }

    /// When the first of the changes happened that a write tells: a pod's readiness, or the making of the Service.
    fn trigger_time(&self, slice: &Object, endpoints: &[Endpoint]) -> Option<Time> {
        let known = endpoints_of(slice);
        let changed = endpoints.iter().filter(|endpoint| !known.contains(endpoint));
        let pods = changed.filter_map(|endpoint| self.view.by_uid(uid_of(endpoint)?));
        let ready = pods.filter_map(pods::ready_since).min();
        let created = (slice.revision == 0).then_some(self.service.metadata().creation_timestamp.as_ref()).flatten();
        ready.or(created.map(Time::from))
    }
}

fn endpoints_of(slice: &Object) -> &[Endpoint] {
    slice.spec::<EndpointSlice>().endpoints.as_deref().unwrap_or_default()
}

fn uid_of(endpoint: &Endpoint) -> Option<&str> {
    endpoint.target_ref.as_ref()?.uid.as_deref()
}

fn id_of(ports: &[EndpointPort]) -> String {
    serde_json::to_string(ports).unwrap_or_default()
}

/// How a slice shows a pod; `None` if it has no address, has ended, or its node is not known.
fn endpoint_of(pod: &Object, service: &Object, family: &str, view: &View<'_>) -> Option<Endpoint> {
    if pods::is_finished(pod) {
        return None;
    }
    let (spec, status) = (pod.spec::<Pod>(), pod.status::<Pod>());
    let ips = status.pod_ips.iter().flatten().map(|ip| &ip.ip).chain(status.pod_ip.iter());
    let address = ips.into_iter().find(|ip| ip.contains(':') == (family == "IPv6"))?;
    let keeps_unready = service.spec::<Service>().publish_not_ready_addresses.unwrap_or(false);
    let node = spec.node_name.as_deref().map(|name| view.get::<Node>(&Key::cluster(name)));
    if matches!(node, Some(None)) && !keeps_unready {
        return None;
    }
    let serving = pods::is_ready(pod);
    let terminating = pod.is_terminating();
    let in_domain = spec.subdomain.as_deref() == Some(&*service.key.name);
    Some(Endpoint {
        addresses: vec![address.clone()],
        conditions: Some(EndpointConditions {
            ready: Some(keeps_unready || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: spec.hostname.clone().filter(|hostname| in_domain && !hostname.is_empty()),
        node_name: spec.node_name.clone(),
        target_ref: Some(reference_to(pod)),
        zone: node.flatten().and_then(|node| node.label("topology.kubernetes.io/zone")).map(str::to_owned),
        ..Endpoint::default()
    })
}

/// How endpoints refer to their pod.
pub fn reference_to(pod: &Object) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".into()),
        name: Some(pod.key.name.to_string()),
        namespace: Some(pod.key.namespace.to_string()),
        uid: Some(pod.uid().to_owned()),
        ..ObjectReference::default()
    }
}

fn ports_of(pod: &Object, service: &Object) -> Vec<EndpointPort> {
    let ports = service.spec::<Service>().ports.iter().flatten();
    let resolved = |port: &ServicePort| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(target_port(pod, port)?),
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".into())),
            app_protocol: port.app_protocol.clone(),
        })
    };
    let mut ports: Vec<EndpointPort> = ports.filter_map(resolved).collect();
    endpoint_ports::sort(&mut ports);
    ports
}

/// The number of a Service's port on a pod; a name is looked up among the ports of its containers.
pub fn target_port(pod: &Object, port: &ServicePort) -> Option<i32> {
    match &port.target_port {
        None => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let spec = pod.spec::<Pod>();
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let sidecar = |container: &&k8s_openapi::api::core::v1::Container| {
                container.restart_policy.as_deref() == Some("Always")
            };
            let sidecars = spec.init_containers.iter().flatten().filter(sidecar);
            let mut ports = spec.containers.iter().chain(sidecars).flat_map(|c| c.ports.iter().flatten());
            let named = |known: &&k8s_openapi::api::core::v1::ContainerPort| {
                known.name.as_deref() == Some(name) && known.protocol.as_deref().unwrap_or("TCP") == protocol
            };
            ports.find(named).map(|port| port.container_port)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Cluster;
    use crate::controllers::testing::*;

    fn pod(cluster: &mut Cluster, name: &str, number: usize, ready: bool, port: i32) {
        let pod = create::<Pod>(
            cluster,
            json!({
                "metadata": {"name": name, "labels": {"app": "web"}},
                "spec": {"nodeName": "node-1",
                    "containers": [{"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": port}]}]},
            }),
        );
        let ip = format!("10.244.{}.{}", number / 250, number % 250 + 1);
        give_ip(cluster, &pod, &ip);
        let pod = cluster.get::<Pod>("default", name).unwrap().clone();
        run_pod(cluster, &pod, ready);
    }

    fn service(target: Value) -> Value {
        json!({
            "metadata": {"name": "web", "labels": {"team": "a"}},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": target, "name": "http"}]},
        })
    }

    fn slices(cluster: &Cluster) -> Vec<&Object> {
        let mut slices: Vec<&Object> = cluster.list::<EndpointSlice>("default").collect();
        slices.sort_by_key(|slice| slice.to_json()["ports"][0]["port"].as_i64());
        slices
    }

    /// Name of the pod, ready, serving, terminating.
    fn shown(slice: &Object) -> Vec<(String, bool, bool, bool)> {
        let one = |endpoint: &Endpoint| {
            let conditions = endpoint.conditions.clone().unwrap();
            let is = |condition: Option<bool>| condition.unwrap();
            let name = endpoint.target_ref.as_ref().unwrap().name.clone().unwrap();
            (name, is(conditions.ready), is(conditions.serving), is(conditions.terminating))
        };
        let mut shown: Vec<_> = endpoints_of(slice).iter().map(one).collect();
        shown.sort();
        shown
    }

    #[test]
    fn a_slice_shows_ready_unready_and_leaving_pods() {
        let mut cluster = control_plane();
        node(&mut cluster, "node-1");
        for (number, (name, ready)) in [("a", true), ("b", false), ("c", true)].into_iter().enumerate() {
            pod(&mut cluster, name, number, ready, 8080);
        }
        create::<Service>(&mut cluster, service(json!(8080)));
        settle(&mut cluster);
        let slice = slices(&cluster)[0];
        let row = |name: &str, ready, serving, terminating| (name.to_string(), ready, serving, terminating);
        assert_eq!(
            shown(slice),
            [row("a", true, true, false), row("b", false, false, false), row("c", true, true, false)]
        );
        assert_eq!(
            slice.to_json()["metadata"]["labels"],
            json!({"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                "kubernetes.io/service-name": "web", "team": "a"})
        );
        assert_eq!(slice.to_json()["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
        assert!(slice.annotation(TRIGGER_TIME).is_some());

        delete::<Pod>(&mut cluster, "c").unwrap();
        settle(&mut cluster);
        assert_eq!(shown(slices(&cluster)[0])[2], row("c", false, true, true));
    }

    #[test]
    fn a_named_port_with_two_numbers_makes_two_slices() {
        let mut cluster = control_plane();
        node(&mut cluster, "node-1");
        pod(&mut cluster, "a", 1, true, 8080);
        pod(&mut cluster, "b", 2, true, 9090);
        create::<Service>(&mut cluster, service(json!("http")));
        settle(&mut cluster);
        let ports: Vec<_> = slices(&cluster).iter().map(|slice| slice.to_json()["ports"][0]["port"].clone()).collect();
        assert_eq!(ports, [8080, 9090]);
    }

    #[test]
    fn a_service_without_pods_has_one_empty_slice_and_a_full_slice_is_followed_by_another() {
        let mut cluster = control_plane();
        node(&mut cluster, "node-1");
        create::<Service>(&mut cluster, service(json!(8080)));
        settle(&mut cluster);
        assert_eq!(slices(&cluster).len(), 1);
        assert_eq!(slices(&cluster)[0].to_json()["endpoints"], json!(null));
        for number in 0..120 {
            pod(&mut cluster, &format!("p{number}"), number, true, 8080);
        }
        settle(&mut cluster);
        let mut sizes: Vec<_> = slices(&cluster).iter().map(|slice| shown(slice).len()).collect();
        assert!(sizes.iter().all(|size| *size <= ENDPOINTS_MAX));
        assert_eq!(sizes.iter().sum::<usize>(), 120);
        for number in 0..120 {
            delete::<Pod>(&mut cluster, &format!("p{number}")).unwrap();
            force_delete(&mut cluster, &format!("p{number}"));
        }
        settle(&mut cluster);
        sizes = slices(&cluster).iter().map(|slice| shown(slice).len()).collect();
        assert_eq!(sizes, [0]);
    }
}
