//! The service controller of a cloud-controller-manager: has the cloud make a load balancer for each Service of type
//! LoadBalancer. Without a cloud there is none, and such a Service waits for ever.
//! <https://kubernetes.io/docs/concepts/services-networking/service/#loadbalancer>

use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Service, ServiceSpec};
use serde_json::{Value, json};

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Watch};
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::PatchType;
use crate::api::{Key, Name};
use crate::clock::Time;
use crate::network::addresses;
use crate::store::Change;

/// As `%start` names it.
pub const NAME: &str = "cloud-controller-manager";
/// As its Events name it.
const SOURCE: &str = "service-controller";
/// Holds a Service until its load balancer is gone.
const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// How long the cloud takes for a new load balancer.
const PROVISIONING: Duration = Duration::from_secs(5);
/// A node with this label gets nothing from load balancers.
const EXCLUDED_LABEL: &str = addresses::EXCLUDED_FROM_BALANCERS_LABEL;
/// So does one that the cluster autoscaler is about to take away.
const TO_BE_DELETED_TAINT: &str = "ToBeDeletedByClusterAutoscaler";

pub struct CloudControllerManager;

/// What it has last seen of a Service, and given to the cloud.
struct Known {
    service: Object,
    hosts: Vec<Name>,
    /// When the load balancer that is being made will be there.
    ready_at: Option<Time>,
}

impl Controller for CloudControllerManager {
    fn name(&self) -> &str {
        NAME
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::itself(Service::kind()), Watch::with(Node::kind(), balanced_services)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(service) = view.get::<Service>(key) else { return plan };
        let known = view.remembered::<Known>().filter(|known| known.service.uid() == service.uid());
        let mut next = Known { service: service.clone(), hosts: hosts(view), ready_at: None };
        if !wants(service) || service.is_terminating() {
            if has_finalizer(service) {
                remove(service, &mut plan);
            }
        } else {
            let changes = known.map(|known| changes(&known.service, service));
            let is_done = has_finalizer(service) && !ingress(service).is_empty();
            let ready_at = known.and_then(|known| known.ready_at);
            let has_changed = changes.as_ref().is_none_or(|changes| changes.is_some());
            for (reason, message) in changes.flatten().into_iter().flatten() {
                plan.event(EventNote::normal(service, reason, message).from(SOURCE));
            }
            match ready_at {
                Some(at) if at > view.now => {
                    next.ready_at = ready_at;
                    plan.continue_after(at.since(view.now));
                }
                _ if has_changed || !is_done => next.ready_at = ensure(service, &next.hosts, ready_at, view, &mut plan),
                _ if known.is_some_and(|known| known.hosts != next.hosts) => {
                    let told = "Updated load balancer with new hosts";
                    plan.event(EventNote::normal(service, "UpdatedLoadBalancer", told).from(SOURCE));
                }
                _ => {}
            }
        }
        plan.remember(next);
        plan
    }
}

/// Has the load balancer made or brought up to date; answers when it will be there, if that takes time.
fn ensure(service: &Object, hosts: &[Name], ready_at: Option<Time>, view: &View<'_>, plan: &mut Plan) -> Option<Time> {
    let tell = |reason, message: &str| EventNote::normal(service, reason, message).from(SOURCE);
    if ready_at.is_none() {
        plan.event(tell("EnsuringLoadBalancer", "Ensuring load balancer"));
        if !has_finalizer(service) {
            let body = json!({"metadata": {"finalizers": [FINALIZER]}});
            patch(service, body, "its load balancer must go before it goes", plan);
        }
        if hosts.is_empty() {
            let told = "There are no available nodes for LoadBalancer";
            plan.event(EventNote::warning(service, "UnAvailableLoadBalancer", told).from(SOURCE));
        }
        if ingress(service).is_empty() {
            plan.continue_after(PROVISIONING);
            return Some(view.now + PROVISIONING);
        }
    }
    match address(service.spec::<Service>()) {
        Ok(address) => {
            plan.event(tell("EnsuredLoadBalancer", "Ensured load balancer"));
            let address = address.to_string();
            if ingress(service) != [address.as_str()] {
                let body = json!({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}});
                patch(service, body, "its load balancer has this address", plan);
            }
        }
        Err(why) => {
            let error = format!("failed to ensure load balancer: {why}");
            let told = format!("Error syncing load balancer: {error}");
            plan.event(EventNote::warning(service, "SyncLoadBalancerFailed", told).from(SOURCE));
            plan.error = Some(error);
        }
    }
    None
}

fn remove(service: &Object, plan: &mut Plan) {
    let tell = |reason, message: &str| EventNote::normal(service, reason, message).from(SOURCE);
    let exists = !ingress(service).is_empty();
    if exists {
        plan.event(tell("DeletingLoadBalancer", "Deleting load balancer"));
    }
    let body = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
    patch(service, body, "its load balancer is gone", plan);
    plan.event(tell("DeletedLoadBalancer", "Deleted load balancer"));
    if exists {
        patch(service, json!({"status": {"loadBalancer": null}}), "its load balancer is gone", plan);
    }
}

