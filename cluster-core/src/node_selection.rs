//! Which nodes a pod may be on, for all who decide it: the terms of a node affinity, tolerations of taints, ports of the node.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/>

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::core::v1::{PodSpec, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::api::selector::{Labels, Selector};

/// One term of a node affinity: all its requirements must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTerm {
    labels: Selector,
    /// Lists of node names, and whether the node must be among them.
    names: Vec<(bool, Vec<String>)>,
    is_empty: bool,
}

impl NodeTerm {
    pub fn read(term: &core::NodeSelectorTerm) -> NodeTerm {
        let expressions: Vec<_> = term.match_expressions.iter().flatten().map(label_requirement).collect();
        let fields = term.match_fields.iter().flatten().filter(|field| field.key == "metadata.name");
        NodeTerm {
            is_empty: expressions.is_empty() && term.match_fields.as_ref().is_none_or(Vec::is_empty),
            labels: Selector::of(&meta::LabelSelector { match_expressions: Some(expressions), match_labels: None }),
            names: fields.map(|field| (field.operator == "In", field.values.clone().unwrap_or_default())).collect(),
        }
    }

    /// A term without requirements matches no node.
    pub fn matches(&self, name: &str, labels: Option<&Labels>) -> bool {
        !self.is_empty
            && self.names.iter().all(|(among, names)| names.iter().any(|known| known == name) == *among)
            && self.labels.matches(labels)
    }

    /// The only nodes by name that the term could match; `None` if it doesn't say.
    pub fn pinned(&self) -> Option<Vec<&str>> {
        let mut lists = self.names.iter().filter(|(among, _)| *among).map(|(_, names)| names);
        let first = lists.next()?.iter().map(String::as_str);
        let others: Vec<_> = lists.collect();
        Some(first.filter(|name| others.iter().all(|names| names.iter().any(|other| other == name))).collect())
    }
}

fn label_requirement(requirement: &core::NodeSelectorRequirement) -> meta::LabelSelectorRequirement {
    meta::LabelSelectorRequirement {
        key: requirement.key.clone(),
        operator: requirement.operator.clone(),
        values: requirement.values.clone(),
    }
}

/// <https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/>
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    fn text(text: &Option<String>) -> &str {
        text.as_deref().unwrap_or_default()
    }
    let (key, effect) = (text(&toleration.key), text(&toleration.effect));
    if (!effect.is_empty() && effect != taint.effect) || (!key.is_empty() && key != taint.key) {
        return false;
    }
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => text(&toleration.value) == text(&taint.value),
        Some(operator) => {
            let number = |text: &str| text.parse::<i64>().ok();
            match number(text(&taint.value)).zip(number(text(&toleration.value))) {
                Some((taint, bound)) => (operator == "Gt" && taint > bound) || (operator == "Lt" && taint < bound),
                None => false,
            }
        }
    }
}

/// A port of the node that a container takes.
#[derive(Clone, Debug, PartialEq)]
pub struct HostPort {
    ip: String,
    protocol: String,
    port: i32,
}

impl HostPort {
    pub fn conflicts_with(&self, other: &HostPort) -> bool {
        let any = |port: &HostPort| port.ip == "0.0.0.0";
        self.port == other.port && self.protocol == other.protocol && (self.ip == other.ip || any(self) || any(other))
    }
}

/// The ports of its node that a pod takes.
pub fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().flatten().filter(|c| c.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let taken = ports.filter_map(|port| {
        let number = port.host_port.filter(|number| *number > 0)?;
        let ip = port.host_ip.clone().filter(|ip| !ip.is_empty()).unwrap_or_else(|| "0.0.0.0".into());
        let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".into());
        Some(HostPort { ip, protocol, port: number })
    });
    taken.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wildcard_address_takes_the_port_on_all() {
        let port = |ip: &str, protocol: &str| HostPort { ip: ip.into(), protocol: protocol.into(), port: 80 };
        assert!(port("0.0.0.0", "TCP").conflicts_with(&port("192.0.2.7", "TCP")));
        assert!(!port("192.0.2.8", "TCP").conflicts_with(&port("192.0.2.7", "TCP")));
        assert!(!port("0.0.0.0", "TCP").conflicts_with(&port("0.0.0.0", "UDP")));
    }

    #[test]
    fn tolerations() {
        let taint =
            Taint { key: "team".into(), value: Some("red".into()), effect: "NoSchedule".into(), time_added: None };
        for (toleration, tolerated) in [
            (json!({"operator": "Exists"}), true),
            (json!({"key": "team", "operator": "Exists"}), true),
            (json!({"key": "team", "value": "red"}), true),
            (json!({"key": "team", "value": "blue"}), false),
            (json!({"key": "team", "value": "red", "effect": "NoExecute"}), false),
            (json!({"key": "other", "operator": "Exists"}), false),
            (json!({"key": "team", "operator": "Gt", "value": "1"}), false),
        ] {
            assert_eq!(
                tolerates(&serde_json::from_value(toleration.clone()).unwrap(), &taint),
                tolerated,
                "{toleration}"
            );
        }
    }
}
