//! A connection and its way: a name becomes an address, the rules of a node choose a backend, the packets go to the
//! backend's machine, and the program in its container answers.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use super::addresses;
use super::client::Client;
pub use super::client::Origin;
use super::ingress::Router;
use super::path::{Hop, timeout};
use super::policy_agent::Bar;
use super::reply::{Failure, Reply};
use super::url::Url;
use crate::api::{Key, Name};
use crate::cluster::Machine;
use crate::runtime::container::Container;
use crate::trace::{Causes, ConnectionEntry, Sequence, What};
use crate::world::World;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The client gives up after this long; `None` for as long as its kernel tries.
    pub timeout: Option<Duration>,
    /// The `Host` of the request, if it is another than that of the URL.
    pub host: Option<String>,
}

/// A connection and how it ended.
#[derive(Clone, Debug)]
pub struct Connection<T = Reply> {
    /// The address that the name led to (or the last one that was tried) and the port.
    pub address: Option<(Ipv4Addr, u16)>,
    /// The Service whose rules it met.
    pub service: Option<Key>,
    /// The pod that it came to.
    pub backend: Option<Key>,
    /// How long it all took, in virtual time. The cluster's clock does not move.
    pub took: Duration,
    pub result: Result<T, Failure>,
    /// Its entry in the trace.
    pub sequence: Sequence,
}

/// A client that keeps its connection open: once it has a backend, rules don't matter to it any more.
#[derive(Clone, Debug, Default)]
pub struct Session {
    open: Option<Open>,
}

#[derive(Clone, Debug)]
struct Open {
    from: Origin,
    host: String,
    port: u16,
    address: (Ipv4Addr, u16),
    service: Option<Key>,
    /// Where it leads, behind the rules, and the container that holds the other end.
    peer: (Ipv4Addr, u16),
    container: Name,
}

/// What many connections met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// How many each pod answered.
    pub backends: BTreeMap<Key, usize>,
    /// How many ended with which outcome: `200`, `Connection refused`.
    pub outcomes: BTreeMap<Name, usize>,
}

/// The machines and the rest of the cluster, for the time of one connection.
pub(crate) struct Network<'a> {
    pub machines: &'a mut imbl::OrdMap<Name, Machine>,
    pub world: &'a mut World,
    /// What the ingress controller knows, while it runs.
    pub ingress: Option<&'a Router<'a>>,
}

/// Where a connection went, however it ended.
#[derive(Default)]
pub(super) struct Way {
    pub address: Option<(Ipv4Addr, u16)>,
    pub service: Option<Key>,
    pub peer: Option<(Ipv4Addr, u16)>,
    pub container: Option<Name>,
    pub backend: Option<Key>,
    /// Who the other end takes for the client.
    pub source: Option<Ipv4Addr>,
    pub waited: Duration,
    pub barred_by: Vec<Bar>,
}

