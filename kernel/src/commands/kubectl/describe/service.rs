//! Services, their endpoint slices, their endpoints of old.

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use cluster_core::api::selector::Selector;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::Value;

use super::super::failure::{Failure, Outcome};
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, joined, labels_line, list, name_and_labels, number, or, or_none, shown, text};

/// So many addresses are told, and how many more there are.
const ADDRESSES_MAX: usize = 3;

pub fn service(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let service = &item.value;
    name_and_labels(item, page);
    page.field(0, "Selector", labels_line(service.pointer("/spec/selector")));
    page.field(0, "Type", text(service, "/spec/type"));
    optional(page, service, &[("IP Family Policy", "/spec/ipFamilyPolicy")]);
    page.field(0, "IP Families", or_none(&joined(service, "/spec/ipFamilies", ",")));
    page.field(0, "IP", text(service, "/spec/clusterIP"));
    page.field(0, "IPs", or_none(&joined(service, "/spec/clusterIPs", ",")));
    let external = joined(service, "/spec/externalIPs", ",");
    if !external.is_empty() {
        page.field(0, "External IPs", external);
    }
    optional(
        page,
        service,
        &[("Desired LoadBalancer IP", "/spec/loadBalancerIP"), ("External Name", "/spec/externalName")],
    );
    let balancer: Vec<String> = list(service, "/status/loadBalancer/ingress").iter().map(balancer_address).collect();
    if !balancer.is_empty() {
        page.field(0, "LoadBalancer Ingress", balancer.join(", "));
    }
    let slices = slices(call, &item.namespace, &item.name)?;
    for port in list(service, "/spec/ports") {
        let name = or(text(port, "/name"), "<unset>");
        let protocol = text(port, "/protocol");
        page.field(0, "Port", format!("{name}\t{}/{protocol}", number(port, "/port")));
        page.field(0, "TargetPort", format!("{}/{protocol}", shown(port, "/targetPort", "0")));
        optional(page, port, &[("AppProtocol", "/appProtocol")]);
        if number(port, "/nodePort") > 0 {
            page.field(0, "NodePort", format!("{name}\t{}/{protocol}", number(port, "/nodePort")));
        }
        page.field(0, "Endpoints", addresses(&slices, text(port, "/name")));
    }
    page.field(0, "Session Affinity", text(service, "/spec/sessionAffinity"));
    optional(
        page,
        service,
        &[
            ("External Traffic Policy", "/spec/externalTrafficPolicy"),
            ("Internal Traffic Policy", "/spec/internalTrafficPolicy"),
        ],
    );
    if number(service, "/spec/healthCheckNodePort") != 0 {
        page.field(0, "HealthCheck NodePort", number(service, "/spec/healthCheckNodePort"));
    }
    let ranges = joined(service, "/spec/loadBalancerSourceRanges", ",");
    if !ranges.is_empty() {
        page.field(0, "LoadBalancer Source Ranges", ranges);
    }
    optional(page, service, &[("Traffic Distribution", "/spec/trafficDistribution")]);
    Ok(())
}

/// Fields that are told only if they say something.
fn optional(page: &mut Page, of: &Value, wanted: &[(&str, &str)]) {
    for (name, path) in wanted {
        if !text(of, path).is_empty() {
            page.field(0, name, text(of, path));
        }
    }
}

fn balancer_address(ingress: &Value) -> String {
    match (text(ingress, "/ip"), text(ingress, "/ipMode")) {
        ("", _) => text(ingress, "/hostname").to_owned(),
        (ip, "") => ip.to_owned(),
        (ip, mode) => format!("{ip} ({mode})"),
    }
}

/// The endpoint slices of a service.
pub fn slices(call: &mut Call<'_, '_>, namespace: &str, service: &str) -> Result<Vec<Value>, Failure> {
    let labels = Selector::parse(&format!("kubernetes.io/service-name={service}")).map_err(Failure::Message)?;
    call.list(KindRef::of::<EndpointSlice>(), namespace, Options { labels, ..Options::default() })
}

/// The addresses that are ready on a port: the first three, and how many more. A headless service may have no ports.
pub fn addresses(slices: &[Value], port: &str) -> String {
    if slices.is_empty() {
        return "<none>".into();
    }
    let mut all = Vec::new();
    for slice in slices {
        let endpoints = list(slice, "/endpoints").iter();
        let ready = endpoints.filter(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)));
        let first: Vec<&str> = ready.map(|endpoint| text(endpoint, "/addresses/0")).collect();
        let ports = list(slice, "/ports");
        if ports.is_empty() {
            all.extend(first.iter().map(|address| (*address).to_owned()));
        }
        for known in ports.iter().filter(|known| text(known, "/name") == port) {
            let number = number(known, "/port");
            all.extend(first.iter().map(|address| match address.contains(':') {
                true => format!("[{address}]:{number}"),
                false => format!("{address}:{number}"),
            }));
        }
    }
    match all.len() {
        count if count > ADDRESSES_MAX => {
            format!("{} + {} more...", all[..ADDRESSES_MAX].join(","), count - ADDRESSES_MAX)
        }
        _ => all.join(","),
    }
}

pub fn endpoint_slice(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let slice = &item.value;
    name_and_labels(item, page);
    page.field(0, "AddressType", text(slice, "/addressType"));
    let unset = |value: &Value, path: &str| shown(value, path, "<unset>");
    let ports = list(slice, "/ports");
    if ports.is_empty() {
        page.line(0, "Ports: <unset>");
    } else {
        page.line(0, "Ports:");
        let row = |port: &Value| {
            let name = or(text(port, "/name"), "<unset>");
            format!("{name}\t{}\t{}", unset(port, "/port"), text(port, "/protocol"))
        };
        page.table(1, &PORTS, ports.iter().map(row));
    }
    let endpoints = list(slice, "/endpoints");
    if endpoints.is_empty() {
        page.line(0, "Endpoints: <none>");
        return Ok(());
    }
    page.line(0, "Endpoints:");
    for endpoint in endpoints {
        page.field(1, "- Addresses", or_none(&joined(endpoint, "/addresses", ", ")));
        page.line(2, "Conditions:");
        page.field(3, "Ready", unset(endpoint, "/conditions/ready"));
        page.field(2, "Hostname", unset(endpoint, "/hostname"));
        if let Some(target) = endpoint.get("targetRef") {
            page.field(2, "TargetRef", format!("{}/{}", text(target, "/kind"), text(target, "/name")));
        }
        page.field(2, "NodeName", unset(endpoint, "/nodeName"));
        page.field(2, "Zone", unset(endpoint, "/zone"));
    }
    Ok(())
}

const PORTS: [&str; 3] = ["Name", "Port", "Protocol"];

pub fn endpoints(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name_and_labels(item, page);
    page.line(0, "Subsets:");
    for subset in list(&item.value, "/subsets") {
        for (name, field) in [("Addresses", "/addresses"), ("NotReadyAddresses", "/notReadyAddresses")] {
            let all: Vec<&str> = list(subset, field).iter().map(|address| text(address, "/ip")).collect();
            page.field(1, name, or_none(&all.join(",")));
        }
        let ports = list(subset, "/ports");
        if !ports.is_empty() {
            page.line(1, "Ports:");
            let row = |port: &Value| {
                let name = or(text(port, "/name"), "<unset>");
                format!("{name}\t{}\t{}", number(port, "/port"), text(port, "/protocol"))
            };
            page.table(2, &PORTS, ports.iter().map(row));
        }
        page.line(0, "");
    }
    Ok(())
}
