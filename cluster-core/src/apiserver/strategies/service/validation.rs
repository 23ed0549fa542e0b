//! What must hold of a Service.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};
use serde_json::Value;

use super::families::shown;
use super::{is, is_headless, is_reached_from_outside, needs_cluster_ip, needs_health_check_port};
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::shown::Struct;
use crate::apiserver::validation::{addresses, metadata, names};

/// A client sticks to its backend for a day at most.
const AFFINITY_SECONDS_MAX: i32 = 86_400;
const KUBELET_PORT: i32 = 10_250;

fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

pub(super) fn validate(spec: &ServiceSpec, old: Option<&ServiceSpec>) -> Causes {
    let (mut causes, path) = (Causes::new(), Path::new("spec"));
    let ports = spec.ports.as_deref().unwrap_or_default();
    if ports.is_empty() && !is_headless(spec) && !is(spec, "ExternalName") {
        causes.required(&path.child("ports"), "");
    }
    by_type(&mut causes, &path, spec);
    let mut port_names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        service_port(&mut causes, &path.child("ports").index(index), port, ports.len() > 1, &mut port_names);
    }
    if let Some(selector) = &spec.selector {
        metadata::labels(&mut causes, selector, &path.child("selector"));
    }
    affinity(&mut causes, &path, spec);
    cluster_ips(&mut causes, spec);
    for (index, ip) in spec.external_ips.iter().flatten().enumerate() {
        let ip_path = path.child("externalIPs").index(index);
        if let Some(address) = addresses::ip(&mut causes, &ip_path, ip) {
            addresses::endpoint_ip(&mut causes, &ip_path, address, ip);
        }
    }
    causes.one_of(
        &path.child("type"),
        spec.type_.as_deref(),
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    );
    port_numbers(&mut causes, &path.child("ports"), spec, ports);
    load_balancer(&mut causes, &path, spec, old);
    traffic(&mut causes, &path, spec);
    causes
}

pub(super) fn validate_update(old: &ServiceSpec, spec: &ServiceSpec) -> Causes {
    let (mut causes, path) = (Causes::new(), Path::new("spec"));
    if !is(old, "ExternalName") && !is(spec, "ExternalName") {
        if !(is_headless(old) && is_headless(spec)) {
            let policy = (spec.ip_family_policy.as_deref(), path.child("ipFamilyPolicy"));
            kept(&mut causes, &path.child("clusterIPs"), "clusterIP", &old.cluster_ips, &spec.cluster_ips, policy);
        }
        let policy = (spec.ip_family_policy.as_deref(), path.child("ipFamilyPolicy"));
        kept(&mut causes, &path.child("ipFamilies"), "ipFamily", &old.ip_families, &spec.ip_families, policy);
    }
    causes.extend(validate(spec, Some(old)));
    causes
}

/// A primary address or family stays; a secondary one may come, and go with the policy.
fn kept(
    causes: &mut Causes,
    path: &Path,
    what: &str,
    old: &Option<Vec<String>>,
    new: &Option<Vec<String>>,
    (policy, policy_path): (Option<&str>, Path),
) {
    let (before, after) = (old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default());
    let mut changed = |index: usize, detail: &str| causes.invalid(&path.index(index), shown(new.as_ref()), detail);
    if before.len() == after.len() {
        for (index, _) in before.iter().zip(after).enumerate().filter(|(_, (before, after))| before != after) {
            changed(index, "may not change once set");
        }
        return;
    }
    match (before.first(), after.first()) {
        (Some(_), None) => changed(0, &format!("primary {what} can not be unset")),
        (Some(before), Some(after)) if before != after => changed(0, "may not change once set"),
        _ => {}
    }
    if before.len() > after.len() && after.len() == 1 && policy != Some("SingleStack") {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        causes.invalid(&policy_path, policy, detail);
    }
}

fn by_type(causes: &mut Causes, path: &Path, spec: &ServiceSpec) {
    match text(&spec.type_) {
        kind @ ("LoadBalancer" | "NodePort") => {
            for (index, port) in spec.ports.iter().flatten().enumerate() {
                if kind == "LoadBalancer" && port.port == KUBELET_PORT {
                    let detail = format!("may not expose port {KUBELET_PORT} externally since it is used by kubelet");
                    causes.invalid(&path.child("ports").index(index), port.port, detail);
                }
            }
            if is_headless(spec) {
                let detail = format!("may not be set to 'None' for {kind} services");
                causes.invalid(&path.child("clusterIPs").index(0), "None", detail);
            }
        }
        "ExternalName" => {
            let set = [
                ("clusterIPs", spec.cluster_ips.is_some() || spec.cluster_ip.is_some()),
                ("ipFamilies", spec.ip_families.is_some()),
                ("ipFamilyPolicy", spec.ip_family_policy.is_some()),
            ];
            for (field, _) in set.iter().filter(|(_, set)| *set) {
                causes.forbidden(&path.child(field), "may not be set for ExternalName services");
            }
            let name = text(&spec.external_name);
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                causes.required(&path.child("externalName"), "");
            } else {
                causes.invalid_each(&path.child("externalName"), name, names::dns_subdomain(name));
            }
        }
        _ => {}
    }
}

