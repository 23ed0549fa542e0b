//! kube-proxy: turns Services and EndpointSlices into the rules of its node. Packets never pass through it.
//! <https://kubernetes.io/docs/reference/command-line-tools-reference/kube-proxy/>

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::informer::Informer;
use super::path::Port;
use super::rules::{Backend, Front, Mode, Table, Verdict};
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::{Key, Name};
use crate::clock::{Class, Time};
use crate::trace::{Causes, What};
use crate::watch::WatchEvent;
use crate::world::{Event, Subscriber, World};

/// At least this long from one sync to the next (`minSyncPeriod`).
const SYNC_PERIOD_MIN: Duration = Duration::from_secs(1);
/// A list that failed is tried again after this long, then twice as long, up to a bound.
const LIST_BACKOFF: Duration = Duration::from_millis(800);
const LIST_BACKOFF_MAX: Duration = Duration::from_secs(30);
/// How long to wait after a list that failed, after the wait that led to it.
pub(super) fn list_backoff(waited: Duration) -> Duration {
    (waited * 2).clamp(LIST_BACKOFF, LIST_BACKOFF_MAX)
}

/// Names the Service of an EndpointSlice.
pub(super) const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// What wakes a kube-proxy, beside its watches, with the incarnation that asked for it.
#[derive(Clone, Debug)]
pub enum Wake {
    Sync(u64),
    /// The apiserver could not be reached: list again. The wait that led here.
    List(u64, Duration),
}

/// A node's kube-proxy and what it left in the node's kernel.
#[derive(Clone, Debug)]
pub struct Proxy {
    pub node: Name,
    mode: Mode,
    running: bool,
    /// Counts restarts, so that what was under way before one is not taken for the present.
    incarnation: u64,
    informer: Informer,
    /// Services whose rules must be looked at, and why.
    pending: imbl::OrdMap<Key, Causes>,
    sync_scheduled: bool,
    /// When rules may be written next.
    next_sync: Time,
    kernel: Kernel,
}

/// What lives in the node's kernel and outlives the process.
#[derive(Clone, Debug, Default)]
struct Kernel {
    table: Table,
    /// IPVS: whose turn it is.
    turns: imbl::OrdMap<(Key, usize), u64>,
    /// Which backend a client got, and when it last came.
    sticky: imbl::OrdMap<(Key, usize, Ipv4Addr), (Ipv4Addr, u16, Time)>,
}

impl Proxy {
    pub fn new(node: Name) -> Proxy {
        Proxy {
            node,
            mode: Mode::default(),
            running: false,
            incarnation: 0,
            informer: Informer::default(),
            pending: imbl::OrdMap::new(),
            sync_scheduled: false,
            next_sync: Time::ZERO,
            kernel: Kernel::default(),
        }
    }

    /// Lists and watches Services and EndpointSlices, and writes all rules anew.
    pub fn start(&mut self, world: &mut World) {
        self.stop(world);
        self.running = true;
        self.incarnation += 1;
        self.sync_scheduled = false;
        self.next_sync = world.now;
        if self.mode != world.settings.proxy_mode {
            // The rules of another mode are cleaned up before the first sync.
            self.mode = world.settings.proxy_mode;
            self.kernel = Kernel::default();
        }
        self.list(Duration::ZERO, world);
    }

    /// The process ends; its rules stay in the kernel and go stale.
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
        self.kernel = Kernel::default();
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The rules in the node's kernel now.
    pub fn table(&self) -> &Table {
        &self.kernel.table
    }

    pub fn observe(&mut self, events: &[WatchEvent], world: &mut World) {
        for event in events {
            if let Some(service) = service_of(&event.object) {
                self.pending.entry(service).or_default().add(event.change.sequence);
            }
        }
        self.informer.apply(events, &world.apiserver.store);
        self.schedule_sync(world);
    }

