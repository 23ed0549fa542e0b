//! Services and their endpoint slices.

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use cluster_core::api::selector::Selector;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::Value;

use super::super::failure::{Failure, Outcome};
use super::super::jsonpath::go_text;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, list, name_and_labels, number, or_none, text};

pub fn service(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let service = &item.value;
    name_and_labels(item, page);
    let pairs = service.pointer("/spec/selector").and_then(Value::as_object);
    let selector: Vec<String> =
        pairs.into_iter().flatten().map(|(key, value)| format!("{key}={}", go_text(value))).collect();
    page.field(0, "Selector", or_none(&selector.join(",")));
    page.field(0, "Type", text(service, "/spec/type"));
    if !text(service, "/spec/ipFamilyPolicy").is_empty() {
        page.field(0, "IP Family Policy", text(service, "/spec/ipFamilyPolicy"));
    }
    let joined = |path: &str| list(service, path).iter().map(go_text).collect::<Vec<_>>().join(",");
    if !list(service, "/spec/ipFamilies").is_empty() {
        page.field(0, "IP Families", joined("/spec/ipFamilies"));
    }
    page.field(0, "IP", text(service, "/spec/clusterIP"));
    if !list(service, "/spec/clusterIPs").is_empty() {
        page.field(0, "IPs", joined("/spec/clusterIPs"));
    }
    if !list(service, "/spec/externalIPs").is_empty() {
        page.field(0, "External IPs", joined("/spec/externalIPs"));
    }
    if !text(service, "/spec/externalName").is_empty() {
        page.field(0, "External Name", text(service, "/spec/externalName"));
    }
    let given = list(service, "/status/loadBalancer/ingress");
    if !given.is_empty() {
        let shown: Vec<&str> = given
            .iter()
            .map(|ingress| match text(ingress, "/ip") {
                "" => text(ingress, "/hostname"),
                ip => ip,
            })
            .collect();
        page.field(0, "LoadBalancer Ingress", shown.join(", "));
    }
    let slices = slices(call, item)?;
    for port in list(service, "/spec/ports") {
        let name = match text(port, "/name") {
            "" => "<unset>",
            name => name,
        };
        let protocol = text(port, "/protocol");
        page.field(0, "Port", format!("{name}\t{}/{protocol}", number(port, "/port")));
        page.field(0, "TargetPort", format!("{}/{protocol}", port.get("targetPort").map(go_text).unwrap_or_default()));
        if number(port, "/nodePort") > 0 {
            page.field(0, "NodePort", format!("{name}\t{}/{protocol}", number(port, "/nodePort")));
        }
        page.field(0, "Endpoints", endpoints(&slices, text(port, "/name")));
    }
    page.field(0, "Session Affinity", text(service, "/spec/sessionAffinity"));
    for (name, field) in
        [("External Traffic Policy", "externalTrafficPolicy"), ("Internal Traffic Policy", "internalTrafficPolicy")]
    {
        let policy = text(service, &format!("/spec/{field}"));
        if !policy.is_empty() {
            page.field(0, name, policy);
        }
    }
    Ok(())
}

fn slices(call: &mut Call<'_, '_>, item: &Item) -> Result<Vec<Value>, Failure> {
    let labels = Selector::parse(&format!("kubernetes.io/service-name={}", item.name)).map_err(Failure::Message)?;
    call.list(KindRef::of::<EndpointSlice>(), &item.namespace, Options { labels, ..Options::default() })
}

/// The addresses that are ready on a port: the first three, and how many more.
fn endpoints(slices: &[Value], port: &str) -> String {
    let mut all = Vec::new();
    for slice in slices {
        let ports = list(slice, "/ports").iter().filter(|known| text(known, "/name") == port);
        for number in ports.map(|port| number(port, "/port")) {
            for endpoint in list(slice, "/endpoints") {
                if endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)) {
                    all.extend(
                        list(endpoint, "/addresses").iter().map(|address| format!("{}:{number}", go_text(address))),
                    );
                }
            }
        }
    }
    match all.len() {
        0 if slices.is_empty() => "<none>".into(),
        0 => String::new(),
        count if count > 3 => format!("{} + {} more...", all[..3].join(","), count - 3),
        _ => all.join(","),
    }
}

pub fn endpoint_slice(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let slice = &item.value;
    name_and_labels(item, page);
    page.field(0, "AddressType", text(slice, "/addressType"));
    match list(slice, "/ports") {
        [] => page.field(0, "Ports", "<unset>"),
        ports => {
            page.line(0, "Ports:");
            page.line(1, "Name\tPort\tProtocol");
            page.line(1, "----\t----\t--------");
            for port in ports {
                let name = match text(port, "/name") {
                    "" => "<unset>",
                    name => name,
                };
                page.line(1, format!("{name}\t{}\t{}", number(port, "/port"), text(port, "/protocol")));
            }
        }
    }
    let all = list(slice, "/endpoints");
    if all.is_empty() {
        page.field(0, "Endpoints", "<none>");
        return Ok(());
    }
    page.line(0, "Endpoints:");
    let or_unset = |value: &str| if value.is_empty() { "<unset>".to_owned() } else { value.to_owned() };
    for endpoint in all {
        let addresses: Vec<String> = list(endpoint, "/addresses").iter().map(go_text).collect();
        page.line(1, format!("- Addresses:\t{}", addresses.join(",")));
        page.line(1, "  Conditions:");
        page.field(3, "Ready", endpoint.pointer("/conditions/ready").map_or("<unset>".into(), go_text));
        page.line(1, format!("  Hostname:\t{}", or_unset(text(endpoint, "/hostname"))));
        if endpoint.get("targetRef").is_some() {
            page.line(
                1,
                format!("  TargetRef:\t{}/{}", text(endpoint, "/targetRef/kind"), text(endpoint, "/targetRef/name")),
            );
        }
        page.line(1, format!("  NodeName:\t{}", or_unset(text(endpoint, "/nodeName"))));
        page.line(1, format!("  Zone:\t{}", or_unset(text(endpoint, "/zone"))));
    }
    Ok(())
}
