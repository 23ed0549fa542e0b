//! NetworkPolicies. <https://kubernetes.io/docs/concepts/services-networking/network-policies/>

use k8s_openapi::api::networking::v1::{IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{addresses, names, selectors};

const TYPES: [&str; 2] = ["Ingress", "Egress"];

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let spec = object.spec_mut::<NetworkPolicy>();
        if spec.policy_types.as_ref().is_none_or(Vec::is_empty) {
            let egress = spec.egress.as_ref().is_some_and(|rules| !rules.is_empty());
            let types = if egress { &TYPES[..] } else { &TYPES[..1] };
            spec.policy_types = Some(types.iter().map(|&name| name.into()).collect());
        }
        let ingress = spec.ingress.iter_mut().flatten().flat_map(|rule| &mut rule.ports);
        let egress = spec.egress.iter_mut().flatten().flat_map(|rule| &mut rule.ports);
        for port in ingress.chain(egress).flatten() {
            port.protocol.get_or_insert_with(|| "TCP".into());
        }
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<NetworkPolicy>(), Path::new("spec"), Causes::new());
        selectors::label_selector(&mut causes, &path.child("podSelector"), spec.pod_selector.as_ref());
        for (index, rule) in spec.ingress.iter().flatten().enumerate() {
            let path = path.child("ingress").index(index);
            traffic(&mut causes, &path, rule.ports.as_deref(), "from", rule.from.as_deref());
        }
        for (index, rule) in spec.egress.iter().flatten().enumerate() {
            let path = path.child("egress").index(index);
            traffic(&mut causes, &path, rule.ports.as_deref(), "to", rule.to.as_deref());
        }
        let (types, types_path) = (spec.policy_types.as_deref().unwrap_or_default(), path.child("policyTypes"));
        if types.len() > TYPES.len() {
            causes.invalid(&types_path, json!(types), "may not specify more than two policyTypes");
        } else {
            for (index, name) in types.iter().enumerate() {
                causes.one_of(&types_path.index(index), Some(name), &TYPES);
            }
        }
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }
}

fn traffic(
    causes: &mut Causes,
    path: &Path,
    ports: Option<&[NetworkPolicyPort]>,
    side: &str,
    peers: Option<&[NetworkPolicyPeer]>,
) {
    for (index, port) in ports.unwrap_or_default().iter().enumerate() {
        policy_port(causes, &path.child("ports").index(index), port);
    }
    for (index, peer) in peers.unwrap_or_default().iter().enumerate() {
        policy_peer(causes, &path.child(side).index(index), peer);
    }
}

fn policy_port(causes: &mut Causes, path: &Path, port: &NetworkPolicyPort) {
    causes.one_of(&path.child("protocol"), port.protocol.as_deref(), &["TCP", "UDP", "SCTP"]);
    let (port_path, end_path) = (path.child("port"), path.child("endPort"));
    match (&port.port, port.end_port) {
        (Some(IntOrString::Int(number)), end) => {
            causes.in_range(&port_path, *number, 1, 65535);
            if let Some(end) = end {
                if end < *number {
                    causes.invalid(&end_path, *number, "must be greater than or equal to `port`");
                }
                causes.in_range(&end_path, end, 1, 65535);
            }
        }
        (Some(IntOrString::String(name)), end) => {
            if let Some(end) = end {
                causes.invalid(&end_path, end, "may not be specified when `port` is non-numeric");
            }
            causes.invalid_each(&port_path, name, names::port_name(name));
        }
        (None, Some(end)) => causes.invalid(&end_path, end, "may not be specified when `port` is not specified"),
        (None, None) => {}
    }
}

fn policy_peer(causes: &mut Causes, path: &Path, peer: &NetworkPolicyPeer) {
    let selecting = [("podSelector", &peer.pod_selector), ("namespaceSelector", &peer.namespace_selector)];
    for (field, selector) in &selecting {
        selectors::label_selector(causes, &path.child(field), selector.as_ref());
    }
    if let Some(block) = &peer.ip_block {
        ip_block(causes, &path.child("ipBlock"), block);
    }
    let selects = selecting.iter().any(|(_, selector)| selector.is_some());
    match (selects, &peer.ip_block) {
        (false, None) => causes.required(path, "must specify a peer"),
        (true, Some(_)) => causes.forbidden(path, "may not specify both ipBlock and another peer"),
        _ => {}
    }
}

fn ip_block(causes: &mut Causes, path: &Path, block: &IPBlock) {
    if block.cidr.is_empty() {
        return causes.required(&path.child("cidr"), "");
    }
    let Some(whole) = addresses::cidr(causes, &path.child("cidr"), &block.cidr) else { return };
    for (index, text) in block.except.iter().flatten().enumerate() {
        let except_path = path.child("except").index(index);
        let Some(except) = addresses::cidr(causes, &except_path, text) else { return };
        if !whole.contains(except.address) || except.prefix_length <= whole.prefix_length {
            causes.invalid(&except_path, text.as_str(), "must be a strict subset of `cidr`");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn types_follow_from_rules() {
        let mut api = Api::new::<NetworkPolicy>();
        let made = api.create(json!({"metadata": {"name": "a"}, "spec": {"podSelector": {}}})).unwrap();
        assert_eq!(made["spec"]["policyTypes"], json!(["Ingress"]));
        let both = json!({"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]});
        let made = api.create(json!({"metadata": {"name": "b"}, "spec": both})).unwrap();
        assert_eq!(made["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
        assert_eq!(made["spec"]["egress"][0]["ports"][0]["protocol"], "TCP");
    }

    #[test]
    fn wrong_peers_and_ports_are_named() {
        let mut api = Api::new::<NetworkPolicy>();
        let from = json!([{}, {"podSelector": {}, "ipBlock": {"cidr": "1.2.3.0/24", "except": ["1.3.0.0/16"]}}]);
        let ports = json!([{"port": 80, "endPort": 70}, {"endPort": 90}]);
        let spec = json!({"podSelector": {}, "ingress": [{"from": from, "ports": ports}]});
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "a"}, "spec": spec})),
            [
                "spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`",
                "spec.ingress[0].ports[1].endPort: Invalid value: 90: may not be specified when `port` is not specified",
                "spec.ingress[0].from[0]: Required value: must specify a peer",
                "spec.ingress[0].from[1].ipBlock.except[0]: Invalid value: \"1.3.0.0/16\": must be a strict subset of `cidr`",
                "spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer",
            ]
        );
    }
}