impl Network<'_> {
    /// Opens a connection (or uses the session's) and sends one GET.
    pub fn get(&mut self, session: &mut Session, from: &Origin, url: &str, options: &Options) -> Connection {
        let mut way = Way::default();
        let round_trip = self.world.settings.round_trip;
        way.waited = self.world.random.between(round_trip.0, round_trip.1);
        let mut to: Name = url.into();
        let mut result = match Url::parse(url) {
            Err(why) => Err(Failure::Malformed(why)),
            Ok(mut url) => {
                if let Some(host) = &options.host {
                    url.host_header.clone_from(host);
                }
                to = format!("{}:{}", url.host, url.port).into();
                self.visit(session, from, &url, &mut way)
            }
        };
        if let Some(timeout) = options.timeout.filter(|timeout| way.waited > *timeout) {
            way.waited = timeout;
            result = Err(Failure::TimedOut);
        }
        let outcome: Name = match &result {
            Ok(reply) => reply.status.to_string().into(),
            Err(failure) => failure.to_string().into(),
        };
        let ok = result.as_ref().is_ok_and(|reply| reply.status < 400);
        self.record(from, to, way, (outcome, ok), result)
    }

    /// Notes what became of a connection.
    pub(super) fn record<T>(
        &mut self,
        from: &Origin,
        to: Name,
        way: Way,
        (outcome, ok): (Name, bool),
        result: Result<T, Failure>,
    ) -> Connection<T> {
        let entry = ConnectionEntry {
            from: from.to_string().into(),
            to,
            service: way.service.clone(),
            backend: way.backend.clone(),
            outcome,
            ok,
            barred_by: way.barred_by.iter().map(|(policy, _)| policy.clone()).collect(),
        };
        let mut causes = Causes::None;
        for (_, written) in &way.barred_by {
            causes.add(*written);
        }
        let actor = entry.from.clone();
        let sequence = self.world.record(&actor, causes, What::Connection(Box::new(entry)));
        let Way { address, service, backend, waited: took, .. } = way;
        Connection { address, service, backend, took, result, sequence }
    }

    fn visit(&mut self, session: &mut Session, from: &Origin, url: &Url, way: &mut Way) -> Result<Reply, Failure> {
        let client = self.client(from)?;
        let kept = session.open.take();
        if let Some(open) = kept.filter(|open| open.from == *from && open.host == url.host && open.port == url.port) {
            way.address = Some(open.address);
            way.service = open.service.clone();
            match self.send(open.peer, url, way) {
                // The other end is another process by now: it closed this connection, so that a new one is opened.
                Ok(_) | Err(Failure::Refused | Failure::NoRoute) if way.container != Some(open.container.clone()) => {
                    *way = Way { waited: way.waited, ..Way::default() };
                }
                Ok(reply) => {
                    session.open = Some(open);
                    return Ok(reply);
                }
                Err(failure) => return Err(failure),
            }
        }
        let result = self.open(&client, url, way);
        if let (Ok(_), Some(address), Some(peer), Some(container)) = (&result, way.address, way.peer, &way.container) {
            let (host, port, service) = (url.host.clone(), url.port, way.service.clone());
            session.open =
                Some(Open { from: from.clone(), host, port, address, service, peer, container: container.clone() });
        }
        result
    }

    /// Tries the addresses of a name in turn until one accepts.
    fn open(&mut self, client: &Client, url: &Url, way: &mut Way) -> Result<Reply, Failure> {
        let mut last = Failure::Unresolved(url.host.clone());
        for address in self.resolve(client, &url.host, way) {
            *way = Way { address: Some((address, url.port)), waited: way.waited, ..Way::default() };
            match self.travel(client, address, url, way) {
                Err(failure @ (Failure::Refused | Failure::NoRoute | Failure::TimedOut)) => last = failure,
                ended => return ended,
            }
        }
        Err(last)
    }

    /// From the client to whatever has the address, by the rules on the way.
    fn travel(&mut self, client: &Client, address: Ipv4Addr, url: &Url, way: &mut Way) -> Result<Reply, Failure> {
        if address == addresses::INGRESS {
            way.barred_by = self.barred_out(client, address, ("TCP", url.port));
            let entered = if way.barred_by.is_empty() { self.enter(url, way) } else { None };
            return entered.unwrap_or_else(|| Err(timeout(way)));
        }
        let Hop { source, peer, passes_policies } = self.lead(client, address, ("TCP", url.port), way)?;
        way.source = Some(source);
        if passes_policies { self.deliver(client, source, peer, url, way) } else { self.send(peer, url, way) }
    }

    /// Past the policies of both ends, which only look at the first packet of a connection.
    pub(super) fn deliver(
        &mut self,
        client: &Client,
        source: Ipv4Addr,
        peer: (Ipv4Addr, u16),
        url: &Url,
        way: &mut Way,
    ) -> Result<Reply, Failure> {
        self.admit(client, source, "TCP", peer, way)?;
        self.send(peer, url, way)
    }

    /// To the machine that has the address, and into the container that listens there.
    fn send(&mut self, peer: (Ipv4Addr, u16), url: &Url, way: &mut Way) -> Result<Reply, Failure> {
        way.peer = Some(peer);
        let (name, handle) = self.reach(peer, |container| container.listens_on(peer.1), way)?;
        let machine = self.powered(&name, way)?;
        let Some(container) = machine.runtime.container(handle) else { return Err(Failure::Refused) };
        let is_netexec = container.is_netexec();
        let mut reply = answer(container, peer.1, url, self.world, way)?;
        if is_netexec && let Some(answer) = self.netexec(&name, handle, &url.path, way) {
            (reply.status, reply.body) = (answer.status, answer.body);
        }
        if let Some(machine) = self.machines.get_mut(&name) {
            machine.runtime.charge_request(handle);
            machine.runtime.log_request(handle, &url.path, self.world.now);
        }
        Ok(reply)
    }
}

