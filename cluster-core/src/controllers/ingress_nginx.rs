//! k8s.io/ingress-nginx: tells each Ingress of its class where it is reached, and leads requests from there to endpoints
//! of Services. No part of Kubernetes: without such a controller an Ingress is but an object.
//! <https://kubernetes.io/docs/concepts/services-networking/ingress-controllers/>

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, Ingress, IngressBackend, IngressClass, IngressLoadBalancerIngress, IngressLoadBalancerStatus,
    IngressServiceBackend,
};

use super::cache::View;
use super::controller::{Controller, Enqueue, EventNote, Plan, Watch};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::network::addresses;
use crate::network::ingress::Destination;

/// As `%start` names it.
pub const NAME: &str = "ingress-nginx";
/// What an IngressClass of this controller names.
const CONTROLLER: &str = "k8s.io/ingress-nginx";
/// How the class was named before there was a field, and which one this controller takes for its own.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const CLASS: &str = "nginx";
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

pub struct IngressNginx;

impl Controller for IngressNginx {
    fn name(&self) -> &str {
        NAME
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::itself(Ingress::kind()),
            Watch::new(IngressClass::kind(), Enqueue::Each(Ingress::kind().clone())),
            // Only looked up, when a request comes.
            Watch::with(Service::kind(), |_, _| Vec::new()),
            Watch::with(EndpointSlice::kind(), |_, _| Vec::new()),
        ]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(ingress) = view.get::<Ingress>(key).filter(|ingress| is_ours(ingress, view)) else { return plan };
        let point = IngressLoadBalancerIngress { ip: Some(addresses::INGRESS.to_string()), ..Default::default() };
        let wanted = Some(IngressLoadBalancerStatus { ingress: Some(vec![point]) });
        if ingress.status::<Ingress>().load_balancer != wanted && !ingress.is_terminating() {
            let mut changed = ingress.clone();
            changed.status_mut::<Ingress>().load_balancer = wanted;
            let event = EventNote::normal(ingress, "Sync", "Scheduled for sync");
            plan.update_status(changed, "it is reached at the controller's address").event(event);
        }
        plan
    }
}

/// An Ingress that names no class is nobody's.
fn is_ours(ingress: &Object, view: &View<'_>) -> bool {
    if let Some(class) = ingress.annotation(CLASS_ANNOTATION) {
        return class == CLASS;
    }
    let class = ingress.spec::<Ingress>().ingress_class_name.as_deref();
    let class = class.and_then(|name| view.get::<IngressClass>(&Key::cluster(name)));
    class.is_some_and(|class| class.spec::<IngressClass>().controller.as_deref() == Some(CONTROLLER))
}

/// Where a request leads. The most telling host decides first (its own name, then `*.example.com`, then none), then
/// the path: an exact one before the longest prefix, of equal ones that of the oldest Ingress. What no rule is about
/// goes to a default backend.
pub fn route(view: &View<'_>, host: &str, path: &str) -> Option<Destination> {
    let host = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let host = host.as_str();
    let path = path.split('?').next().unwrap_or_default();
    let mut ingresses: Vec<&Object> = view.list::<Ingress>("").filter(|ingress| is_ours(ingress, view)).collect();
    ingresses.sort_by_key(|ingress| ingress.metadata().creation_timestamp.as_ref().map(|time| time.0));
    let rules = ingresses.iter().flat_map(|ingress| {
        let rules = ingress.spec::<Ingress>().rules.iter().flatten();
        rules.map(move |rule| (*ingress, host_rank(rule.host.as_deref().unwrap_or_default(), host), rule))
    });
    let best_host = rules.clone().map(|(_, rank, _)| rank).max().flatten();
    let mut best: Option<(PathRank, &Object, &IngressBackend)> = None;
    for (ingress, rank, rule) in rules {
        for choice in rule.http.iter().flat_map(|http| &http.paths).filter(|_| rank.is_some() && rank == best_host) {
            if let Some(rank) = path_rank(choice, path)
                && best.as_ref().is_none_or(|(known, ..)| rank > *known)
            {
                best = Some((rank, ingress, &choice.backend));
            }
        }
    }
    let chosen = best.map(|(_, ingress, backend)| (ingress, backend)).or_else(|| {
        let is_of_host = |ingress: &Object| {
            let mut rules = ingress.spec::<Ingress>().rules.iter().flatten();
            rules.any(|rule| host_rank(rule.host.as_deref().unwrap_or_default(), host).is_some())
        };
        let (near, far): (Vec<&Object>, Vec<&Object>) =
            ingresses.iter().copied().partition(|ingress| is_of_host(ingress));
        let mut both = near.into_iter().chain(far);
        both.find_map(|ingress| Some((ingress, ingress.spec::<Ingress>().default_backend.as_ref()?)))
    });
    let (ingress, backend) = chosen?;
    backend.service.as_ref().map(|service| destination(view, ingress, service))
}

