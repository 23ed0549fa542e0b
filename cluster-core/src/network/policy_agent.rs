//! The network plugin's agent of a node: it is told of NetworkPolicies and keeps its node's pods to them.
//! <https://github.com/kubernetes-sigs/kube-network-policies>

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::LazyLock;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ContainerPort, Namespace, Pod, PodSpec};
use k8s_openapi::api::networking::v1::NetworkPolicy;

use super::addresses;
use super::informer::Told;
use super::policy::{Crossing, Direction};
use super::proxy::list_backoff;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::{Key, Name};
use crate::clock::Class;
use crate::store::in_namespace;
use crate::trace::Sequence;
use crate::watch::{WatchEvent, Watcher};
use crate::world::{Event, Subscriber, World};

/// The apiserver could not be reached: list again. The incarnation that asked for it, and the wait that led here.
#[derive(Clone, Debug)]
pub struct Wake(u64, Duration);

/// A node's agent. What it was told last holds on when it ends, as the rules that it left in the kernel do.
#[derive(Clone, Debug)]
pub struct PolicyAgent {
    node: Name,
    running: bool,
    /// Counts restarts, so that what was under way before one is not taken for the present.
    incarnation: u64,
    policies: Told,
    /// The trace entries of the last writes that it was told of.
    written: imbl::OrdMap<Key, Sequence>,
    /// Pods and namespaces, of which it wants to hear only once there is a policy.
    peers: Option<(Told, Told)>,
}

/// A policy that stood in the way of a connection, with the trace entry of its last write.
pub type Bar = (Key, Sequence);

impl PolicyAgent {
    pub fn new(node: Name) -> PolicyAgent {
        PolicyAgent {
            node,
            running: false,
            incarnation: 0,
            policies: Told::default(),
            written: imbl::OrdMap::new(),
            peers: None,
        }
    }

    pub fn start(&mut self, world: &mut World) {
        self.stop(world);
        self.running = true;
        self.incarnation += 1;
        self.list(Duration::ZERO, world);
    }

    pub fn stop(&mut self, world: &mut World) {
        if self.running {
            self.running = false;
            self.incarnation += 1;
            world.unsubscribe(&self.subscriber());
        }
    }

    /// The machine loses power: the kernel forgets its rules.
    pub fn power_off(&mut self, world: &mut World) {
        self.stop(world);
        *self = PolicyAgent { incarnation: self.incarnation, ..PolicyAgent::new(self.node.clone()) };
    }

    pub fn wake(&mut self, Wake(incarnation, waited): Wake, world: &mut World) {
        if incarnation == self.incarnation {
            self.list(waited, world);
        }
    }

    pub fn observe(&mut self, events: &[WatchEvent], world: &mut World) {
        let Some(kind) = events.first().map(|event| event.object.kind.clone()) else { return };
        let store = &world.apiserver.store;
        if kind.slot == NetworkPolicy::kind().slot {
            self.policies.apply(&kind, events, store);
            for event in events {
                self.written.insert(event.object.key.clone(), event.change.sequence);
            }
            self.look_at_peers(world);
        } else if let Some((pods, namespaces)) = &mut self.peers {
            let told = if kind.slot == Pod::kind().slot { pods } else { namespaces };
            told.apply(&kind, events, store);
        }
    }

    fn subscriber(&self) -> Subscriber {
        Subscriber::PolicyAgent(self.node.clone())
    }

    fn list(&mut self, waited: Duration, world: &mut World) {
        if world.faults.unreachable(&self.subscriber().component()).is_some() {
            let wait = list_backoff(waited);
            world.after(wait, Class::Background, Event::PolicyAgent(self.node.clone(), Wake(self.incarnation, wait)));
            return;
        }
        let kind = NetworkPolicy::kind();
        self.peers = None;
        self.written = world.apiserver.store.log(kind.slot).iter().map(|c| (c.key().clone(), c.sequence)).collect();
        self.policies = self.list_and_watch(kind, world);
        self.look_at_peers(world);
    }

    fn look_at_peers(&mut self, world: &mut World) {
        if self.peers.is_none() && !self.policies.objects.is_empty() {
            let pods = self.list_and_watch(Pod::kind(), world);
            self.peers = Some((pods, self.list_and_watch(Namespace::kind(), world)));
        }
    }

    fn list_and_watch(&self, kind: &KindRef, world: &mut World) -> Told {
        let revision = world.apiserver.store.revision();
        world.subscribe(self.subscriber(), Watcher::new(kind, revision));
        Told::list(kind, &world.apiserver.store)
    }