/// That the Service is gone by now is no failure.
fn patch(service: &Object, body: Value, reason: &'static str, plan: &mut Plan) {
    let write = plan.patch(service, PatchType::StrategicMerge, body, reason);
    write.request.subresource = "status";
    write.tolerate(&["NotFound"]);
}

/// One with a class belongs to another controller.
fn wants(service: &Object) -> bool {
    let spec = service.spec::<Service>();
    spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none()
}

fn has_finalizer(service: &Object) -> bool {
    service.metadata().finalizers.iter().flatten().any(|known| known == FINALIZER)
}

/// The addresses that its status tells of.
fn ingress(service: &Object) -> Vec<&str> {
    let points =
        service.status::<Service>().load_balancer.iter().flat_map(|balancer| balancer.ingress.iter().flatten());
    points.filter_map(|point| point.ip.as_deref()).collect()
}

/// The address that was asked for, if the cloud has it, else one that no other Service has.
fn address(spec: &ServiceSpec) -> Result<Ipv4Addr, String> {
    match spec.load_balancer_ip.as_deref().filter(|asked| !asked.is_empty()) {
        Some(asked) => asked
            .parse()
            .ok()
            .filter(|asked| addresses::may_be_asked_for(*asked))
            .ok_or_else(|| format!("requested IP {asked} is not in {}", addresses::BALANCERS_TO_ASK_FOR)),
        None => spec
            .cluster_ip
            .as_deref()
            .and_then(|ip| ip.parse().ok())
            .map(addresses::balancer)
            .ok_or_else(|| "the Service has no IPv4 address".to_owned()),
    }
}

/// What of a change the cloud must hear of, and what is told about it; `None` for a change that is nothing to it.
fn changes(old: &Object, new: &Object) -> Option<Vec<(&'static str, String)>> {
    let (before, after) = (old.spec::<Service>(), new.spec::<Service>());
    let shown = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut told = Vec::new();
    if before.type_ != after.type_ {
        told.push(("Type", format!("{} -> {}", shown(&before.type_), shown(&after.type_))));
    }
    if before.load_balancer_source_ranges != after.load_balancer_source_ranges {
        let list = |ranges: &Option<Vec<String>>| format!("[{}]", ranges.as_deref().unwrap_or_default().join(" "));
        let (before, after) = (&before.load_balancer_source_ranges, &after.load_balancer_source_ranges);
        told.push(("LoadBalancerSourceRanges", format!("{} -> {}", list(before), list(after))));
    }
    if before.load_balancer_ip != after.load_balancer_ip {
        let (before, after) = (shown(&before.load_balancer_ip), shown(&after.load_balancer_ip));
        told.push(("LoadbalancerIP", format!("{before} -> {after}")));
    }
    if before.external_traffic_policy != after.external_traffic_policy {
        let (before, after) = (shown(&before.external_traffic_policy), shown(&after.external_traffic_policy));
        told.push(("ExternalTrafficPolicy", format!("{before} -> {after}")));
    }
    let ports = |spec: &ServiceSpec| -> Vec<_> {
        let ports = spec.ports.iter().flatten();
        ports.map(|port| (port.name.clone(), port.protocol.clone(), port.port, port.node_port)).collect()
    };
    let rest = ports(before) != ports(after)
        || before.session_affinity != after.session_affinity
        || before.external_ips != after.external_ips
        || old.metadata().annotations != new.metadata().annotations;
    (rest || !told.is_empty()).then_some(told)
}

/// The nodes that load balancers send to.
fn hosts(view: &View<'_>) -> Vec<Name> {
    view.list::<Node>("").filter(|node| is_host(node)).map(|node| node.key.name.clone()).collect()
}

fn is_host(node: &Object) -> bool {
    let mut taints = node.spec::<Node>().taints.iter().flatten();
    !node.is_terminating()
        && node.label(EXCLUDED_LABEL).is_none()
        && !taints.any(|taint| taint.key == TO_BE_DELETED_TAINT)
}

