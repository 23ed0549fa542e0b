//! Ingresses, and what stands behind their rules.

use std::collections::BTreeSet;

use cluster_core::api::kind::KindRef;
use k8s_openapi::api::core::v1::Service;
use serde_json::Value;

use super::super::failure::{Failure, Outcome};
use super::super::resources::Item;
use super::super::verb::Call;
use super::service::{addresses, slices};
use super::{Page, joined, list, number, or, shown, text};

pub fn ingress(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let ingress = &item.value;
    page.field(0, "Name", &item.name);
    page.labels(0, "Labels", ingress.pointer("/metadata/labels"));
    page.field(0, "Namespace", &item.namespace);
    page.field(0, "Address", balancer_addresses(ingress));
    page.field(0, "Ingress Class", shown(ingress, "/spec/ingressClassName", "<none>"));
    let default = match ingress.pointer("/spec/defaultBackend") {
        Some(default) => backend(call, item, default)?,
        None => "<default>".to_owned(),
    };
    page.field(0, "Default backend", &default);
    let certificates = list(ingress, "/spec/tls");
    if !certificates.is_empty() {
        page.line(0, "TLS:");
    }
    for certificate in certificates {
        let hosts = joined(certificate, "/hosts", ",");
        page.line(
            1,
            match text(certificate, "/secretName") {
                "" => format!("SNI routes {hosts}"),
                secret => format!("{secret} terminates {hosts}"),
            },
        );
    }
    page.line(0, "Rules:");
    page.table(1, &["Host", "Path", "Backends"], []);
    let rules = list(ingress, "/spec/rules").iter().filter(|rule| rule.get("http").is_some());
    let mut told = 0;
    for rule in rules {
        told += 1;
        page.line(1, format!("{}\t", or(text(rule, "/host"), "*")));
        for path in list(rule, "/http/paths") {
            let behind = backend(call, item, &path["backend"])?;
            page.line(2, format!("\t{} \t{behind}", text(path, "/path")));
        }
    }
    if told == 0 {
        page.line(1, format!("*\t*\t{default}"));
    }
    page.annotations(0, "Annotations", ingress.pointer("/metadata/annotations"));
    Ok(())
}

fn balancer_addresses(ingress: &Value) -> String {
    let given = list(ingress, "/status/loadBalancer/ingress").iter();
    let all: BTreeSet<&str> = given.map(|given| or(text(given, "/ip"), text(given, "/hostname"))).collect();
    all.into_iter().filter(|address| !address.is_empty()).collect::<Vec<_>>().join(",")
}

/// `web:80 (10.244.1.2:8080)`
fn backend(call: &mut Call<'_, '_>, item: &Item, backend: &Value) -> Result<String, Failure> {
    if let Some(resource) = backend.get("resource") {
        let group = shown(resource, "/apiGroup", "<none>");
        return Ok(format!("APIGroup: {group}, Kind: {}, Name: {}", text(resource, "/kind"), text(resource, "/name")));
    }
    let Some(wanted) = backend.get("service") else { return Ok(String::new()) };
    let (name, port_name) = (text(wanted, "/name"), text(wanted, "/port/name"));
    let port_number = number(wanted, "/port/number");
    let place = match port_number {
        0 => format!("{name}:{port_name}"),
        number => format!("{name}:{number}"),
    };
    let slices = slices(call, &item.namespace, name)?;
    match call.get(KindRef::of::<Service>(), &item.namespace, name) {
        Ok(service) => {
            let is_meant = |port: &&Value| match port_number {
                0 => !port_name.is_empty() && text(port, "/name") == port_name,
                wanted => number(port, "/port") == wanted,
            };
            let port = list(&service, "/spec/ports").iter().rfind(is_meant);
            let port = port.map(|port| text(port, "/name")).unwrap_or_default();
            Ok(format!("{place} ({})", addresses(&slices, port)))
        }
        Err(Failure::Server(status)) => Ok(format!("{place} (<error: {}>)", status.message)),
        Err(failure) => Err(failure),
    }
}