fn service_port<'a>(
    causes: &mut Causes,
    path: &Path,
    port: &'a ServicePort,
    requires_name: bool,
    known: &mut BTreeSet<&'a str>,
) {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    let name = text(&port.name);
    if name.is_empty() {
        if requires_name {
            causes.required(&path.child("name"), "");
        }
    } else {
        causes.invalid_each(&path.child("name"), name, names::dns_label(name));
        if !known.insert(name) {
            causes.duplicate(&path.child("name"), name);
        }
    }
    causes.in_range(&path.child("port"), port.port, 1, 65535);
    causes.required_one_of(&path.child("protocol"), port.protocol.as_deref(), &["SCTP", "TCP", "UDP"]);
    let target = path.child("targetPort");
    match &port.target_port {
        Some(IntOrString::Int(number)) => causes.in_range(&target, *number, 1, 65535),
        Some(IntOrString::String(name)) => causes.invalid_each(&target, name, names::port_name(name)),
        None => {}
    }
    if let Some(protocol) = &port.app_protocol {
        causes.invalid_each(&path.child("appProtocol"), protocol, names::qualified_name(protocol));
    }
}

fn affinity(causes: &mut Causes, path: &Path, spec: &ServiceSpec) {
    causes.required_one_of(&path.child("sessionAffinity"), spec.session_affinity.as_deref(), &["ClientIP", "None"]);
    let config_path = path.child("sessionAffinityConfig");
    match (text(&spec.session_affinity), &spec.session_affinity_config) {
        ("ClientIP", config) => {
            let timeout = config.as_ref().and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
            let timeout_path = config_path.child("clientIP.timeoutSeconds");
            match timeout {
                None => causes.required(&timeout_path, "when session affinity type is ClientIP"),
                Some(seconds) if !(1..=AFFINITY_SECONDS_MAX).contains(&seconds) => {
                    let detail = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
                    causes.invalid(&timeout_path, seconds, detail);
                }
                Some(_) => {}
            }
        }
        ("None", Some(_)) => causes.forbidden(&config_path, "must not be set when session affinity is None"),
        _ => {}
    }
}

/// Addresses, families and their policy, each alone and together.
pub(super) fn cluster_ips(causes: &mut Causes, spec: &ServiceSpec) {
    if is(spec, "ExternalName") {
        return;
    }
    let path = Path::new("spec");
    let ips_path = path.child("clusterIPs");
    let ips = spec.cluster_ips.as_deref().unwrap_or_default();
    let ips_shown = || shown(spec.cluster_ips.as_ref());
    match (spec.cluster_ip.as_ref(), ips.first()) {
        (Some(_), None) => causes.required(&ips_path, ""),
        (Some(ip), Some(first)) if ip != first => {
            causes.invalid(&ips_path, ips_shown(), "first value must match `clusterIP`")
        }
        (None, Some(_)) => causes.invalid(&ips_path, ips_shown(), "must be empty when `clusterIP` is not specified"),
        _ => {}
    }
    let families = spec.ip_families.as_deref().unwrap_or_default();
    for (index, family) in families.iter().enumerate() {
        let family_path = path.child("ipFamilies").index(index);
        causes.one_of(&family_path, Some(family), &["IPv4", "IPv6"]);
        if families[..index].contains(family) {
            causes.duplicate(&family_path, family.as_str());
        }
    }
    if spec.ip_family_policy.is_some() {
        let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        causes.one_of(&path.child("ipFamilyPolicy"), spec.ip_family_policy.as_deref(), &policies);
    }
    let mut are_addresses = true;
    for (index, ip) in ips.iter().enumerate() {
        if index == 0 && ip == "None" {
            if ips.len() > 1 {
                are_addresses = false;
                causes.invalid(&ips_path, ips_shown(), "'None' must be the first and only value");
            }
            continue;
        }
        are_addresses &= addresses::ip(causes, &ips_path.index(index), ip).is_some();
    }
    if ips.len() > 2 {
        causes.invalid(&ips_path, ips_shown(), "may only hold up to 2 values");
    }
    if !are_addresses {
        return;
    }
    let is_v6 = |ip: &String| ip.contains(':');
    if ips.len() > 1 && (ips.iter().all(is_v6) || !ips.iter().any(is_v6)) {
        causes.invalid(&ips_path, ips_shown(), "may specify no more than one IP for each IP family");
    }
    if !is_headless(spec) {
        for (index, (ip, family)) in ips.iter().zip(families).enumerate() {
            if is_v6(ip) != (family == "IPv6") {
                let detail = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
                causes.invalid(&ips_path.index(index), ip.as_str(), detail);
            }
        }
    }
}

