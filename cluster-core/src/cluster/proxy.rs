//! The apiserver as a proxy to pods and Services: `GET /api/v1/namespaces/NS/services/NAME:PORT/proxy/PATH`.
//! <https://kubernetes.io/docs/tasks/access-application-cluster/access-cluster-services/>

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};

use super::Cluster;
use crate::api::kind::{KindRef, Resource};
use crate::api::status::Status;
use crate::network::addresses::ready_endpoint;
use crate::network::reply::Reply;

/// What a client asks a proxy for: `[SCHEME:]NAME[:PORT]`.
struct Wanted<'a> {
    name: &'a str,
    port: &'a str,
    tls: bool,
}

impl<'a> Wanted<'a> {
    fn parse(text: &'a str) -> Option<Wanted<'a>> {
        let wanted = match *text.split(':').collect::<Vec<_>>() {
            [name] => Wanted { name, port: "", tls: false },
            [name, port] => Wanted { name, port, tls: false },
            [scheme @ ("" | "http" | "https"), name, port] => Wanted { name, port, tls: scheme == "https" },
            _ => return None,
        };
        (!wanted.name.is_empty()).then_some(wanted)
    }
}

impl Cluster {
    /// Asks a pod's port for a path, without the rules and policies of nodes: the control plane has no node.
    ///
    /// # Errors
    /// 400 for a name that can't be read or a pod without an address, 404 if there is no such pod, 503 if nobody listens.
    pub fn proxy_to_pod(&mut self, namespace: &str, name: &str, path: &str) -> Result<Reply, Status> {
        let invalid = || Status::bad_request(format!("invalid pod request {name:?}"));
        let wanted = Wanted::parse(name).ok_or_else(invalid)?;
        let found = self.get::<Pod>(namespace, wanted.name);
        let pod = found.ok_or_else(|| Status::not_found(KindRef::of::<Pod>(), wanted.name))?;
        let ip = pod.status::<Pod>().pod_ip.clone().filter(|ip| !ip.is_empty());
        let ip = ip.ok_or_else(|| Status::bad_request("address not allowed"))?;
        let declared = pod.spec::<Pod>().containers.iter().find_map(|container| container.ports.as_ref()?.first());
        let port = match wanted.port {
            "" => declared.map_or(if wanted.tls { 443 } else { 80 }, |port| port.container_port),
            text => text.parse().map_err(|_| invalid())?,
        };
        self.proxied(&ip, port, wanted.tls, path)
    }

    /// Asks a ready endpoint of a Service.
    ///
    /// # Errors
    /// 400 for a name that can't be read, 404 if there is no such Service, 503 if it has no such port or no endpoint, or
    /// nobody listens there.
    pub fn proxy_to_service(&mut self, namespace: &str, name: &str, path: &str) -> Result<Reply, Status> {
        let wanted =
            Wanted::parse(name).ok_or_else(|| Status::bad_request(format!("invalid service request {name:?}")))?;
        let missing = |kind| move || Status::not_found(kind, wanted.name);
        let mut port = wanted.port.to_owned();
        if let Ok(number) = port.parse::<i32>() {
            let service = self.get::<Service>(namespace, wanted.name).ok_or_else(missing(Service::kind()))?;
            let ports = service.spec::<Service>().ports.as_deref().unwrap_or_default();
            let named = ports.iter().find(|port| port.port == number).ok_or_else(|| {
                Status::unavailable(format!("no service port {number} found for service {:?}", wanted.name))
            })?;
            port = named.name.clone().unwrap_or_default();
        }
        let endpoints = self.get::<Endpoints>(namespace, wanted.name).ok_or_else(missing(Endpoints::kind()))?;
        let ready = ready_endpoint(endpoints, &port);
        let (ip, port) =
            ready.ok_or_else(|| Status::unavailable(format!("no endpoints available for service {name:?}")))?;
        self.proxied(&ip.to_string(), port.into(), wanted.tls, path)
    }

    fn proxied(&mut self, ip: &str, port: i32, tls: bool, path: &str) -> Result<Reply, Status> {
        let failed = |why: String| Status::unavailable(format!("error trying to reach service: {why}"));
        let number = u16::try_from(port).unwrap_or_default();
        let now = self.now();
        let mut machines = self.machines.iter().filter(|(_, machine)| machine.powered);
        let found = machines.find_map(|(name, machine)| {
            let (handle, container) = machine.runtime.listener(ip, number)?;
            Some((name.clone(), handle, container))
        });
        let Some((name, handle, container)) = found else {
            return Err(failed(format!("dial tcp {ip}:{port}: connect: connection refused")));
        };
        match (tls, container.speaks_tls()) {
            (true, false) => return Err(failed("http: server gave HTTP response to HTTPS client".into())),
            (false, true) => {
                return Ok(Reply::text(400, "Client sent an HTTP request to an HTTPS server.\n", now));
            }
            _ => {}
        }
        let reply = match container.http(number, path) {
            Ok(answer) if answer.status > 0 => Reply::of(container, answer, now),
            _ => return Err(failed("net/http: HTTP/1.x transport connection broken".into())),
        };
        if let Some(machine) = self.machines.get_mut(&name) {
            machine.runtime.charge_request(handle);
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::Config;
    use crate::api::object::Object;
    use crate::api::request::Request;

    fn create<K: Resource>(cluster: &mut Cluster, value: serde_json::Value) {
        let object = Object::from_json(K::kind(), value).unwrap();
        cluster.request(Request::create(&"learner".into(), object)).unwrap();
    }

    #[test]
    fn pods_and_services_answer_through_the_apiserver() {
        let mut cluster = Cluster::new(Config::default());
        let labels = json!({"app": "web"});
        let container = json!({"name": "c", "image": "nginx", "ports": [{"containerPort": 80}]});
        let metadata = json!({"name": "web", "namespace": "default", "labels": labels});
        create::<Pod>(&mut cluster, json!({"metadata": metadata, "spec": {"containers": [container]}}));
        let ports = json!([{"port": 8080, "targetPort": 80}]);
        create::<Service>(&mut cluster, json!({"metadata": metadata, "spec": {"selector": labels, "ports": ports}}));
        cluster.settle(Duration::from_secs(60), |_| true);
        for name in ["web", "web:80", "http:web:80"] {
            let reply = cluster.proxy_to_pod("default", name, "/").unwrap();
            assert!(reply.body.contains("Welcome to nginx!"), "{name}");
        }
        assert_eq!(cluster.proxy_to_service("default", "web:8080", "/nothing").unwrap().status, 404);
        let refused = |answer: Result<Reply, Status>| answer.map(|reply| reply.status).unwrap_err().message;
        let address = cluster.get::<Pod>("default", "web").unwrap().status::<Pod>().pod_ip.clone().unwrap();
        let closed = format!("error trying to reach service: dial tcp {address}:81: connect: connection refused");
        assert_eq!(refused(cluster.proxy_to_pod("default", "web:81", "/")), closed);
        let other = "no service port 81 found for service \"web\"";
        assert_eq!(refused(cluster.proxy_to_service("default", "web:81", "/")), other);
        let plain = "error trying to reach service: http: server gave HTTP response to HTTPS client";
        assert_eq!(refused(cluster.proxy_to_pod("default", "https:web:80", "/")), plain);
        assert_eq!(refused(cluster.proxy_to_pod("default", "a:b:c", "/")), "invalid pod request \"a:b:c\"");
    }
}
