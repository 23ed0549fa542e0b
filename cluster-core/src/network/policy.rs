//! NetworkPolicies: what they let into and out of the pods that they select. A pod that none selects talks to all.
//! <https://kubernetes.io/docs/concepts/services-networking/network-policies/>

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::{IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::object::Object;
use crate::api::selector::{Labels, Selector};

/// On which side of a connection the pod stands whose policies are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ingress,
    Egress,
}

/// A connection that has not been opened yet, as it is seen from one of its ends.
pub struct Crossing<'a> {
    pub direction: Direction,
    /// The pod whose policies are asked.
    pub pod: &'a Object,
    /// The address of the other end, and the pod that has it with the labels of its namespace.
    pub address: Ipv4Addr,
    pub peer: Option<(&'a Object, Option<&'a Labels>)>,
    /// `TCP`, `UDP`, `SCTP`.
    pub protocol: &'a str,
    /// The port that it is opened to.
    pub port: u16,
}

impl Crossing<'_> {
    /// The policies that isolate the pod, if none of them lets the connection pass; else nothing. They are those of the
    /// pod's namespace.
    pub fn barred_by<'a>(&self, policies: impl Iterator<Item = &'a Object>) -> Vec<&'a Object> {
        let mut isolating = Vec::new();
        for policy in policies.filter(|policy| self.is_isolated_by(policy)) {
            if self.is_allowed_by(policy) {
                return Vec::new();
            }
            isolating.push(policy);
        }
        isolating
    }

    fn is_isolated_by(&self, policy: &Object) -> bool {
        let spec = policy.spec::<NetworkPolicy>();
        let types = spec.policy_types.as_deref().unwrap_or_default();
        let names = |name: &str| types.iter().any(|known| known == name);
        let is_meant = match self.direction {
            Direction::Ingress => types.is_empty() || names("Ingress"),
            Direction::Egress => names("Egress") || types.is_empty() && spec.egress.iter().flatten().next().is_some(),
        };
        is_meant && selects(spec.pod_selector.as_ref(), self.pod.metadata().labels.as_ref())
    }

    fn is_allowed_by(&self, policy: &Object) -> bool {
        let spec = policy.spec::<NetworkPolicy>();
        let passes = |peers: &Option<Vec<NetworkPolicyPeer>>, ports: &Option<Vec<NetworkPolicyPort>>| {
            let (peers, ports) = (peers.as_deref().unwrap_or_default(), ports.as_deref().unwrap_or_default());
            (peers.is_empty() || peers.iter().any(|peer| self.is_peer(peer, &policy.key.namespace)))
                && (ports.is_empty() || ports.iter().any(|port| self.is_port(port)))
        };
        match self.direction {
            Direction::Ingress => spec.ingress.iter().flatten().any(|rule| passes(&rule.from, &rule.ports)),
            Direction::Egress => spec.egress.iter().flatten().any(|rule| passes(&rule.to, &rule.ports)),
        }
    }

    fn is_peer(&self, wanted: &NetworkPolicyPeer, own_namespace: &str) -> bool {
        if let Some(block) = &wanted.ip_block {
            return is_in(block, self.address);
        }
        let Some((pod, namespace_labels)) = self.peer else { return false };
        let in_namespace = match &wanted.namespace_selector {
            None => *pod.key.namespace == *own_namespace,
            selector => selects(selector.as_ref(), namespace_labels),
        };
        in_namespace && selects(wanted.pod_selector.as_ref(), pod.metadata().labels.as_ref())
    }

    fn is_port(&self, wanted: &NetworkPolicyPort) -> bool {
        if wanted.protocol.as_deref().unwrap_or("TCP") != self.protocol {
            return false;
        }
        match &wanted.port {
            None => true,
            Some(IntOrString::Int(first)) => {
                (*first..=wanted.end_port.unwrap_or(*first)).contains(&i32::from(self.port))
            }
            Some(IntOrString::String(name)) => self.is_named(name),
        }
    }

    /// Names of ports are those of the pod that is called.
    fn is_named(&self, name: &str) -> bool {
        let called = match self.direction {
            Direction::Ingress => Some(self.pod),
            Direction::Egress => self.peer.map(|(pod, _)| pod),
        };
        let containers = called.into_iter().flat_map(|pod| &pod.spec::<Pod>().containers);
        containers.flat_map(|container| container.ports.iter().flatten()).any(|port| {
            port.name.as_deref() == Some(name)
                && port.container_port == i32::from(self.port)
                && port.protocol.as_deref().unwrap_or("TCP") == self.protocol
        })
    }
}