fn port_numbers(causes: &mut Causes, path: &Path, spec: &ServiceSpec, ports: &[ServicePort]) {
    let node_port = |port: &ServicePort| port.node_port.filter(|port| *port != 0);
    if is(spec, "ClusterIP") {
        for (index, _) in ports.iter().enumerate().filter(|(_, port)| node_port(port).is_some()) {
            causes.forbidden(&path.index(index).child("nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut known = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        if let Some(number) = node_port(port)
            && !known.insert((text(&port.protocol), number))
        {
            causes.duplicate(&path.index(index).child("nodePort"), number);
        }
    }
    known.clear();
    for (index, port) in ports.iter().enumerate() {
        if !known.insert((text(&port.protocol), port.port)) {
            let key = [
                ("Name", "".into()),
                ("Protocol", text(&port.protocol).into()),
                ("AppProtocol", Value::Null),
                ("Port", port.port.into()),
                ("TargetPort", 0.into()),
                ("NodePort", 0.into()),
            ];
            causes.duplicate_struct(&path.index(index), Struct(&key), "");
        }
    }
}

fn load_balancer(causes: &mut Causes, path: &Path, spec: &ServiceSpec, old: Option<&ServiceSpec>) {
    let only = "may only be used when `type` is 'LoadBalancer'";
    let balances = is(spec, "LoadBalancer");
    let ranges_path = path.child("loadBalancerSourceRanges");
    if spec.load_balancer_source_ranges.as_ref().is_some_and(|ranges| !ranges.is_empty()) {
        if !balances {
            causes.forbidden(&ranges_path, only);
        }
        for (index, range) in spec.load_balancer_source_ranges.iter().flatten().enumerate() {
            addresses::cidr(causes, &ranges_path.index(index), range.trim());
        }
    }
    let allocate_path = path.child("allocateLoadBalancerNodePorts");
    match (balances, spec.allocate_load_balancer_node_ports) {
        (false, Some(_)) => causes.forbidden(&allocate_path, only),
        (true, None) => causes.required(&allocate_path, ""),
        _ => {}
    }
    let class_path = path.child("loadBalancerClass");
    if balances
        && let Some(old) = old.filter(|old| is(old, "LoadBalancer"))
        && old.load_balancer_class != spec.load_balancer_class
    {
        causes.invalid(&class_path, spec.load_balancer_class.clone(), "may not change once set");
    }
    match &spec.load_balancer_class {
        Some(class) if balances => causes.invalid_each(&class_path, class, names::qualified_name(class)),
        Some(_) => causes.forbidden(&class_path, only),
        None => {}
    }
}

fn traffic(causes: &mut Causes, path: &Path, spec: &ServiceSpec) {
    let policies = ["Cluster", "Local"];
    let external_path = path.child("externalTrafficPolicy");
    if is_reached_from_outside(spec) {
        causes.required_one_of(&external_path, spec.external_traffic_policy.as_deref(), &policies);
    } else if let Some(policy) = &spec.external_traffic_policy {
        causes.invalid(&external_path, policy.as_str(), "may only be set for externally-accessible services");
    }
    let health_path = path.child("healthCheckNodePort");
    match (needs_health_check_port(spec), spec.health_check_node_port.filter(|port| *port != 0)) {
        (true, None) => causes.required(&health_path, ""),
        (true, Some(port)) => causes.in_range(&health_path, port, 1, 65535),
        (false, Some(port)) => {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            causes.invalid(&health_path, port, detail);
        }
        (false, None) => {}
    }
    let internal_path = path.child("internalTrafficPolicy");
    match &spec.internal_traffic_policy {
        Some(policy) => causes.one_of(&internal_path, Some(policy), &policies),
        None if needs_cluster_ip(spec) => causes.required(&internal_path, ""),
        None => {}
    }
    if let Some(distribution) = &spec.traffic_distribution {
        let known = ["PreferClose", "PreferSameNode", "PreferSameZone"];
        causes.one_of(&path.child("trafficDistribution"), Some(distribution), &known);
    }
}