/// Every Service with a load balancer, if a node comes or goes.
fn balanced_services(view: &View<'_>, change: &Change) -> Vec<Key> {
    let was = change.before.as_ref().is_some_and(is_host);
    let is = change.after.as_ref().is_some_and(is_host);
    if was == is {
        return Vec::new();
    }
    view.list::<Service>("").filter(|service| wants(service)).map(|service| service.key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::super::testing::{create, delete, events, patch, settle};
    use super::*;
    use crate::network::connect::{Options, Origin};
    use crate::{Cluster, Config};

    /// A pod on node-1 behind a Service of type LoadBalancer.
    fn cluster(extra: Value) -> Cluster {
        let mut cluster = Cluster::new(Config { nodes: 2, ..Config::default() });
        settle(&mut cluster);
        let labels = json!({"app": "web"});
        let container = json!({"name": "c", "image": "my-app:1.0", "ports": [{"containerPort": 8080}]});
        let spec = json!({"nodeName": "node-1", "containers": [container]});
        create::<Pod>(&mut cluster, json!({"metadata": {"name": "web", "labels": labels}, "spec": spec}));
        let mut spec = json!({"type": "LoadBalancer", "selector": labels, "ports": [{"port": 80, "targetPort": 8080}]});
        spec.as_object_mut().unwrap().extend(extra.as_object().cloned().unwrap());
        create::<Service>(&mut cluster, json!({"metadata": {"name": "web"}, "spec": spec}));
        settle(&mut cluster);
        assert!(cluster.is_stopped(NAME));
        cluster
    }

    fn service(cluster: &Cluster) -> Value {
        cluster.get::<Service>("default", "web").map(Object::to_json).unwrap_or_default()
    }

    fn asked(cluster: &mut Cluster, ip: &str) -> Result<String, String> {
        let result = cluster.connect(&Origin::Outside, &format!("http://{ip}"), &Options::default()).result;
        result.map(|reply| reply.body).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_load_balancer_comes_and_goes_with_its_service() {
        let mut cluster = cluster(json!({}));
        assert_eq!(service(&cluster)["status"]["loadBalancer"], json!({}));
        assert!(cluster.start(NAME));
        settle(&mut cluster);
        let point = service(&cluster)["status"]["loadBalancer"]["ingress"][0].clone();
        let ip = point["ip"].as_str().unwrap().to_owned();
        assert!(ip.starts_with("198.18."), "{ip}");
        assert_eq!(point["ipMode"], "VIP");
        assert_eq!(service(&cluster)["metadata"]["finalizers"], json!([FINALIZER]));
        let told = events(&cluster, "web");
        let place = |text: &str| told.iter().position(|told| told == text);
        assert!(
            place("EnsuringLoadBalancer Ensuring load balancer") < place("EnsuredLoadBalancer Ensured load balancer")
        );
        assert_eq!(asked(&mut cluster, &ip), Ok("Hello from web\n".into()));
        patch::<Service>(&mut cluster, "web", json!({"spec": {"type": "ClusterIP"}})).unwrap();
        settle(&mut cluster);
        assert_eq!(service(&cluster)["status"]["loadBalancer"], json!({}));
        assert!(service(&cluster)["metadata"]["finalizers"].is_null());
        assert_eq!(asked(&mut cluster, &ip), Err("Connection timed out".into()));
        patch::<Service>(&mut cluster, "web", json!({"spec": {"type": "LoadBalancer"}})).unwrap();
        settle(&mut cluster);
        assert!(events(&cluster, "web").contains(&"Type ClusterIP -> LoadBalancer".to_owned()));
        delete::<Service>(&mut cluster, "web").unwrap();
        assert!(service(&cluster)["metadata"]["deletionTimestamp"].is_string());
        settle(&mut cluster);
        assert!(service(&cluster).is_null());
        assert!(events(&cluster, "web").contains(&"DeletedLoadBalancer Deleted load balancer".to_owned()));
    }

    #[test]
    fn policies_decide_who_comes_in_and_by_which_node() {
        let mut cluster = cluster(json!({"externalTrafficPolicy": "Local", "loadBalancerIP": "198.19.0.7"}));
        cluster.start(NAME);
        settle(&mut cluster);
        for _ in 0..10 {
            assert_eq!(asked(&mut cluster, "198.19.0.7"), Ok("Hello from web\n".into()));
        }
        patch::<Service>(&mut cluster, "web", json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}})).unwrap();
        settle(&mut cluster);
        assert_eq!(asked(&mut cluster, "198.19.0.7"), Err("Connection timed out".into()));
        let proxy = &cluster.machine("node-1").unwrap().proxy;
        let save = |table: &str| crate::network::iptables::save(proxy, table, cluster.now()).unwrap();
        assert!(save("nat").contains("-A KUBE-FW-LOLE4ISW44XBNF3G -s 10.0.0.0/8 "), "{}", save("nat"));
        assert!(save("filter").contains("-A KUBE-PROXY-FIREWALL -d 198.19.0.7/32 -p tcp"), "{}", save("filter"));
        let ranges = json!(["192.168.0.0/16"]);
        patch::<Service>(&mut cluster, "web", json!({"spec": {"loadBalancerSourceRanges": ranges}})).unwrap();
        settle(&mut cluster);
        assert_eq!(asked(&mut cluster, "198.19.0.7"), Ok("Hello from web\n".into()));
        // The balancer's checks of health find no kube-proxy there.
        cluster.stop("kube-proxy/node-1");
        assert_eq!(asked(&mut cluster, "198.19.0.7"), Err("Connection timed out".into()));
    }

    #[test]
    fn an_address_that_the_cloud_does_not_have_is_an_error() {
        let mut cluster = cluster(json!({"loadBalancerIP": "8.8.8.8"}));
        cluster.start(NAME);
        settle(&mut cluster);
        let told = "SyncLoadBalancerFailed Error syncing load balancer: failed to ensure load balancer: requested IP 8.8.8.8 \
                    is not in 198.19.0.0/16";
        assert!(events(&cluster, "web").contains(&told.to_owned()), "{:?}", events(&cluster, "web"));
    }
}
