//! `kubectl create service`

use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::flags::{integer, text};
use super::super::super::verb::{Call, Verb};
use super::{create_flags, generated, name_of};

pub const VERB: Verb = Verb {
    name: "create service",
    aliases: &["svc"],
    about: "Create a service using a specified subcommand",
    usage: "create service (clusterip|externalname|loadbalancer|nodeport) NAME [--tcp=port:targetPort] [options]",
    flags: create_flags![text("tcp"), text("clusterip"), text("external-name"), integer("node-port")],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let sort = if call.parsed.args.is_empty() { String::new() } else { call.parsed.args.remove(0) };
    let type_ = match sort.as_str() {
        "clusterip" => "ClusterIP",
        "nodeport" => "NodePort",
        "loadbalancer" => "LoadBalancer",
        "externalname" => "ExternalName",
        _ => {
            let text = format!("unknown command {sort:?}\nSee 'kubectl create service -h' for help and examples");
            return message(text);
        }
    };
    let name = name_of(call).map_err(|failure| match failure {
        Failure::Usage(text) => {
            Failure::Message(format!("{text}\nSee 'kubectl create service {sort} -h' for help and examples"))
        }
        other => other,
    })?;
    let headless = call.parsed.text("clusterip") == Some("None");
    let mut ports = Vec::new();
    for spec in call.parsed.list("tcp") {
        ports.push(port(spec)?);
    }
    if ports.is_empty() && type_ != "ExternalName" && !headless {
        return message("at least one tcp port specifier must be provided");
    }
    if let (Some(node_port), Some(first)) =
        (call.parsed.integer("node-port").filter(|port| *port > 0), ports.first_mut())
    {
        first["nodePort"] = node_port.into();
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
    if type_ == "ExternalName" {
        let Some(external) = call.parsed.text("external-name") else {
            return message("required flag(s) \"external-name\" not set");
        };
        service["spec"]["externalName"] = external.into();
    }
    generated::<Service>(call, service, &format!("failed to create {type_} service: "))
}

/// `80`, `80:8080`, `80:http`
fn port(spec: &str) -> Result<Value, Failure> {
    let (port, target) = spec.split_once(':').unwrap_or((spec, spec));
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let Some(port) = number(port) else {
        return message(format!("invalid port format: {spec}"));
    };
    let target = match number(target) {
        Some(target) => Value::from(target),
        None if target.parse::<i64>().is_err() && !target.is_empty() => Value::from(target),
        None => return message(format!("invalid port format: {spec}")),
    };
    Ok(json!({"name": spec.replace(':', "-"), "port": port, "protocol": "TCP", "targetPort": target}))
}