    /// The policies that keep a pod of this node from a connection to or from an address, at a port of the one that is
    /// called; nothing if it may pass. What goes between a pod and its own node always may.
    pub fn barred_by(
        &self,
        direction: Direction,
        pod: &Key,
        address: Ipv4Addr,
        (protocol, port): (&str, u16),
    ) -> Vec<Bar> {
        let Some((pods, namespaces)) = &self.peers else { return Vec::new() };
        let Some(pod) = pods.objects.get(pod) else { return Vec::new() };
        if address == addresses::machine_address(&self.node) {
            return Vec::new();
        }
        let peer = match address {
            addresses::CLUSTER_DNS => Some(&*COREDNS),
            address => holder(pods, address),
        };
        let labels = |pod: &Object| {
            let namespace = namespaces.objects.get(&Key::cluster(pod.key.namespace.clone()))?;
            namespace.metadata().labels.as_ref()
        };
        let peer = peer.map(|peer| (peer, labels(peer)));
        let crossing = Crossing { direction, pod, address, peer, protocol, port };
        let bars = crossing.barred_by(in_namespace(&self.policies.objects, &pod.key.namespace));
        let written = |policy: &Key| self.written.get(policy).copied().unwrap_or_default();
        bars.into_iter().map(|policy| (policy.key.clone(), written(&policy.key))).collect()
    }
}

/// The pod that has an address of its own.
fn holder(pods: &Told, address: Ipv4Addr) -> Option<&Object> {
    let text = address.to_string();
    pods.objects.values().find(|pod| {
        let status = pod.status::<Pod>();
        status.pod_ip.as_ref() == Some(&text)
            && pod.spec::<Pod>().host_network != Some(true)
            && !matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))
    })
}

