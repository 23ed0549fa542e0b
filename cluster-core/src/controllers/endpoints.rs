//! endpoints-controller: the older, one-object form of a Service's slices, still written for every Service that selects.
//! <https://kubernetes.io/docs/concepts/services-networking/service/#endpoints>

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service};

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use super::endpointslice::{reference_to, services_of, target_port};
use super::pods;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::selector::{Labels, Selector};
use crate::clock::Time;
use crate::store::Change;

/// More addresses than this are left out, and an annotation says so.
const ADDRESSES_MAX: usize = 1000;

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const HEADLESS: &str = "service.kubernetes.io/headless";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

pub struct EndpointsController;

impl Controller for EndpointsController {
    fn name(&self) -> &str {
        "endpoints-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        let lost = |_: &View<'_>, change: &Change| match &change.after {
            None => vec![change.key().clone()],
            Some(_) => Vec::new(),
        };
        vec![
            Watch::itself(Service::kind()),
            Watch::with(Pod::kind(), services_of),
            Watch::with(Endpoints::kind(), lost),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let known = view.get::<Endpoints>(key);
        let Some(service) = view.get::<Service>(key) else {
            if let Some(known) = known {
                plan.delete(known, "its Service is gone");
            }
            return plan;
        };
        let spec = service.spec::<Service>();
        let Some(labels) = spec.selector.as_ref().filter(|selector| !selector.is_empty()) else { return plan };
        if service.is_terminating() || spec.type_.as_deref() == Some("ExternalName") {
            return plan;
        }
        let selector = Selector::of_labels(labels);
        let (subsets, truncated) = subsets_of(service, view.select::<Pod>(&key.namespace, &selector));
        let wanted = Endpoints { subsets, ..Endpoints::default() };
        let mut endpoints =
            known.cloned().unwrap_or_else(|| Object::new::<Endpoints>(&key.namespace, &key.name, Endpoints::default()));
        let (labels, annotations) = (labels_of(service), endpoints.metadata().annotations.clone());
        let marked = annotations.as_ref().is_some_and(|annotations| annotations.contains_key(OVER_CAPACITY));
        let same = endpoints.spec::<Endpoints>().subsets == wanted.subsets
            && endpoints.metadata().labels.as_ref() == Some(&labels)
            && marked == truncated;
        if known.is_some() && same {
            return plan;
        }
        let trigger = match known {
            Some(known) => changed_at(known.spec::<Endpoints>(), &wanted, view),
            None => service.metadata().creation_timestamp.as_ref().map(Time::from),
        };
        *endpoints.spec_mut::<Endpoints>() = wanted;
        let metadata = endpoints.metadata_mut();
        metadata.labels = Some(labels);
        let mut annotations = annotations.unwrap_or_default();
        let mut note = |name: &str, value: Option<String>| match value {
            Some(value) => annotations.insert(name.to_owned(), value),
            None => annotations.remove(name),
        };
        note(OVER_CAPACITY, truncated.then(|| "truncated".to_owned()));
        note(TRIGGER_TIME, trigger.map(|time| time.timestamp().to_string()));
        metadata.annotations = (!annotations.is_empty()).then_some(annotations);
        if known.is_some() {
            plan.update(endpoints, "pods have come, gone or changed");
        } else {
            plan.create(endpoints, "the Service has none").tolerate(&["NamespaceTerminating"]);
        }
        plan
    }
}

/// When the first of the pods became ready, or unready, whose place is new.
fn changed_at(known: &Endpoints, wanted: &Endpoints, view: &View<'_>) -> Option<Time> {
    let before: BTreeSet<(&str, bool)> = places(known).collect();
    let changed = places(wanted).filter(|place| !before.contains(place));
    let pods = changed.filter_map(|(uid, _)| view.by_uid(uid));
    let times = pods.filter_map(|pod| Some(Time::from(pods::condition(pod, "Ready")?.last_transition_time.as_ref()?)));
    times.min()
}

/// The uids of the pods behind addresses, and whether they are ready.
fn places(endpoints: &Endpoints) -> impl Iterator<Item = (&str, bool)> {
    endpoints.subsets.iter().flatten().flat_map(|subset| {
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let unready = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        let all = ready.chain(unready);
        all.filter_map(|(address, is_ready)| Some((address.target_ref.as_ref()?.uid.as_deref()?, is_ready)))
    })
}

fn labels_of(service: &Object) -> Labels {
    let mut labels = service.metadata().labels.clone().unwrap_or_default();
    labels.insert(MANAGED_BY.into(), "endpoint-controller".into());
    if service.spec::<Service>().cluster_ip.as_deref() == Some("None") {
        labels.insert(HEADLESS.into(), String::new());
    }
    labels
}

