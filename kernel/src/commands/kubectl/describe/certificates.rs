//! Requests for certificates: who asks, and for what name.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster_core::apiserver::table::human_duration;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry as oids;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

use super::super::failure::{Failure, Outcome};
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, labels_line, list, number, text, time};

pub fn certificate_signing_request(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let request = &item.value;
    page.field(0, "Name", &item.name);
    page.field(0, "Labels", labels_line(request.pointer("/metadata/labels")));
    page.field(0, "Annotations", labels_line(request.pointer("/metadata/annotations")));
    page.field(0, "CreationTimestamp", time(text(request, "/metadata/creationTimestamp")));
    page.field(0, "Requesting User", text(request, "/spec/username"));
    page.field(0, "Signer", text(request, "/spec/signerName"));
    if request.pointer("/spec/expirationSeconds").is_some() {
        let seconds = u64::try_from(number(request, "/spec/expirationSeconds")).unwrap_or(0);
        page.field(0, "Requested Duration", human_duration(Duration::from_secs(seconds)));
    }
    page.field(0, "Status", status(request));
    let wrong = |problem: &str| Failure::Message(format!("Error parsing CSR: {problem}"));
    let pem = STANDARD.decode(text(request, "/spec/request")).unwrap_or_default();
    let (_, pem) = parse_x509_pem(&pem).map_err(|_| wrong("PEM block type must be CERTIFICATE REQUEST"))?;
    let (_, parsed) =
        X509CertificationRequest::from_der(&pem.contents).map_err(|problem| wrong(&problem.to_string()))?;
    subject(page, &parsed.certification_request_info.subject);
    alternative_names(page, &parsed);
    Ok(())
}

/// `Approved,Issued`
fn status(request: &Value) -> String {
    let has =
        |type_: &str| list(request, "/status/conditions").iter().any(|condition| text(condition, "/type") == type_);
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied".to_owned(),
        (_, true) => "Approved".to_owned(),
        _ => "Pending".to_owned(),
    };
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !text(request, "/status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    status
}

fn subject(page: &mut Page, subject: &X509Name<'_>) {
    let all = |oid: oids::Oid<'_>| -> Vec<String> {
        let found = subject.iter_by_oid(&oid).filter_map(|attribute| attribute.as_str().ok());
        found.map(str::to_owned).collect()
    };
    page.line(0, "Subject:");
    for (name, oid) in [("Common Name", oids::OID_X509_COMMON_NAME), ("Serial Number", oids::OID_X509_SERIALNUMBER)] {
        page.line(0, format!("\t{name}:\t{}", all(oid).pop().unwrap_or_default()));
    }
    for (name, oid) in [
        ("Organization", oids::OID_X509_ORGANIZATION_NAME),
        ("Organizational Unit", oids::OID_X509_ORGANIZATIONAL_UNIT),
        ("Country", oids::OID_X509_COUNTRY_NAME),
        ("Locality", oids::OID_X509_LOCALITY_NAME),
        ("Province", oids::OID_X509_STATE_OR_PROVINCE_NAME),
        ("StreetAddress", oids::OID_X509_STREET_ADDRESS),
        ("PostalCode", oids::OID_X509_POSTAL_CODE),
    ] {
        values(page, name, &all(oid));
    }
}

/// A name, and values below each other; nothing if there are none.
fn values(page: &mut Page, name: &str, values: &[String]) {
    if !values.is_empty() {
        page.line(0, format!("\t{name}:\t{}", values.join("\n\t\t")));
    }
}

fn alternative_names(page: &mut Page, request: &X509CertificationRequest<'_>) {
    let (mut dns, mut mail, mut uris, mut addresses) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for extension in request.requested_extensions().into_iter().flatten() {
        let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(name) => dns.push((*name).to_owned()),
                GeneralName::RFC822Name(name) => mail.push((*name).to_owned()),
                GeneralName::URI(name) => uris.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => addresses.extend(address(bytes)),
                _ => {}
            }
        }
    }
    if [&dns, &mail, &uris, &addresses].iter().all(|names| names.is_empty()) {
        return;
    }
    page.line(0, "Subject Alternative Names:");
    values(page, "DNS Names", &dns);
    values(page, "Email Addresses", &mail);
    values(page, "URIs", &uris);
    values(page, "IP Addresses", &addresses);
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|bytes| std::net::Ipv4Addr::from(bytes).to_string());
    let v6 = || <[u8; 16]>::try_from(bytes).map(|bytes| std::net::Ipv6Addr::from(bytes).to_string());
    v4.or_else(|_| v6()).ok()
}