/// A selector that is left out matches all.
fn selects(selector: Option<&LabelSelector>, labels: Option<&Labels>) -> bool {
    selector.is_none_or(|selector| Selector::of(selector).matches(labels))
}

fn is_in(block: &IPBlock, address: Ipv4Addr) -> bool {
    covers(&block.cidr, address) && !block.except.iter().flatten().any(|except| covers(except, address))
}

/// True if a range like `10.0.0.0/8` holds an address; those of IPv6 hold none here.
pub(super) fn covers(cidr: &str, address: Ipv4Addr) -> bool {
    let Some((base, length)) = cidr.split_once('/') else { return false };
    let (Ok(base), Ok(length)) = (base.parse::<Ipv4Addr>(), length.parse::<u32>()) else { return false };
    let mask = u32::MAX.checked_shl(32_u32.saturating_sub(length)).unwrap_or(0);
    length <= 32 && u32::from(base) & mask == u32::from(address) & mask
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::kind::Resource;

    fn object<K: Resource>(value: Value) -> Object {
        Object::from_json(K::kind(), value).unwrap()
    }

    fn pod(namespace: &str, app: &str) -> Object {
        let ports =
            json!([{"name": "http", "containerPort": 8080}, {"name": "dns", "containerPort": 53, "protocol": "UDP"}]);
        object::<Pod>(json!({"metadata": {"name": app, "namespace": namespace, "labels": {"app": app}},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": ports}]}}))
    }

    fn policy(spec: Value) -> Object {
        object::<NetworkPolicy>(json!({"metadata": {"name": "p", "namespace": "default"}, "spec": spec}))
    }

    /// Whether `web`, in the namespace default, is reached by the pod `app` of a namespace, whose one label is its team.
    fn lets_in(spec: Value, (namespace, app): (&str, &str), protocol: &str, port: u16) -> bool {
        let (web, peer, policy) = (pod("default", "web"), pod(namespace, app), policy(spec));
        let labels = Labels::from([("team".to_owned(), namespace.to_owned())]);
        let crossing = Crossing {
            direction: Direction::Ingress,
            pod: &web,
            address: Ipv4Addr::new(10, 244, 2, 9),
            peer: Some((&peer, Some(&labels))),
            protocol,
            port,
        };
        crossing.barred_by([&policy].into_iter()).is_empty()
    }

    fn lets_out(spec: Value, address: [u8; 4], port: u16) -> bool {
        let (web, policy) = (pod("default", "web"), policy(spec));
        let (direction, address) = (Direction::Egress, Ipv4Addr::from(address));
        let crossing = Crossing { direction, pod: &web, address, peer: None, protocol: "TCP", port };
        crossing.barred_by([&policy].into_iter()).is_empty()
    }

    const CLIENT: (&str, &str) = ("default", "client");

    #[test]
    fn a_pod_is_isolated_only_by_policies_that_select_it() {
        assert!(!lets_in(json!({"podSelector": {}}), CLIENT, "TCP", 80));
        assert!(!lets_in(json!({"podSelector": {"matchLabels": {"app": "web"}}}), CLIENT, "TCP", 80));
        assert!(lets_in(json!({"podSelector": {"matchLabels": {"app": "db"}}}), CLIENT, "TCP", 80));
        assert!(lets_in(json!({"podSelector": {}, "policyTypes": ["Egress"]}), CLIENT, "TCP", 80));
        assert!(lets_in(json!({"podSelector": {}, "ingress": [{}]}), CLIENT, "TCP", 80));
    }

    #[test]
    fn egress_is_meant_only_if_it_is_named_or_has_rules() {
        let to = json!([{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]);
        assert!(lets_out(json!({"podSelector": {}}), [8, 8, 8, 8], 443));
        assert!(!lets_out(json!({"podSelector": {}, "policyTypes": ["Egress"]}), [8, 8, 8, 8], 443));
        assert!(!lets_out(json!({"podSelector": {}, "egress": to}), [8, 8, 8, 8], 443));
        assert!(lets_out(json!({"podSelector": {}, "egress": to}), [10, 9, 9, 9], 443));
    }

    #[test]
    fn peers_are_pods_of_a_namespace_or_of_those_that_are_selected() {
        let from = |peer: Value| json!({"podSelector": {}, "ingress": [{"from": [peer]}]});
        let app = json!({"matchLabels": {"app": "client"}});
        let team = json!({"matchLabels": {"team": "b"}});
        let only_pod = from(json!({"podSelector": app}));
        assert!(lets_in(only_pod.clone(), CLIENT, "TCP", 80));
        assert!(!lets_in(only_pod.clone(), ("b", "client"), "TCP", 80));
        assert!(!lets_in(only_pod, ("default", "other"), "TCP", 80));
        let only_namespace = from(json!({"namespaceSelector": team}));
        assert!(lets_in(only_namespace.clone(), ("b", "other"), "TCP", 80));
        assert!(!lets_in(only_namespace, CLIENT, "TCP", 80));
        let both = from(json!({"namespaceSelector": team, "podSelector": app}));
        assert!(lets_in(both.clone(), ("b", "client"), "TCP", 80));
        assert!(!lets_in(both, ("b", "other"), "TCP", 80));
        assert!(lets_in(from(json!({"namespaceSelector": {}})), ("c", "other"), "TCP", 80));
    }

    #[test]
    fn blocks_of_addresses_have_exceptions() {
        let block = |cidr: &str, except: &str| json!({"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": cidr, "except": [except]}}]}]});
        assert!(lets_out(block("0.0.0.0/0", "10.0.0.0/8"), [8, 8, 8, 8], 1));
        assert!(!lets_out(block("0.0.0.0/0", "10.0.0.0/8"), [10, 1, 1, 1], 1));
        assert!(lets_out(block("10.1.1.0/24", "10.1.1.7/32"), [10, 1, 1, 8], 1));
        assert!(!lets_out(block("10.1.1.0/24", "10.1.1.7/32"), [10, 1, 1, 7], 1));
        assert!(!lets_out(block("fd00::/8", "fd00::1/128"), [10, 1, 1, 7], 1));
    }

    #[test]
    fn ports_are_numbers_ranges_and_names_of_a_protocol() {
        let ports = |ports: Value| json!({"podSelector": {}, "ingress": [{"ports": ports}]});
        assert!(lets_in(ports(json!([{"port": 80}])), CLIENT, "TCP", 80));
        assert!(!lets_in(ports(json!([{"port": 80}])), CLIENT, "TCP", 81));
        assert!(!lets_in(ports(json!([{"port": 80}])), CLIENT, "UDP", 80));
        assert!(lets_in(ports(json!([{"port": 80, "endPort": 90}])), CLIENT, "TCP", 90));
        assert!(!lets_in(ports(json!([{"port": 80, "endPort": 90}])), CLIENT, "TCP", 91));
        assert!(lets_in(ports(json!([{"port": "http"}])), CLIENT, "TCP", 8080));
        assert!(!lets_in(ports(json!([{"port": "http"}])), CLIENT, "TCP", 80));
        assert!(lets_in(ports(json!([{"port": "dns", "protocol": "UDP"}])), CLIENT, "UDP", 53));
        assert!(lets_in(ports(json!([{"protocol": "TCP"}])), CLIENT, "TCP", 1));
    }
}
