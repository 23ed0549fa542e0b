//! Ingress classes, and the addresses of services.

use super::super::failure::Outcome;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, conditions, joined, list, name_and_labels, shown, text};

pub fn ingress_class(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name_and_labels(item, page);
    page.field(0, "Controller", text(&item.value, "/spec/controller"));
    if let Some(parameters) = item.value.pointer("/spec/parameters") {
        page.line(0, "Parameters:");
        if parameters.get("apiGroup").is_some() {
            page.field(1, "APIGroup", shown(parameters, "/apiGroup", ""));
        }
        page.field(1, "Kind", text(parameters, "/kind"));
        page.field(1, "Name", text(parameters, "/name"));
    }
    Ok(())
}

pub fn service_cidr(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name_and_labels(item, page);
    page.field(0, "CIDRs", joined(&item.value, "/spec/cidrs", ", "));
    let known = list(&item.value, "/status/conditions");
    if !known.is_empty() {
        page.line(0, "Status:");
        conditions(page, known);
    }
    Ok(())
}

pub fn ip_address(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name_and_labels(item, page);
    if let Some(parent) = item.value.pointer("/spec/parentRef") {
        page.line(0, "Parent Reference:");
        for (name, field) in
            [("Group", "/group"), ("Resource", "/resource"), ("Namespace", "/namespace"), ("Name", "/name")]
        {
            page.field(1, name, text(parent, field));
        }
    }
    Ok(())
}