    pub fn wake(&mut self, wake: Wake, world: &mut World) {
        match wake {
            Wake::Sync(incarnation) if incarnation == self.incarnation => self.sync(world),
            Wake::List(incarnation, waited) if incarnation == self.incarnation => self.list(waited, world),
            _ => {}
        }
    }

    fn subscriber(&self) -> Subscriber {
        Subscriber::Proxy(self.node.clone())
    }

    fn list(&mut self, waited: Duration, world: &mut World) {
        let subscriber = self.subscriber();
        if world.faults.unreachable(&subscriber.component()).is_some() {
            let wait = list_backoff(waited);
            let event = Event::Proxy(self.node.clone(), Wake::List(self.incarnation, wait));
            world.after(wait, Class::Background, event);
            return;
        }
        self.informer = Informer::list(&world.apiserver.store);
        for kind in [KindRef::of::<Service>(), KindRef::of::<EndpointSlice>()] {
            let revision = world.apiserver.store.revision();
            world.subscribe(subscriber.clone(), crate::watch::Watcher::new(kind, revision));
        }
        // Rules of Services that are gone go too.
        let known = self.informer.services().map(|service| service.key.clone());
        let programmed = self.kernel.table.services().map(|rules| rules.service.clone());
        self.pending = known.chain(programmed).map(|key| (key, Causes::None)).collect();
        self.schedule_sync(world);
    }

    fn schedule_sync(&mut self, world: &mut World) {
        if !self.sync_scheduled && !self.pending.is_empty() {
            self.sync_scheduled = true;
            let event = Event::Proxy(self.node.clone(), Wake::Sync(self.incarnation));
            world.at(self.next_sync, Class::Work, event);
        }
    }

    /// Writes the rules of what changed since the last time.
    fn sync(&mut self, world: &mut World) {
        self.sync_scheduled = false;
        self.next_sync = world.now + SYNC_PERIOD_MIN;
        let before = self.kernel.table.clone();
        let pending = std::mem::take(&mut self.pending);
        self.kernel.table = world.tables.get_or_make(&self.informer, || {
            let mut table = before.clone();
            for service in pending.keys() {
                table.set(service, self.informer.rules(service));
            }
            table
        });
        let actor = self.subscriber().component();
        for (service, causes) in pending {
            let (old, new) = (before.get(&service), self.kernel.table.get(&service));
            let same = match (old, new) {
                (Some(old), Some(new)) => Arc::ptr_eq(old, new) || old == new,
                (None, None) => true,
                _ => false,
            };
            if !same {
                let endpoints = new.map_or(0, |rules| rules.ready_count());
                world.record(&actor, causes, What::Rules { node: self.node.clone(), service, endpoints });
            }
        }
    }

