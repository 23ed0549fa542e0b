//! Ports of containers, and ports that are named or numbered.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerPort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::field::{Causes, Path};
use super::{names, text};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub fn container_ports(causes: &mut Causes, path: &Path, ports: &[ContainerPort]) {
    let mut names_seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = text(&port.name);
        if !name.is_empty() {
            let details = names::port_name(name);
            if details.is_empty() && !names_seen.insert(name) {
                causes.duplicate(&path.child("name"), name);
            }
            causes.invalid_each(&path.child("name"), name, details);
        }
        match port.container_port {
            0 => causes.required(&path.child("containerPort"), ""),
            number => port_number(causes, &path.child("containerPort"), number),
        }
        if let Some(number) = port.host_port.filter(|number| *number != 0) {
            port_number(causes, &path.child("hostPort"), number);
        }
        causes.required_one_of(&path.child("protocol"), port.protocol.as_deref(), &PROTOCOLS);
    }
}

pub fn port_number(causes: &mut Causes, path: &Path, number: i32) {
    causes.in_range(path, number, 1, 65535);
}

/// A port by its number, or by the name that a container gives it.
pub fn number_or_name(causes: &mut Causes, path: &Path, port: &IntOrString) {
    match port {
        IntOrString::Int(number) => port_number(causes, path, *number),
        IntOrString::String(name) => causes.invalid_each(path, name, names::port_name(name)),
    }
}

/// Containers that run side by side can't have the same port of their node.
pub fn host_port_conflicts(causes: &mut Causes, path: &Path, containers: &[Container]) {
    let mut taken = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (port_index, port) in container.ports.iter().flatten().enumerate() {
            let Some(number) = port.host_port.filter(|number| *number != 0) else { continue };
            let place = format!("{}/{}/{number}", text(&port.protocol), text(&port.host_ip));
            if !taken.insert(place.clone()) {
                let path = path.index(index).child("ports").index(port_index);
                causes.duplicate(&path.child("hostPort"), place);
            }
        }
    }
}
