//! The downward API: what containers may know of their pod, and of their own resources.
//! <https://kubernetes.io/docs/concepts/workloads/pods/downward-api/>

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::Turn;
use crate::api::Name;
use crate::api::object::Object;
use crate::api::quantity;
use crate::network::addresses;

/// A field of the pod as text; `None` if there is no such field, or nothing in it yet.
pub fn of_pod(pod: &Object, path: &str, turn: &Turn<'_>) -> Option<String> {
    let quoted = |prefix: &str| path.strip_prefix(prefix)?.strip_suffix("']");
    let metadata = pod.metadata();
    match path {
        "metadata.name" => Some(pod.key.name.to_string()),
        "metadata.namespace" => Some(pod.key.namespace.to_string()),
        "metadata.uid" => Some(pod.uid().to_owned()),
        "metadata.labels" => Some(lines(metadata.labels.as_ref())),
        "metadata.annotations" => Some(lines(metadata.annotations.as_ref())),
        "spec.nodeName" => Some(turn.node.to_string()),
        "spec.serviceAccountName" => pod.spec::<Pod>().service_account_name.clone(),
        "status.hostIP" | "status.hostIPs" => Some(addresses::machine(turn.node).to_string()),
        "status.podIP" | "status.podIPs" => {
            turn.runtime.sandbox(&Name::from(pod.uid())).map(|sandbox| sandbox.ip.to_string())
        }
        _ => {
            let label = quoted("metadata.labels['").map(|name| pod.label(name));
            let found = label.or_else(|| quoted("metadata.annotations['").map(|name| pod.annotation(name)));
            // One that the pod does not have is empty.
            found.map(|value| value.unwrap_or_default().to_owned())
        }
    }
}

/// `name="value"`, one a line, in the order of the names.
fn lines(pairs: Option<&BTreeMap<String, String>>) -> String {
    let lines: Vec<String> = pairs.into_iter().flatten().map(|(name, value)| format!("{name}={value:?}")).collect();
    lines.join("\n")
}

/// An amount of a container's resources, in units of the divisor, rounded up. A limit that is not set is what the node
/// has.
pub fn of_container(container: &Container, selector: &ResourceFieldSelector, turn: &Turn<'_>) -> String {
    let resources = container.resources.clone().unwrap_or_default();
    let (list, name) = selector.resource.split_once('.').unwrap_or((&selector.resource, ""));
    let amounts = if list == "limits" { resources.limits } else { resources.requests };
    let set = amounts.as_ref().and_then(|amounts| amounts.get(name)).map(quantity::millis);
    let of_node = || if list == "limits" { turn.machine.millis(name) } else { 0 };
    let amount = set.filter(|amount| *amount > 0).unwrap_or_else(of_node);
    let divisor = selector.divisor.as_ref().map(quantity::millis).filter(|divisor| *divisor > 0).unwrap_or(1000);
    (amount / divisor + i64::from(amount % divisor > 0)).to_string()
}

/// What a machine has for pods, in thousandths of each resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capacity(pub BTreeMap<String, i64>);

impl Capacity {
    pub fn new(amounts: &BTreeMap<String, Quantity>) -> Capacity {
        Capacity(amounts.iter().map(|(name, amount)| (name.clone(), quantity::millis(amount))).collect())
    }

    pub fn millis(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}