    /// Where the rules send a new connection from `client`, on a pod or node of the cluster if `inside`, to an address
    /// and port; `None` if no rule is about it.
    pub(super) fn route(
        &mut self,
        client: Ipv4Addr,
        inside: bool,
        (address, port): (Ipv4Addr, Port<'_>),
        world: &mut World,
    ) -> Option<Route> {
        let (front, rules, index) = self.kernel.table.find(address, port)?;
        // Who comes from within reaches all backends, whatever the external policy.
        let local = rules.is_local(front) && !(inside && front != Front::ClusterIp);
        let rules = rules.clone();
        if rules.keeps_out(client, address) {
            let service = rules.service.clone();
            return Some(Route { service, masquerade: false, to: Err(Verdict::Drop) });
        }
        let masquerade = front != Front::ClusterIp && !rules.external_local;
        let port = rules.ports.get(index)?;
        let service = rules.service.clone();
        let backends = match rules.verdict(port, local, &self.node) {
            Verdict::Refuse => return Some(Route { service, masquerade, to: Err(Verdict::Refuse) }),
            Verdict::Drop => return Some(Route { service, masquerade, to: Err(Verdict::Drop) }),
            Verdict::Backends(backends) => backends,
        };
        let client_key = (service.clone(), index, client);
        let remembered = rules.affinity.and_then(|timeout| {
            let (ip, number, seen) = self.kernel.sticky.get(&client_key)?;
            let known = backends.iter().find(|b| (b.address, b.port) == (*ip, *number))?;
            (world.now.since(*seen) < timeout).then_some(*known)
        });
        let chosen = match remembered {
            Some(backend) => backend,
            None => backends.get(self.draw(&service, index, backends.len(), world))?,
        };
        if rules.affinity.is_some() {
            self.kernel.sticky.insert(client_key, (chosen.address, chosen.port, world.now));
        }
        Some(Route { service, masquerade, to: Ok(chosen.clone()) })
    }

    /// Packets for this address from outside may come by this node. A load balancer asks each node's kube-proxy whether
    /// it is well, and, where only local backends count, whether there are any.
    pub(super) fn lets_in(&self, address: Ipv4Addr, port: Port<'_>) -> bool {
        let Some((front, rules, index)) = self.kernel.table.find(address, port) else { return false };
        if front != Front::External || !rules.load_balancer_ips.contains(&address) {
            return true;
        }
        let has_local = rules.ports.get(index).is_some_and(|port| !port.usable(Some(&self.node)).is_empty());
        self.running && (!rules.external_local || has_local)
    }

    fn draw(&mut self, service: &Key, port: usize, count: usize, world: &mut World) -> usize {
        match self.mode {
            Mode::Iptables | Mode::Nftables => world.random.below(count as u64) as usize,
            Mode::Ipvs => {
                let turn = self.kernel.turns.entry((service.clone(), port)).or_default();
                *turn += 1;
                ((*turn - 1) % count.max(1) as u64) as usize
            }
        }
    }
}

/// What the rules did with a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    pub service: Key,
    /// The backend sees the node's address as the client's.
    pub masquerade: bool,
    pub to: Result<Backend, Verdict<'static>>,
}