fn answer(container: &Container, port: u16, url: &Url, world: &World, way: &mut Way) -> Result<Reply, Failure> {
    if url.tls && !container.speaks_tls() {
        return Err(Failure::NotTls);
    }
    match container.http_from(port, &url.path, way.source) {
        Err(_) => Err(Failure::Refused),
        Ok(answer) if answer.status == 0 => Err(Failure::NotHttp),
        Ok(answer) => {
            way.waited += answer.took;
            Ok(Reply::of(container, answer, world.now))
        }
    }
}

impl Load {
    pub(crate) fn add(&mut self, connection: &Connection) {
        let outcome: Name = match &connection.result {
            Ok(reply) => {
                if let Some(backend) = &connection.backend {
                    *self.backends.entry(backend.clone()).or_default() += 1;
                }
                reply.status.to_string().into()
            }
            Err(failure) => failure.to_string().into(),
        };
        *self.outcomes.entry(outcome).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Service};
    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use serde_json::{Value, json};

    use super::*;
    use crate::Cluster;
    use crate::api::kind::Resource;
    use crate::api::object::Object;
    use crate::api::request::{PatchType, Request};
    use crate::cluster::Config;
    use crate::network::rules::Mode;

    fn settle(cluster: &mut Cluster) {
        cluster.settle(Duration::from_secs(60), |_| true);
    }

    fn create<K: Resource>(cluster: &mut Cluster, value: Value) {
        let object = Object::from_json(K::kind(), value).unwrap();
        cluster.request(Request::create(&"learner".into(), object)).unwrap();
    }

    fn patch<K: Resource>(cluster: &mut Cluster, name: &str, value: Value) {
        let key = Key::new("default", name);
        let request = Request::patch(&"learner".into(), K::kind(), key, PatchType::Merge, value);
        cluster.request(request).unwrap();
        settle(cluster);
    }

