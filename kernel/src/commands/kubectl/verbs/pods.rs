//! The pod that a verb about one pod means: named by itself, or by the workload or service that it belongs to.

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use cluster_core::api::selector::Selector;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::super::failure::{Failure, message};
use super::super::resources::{Item, targets};
use super::super::verb::Call;

/// What `web`, `pod/web` or `deployment/web` names.
pub fn named(call: &mut Call<'_, '_>, target: &str) -> Result<Item, Failure> {
    let (kind, name) = match target.contains('/') {
        true => match targets(call, &[target.to_owned()])?.into_iter().next() {
            Some(target) => (target.kind, target.name.unwrap_or_default()),
            None => return message("no resource was named"),
        },
        false => (KindRef::of::<Pod>().clone(), target.to_owned()),
    };
    let namespace = call.namespace.clone();
    let value = call.get_in_namespace(&kind, &namespace, &name)?;
    Ok(Item::new(&kind, value))
}

/// The pod itself, or the first one of a workload or service.
pub fn pod_of(call: &mut Call<'_, '_>, item: Item) -> Result<Item, Failure> {
    Ok(pods_of(call, item)?.remove(0))
}

/// The pod itself, or those of a workload or service, of which there is at least one.
pub fn pods_of(call: &mut Call<'_, '_>, item: Item) -> Result<Vec<Item>, Failure> {
    if &*item.kind.kind == "Pod" {
        return Ok(vec![item]);
    }
    let selects = ["Service", "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job"];
    if !selects.contains(&&*item.kind.kind) {
        let go_type = format!("*{}.{}", item.kind.version, item.kind.kind);
        let verb = if call.command.ends_with("logs") { "get the logs from" } else { "attach to" };
        return message(format!("cannot {verb} {go_type}: selector for {go_type} not implemented"));
    }
    let selector = item.value.pointer("/spec/selector").cloned().unwrap_or_default();
    let labels = match &*item.kind.kind {
        "Service" | "ReplicationController" => {
            serde_json::from_value(selector).map(|labels| Selector::of_labels(&labels))
        }
        _ => serde_json::from_value(selector).map(|selector| Selector::of(&selector)),
    };
    let options = Options { labels: labels.unwrap_or_default(), ..Options::default() };
    let pods = select(call, options)?;
    match pods.is_empty() {
        true => message(format!("timed out waiting for the condition on {}", item.title())),
        false => Ok(pods),
    }
}

pub fn select(call: &mut Call<'_, '_>, options: Options) -> Result<Vec<Item>, Failure> {
    let kind = KindRef::of::<Pod>();
    let namespace = call.namespace.clone();
    Ok(call.list(kind, &namespace, options)?.into_iter().map(|value| Item::new(kind, value)).collect())
}

pub fn phase(pod: &Value) -> &str {
    pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}