/// The Service that an object has to do with.
fn service_of(object: &Object) -> Option<Key> {
    if object.is::<Service>() {
        return Some(object.key.clone());
    }
    let service = object.label(SERVICE_NAME_LABEL)?;
    Some(Key::new(object.key.namespace.clone(), service))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Cluster;
    use crate::api::kind::Resource;
    use crate::api::request::{Body, Request, Verb};
    use crate::cluster::Config;

    fn cluster(nodes: usize) -> Cluster {
        let mut cluster = Cluster::new(Config { nodes, ..Config::default() });
        settle(&mut cluster);
        cluster
    }

    fn settle(cluster: &mut Cluster) {
        cluster.settle(Duration::from_secs(60), |_| true);
    }

    fn create<K: Resource>(cluster: &mut Cluster, value: Value) {
        let object = Object::from_json(K::kind(), value).unwrap();
        cluster.request(Request::create(&"learner".into(), object)).unwrap();
    }

    fn put<K: Resource>(cluster: &mut Cluster, name: &str, value: Value) {
        let request = Request::new(&"learner".into(), Verb::Update, K::kind(), Key::new("default", name));
        cluster.request(Request { body: Body::Json(value), ..request }).unwrap();
    }

    fn service(extra: Value) -> Value {
        let mut service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"clusterIP": "10.96.7.7", "ports": [{"port": 80, "targetPort": 8080}]},
        });
        let Value::Object(extra) = extra else { panic!("fields of a spec") };
        service["spec"].as_object_mut().unwrap().extend(extra);
        service
    }

    /// One endpoint a node, ready or not.
    fn slice(ready: &[bool]) -> Value {
        let endpoint = |(index, ready): (usize, &bool)| {
            let node = index + 1;
            json!({"addresses": [format!("10.244.{node}.2")], "nodeName": format!("node-{node}"),
                "conditions": {"ready": ready, "serving": ready, "terminating": false},
                "targetRef": {"kind": "Pod", "namespace": "default", "name": format!("web-{node}")}})
        };
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "web-abcde", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
            "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
            "endpoints": ready.iter().enumerate().map(endpoint).collect::<Vec<_>>(),
        })
    }

    fn web(cluster: &Cluster, node: &str) -> Vec<(String, bool)> {
        let proxy = &cluster.machine(node).unwrap().proxy;
        let rules = proxy.table().get(&Key::new("default", "web")).unwrap();
        rules.ports[0].backends.iter().map(|b| (format!("{}:{}", b.address, b.port), b.ready)).collect()
    }

    fn save(cluster: &Cluster, node: &str, table: &str) -> String {
        super::super::iptables::save(&cluster.machine(node).unwrap().proxy, table, cluster.now()).unwrap()
    }

    #[test]
    fn rules_follow_the_endpoints_and_say_why() {
        let mut cluster = cluster(2);
        create::<Service>(&mut cluster, service(json!({})));
        settle(&mut cluster);
        create::<EndpointSlice>(&mut cluster, slice(&[true, false]));
        settle(&mut cluster);
        let expected = [("10.244.1.2:8080".to_owned(), true), ("10.244.2.2:8080".to_owned(), false)];
        assert_eq!(web(&cluster, "node-1"), expected);
        assert_eq!(web(&cluster, "node-2"), expected);
        let trace = cluster.trace();
        let entries: Vec<_> = trace
            .iter()
            .filter_map(|entry| match &entry.what {
                What::Rules { node, service, endpoints } if *service.name == *"web" && **node == *"node-2" => {
                    Some((entry, *endpoints))
                }
                _ => None,
            })
            .collect();
        assert_eq!(entries.iter().map(|(_, endpoints)| *endpoints).collect::<Vec<_>>(), [0, 1]);
        let cause = trace.get(entries[1].0.causes.as_slice()[0]).unwrap();
        let What::Request(request) = &cause.what else { panic!("the rules follow a write") };
        assert_eq!((&*request.kind.kind, &*request.key.name), ("EndpointSlice", "web-abcde"));
        assert_eq!(&*entries[1].0.actor, "kube-proxy/node-2");
    }

    #[test]
    fn changes_within_a_second_are_written_together() {
        let mut cluster = cluster(1);
        cluster.advance(Duration::from_secs(5), |_| true);
        create::<Service>(&mut cluster, service(json!({})));
        cluster.advance(Duration::from_millis(50), |_| true);
        create::<EndpointSlice>(&mut cluster, slice(&[false]));
        cluster.advance(Duration::from_millis(50), |_| true);
        put::<EndpointSlice>(&mut cluster, "web-abcde", slice(&[true]));
        settle(&mut cluster);
        let written: Vec<(Time, usize)> = cluster
            .trace()
            .iter()
            .filter_map(|entry| match &entry.what {
                What::Rules { service, endpoints, .. } if *service.name == *"web" => Some((entry.at, *endpoints)),
                _ => None,
            })
            .collect();
        assert_eq!(written.iter().map(|(_, endpoints)| *endpoints).collect::<Vec<_>>(), [0, 1]);
        assert!(written[1].0.since(written[0].0) >= SYNC_PERIOD_MIN);
    }

    #[test]
    fn a_stopped_proxy_leaves_rules_that_go_stale() {
        let mut cluster = cluster(2);
        create::<Service>(&mut cluster, service(json!({})));
        create::<EndpointSlice>(&mut cluster, slice(&[true, true]));
        settle(&mut cluster);
        cluster.stop("kube-proxy/node-2");
        put::<EndpointSlice>(&mut cluster, "web-abcde", slice(&[true]));
        settle(&mut cluster);
        assert_eq!(web(&cluster, "node-1").len(), 1);
        assert_eq!(web(&cluster, "node-2").len(), 2);
        cluster.start("kube-proxy/node-2");
        settle(&mut cluster);
        assert_eq!(web(&cluster, "node-2").len(), 1);
        cluster.power_off("node-2");
        assert_eq!(cluster.machine("node-2").unwrap().proxy.table().services().count(), 0);
    }

    #[test]
    fn a_proxy_that_starts_without_an_apiserver_waits_for_it() {
        let mut cluster = cluster(1);
        create::<Service>(&mut cluster, service(json!({})));
        cluster.power_off("node-1");
        cluster.partition("node-1");
        cluster.power_on("node-1");
        settle(&mut cluster);
        assert_eq!(cluster.machine("node-1").unwrap().proxy.table().services().count(), 0);
        cluster.heal("node-1");
        cluster.advance(Duration::from_secs(40), |_| true);
        assert!(web(&cluster, "node-1").is_empty());
    }

    #[test]
    fn nodes_that_were_told_the_same_share_their_rules() {
        let mut cluster = cluster(3);
        create::<Service>(&mut cluster, service(json!({})));
        settle(&mut cluster);
        let rules = |node| {
            let proxy = &cluster.machine(node).unwrap().proxy;
            proxy.table().get(&Key::new("default", "web")).unwrap().clone()
        };
        assert!(Arc::ptr_eq(&rules("node-1"), &rules("node-3")));
    }

    #[test]
    fn a_lost_event_leaves_one_node_behind() {
        use crate::faults::{Edge, Effect, Rule};
        let mut cluster = cluster(2);
        create::<Service>(&mut cluster, service(json!({})));
        create::<EndpointSlice>(&mut cluster, slice(&[true]));
        settle(&mut cluster);
        let rule = Rule {
            edge: Edge::Delivery,
            component: "kube-proxy/node-1".into(),
            kind: "endpointslices".into(),
            name: "".into(),
            effect: Effect::Drop,
            times: Some(1),
            until: None,
        };
        cluster.add_rule(rule, "node-1 does not hear of endpoints");
        put::<EndpointSlice>(&mut cluster, "web-abcde", slice(&[true, true]));
        settle(&mut cluster);
        assert_eq!((web(&cluster, "node-1").len(), web(&cluster, "node-2").len()), (1, 2));
        // The next event of another object does not heal it.
        let mut other = slice(&[true]);
        other["metadata"]["name"] = "other".into();
        other["metadata"]["labels"] = json!({"kubernetes.io/service-name": "other"});
        create::<EndpointSlice>(&mut cluster, other);
        settle(&mut cluster);
        assert_eq!((web(&cluster, "node-1").len(), web(&cluster, "node-2").len()), (1, 2));
    }

    #[test]
    fn iptables_save_prints_the_chains() {
        let mut cluster = cluster(2);
        create::<Service>(
            &mut cluster,
            service(json!({"type": "NodePort", "ports": [
            {"port": 80, "targetPort": 8080, "nodePort": 30080}], "externalTrafficPolicy": "Local"})),
        );
        settle(&mut cluster);
        assert!(save(&cluster, "node-1", "filter").contains(
            "-A KUBE-SERVICES -d 10.96.7.7/32 -p tcp -m comment --comment \"default/web has no endpoints\" -m tcp \
             --dport 80 -j REJECT --reject-with icmp-port-unreachable"
        ));
        create::<EndpointSlice>(&mut cluster, slice(&[true, true]));
        settle(&mut cluster);
        insta::assert_snapshot!(save(&cluster, "node-1", "nat"));
    }

    #[test]
    fn where_a_local_policy_has_nobody_pods_and_the_node_still_come_in() {
        let mut cluster = cluster(2);
        create::<Service>(
            &mut cluster,
            service(json!({"type": "NodePort", "ports": [
            {"port": 80, "targetPort": 8080, "nodePort": 30080}], "externalTrafficPolicy": "Local"})),
        );
        create::<EndpointSlice>(&mut cluster, slice(&[true]));
        settle(&mut cluster);
        let (filter, nat) = (save(&cluster, "node-2", "filter"), save(&cluster, "node-2", "nat"));
        assert!(filter.contains("default/web has no local endpoints\" -m tcp --dport 30080 -j DROP"), "{filter}");
        assert!(nat.contains("--dport 30080 -j KUBE-EXT-LOLE4ISW44XBNF3G"), "{nat}");
        assert!(nat.contains("-A KUBE-EXT-LOLE4ISW44XBNF3G -s 10.244.0.0/16"), "{nat}");
        assert!(!nat.contains("-A KUBE-EXT-LOLE4ISW44XBNF3G -j") && !nat.contains("KUBE-SVL"), "{nat}");
    }

    fn backends(cluster: &mut Cluster, count: usize) -> Vec<String> {
        let (client, cluster_ip) = (Ipv4Addr::new(10, 244, 1, 9), Ipv4Addr::new(10, 96, 7, 7));
        let mut proxy = cluster.machine("node-1").unwrap().proxy.clone();
        let mut next = || proxy.route(client, true, (cluster_ip, ("TCP", 80)), &mut cluster.world).unwrap().to.unwrap();
        (0..count).map(|_| next().pod.unwrap().name.to_string()).collect()
    }

    #[test]
    fn iptables_draws_ipvs_takes_turns_and_affinity_sticks() {
        let mut cluster = cluster(3);
        create::<Service>(&mut cluster, service(json!({})));
        create::<EndpointSlice>(&mut cluster, slice(&[true, true, true]));
        settle(&mut cluster);
        let drawn = backends(&mut cluster, 300);
        for name in ["web-1", "web-2", "web-3"] {
            let count = drawn.iter().filter(|backend| *backend == name).count();
            assert!((60..140).contains(&count), "{name} got {count} of 300");
        }
        cluster.settings_mut().proxy_mode = Mode::Ipvs;
        cluster.stop("kube-proxy/node-1");
        cluster.start("kube-proxy/node-1");
        settle(&mut cluster);
        assert_eq!(backends(&mut cluster, 4), ["web-1", "web-2", "web-3", "web-1"]);
        let listed = super::super::ipvs::list(&cluster.machine("node-1").unwrap().proxy);
        assert!(!save(&cluster, "node-1", "nat").contains("default/web"));
        assert!(listed.contains("TCP  10.96.7.7:80 rr\n  -> 10.244.1.2:8080              Masq    1"), "{listed}");
        put::<Service>(&mut cluster, "web", service(json!({"sessionAffinity": "ClientIP"})));
        settle(&mut cluster);
        assert_eq!(backends(&mut cluster, 3), ["web-1", "web-1", "web-1"]);
    }

    #[test]
    fn local_policies_and_missing_endpoints_have_their_own_ends() {
        let mut cluster = cluster(2);
        create::<Service>(
            &mut cluster,
            service(json!({"type": "NodePort", "ports": [
            {"port": 80, "targetPort": 8080, "nodePort": 30080}], "externalTrafficPolicy": "Local"})),
        );
        settle(&mut cluster);
        let route = |cluster: &mut Cluster, node: &str| {
            let mut proxy = cluster.machine(node).unwrap().proxy.clone();
            let client = Ipv4Addr::new(192, 0, 2, 1);
            proxy.route(client, false, (Ipv4Addr::UNSPECIFIED, ("TCP", 30080)), &mut cluster.world).unwrap().to
        };
        assert_eq!(route(&mut cluster, "node-1"), Err(Verdict::Refuse));
        create::<EndpointSlice>(&mut cluster, slice(&[true]));
        settle(&mut cluster);
        assert_eq!(route(&mut cluster, "node-2"), Err(Verdict::Drop));
        assert_eq!(route(&mut cluster, "node-1").unwrap().address, Ipv4Addr::new(10, 244, 1, 2));
    }
}