/// Addresses with the same ports make a subset. True if some had to be left out.
fn subsets_of<'a>(service: &Object, selected: impl Iterator<Item = &'a Object>) -> (Option<Vec<EndpointSubset>>, bool) {
    let keeps_unready = service.spec::<Service>().publish_not_ready_addresses.unwrap_or(false);
    let counts = |pod: &&Object| !pods::is_finished(pod) && (keeps_unready || !pod.is_terminating());
    let mut by_ports: BTreeMap<String, EndpointSubset> = BTreeMap::new();
    let (mut count, mut truncated) = (0, false);
    for pod in selected.filter(counts) {
        let Some(address) = address_of(pod, service) else { continue };
        let Some(ports) = ports_of(pod, service) else { continue };
        if count == ADDRESSES_MAX {
            truncated = true;
            break;
        }
        count += 1;
        let id = serde_json::to_string(&ports).unwrap_or_default();
        let subset = by_ports.entry(id).or_insert_with(|| EndpointSubset {
            ports: (!ports.is_empty()).then_some(ports),
            ..EndpointSubset::default()
        });
        let ready = keeps_unready || pods::is_ready(pod);
        let addresses = if ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        addresses.get_or_insert_default().push(address);
    }
    let mut subsets: Vec<EndpointSubset> = by_ports.into_values().collect();
    for subset in &mut subsets {
        for addresses in [&mut subset.addresses, &mut subset.not_ready_addresses].into_iter().flatten() {
            addresses.sort_by(|a, b| a.ip.cmp(&b.ip));
        }
    }
    ((!subsets.is_empty()).then_some(subsets), truncated)
}

fn address_of(pod: &Object, service: &Object) -> Option<EndpointAddress> {
    let spec = pod.spec::<Pod>();
    let in_domain = spec.subdomain.as_deref() == Some(&*service.key.name);
    Some(EndpointAddress {
        ip: pod.status::<Pod>().pod_ip.clone()?,
        hostname: spec.hostname.clone().filter(|hostname| in_domain && !hostname.is_empty()),
        node_name: spec.node_name.clone(),
        target_ref: Some(reference_to(pod)),
    })
}

/// `None` if the pod has none of the Service's ports.
fn ports_of(pod: &Object, service: &Object) -> Option<Vec<EndpointPort>> {
    let wanted = service.spec::<Service>().ports.as_deref().unwrap_or_default();
    let resolved = wanted.iter().filter_map(|port| {
        Some(EndpointPort {
            name: port.name.clone().filter(|name| !name.is_empty()),
            port: target_port(pod, port)?,
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".into())),
            app_protocol: port.app_protocol.clone(),
        })
    });
    let ports: Vec<EndpointPort> = resolved.collect();
    (wanted.is_empty() || !ports.is_empty()).then_some(ports)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controllers::testing::*;

    #[test]
    fn ready_and_unready_addresses_stand_in_one_subset_and_go_with_the_service() {
        let mut cluster = control_plane();
        node(&mut cluster, "node-1");
        create::<Service>(
            &mut cluster,
            json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "name": "p"}]}}),
        );
        settle(&mut cluster);
        assert_eq!(cluster.get::<Endpoints>("default", "web").unwrap().to_json().get("subsets"), None);
        for (name, ip, ready) in [("a", "10.244.0.1", true), ("b", "10.244.0.2", false)] {
            let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}},
                "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]}});
            let pod = create::<Pod>(&mut cluster, pod);
            give_ip(&mut cluster, &pod, ip);
            let pod = cluster.get::<Pod>("default", name).unwrap().clone();
            run_pod(&mut cluster, &pod, ready);
        }
        settle(&mut cluster);
        let json = cluster.get::<Endpoints>("default", "web").unwrap().to_json();
        assert_eq!(json["metadata"]["labels"], json!({"endpoints.kubernetes.io/managed-by": "endpoint-controller"}));
        let subset = &json["subsets"][0];
        assert_eq!(subset["addresses"][0]["ip"], "10.244.0.1");
        assert_eq!(subset["notReadyAddresses"][0]["targetRef"]["name"], "b");
        assert_eq!(subset["ports"], json!([{"name": "p", "port": 80, "protocol": "TCP"}]));
        delete::<Service>(&mut cluster, "web").unwrap();
        settle(&mut cluster);
        assert!(cluster.get::<Endpoints>("default", "web").is_none());
    }
}