/// What answers at the address of cluster DNS. It is no object here, but policies select it as one.
static COREDNS: LazyLock<Object> = LazyLock::new(|| {
    let port = |name: &str, protocol: &str| ContainerPort {
        name: Some(name.to_owned()),
        container_port: 53,
        protocol: Some(protocol.to_owned()),
        ..ContainerPort::default()
    };
    let ports = Some(vec![port("dns", "UDP"), port("dns-tcp", "TCP")]);
    let container = Container { name: "coredns".into(), ports, ..Container::default() };
    let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
    let mut pod = Object::new::<Pod>("kube-system", "coredns", spec);
    pod.metadata_mut().labels = Some(BTreeMap::from([("k8s-app".to_owned(), "kube-dns".to_owned())]));
    pod
});

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Cluster;
    use crate::api::request::{PatchType, Request};
    use crate::cluster::Config;
    use crate::network::connect::{Connection, Options, Origin, Session};
    use crate::network::reply::Failure;
    use crate::trace::What;

    fn settle(cluster: &mut Cluster) {
        cluster.settle(Duration::from_secs(60), |_| true);
    }

    fn create<K: Resource>(cluster: &mut Cluster, value: Value) {
        let object = Object::from_json(K::kind(), value).unwrap();
        cluster.request(Request::create(&"learner".into(), object)).unwrap();
    }

    fn pod(cluster: &mut Cluster, name: &str, node: &str, image: &str) {
        let command = if image == "busybox" { json!(["sleep", "3600"]) } else { Value::Null };
        let container = json!({"name": "main", "image": image, "command": command,
            "ports": [{"name": "http", "containerPort": 80}]});
        create::<Pod>(
            cluster,
            json!({"metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
            "spec": {"nodeName": node, "containers": [container]}}),
        );
    }

    fn policy(cluster: &mut Cluster, name: &str, spec: Value) {
        create::<NetworkPolicy>(cluster, json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec}));
        settle(cluster);
    }

    /// web on node-1, client on node-2, behind nothing but their addresses and the Service web.
    fn cluster() -> Cluster {
        use k8s_openapi::api::core::v1::Service;
        let mut cluster = Cluster::new(Config { nodes: 2, ..Config::default() });
        settle(&mut cluster);
        pod(&mut cluster, "web", "node-1", "nginx:1.27");
        pod(&mut cluster, "client", "node-2", "busybox");
        create::<Service>(
            &mut cluster,
            json!({"metadata": {"name": "web", "namespace": "default"},
            "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80, "nodePort": 30080}]}}),
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

    fn web_ip(cluster: &Cluster) -> String {
        cluster.get::<Pod>("default", "web").unwrap().status::<Pod>().pod_ip.clone().unwrap()
    }

    fn barred(cluster: &Cluster, connection: &Connection) -> Vec<String> {
        let What::Connection(entry) = &cluster.trace().get(connection.sequence).unwrap().what else {
            panic!("a connection is recorded")
        };
        entry.barred_by.iter().map(Key::to_string).collect()
    }

    #[test]
    fn what_no_policy_allows_times_out_and_the_trace_says_which() {
        let mut cluster = cluster();
        assert!(get(&mut cluster, &client(), "web").result.is_ok());
        policy(&mut cluster, "deny", json!({"podSelector": {"matchLabels": {"app": "web"}}}));
        let denied = get(&mut cluster, &client(), "web");
        assert_eq!(denied.result, Err(Failure::TimedOut));
        assert_eq!(barred(&cluster, &denied), ["default/deny"]);
        let entry = cluster.trace().get(denied.sequence).unwrap();
        let cause = cluster.trace().get(entry.causes.as_slice()[0]).unwrap();
        let What::Request(write) = &cause.what else { panic!("the policy was written") };
        assert_eq!(&*write.key.name, "deny");
        // What comes from its own node always comes in, also by a node port, behind which the node's address stands.
        let url = web_ip(&cluster);
        assert!(get(&mut cluster, &Origin::Node("node-1".into()), &url).result.is_ok());
        assert!(get(&mut cluster, &Origin::Outside, "10.0.0.11:30080").result.is_ok());
        assert_eq!(get(&mut cluster, &Origin::Node("node-2".into()), &url).result, Err(Failure::TimedOut));
        let from =
            json!([{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": [{"port": "http"}]}]);
        policy(&mut cluster, "allow", json!({"podSelector": {}, "ingress": from}));
        assert!(get(&mut cluster, &client(), "web").result.is_ok());
    }

    #[test]
    fn an_isolated_client_needs_dns_too() {
        let mut cluster = cluster();
        let to_web = json!([{"to": [{"podSelector": {"matchLabels": {"app": "web"}}}]}]);
        let app = json!({"matchLabels": {"app": "client"}});
        policy(&mut cluster, "out", json!({"podSelector": app, "policyTypes": ["Egress"], "egress": to_web}));
        let lost = get(&mut cluster, &client(), "web");
        assert_eq!(lost.result, Err(Failure::Unresolved("web".into())));
        assert_eq!(barred(&cluster, &lost), ["default/out"]);
        let url = web_ip(&cluster);
        assert!(get(&mut cluster, &client(), &url).result.is_ok());
        let dns = json!([{"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}], "ports": [{"port": 53, "protocol": "UDP"}]}]);
        policy(&mut cluster, "dns", json!({"podSelector": app, "policyTypes": ["Egress"], "egress": dns}));
        assert!(get(&mut cluster, &client(), "web").result.is_ok());
        // To its own node, but to no other.
        let refused = get(&mut cluster, &client(), "10.0.0.12:81").result;
        assert_eq!(refused, Err(Failure::Refused));
        assert_eq!(get(&mut cluster, &client(), "10.0.0.11:81").result, Err(Failure::TimedOut));
    }

    #[test]
    fn an_open_connection_stays_open_and_an_agent_that_is_stopped_keeps_its_rules() {
        let mut cluster = cluster();
        let mut session = Session::default();
        let options = Options::default();
        cluster.connect_again(&mut session, &client(), "web", &options).result.unwrap();
        policy(&mut cluster, "deny", json!({"podSelector": {}, "policyTypes": ["Ingress"]}));
        assert!(cluster.connect_again(&mut session, &client(), "web", &options).result.is_ok());
        assert!(get(&mut cluster, &client(), "web").result.is_err());
        assert!(cluster.stop("kube-network-policies/node-1"));
        let key = Key::new("default", "deny");
        cluster.request(Request::delete(&"learner".into(), NetworkPolicy::kind(), key)).unwrap();
        settle(&mut cluster);
        assert!(get(&mut cluster, &client(), "web").result.is_err());
        assert!(cluster.start("kube-network-policies/node-1"));
        assert!(get(&mut cluster, &client(), "web").result.is_ok());
    }

    #[test]
    fn labels_that_change_later_count() {
        let mut cluster = cluster();
        let from = json!([{"from": [{"podSelector": {"matchLabels": {"role": "friend"}}}]}]);
        policy(&mut cluster, "friends", json!({"podSelector": {}, "ingress": from}));
        assert!(get(&mut cluster, &client(), "web").result.is_err());
        let body = json!({"metadata": {"labels": {"role": "friend"}}});
        let key = Key::new("default", "client");
        cluster.request(Request::patch(&"learner".into(), Pod::kind(), key, PatchType::Merge, body)).unwrap();
        assert!(get(&mut cluster, &client(), "web").result.is_err());
        settle(&mut cluster);
        assert!(get(&mut cluster, &client(), "web").result.is_ok());
    }
}
