//! `kubectl port-forward`: ports of this machine that lead to those of a pod.

use cluster_core::api::Key;
use serde_json::Value;

use super::super::failure::{Failure, Outcome, message, usage};
use super::super::flags::{duration, text};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::pods::{named, phase, pod_of};
use crate::commands::api::Forward;

pub const VERB: Verb =
    Verb { name: "port-forward", aliases: &[], flags: &[text("address"), duration("pod-running-timeout")], run };

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let (target, ports) = match call.parsed.args.clone().as_slice() {
        [target, first, rest @ ..] => (target.clone(), [std::slice::from_ref(first), rest].concat()),
        _ => return usage("TYPE/NAME and list of ports are required for port-forward"),
    };
    let item = named(call, &target)?;
    let pod = pod_of(call, item.clone())?;
    let ways: Vec<Forward> = ports.iter().map(|text| way(text, &item, &pod)).collect::<Result<_, _>>()?;
    let phase = phase(&pod.value);
    if phase != "Running" {
        return message(format!("unable to forward port because pod is not running. Current status={phase}"));
    }
    let key = Key::new(pod.namespace.as_str(), pod.name.as_str());
    let hosts: Vec<String> = match call.parsed.text("address") {
        None | Some("localhost") => ["127.0.0.1", "[::1]"].map(str::to_owned).into(),
        Some(hosts) => hosts.split(',').map(str::to_owned).collect(),
    };
    call.context
        .with_output(|api, write| api.forward(&key, &hosts, &ways, write))
        .map_err(|status| Failure::Message(status.message))
}

/// `8080:80`, `8080`, `:80` for any free port, with names of ports too.
fn way(text: &str, item: &Item, pod: &Item) -> Result<Forward, Failure> {
    let (local, remote) = text.split_once(':').unwrap_or((text, text));
    if let Ok(number) = local.parse::<u64>()
        && number > u64::from(u16::MAX)
    {
        return message(format!(
            "error parsing local port '{local}': strconv.ParseUint: parsing {local:?}: value out of range"
        ));
    }
    let container_port = match &*item.kind.kind {
        "Service" => of_service(remote, item, pod)?,
        _ => match remote.parse::<u16>() {
            Ok(port) => port,
            Err(_) => named_port(remote, pod)?,
        },
    };
    let local = match local {
        "" => 0,
        local if local == remote => container_port,
        local => local
            .parse()
            .map_err(|_| Failure::Message(format!("error parsing local port {local:?}: it is no number of a port")))?,
    };
    Ok(Forward { local, remote: container_port })
}

fn named_port(name: &str, pod: &Item) -> Result<u16, Failure> {
    let containers = pod.value.pointer("/spec/containers").and_then(Value::as_array);
    let ports = containers.into_iter().flatten().filter_map(|container| container["ports"].as_array()).flatten();
    let found = ports.into_iter().find(|port| port["name"] == name).and_then(|port| port["containerPort"].as_u64());
    match found.and_then(|port| port.try_into().ok()) {
        Some(port) => Ok(port),
        None => message(format!("Pod '{}' does not have a named port '{name}'", pod.name)),
    }
}

/// The port of the pod to which a port of the service leads.
fn of_service(text: &str, service: &Item, pod: &Item) -> Result<u16, Failure> {
    let ports = service.value.pointer("/spec/ports").and_then(Value::as_array);
    let number = text.parse::<u16>().ok();
    let meant = |port: &&Value| match number {
        Some(number) => port["port"] == number,
        None => port["name"] == text,
    };
    let Some(port) = ports.into_iter().flatten().find(meant) else {
        return message(match number {
            Some(number) => format!("Service {} does not have a service port {number}", service.name),
            None => format!("Service '{}' does not have a named port '{text}'", service.name),
        });
    };
    if service.value.pointer("/spec/clusterIP").is_some_and(|address| address == "None") {
        return port["port"].as_u64().and_then(|port| port.try_into().ok()).map_or_else(|| named_port(text, pod), Ok);
    }
    match &port["targetPort"] {
        Value::String(name) => named_port(name, pod),
        target => Ok(target.as_u64().and_then(|port| port.try_into().ok()).unwrap_or_default()),
    }
}