    fn pod(cluster: &mut Cluster, name: &str, node: &str, image: &str) {
        create::<Pod>(
            cluster,
            json!({"metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": image, "command": match image {
                    "busybox" => json!(["sleep", "3600"]),
                    _ => Value::Null,
                }}]}}),
        );
    }

    fn endpoints(cluster: &Cluster, ready: &[&str]) -> Value {
        let endpoint = |name: &str| {
            let pod = cluster.get::<Pod>("default", name).unwrap();
            json!({"addresses": [pod.status::<Pod>().pod_ip], "nodeName": pod.spec::<Pod>().node_name,
                "conditions": {"ready": ready.contains(&name)},
                "targetRef": {"kind": "Pod", "namespace": "default", "name": name}})
        };
        json!(["web-1", "web-2"].map(endpoint))
    }

    /// web-1 on node-1 and web-2 on node-2 behind the Service web, and a client on node-3.
    fn cluster() -> Cluster {
        let mut cluster = Cluster::new(Config { nodes: 3, ..Config::default() });
        settle(&mut cluster);
        pod(&mut cluster, "web-1", "node-1", "nginx:1.27");
        pod(&mut cluster, "web-2", "node-2", "nginx:1.27");
        pod(&mut cluster, "client", "node-3", "busybox");
        create::<Service>(
            &mut cluster,
            json!({"metadata": {"name": "web", "namespace": "default"},
                "spec": {"type": "NodePort", "clusterIP": "10.96.7.7", "ports": [{"port": 80, "nodePort": 30080}]}}),
        );
        settle(&mut cluster);
        let endpoints = endpoints(&cluster, &["web-1", "web-2"]);
        create::<EndpointSlice>(
            &mut cluster,
            json!({"metadata": {"name": "web-x", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4", "ports": [{"name": "", "port": 80, "protocol": "TCP"}], "endpoints": endpoints}),
        );
        settle(&mut cluster);
        cluster
    }

    fn client() -> Origin {
        Origin::Pod(Key::new("default", "client"))
    }

    fn get(cluster: &mut Cluster, from: &Origin, url: &str) -> Connection {
        cluster.connect(from, url, &Options::default())
    }

    fn failure(cluster: &mut Cluster, from: &Origin, url: &str) -> (String, i32) {
        let failure = get(cluster, from, url).result.unwrap_err();
        (failure.to_string(), failure.curl_exit_code())
    }

    fn pod_ip(cluster: &Cluster, name: &str) -> String {
        cluster.get::<Pod>("default", name).unwrap().status::<Pod>().pod_ip.clone().unwrap()
    }

    fn counts(load: &Load) -> Vec<(&str, usize)> {
        load.backends.iter().map(|(pod, count)| (&*pod.name, *count)).collect()
    }

    #[test]
    fn a_name_leads_to_a_page() {
        let mut cluster = cluster();
        let connection = get(&mut cluster, &client(), "http://web");
        let reply = connection.result.unwrap();
        assert_eq!(reply.status_line(), "HTTP/1.1 200 OK");
        assert_eq!(reply.header("server"), Some("nginx/1.27"));
        assert!(reply.body.contains("Welcome to nginx!"));
        assert_eq!(connection.address, Some((Ipv4Addr::new(10, 96, 7, 7), 80)));
        let entry = cluster.trace().get(connection.sequence).unwrap();
        let What::Connection(entry) = &entry.what else { panic!("a connection is recorded") };
        assert_eq!((&*entry.from, &*entry.to, &*entry.outcome), ("default/client", "web:80", "200"));
        assert_eq!(entry.service, Some(Key::new("default", "web")));
        assert!(entry.ok && entry.backend.as_ref().is_some_and(|pod| pod.name.starts_with("web-")));
    }

    #[test]
    fn every_way_to_a_pod_works_from_where_it_can() {
        let mut cluster = cluster();
        let pod_url = format!("{}/", pod_ip(&cluster, "web-1"));
        let (node, outside, web) =
            (Origin::Node("node-3".into()), Origin::Outside, Origin::Pod(Key::new("default", "web-1")));
        let everything = [
            (client(), pod_url.as_str()),
            (client(), "web.default.svc.cluster.local"),
            (client(), "10.96.7.7:80"),
            (client(), "10.0.0.12:30080"),
            (node.clone(), "10.96.7.7"),
            (node.clone(), "localhost:30080"),
            (outside.clone(), "10.0.0.13:30080"),
            (outside.clone(), "node-1:30080"),
            (web, "localhost"),
        ];
        for (from, url) in everything {
            let result = get(&mut cluster, &from, url).result;
            assert!(result.is_ok(), "{from} to {url}: {result:?}");
        }
        assert_eq!(failure(&mut cluster, &outside, "10.96.7.7").1, 28);
        assert_eq!(failure(&mut cluster, &node, "web").1, 6);
    }

    #[test]
    fn what_goes_wrong_has_curls_words_and_codes() {
        let mut cluster = cluster();
        let pod_url = format!("{}:81", pod_ip(&cluster, "web-1"));
        assert_eq!(failure(&mut cluster, &client(), "nowhere"), ("Could not resolve host: nowhere".into(), 6));
        assert_eq!(failure(&mut cluster, &client(), &pod_url), ("Connection refused".into(), 7));
        assert_eq!(failure(&mut cluster, &client(), "10.244.1.200"), ("No route to host".into(), 7));
        assert_eq!(failure(&mut cluster, &client(), "https://web:80").1, 35);
        let timeout = Options { timeout: Some(Duration::from_secs(2)), ..Options::default() };
        let connection = cluster.connect(&client(), "10.96.99.99", &timeout);
        assert_eq!((connection.result, connection.took), (Err(Failure::TimedOut), Duration::from_secs(2)));
        let nobody = Origin::Pod(Key::new("default", "nobody"));
        assert!(failure(&mut cluster, &nobody, "web").0.contains("default/nobody"));
    }

    #[test]
    fn no_ready_endpoint_refuses() {
        let mut cluster = cluster();
        let none = endpoints(&cluster, &[]);
        patch::<EndpointSlice>(&mut cluster, "web-x", json!({"endpoints": none}));
        assert_eq!(failure(&mut cluster, &client(), "web"), ("Connection refused".into(), 7));
        assert_eq!(failure(&mut cluster, &Origin::Outside, "10.0.0.11:30080"), ("Connection refused".into(), 7));
    }

    #[test]
    fn stale_rules_send_connections_to_pods_that_are_gone() {
        let mut cluster = cluster();
        cluster.stop("kube-proxy/node-3");
        cluster.request(Request::delete(&"learner".into(), Pod::kind(), Key::new("default", "web-2"))).unwrap();
        settle(&mut cluster);
        let slice = json!({"endpoints": [{"addresses": [pod_ip(&cluster, "web-1")], "nodeName": "node-1",
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "web-1"}}]});
        patch::<EndpointSlice>(&mut cluster, "web-x", slice);
        let stale = cluster.load(&client(), "web", 40, &Options::default());
        assert!(stale.outcomes["No route to host"] > 5 && stale.outcomes["200"] > 5, "{stale:?}");
        let fresh = cluster.load(&Origin::Node("node-1".into()), "10.96.7.7", 40, &Options::default());
        assert_eq!(counts(&fresh), [("web-1", 40)]);
    }

    #[test]
    fn load_spreads_at_random_or_in_turn_and_a_session_sticks() {
        let mut cluster = cluster();
        let random = cluster.load(&client(), "web", 200, &Options::default());
        assert!(counts(&random).iter().all(|(_, count)| (70..130).contains(count)), "{random:?}");
        assert_ne!(counts(&random)[0].1, 100);
        cluster.set_proxy_mode(Mode::Ipvs);
        settle(&mut cluster);
        let turns = cluster.load(&client(), "web", 100, &Options::default());
        assert_eq!(counts(&turns), [("web-1", 50), ("web-2", 50)]);

        let mut session = Session::default();
        let mut sticky = Load::default();
        let first = cluster.connect_again(&mut session, &client(), "web", &Options::default()).backend.unwrap();
        for _ in 0..20 {
            sticky.add(&cluster.connect_again(&mut session, &client(), "web", &Options::default()));
        }
        assert_eq!(counts(&sticky), [(&*first.name, 20)]);
        // Not ready any more, it gets no new connections, but it keeps those that it has.
        let other = if *first.name == *"web-1" { "web-2" } else { "web-1" };
        let ready = endpoints(&cluster, &[other]);
        patch::<EndpointSlice>(&mut cluster, "web-x", json!({"endpoints": ready}));
        let kept = cluster.connect_again(&mut session, &client(), "web", &Options::default());
        assert_eq!(kept.backend, Some(first.clone()));
        assert_eq!(counts(&cluster.load(&client(), "web", 5, &Options::default())), [(other, 5)]);
        // When its pod ends, the client comes back by a new connection.
        cluster.request(Request::delete(&"learner".into(), Pod::kind(), first)).unwrap();
        settle(&mut cluster);
        let again = cluster.connect_again(&mut session, &client(), "web", &Options::default());
        assert_eq!(&*again.backend.unwrap().name, other);
    }

    #[test]
    fn a_machine_without_power_never_answers_but_one_that_is_cut_off_does() {
        let mut cluster = cluster();
        let url = pod_ip(&cluster, "web-2");
        cluster.partition("node-2");
        assert!(get(&mut cluster, &client(), &url).result.is_ok());
        cluster.power_off("node-2");
        assert_eq!(failure(&mut cluster, &client(), &url), ("Connection timed out".into(), 28));
        assert_eq!(failure(&mut cluster, &Origin::Outside, "node-2:30080").1, 28);
    }
}
