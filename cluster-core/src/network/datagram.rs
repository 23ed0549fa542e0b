//! Datagrams: one packet there, and perhaps one back. They meet the same rules and policies as connections, but nobody tells
//! a client that a packet was lost: it waits as long as it likes.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::addresses;
use super::client::{Client, Origin};
use super::connect::{Connection, Network, Way};
use super::path::Hop;
use super::reply::Failure;
use crate::api::Name;

/// A datagram to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram {
    pub host: String,
    pub port: u16,
    pub text: String,
    /// How long the client waits for an answer.
    pub patience: Duration,
}

impl Network<'_> {
    /// Sends a datagram. That nobody answers is [`Failure::TimedOut`]; that nobody listens is told (ICMP).
    pub fn datagram(&mut self, from: &Origin, datagram: &Datagram) -> Connection<String> {
        let round_trip = self.world.settings.round_trip;
        let mut way = Way { waited: self.world.random.between(round_trip.0, round_trip.1), ..Way::default() };
        let mut result = self.client(from).and_then(|client| self.exchange(&client, datagram, &mut way));
        if way.waited > datagram.patience || result == Err(Failure::TimedOut) {
            way.waited = datagram.patience;
            result = Err(Failure::TimedOut);
        }
        let outcome: Name = match &result {
            Ok(_) => "answered".into(),
            Err(failure) => failure.to_string().into(),
        };
        let to = format!("udp://{}:{}", datagram.host, datagram.port).into();
        let ok = result.is_ok();
        self.record(from, to, way, (outcome, ok), result)
    }

    fn exchange(&mut self, client: &Client, datagram: &Datagram, way: &mut Way) -> Result<String, Failure> {
        let address = self.resolve(client, &datagram.host, way).into_iter().next();
        let Some(address) = address else { return Err(Failure::Unresolved(datagram.host.clone())) };
        way.address = Some((address, datagram.port));
        if address == addresses::INGRESS {
            return Err(Failure::Refused);
        }
        let Hop { source, peer, passes_policies } = self.lead(client, address, ("UDP", datagram.port), way)?;
        if passes_policies {
            self.admit(client, source, "UDP", peer, way)?;
        }
        self.hand_over(source, peer, &datagram.text, way)
    }

    fn hand_over(
        &mut self,
        source: Ipv4Addr,
        peer: (Ipv4Addr, u16),
        text: &str,
        way: &mut Way,
    ) -> Result<String, Failure> {
        way.peer = Some(peer);
        let (name, handle) = self.reach(peer, |container| container.hears(peer.1), way)?;
        let Some(machine) = self.machines.get_mut(&name) else { return Err(Failure::TimedOut) };
        let answer = machine.runtime.container(handle).and_then(|container| container.hear(text, source));
        machine.runtime.charge_request(handle);
        answer.ok_or(Failure::TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Service};
    use k8s_openapi::api::networking::v1::NetworkPolicy;
    use serde_json::json;

    use super::*;
    use crate::api::Key;
    use crate::controllers::testing::{create, patch, settle};
    use crate::network::rules::Mode;
    use crate::{Cluster, Config};

    /// agnhost on node-1 behind a Service for UDP and TCP, and a client on node-2.
    fn cluster() -> Cluster {
        let mut cluster = Cluster::new(Config { nodes: 2, ..Config::default() });
        settle(&mut cluster);
        let labels = json!({"app": "web"});
        let container =
            json!({"name": "c", "image": "registry.k8s.io/e2e-test-images/agnhost:2.57", "args": ["netexec"]});
        let spec = json!({"nodeName": "node-1", "containers": [container]});
        create::<Pod>(&mut cluster, json!({"metadata": {"name": "web", "labels": labels}, "spec": spec}));
        let sleeps = json!({"name": "c", "image": "busybox", "command": ["sleep", "3600"]});
        let spec = json!({"nodeName": "node-2", "containers": [sleeps]});
        create::<Pod>(&mut cluster, json!({"metadata": {"name": "client"}, "spec": spec}));
        let ports = json!([
            {"name": "udp", "protocol": "UDP", "port": 53, "targetPort": 8081, "nodePort": 30053},
            {"name": "tcp", "protocol": "TCP", "port": 53, "targetPort": 8080},
        ]);
        let spec = json!({"type": "NodePort", "selector": labels, "ports": ports});
        create::<Service>(&mut cluster, json!({"metadata": {"name": "web"}, "spec": spec}));
        settle(&mut cluster);
        cluster
    }

    fn asked(cluster: &mut Cluster, from: &Origin, (host, port): (&str, u16), text: &str) -> Result<String, String> {
        let (host, text) = (host.to_owned(), text.to_owned());
        let datagram = Datagram { host, port, text, patience: Duration::from_secs(2) };
        cluster.datagram(from, &datagram).result.map_err(|failure| failure.to_string())
    }

    #[test]
    fn datagrams_go_by_the_rules_for_their_protocol() {
        let mut cluster = cluster();
        let client = Origin::Pod(Key::new("default", "client"));
        for mode in [Mode::Iptables, Mode::Ipvs, Mode::Nftables] {
            cluster.set_proxy_mode(mode);
            settle(&mut cluster);
            assert_eq!(asked(&mut cluster, &client, ("web", 53), "hostname\n"), Ok("web".into()));
            assert_eq!(asked(&mut cluster, &client, ("web", 53), "echo hello there"), Ok("hello there".into()));
            assert_eq!(asked(&mut cluster, &Origin::Outside, ("node-2", 30053), "clientip"), Ok("10.0.0.12".into()));
        }
        // No command of netexec: no answer, and only patience ends that.
        assert_eq!(asked(&mut cluster, &client, ("web", 53), "what?"), Err("Connection timed out".into()));
        let ip = cluster.get::<Pod>("default", "web").unwrap().status::<Pod>().pod_ip.clone().unwrap();
        assert_eq!(asked(&mut cluster, &client, (&ip, 9), "x"), Err("Connection refused".into()));
        assert_eq!(asked(&mut cluster, &client, ("web", 80), "x"), Err("Connection timed out".into()));
        patch::<Service>(&mut cluster, "web", json!({"spec": {"selector": {"app": "nobody"}}})).unwrap();
        settle(&mut cluster);
        assert_eq!(asked(&mut cluster, &client, ("web", 53), "hostname"), Err("Connection refused".into()));
    }

    #[test]
    fn a_policy_may_be_about_one_protocol() {
        let mut cluster = cluster();
        let client = Origin::Pod(Key::new("default", "client"));
        let only = json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"ports": [{"protocol": "TCP", "port": 8080}]}]});
        create::<NetworkPolicy>(&mut cluster, json!({"metadata": {"name": "only-tcp"}, "spec": only}));
        settle(&mut cluster);
        assert_eq!(asked(&mut cluster, &client, ("web", 53), "hostname"), Err("Connection timed out".into()));
        assert!(cluster.connect(&client, "web:53/hostname", &Default::default()).result.is_ok());
    }
}
