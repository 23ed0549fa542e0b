//! `kubectl expose`

use cluster_core::api::kind::KindRef;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Map, Value, json};

use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::text;
use super::super::jsonpath::go_text;
use super::super::manifests::{FILENAME, RECURSIVE};
use super::super::output::{DRY_RUN, FIELD_MANAGER, OUTPUT, TEMPLATE};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};
use super::create::{SAVE_CONFIG, generated_as, integer_or_text};
use super::overrides::{OVERRIDE_TYPE, OVERRIDES, overridden};

pub const VERB: Verb = Verb {
    name: "expose",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        OUTPUT,
        TEMPLATE,
        DRY_RUN,
        FIELD_MANAGER,
        text("name"),
        text("port"),
        text("target-port"),
        text("protocol"),
        text("type"),
        text("selector"),
        text("labels").short('l'),
        text("cluster-ip"),
        text("external-ip"),
        text("load-balancer-ip"),
        text("session-affinity"),
        OVERRIDES,
        OVERRIDE_TYPE,
        SAVE_CONFIG,
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    call.dry_run()?;
    call.format()?;
    // This selector is that of the service, not one of what is exposed.
    let own = call.parsed.take("selector");
    let (items, mut failures) = call.items()?;
    for item in items {
        if let Err(failure) = expose(call, &item, own.as_deref()) {
            failures.push(failure);
        }
    }
    all_of(failures)
}

fn expose(call: &mut Call<'_, '_>, item: &Item, own: Option<&str>) -> Outcome {
    let selector = match own {
        Some(text) => pairs(text)?,
        None => selector(item)?,
    };
    let ports = ports(call, item)?;
    let mut spec = json!({"ports": ports, "selector": selector});
    for (flag, field) in [
        ("type", "type"),
        ("cluster-ip", "clusterIP"),
        ("session-affinity", "sessionAffinity"),
        ("load-balancer-ip", "loadBalancerIP"),
    ] {
        if let Some(value) = call.parsed.text(flag) {
            spec[field] = value.into();
        }
    }
    if let Some(address) = call.parsed.text("external-ip") {
        spec["externalIPs"] = json!([address]);
    }
    let name = call.parsed.text("name").unwrap_or(&item.name).to_owned();
    let mut metadata = json!({"name": name});
    match call.parsed.text("labels") {
        Some(text) => metadata["labels"] = pairs(text)?,
        None => {
            if let Some(labels) = item.value.pointer("/metadata/labels") {
                metadata["labels"] = labels.clone();
            }
        }
    }
    let service = json!({"metadata": metadata, "spec": spec, "status": {"loadBalancer": {}}});
    let service = overridden(call, KindRef::of::<Service>(), service)?;
    generated_as::<Service>(call, service, "", "exposed")
}

fn pairs(text: &str) -> Result<Value, Failure> {
    let mut map = Map::new();
    for pair in text.split(',') {
        let Some((key, value)) = pair.split_once('=') else {
            return message(format!("unexpected label spec: {pair}"));
        };
        map.insert(key.to_owned(), value.into());
    }
    Ok(Value::Object(map))
}

/// The labels by which the object's pods are found.
fn selector(item: &Item) -> Result<Value, Failure> {
    let path = match &*item.kind.kind {
        "Pod" => "/metadata/labels",
        "Service" | "ReplicationController" => "/spec/selector",
        "Deployment" | "ReplicaSet" => "/spec/selector/matchLabels",
        _ => return message(format!("cannot expose a {}", item.kind.kind)),
    };
    match item.value.pointer(path) {
        Some(Value::Object(labels)) if !labels.is_empty() => Ok(Value::Object(labels.clone())),
        _ => message(format!("the {} has no labels and cannot be exposed", item.kind.singular)),
    }
}

/// The ports that are asked for, or those of the object.
fn ports(call: &Call<'_, '_>, item: &Item) -> Result<Vec<Value>, Failure> {
    let protocol = call.parsed.text("protocol").unwrap_or("TCP");
    let numbers: Vec<String> = match call.parsed.text("port") {
        Some(text) => text.split(',').map(str::to_owned).collect(),
        None => known_ports(item),
    };
    if numbers.is_empty() {
        return message("couldn't find port via --port flag or introspection");
    }
    let several = numbers.len() > 1;
    let mut ports = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        let Ok(port) = number.parse::<i32>() else {
            return message(format!("strconv.Atoi: parsing {number:?}: invalid syntax"));
        };
        let target = match call.parsed.text("target-port") {
            Some(text) => integer_or_text(text),
            None => port.into(),
        };
        let mut entry = json!({"port": port, "protocol": protocol, "targetPort": target});
        if several {
            entry["name"] = format!("port-{}", index + 1).into();
        }
        ports.push(entry);
    }
    Ok(ports)
}

fn known_ports(item: &Item) -> Vec<String> {
    if &*item.kind.kind == "Service" {
        let ports = item.value.pointer("/spec/ports").and_then(Value::as_array);
        return ports.into_iter().flatten().map(|port| go_text(&port["port"])).collect();
    }
    let path = if &*item.kind.kind == "Pod" { "/spec/containers" } else { "/spec/template/spec/containers" };
    let containers = item.value.pointer(path).and_then(Value::as_array);
    let ports = containers.into_iter().flatten().filter_map(|container| container["ports"].as_array()).flatten();
    ports.map(|port| go_text(&port["containerPort"])).collect()
}
