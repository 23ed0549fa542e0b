//! What a Service uses: itself, its ports on nodes, a load balancer.

use k8s_openapi::api::core::v1::Service;

use super::{Amounts, one, whole, zero};
use crate::api::object::Object;

pub fn counts(resource: &str) -> bool {
    matches!(resource, "services" | "services.nodeports" | "services.loadbalancers")
}

pub fn usage(service: &Object) -> Amounts {
    let spec = service.spec::<Service>();
    let ports = spec.ports.as_deref().unwrap_or_default();
    let given = ports.iter().filter(|port| port.node_port.is_some_and(|port| port != 0)).count();
    let (node_ports, balancers) = match spec.type_.as_deref() {
        Some("NodePort") => (whole(ports.len()), zero()),
        Some("LoadBalancer") if spec.allocate_load_balancer_node_ports == Some(false) => (whole(given), one()),
        Some("LoadBalancer") => (whole(ports.len()), one()),
        _ => (zero(), zero()),
    };
    Amounts::from([
        ("services".into(), one()),
        ("services.nodeports".into(), node_ports),
        ("services.loadbalancers".into(), balancers),
    ])
}
