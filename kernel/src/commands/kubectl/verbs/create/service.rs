//! `kubectl create service`: one word below it for each type.

use std::num::IntErrorKind;

use cluster_core::apiserver::validation::names;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::flags::{integer, text};
use super::super::super::verb::{Call, Verb};
use super::super::group;
use super::{create_flags, generated, name_of};

pub const SERVICE: Verb = Verb { name: "create service", aliases: &["svc"], flags: &[], run: group::on_stderr };

pub const CLUSTER_IP: Verb = Verb {
    name: "create service clusterip",
    aliases: &[],
    flags: create_flags![text("tcp"), text("clusterip")],
    run: |call| create(call, "ClusterIP"),
};

pub const NODE_PORT: Verb = Verb {
    name: "create service nodeport",
    aliases: &[],
    flags: create_flags![text("tcp"), integer("node-port")],
    run: |call| create(call, "NodePort"),
};

pub const LOAD_BALANCER: Verb = Verb {
    name: "create service loadbalancer",
    aliases: &[],
    flags: create_flags![text("tcp")],
    run: |call| create(call, "LoadBalancer"),
};

pub const EXTERNAL_NAME: Verb = Verb {
    name: "create service externalname",
    aliases: &[],
    flags: create_flags![text("tcp"), text("external-name")],
    run: |call| {
        call.require(&["external-name"])?;
        create(call, "ExternalName")
    },
};

fn create(call: &mut Call<'_, '_>, type_: &str) -> Outcome {
    let name = name_of(call)?;
    let headless = call.parsed.text("clusterip") == Some("None");
    if !call.parsed.has("tcp") && type_ != "ExternalName" && !headless {
        return message("at least one tcp port specifier must be provided");
    }
    if let Some(external) =
        call.parsed.text("external-name").filter(|external| !names::dns_subdomain(external).is_empty())
    {
        return message(format!("invalid service external name {external}"));
    }
    let mut ports: Vec<Value> = call.parsed.list("tcp").map(port).collect::<Result<_, _>>()?;
    if let Some(node_port) = call.parsed.integer("node-port").filter(|port| *port != 0) {
        ports.iter_mut().for_each(|port| port["nodePort"] = node_port.into());
    }
    let mut service = json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"type": type_, "selector": {"app": name}},
        "status": {"loadBalancer": {}},
    });
    if !ports.is_empty() {
        service["spec"]["ports"] = ports.into();
    }
    if let Some(address) = call.parsed.text("clusterip") {
        service["spec"]["clusterIP"] = address.into();
    }
    if let Some(external) = call.parsed.text("external-name") {
        service["spec"]["externalName"] = external.into();
    }
    generated::<Service>(call, service, &format!("failed to create {type_} service: "))
}

/// `80`, `80:8080`, `80:http`
fn port(spec: &str) -> Result<Value, Failure> {
    let mut parts = spec.split(':');
    let first = parts.next().unwrap_or_default();
    let port = first.parse::<u16>().map_err(|error| {
        let problem = match error.kind() {
            IntErrorKind::PosOverflow => "value out of range",
            _ => "invalid syntax",
        };
        Failure::Message(format!("strconv.ParseUint: parsing {first:?}: {problem}"))
    })?;
    let target = match parts.next() {
        None => port.into(),
        Some(target) => target_port(target)?,
    };
    Ok(json!({"name": spec.replace(':', "-"), "port": port, "protocol": "TCP", "targetPort": target}))
}

/// A number, or the name of a port: <https://www.rfc-editor.org/rfc/rfc6335#section-5.1>.
fn target_port(text: &str) -> Result<Value, Failure> {
    if let Ok(number) = text.parse::<i64>() {
        return match (1..=65_535).contains(&number) {
            true => Ok(number.into()),
            false => message("must be between 1 and 65535, inclusive"),
        };
    }
    let problems = names::port_name(text);
    if problems.is_empty() { Ok(text.into()) } else { message(problems.join(",")) }
}