/// How well a rule's host fits; `None` if it does not.
fn host_rank(wanted: &str, host: &str) -> Option<u8> {
    match wanted.strip_prefix('*') {
        _ if wanted.is_empty() => Some(0),
        Some(rest) => {
            let label = host.strip_suffix(rest)?;
            (!label.is_empty() && !label.contains('.')).then_some(1)
        }
        None => (wanted == host).then_some(2),
    }
}

/// Exact or not, and the length of what fits.
type PathRank = (bool, usize);

fn path_rank(choice: &HTTPIngressPath, path: &str) -> Option<PathRank> {
    let wanted = choice.path.as_deref().filter(|wanted| !wanted.is_empty()).unwrap_or("/");
    let fits = match choice.path_type.as_str() {
        "Exact" => wanted == path,
        "Prefix" => {
            let wanted = wanted.trim_end_matches('/');
            path.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        // As a location of nginx: a prefix, whatever follows.
        _ => path.starts_with(wanted),
    };
    fits.then(|| (choice.path_type == "Exact", wanted.len()))
}

fn destination(view: &View<'_>, ingress: &Object, backend: &IngressServiceBackend) -> Destination {
    let key = Key::new(ingress.key.namespace.clone(), backend.name.as_str());
    let service = view.get::<Service>(&key).map(|service| service.spec::<Service>());
    let ports = service.into_iter().flat_map(|service| service.ports.iter().flatten());
    let wanted = backend.port.as_ref();
    let port = ports.into_iter().find(|port| match wanted.and_then(|wanted| wanted.name.as_deref()) {
        Some(name) if !name.is_empty() => port.name.as_deref() == Some(name),
        _ => wanted.and_then(|wanted| wanted.number) == Some(port.port),
    });
    let mut endpoints: Vec<(Ipv4Addr, u16)> = Vec::new();
    if let Some(port) = port {
        let name = port.name.as_deref().unwrap_or_default();
        let slices = view.list::<EndpointSlice>(&ingress.key.namespace);
        for slice in slices.filter(|slice| slice.label(SERVICE_NAME_LABEL) == Some(&*key.name)) {
            endpoints.extend(ready(slice.spec::<EndpointSlice>(), name));
        }
        endpoints.sort_unstable();
        endpoints.dedup();
    }
    Destination { service: key, endpoints }
}

fn ready<'a>(slice: &'a EndpointSlice, port_name: &'a str) -> impl Iterator<Item = (Ipv4Addr, u16)> + 'a {
    let ports = slice.ports.iter().flatten().filter(move |port| port.name.as_deref().unwrap_or_default() == port_name);
    let numbers = ports.filter_map(|port| u16::try_from(port.port?).ok());
    numbers.flat_map(move |number| {
        let is_ready = |endpoint: &&k8s_openapi::api::discovery::v1::Endpoint| {
            endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
        };
        let endpoints = slice.endpoints.iter().flatten().filter(is_ready);
        endpoints.filter_map(move |endpoint| Some((endpoint.addresses.first()?.parse().ok()?, number)))
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::super::testing::{create, events, patch, settle};
    use super::*;
    use crate::network::connect::{Options, Origin};
    use crate::network::reply::Failure;
    use crate::{Cluster, Config};

    /// Services a, b and fallback, each with one pod that tells its name.
    fn cluster() -> Cluster {
        let mut cluster = Cluster::new(Config { nodes: 2, ..Config::default() });
        settle(&mut cluster);
        for name in ["a", "b", "fallback"] {
            let labels = json!({"app": name});
            let container = json!({"name": "c", "image": "my-app:1.0", "ports": [{"containerPort": 8080}]});
            create::<Pod>(
                &mut cluster,
                json!({"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": "node-1", "containers": [container]}}),
            );
            let ports = json!([{"name": "web", "port": 80, "targetPort": 8080}]);
            create::<Service>(
                &mut cluster,
                json!({"metadata": {"name": name}, "spec": {"selector": labels, "ports": ports}}),
            );
        }
        create::<IngressClass>(
            &mut cluster,
            json!({"metadata": {"name": "nginx"}, "spec": {"controller": CONTROLLER}}),
        );
        settle(&mut cluster);
        cluster
    }

    fn path(kind: &str, path: &str, service: &str) -> Value {
        json!({"path": path, "pathType": kind, "backend": {"service": {"name": service, "port": {"name": "web"}}}})
    }

    fn ingress(cluster: &mut Cluster, name: &str, spec: Value) {
        create::<Ingress>(cluster, json!({"metadata": {"name": name}, "spec": spec}));
        settle(cluster);
    }

    fn ask(cluster: &mut Cluster, host: &str, path: &str) -> Result<String, Failure> {
        let url = format!("http://{}{path}", addresses::INGRESS);
        let options = Options { host: Some(host.into()), ..Options::default() };
        let reply = cluster.connect(&Origin::Outside, &url, &options).result?;
        let pod = reply.body.trim().strip_prefix("Hello from ").map(str::to_owned);
        Ok(pod.unwrap_or_else(|| reply.status.to_string()))
    }

    #[test]
    fn an_ingress_has_an_effect_only_while_a_controller_runs() {
        let mut cluster = cluster();
        let rules = json!([{"http": {"paths": [path("Prefix", "/", "a")]}}]);
        ingress(&mut cluster, "web", json!({"ingressClassName": "nginx", "rules": rules}));
        ingress(
            &mut cluster,
            "other",
            json!({"rules": [{"host": "other.io", "http": {"paths": [path("Prefix", "/", "b")]}}]}),
        );
        let points = |cluster: &Cluster, name: &str| {
            let status = cluster.get::<Ingress>("default", name).unwrap().status::<Ingress>().load_balancer.clone();
            status.and_then(|balancer| balancer.ingress).map(|points| points[0].ip.clone().unwrap())
        };
        assert_eq!(points(&cluster, "web"), None);
        assert_eq!(ask(&mut cluster, "x", "/"), Err(Failure::TimedOut));
        assert!(cluster.is_stopped(NAME) && cluster.start(NAME));
        settle(&mut cluster);
        assert_eq!(points(&cluster, "web"), Some(addresses::INGRESS.to_string()));
        assert_eq!(points(&cluster, "other"), None);
        assert!(events(&cluster, "web").contains(&"Sync Scheduled for sync".to_owned()));
        assert_eq!(ask(&mut cluster, "other.io", "/"), Ok("a".into()));
        assert!(cluster.stop(NAME));
        assert_eq!(ask(&mut cluster, "x", "/"), Err(Failure::TimedOut));
        cluster.start(NAME);
        assert_eq!(ask(&mut cluster, "x", "/"), Ok("a".into()));
    }

    #[test]
    fn hosts_and_paths_lead_to_services() {
        let mut cluster = cluster();
        cluster.start(NAME);
        let paths = json!([
            path("Prefix", "/foo", "a"),
            path("Exact", "/foo/bar", "b"),
            path("ImplementationSpecific", "/im", "b")
        ]);
        let rules = json!([
            {"host": "example.com", "http": {"paths": paths}},
            {"host": "*.example.com", "http": {"paths": [path("Prefix", "/", "b")]}},
        ]);
        let default = json!({"service": {"name": "fallback", "port": {"number": 80}}});
        let tls = json!([{"hosts": ["example.com"], "secretName": "not-there"}]);
        ingress(
            &mut cluster,
            "web",
            json!({"ingressClassName": "nginx", "rules": rules, "defaultBackend": default, "tls": tls}),
        );
        for (host, path, expected) in [
            ("example.com", "/foo", "a"),
            ("EXAMPLE.com:80", "/foo/?q=1", "a"),
            ("example.com", "/foo/bar", "b"),
            ("example.com", "/foo/bar/", "a"),
            ("example.com", "/foobar", "fallback"),
            ("example.com", "/images", "b"),
            ("a.example.com", "/x", "b"),
            ("a.b.example.com", "/x", "fallback"),
        ] {
            assert_eq!(ask(&mut cluster, host, path).as_deref(), Ok(expected), "{host}{path}");
        }
        let options = Options { host: Some("example.com".into()), ..Options::default() };
        let url = format!("https://{}/foo", addresses::INGRESS);
        assert_eq!(cluster.connect(&Origin::Outside, &url, &options).result.unwrap().status, 200);
    }

    #[test]
    fn without_endpoints_or_rules_nginx_answers_itself() {
        let mut cluster = cluster();
        cluster.start(NAME);
        assert_eq!(ask(&mut cluster, "x", "/"), Ok("404".into()));
        let rules = json!([{"http": {"paths": [path("Prefix", "/", "a")]}}]);
        ingress(&mut cluster, "web", json!({"ingressClassName": "nginx", "rules": rules}));
        patch::<Service>(&mut cluster, "a", json!({"spec": {"selector": {"app": "nobody"}}})).unwrap();
        settle(&mut cluster);
        assert_eq!(ask(&mut cluster, "x", "/"), Ok("503".into()));
    }
}
