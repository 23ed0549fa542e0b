//! Namespaces, and the quotas and ranges that bound what is in them.

use cluster_core::api::kind::KindRef;
use cluster_core::api::quantity;
use cluster_core::api::request::Options;
use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use serde_json::Value;

use super::super::failure::Outcome;
use super::super::jsonpath::go_text;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, conditions, fields, list, name, name_and_labels, text};

pub fn namespace(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name_and_labels(item, page);
    page.field(0, "Status", text(&item.value, "/status/phase"));
    let known = list(&item.value, "/status/conditions");
    if !known.is_empty() {
        conditions(page, known);
    }
    page.line(0, "");
    let quotas = call.list(KindRef::of::<ResourceQuota>(), &item.name, Options::default())?;
    if quotas.is_empty() {
        page.line(0, "No resource quota.");
    } else {
        page.line(0, "Resource Quotas");
    }
    for quota in &quotas {
        page.field(1, "Name", text(quota, "/metadata/name"));
        scopes(page, 1, "* ", quota);
        page.line(1, "Resource\tUsed\tHard");
        page.line(1, "--------\t---\t---");
        for (resource, used, hard) in used_and_hard(quota) {
            page.line(1, format!("{resource}\t{used}\t{hard}"));
        }
    }
    page.line(0, "");
    let ranges = call.list(KindRef::of::<LimitRange>(), &item.name, Options::default())?;
    if ranges.is_empty() {
        page.line(0, "No LimitRange resource.");
        return Ok(());
    }
    page.line(0, "Resource Limits");
    limits_header(page, " ");
    ranges.iter().for_each(|range| limits(page, " ", range));
    Ok(())
}

pub fn resource_quota(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name(item, page);
    scopes(page, 0, " * ", &item.value);
    let rows = used_and_hard(&item.value).map(|(resource, used, hard)| format!("{resource}\t{used}\t{hard}"));
    page.table(0, &["Resource", "Used", "Hard"], rows);
    Ok(())
}

/// What of each resource is used, and what at most may be.
fn used_and_hard(quota: &Value) -> impl Iterator<Item = (&String, String, String)> {
    fields(quota, "/status/hard").map(move |(resource, hard)| {
        let used = quota.pointer("/status/used").and_then(|used| used.get(resource)).map(go_text);
        let used = used.map(|used| quantity::canonical(&used).unwrap_or(used));
        (resource, used.unwrap_or_else(|| "0".into()), go_text(hard))
    })
}

/// Which pods a quota counts.
fn scopes(page: &mut Page, level: usize, bullet: &str, quota: &Value) {
    let mut scopes: Vec<&str> = list(quota, "/spec/scopes").iter().filter_map(Value::as_str).collect();
    if scopes.is_empty() {
        return;
    }
    scopes.sort_unstable();
    page.field(level, "Scopes", scopes.join(", "));
    for scope in scopes {
        let about = match scope {
            "Terminating" => {
                "Matches all pods that have an active deadline. These pods have a limited lifespan on a node before being actively terminated by the system."
            }
            "NotTerminating" => {
                "Matches all pods that do not have an active deadline. These pods usually include long running pods whose container command is not expected to terminate."
            }
            "BestEffort" => {
                "Matches all pods that do not have resource requirements set. These pods have a best effort quality of service."
            }
            "NotBestEffort" => {
                "Matches all pods that have at least one resource requirement set. These pods have a burstable or guaranteed quality of service."
            }
            _ => continue,
        };
        page.line(level, format!("{bullet}{about}"));
    }
}

pub fn limit_range(_: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    name(item, page);
    limits_header(page, "");
    limits(page, "", &item.value);
    Ok(())
}

const LIMITS: [&str; 7] =
    ["Type", "Resource", "Min", "Max", "Default Request", "Default Limit", "Max Limit/Request Ratio"];

fn limits_header(page: &mut Page, indent: &str) {
    let dashes: Vec<String> = LIMITS.iter().map(|name| "-".repeat(name.len())).collect();
    page.line(0, format!("{indent}{}", LIMITS.join("\t")));
    page.line(0, format!("{indent}{}", dashes.join("\t")));
}

/// A row for each resource of each limit of a range.
fn limits(page: &mut Page, indent: &str, range: &Value) {
    const FIELDS: [&str; 5] = ["min", "max", "defaultRequest", "default", "maxLimitRequestRatio"];
    for limit in list(range, "/spec/limits") {
        let amounts = FIELDS.iter().filter_map(|field| limit.get(field)?.as_object());
        let mut resources: Vec<&String> = amounts.flat_map(|amounts| amounts.keys()).collect();
        resources.sort();
        resources.dedup();
        for resource in resources {
            let cell = |field: &&str| {
                let amount = limit.get(field).and_then(|amounts| amounts.get(resource.as_str()));
                amount.map_or("-".into(), go_text)
            };
            let cells: Vec<String> = FIELDS.iter().map(cell).collect();
            page.line(0, format!("{indent}{}\t{resource}\t{}", text(limit, "/type"), cells.join("\t")));
        }
    }
}
