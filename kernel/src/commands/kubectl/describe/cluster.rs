//! Nodes and namespaces.

use cluster_core::api::kind::KindRef;
use cluster_core::api::quantity;
use cluster_core::api::request::Options;
use cluster_core::api::selector::FieldSelector;
use cluster_core::apiserver::table::human_duration;
use cluster_core::clock::Time;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{LimitRange, Pod, ResourceQuota};
use serde_json::Value;

use super::super::failure::{Failure, Outcome};
use super::super::jsonpath::go_text;
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, list, or_none, text, time};

pub fn node(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let node = &item.value;
    page.field(0, "Name", &item.name);
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let roles: Vec<&str> =
        labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    page.field(0, "Roles", or_none(&roles.join(",")));
    page.pairs(0, "Labels", node.pointer("/metadata/labels"), "=");
    page.pairs(0, "Annotations", node.pointer("/metadata/annotations"), ": ");
    page.field(0, "CreationTimestamp", time(text(node, "/metadata/creationTimestamp")));
    taints(page, list(node, "/spec/taints"));
    page.field(0, "Unschedulable", node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)));
    lease(call, item, page)?;
    let conditions = list(node, "/status/conditions");
    if !conditions.is_empty() {
        page.line(0, "Conditions:");
        page.line(1, "Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage");
        page.line(1, "----\t------\t-----------------\t------------------\t------\t-------");
        for condition in conditions {
            page.line(
                1,
                format!(
                    "{} \t{} \t{} \t{} \t{} \t{}",
                    text(condition, "/type"),
                    text(condition, "/status"),
                    time(text(condition, "/lastHeartbeatTime")),
                    time(text(condition, "/lastTransitionTime")),
                    text(condition, "/reason"),
                    text(condition, "/message")
                ),
            );
        }
    }
    page.line(0, "Addresses:");
    for address in list(node, "/status/addresses") {
        page.field(1, text(address, "/type"), text(address, "/address"));
    }
    for (name, path) in [("Capacity", "/status/capacity"), ("Allocatable", "/status/allocatable")] {
        let amounts = node.pointer(path).and_then(Value::as_object);
        if let Some(amounts) = amounts.filter(|amounts| !amounts.is_empty()) {
            page.line(0, format!("{name}:"));
            amounts.iter().for_each(|(resource, amount)| page.field(1, resource, go_text(amount)));
        }
    }
    system(page, node);
    workload(call, item, page)
}

fn taints(page: &mut Page, taints: &[Value]) {
    let mut lines: Vec<String> = taints
        .iter()
        .map(|taint| match text(taint, "/value") {
            "" => format!("{}:{}", text(taint, "/key"), text(taint, "/effect")),
            value => format!("{}={value}:{}", text(taint, "/key"), text(taint, "/effect")),
        })
        .collect();
    // NoExecute, NoSchedule, PreferNoSchedule happen to sort by their letters.
    lines.sort_by_key(|line| line.rsplit(':').next().unwrap_or_default().to_owned());
    match lines.split_first() {
        None => page.field(0, "Taints", "<none>"),
        Some((first, rest)) => {
            page.field(0, "Taints", first);
            rest.iter().for_each(|line| page.line(0, format!("\t{line}")));
        }
    }
}

fn lease(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    match call.get(KindRef::of::<Lease>(), "kube-node-lease", &item.name) {
        Ok(lease) => {
            let or_unset = |text: String| if text.is_empty() { "<unset>".to_owned() } else { text };
            page.line(0, "Lease:");
            page.field(1, "HolderIdentity", or_unset(text(&lease, "/spec/holderIdentity").to_owned()));
            page.field(1, "AcquireTime", time(text(&lease, "/spec/acquireTime")));
            page.field(1, "RenewTime", time(text(&lease, "/spec/renewTime")));
        }
        Err(Failure::Server(status)) => page.field(0, "Lease", format!("Failed to get lease: {}", status.message)),
        Err(other) => return Err(other),
    }
    Ok(())
}

fn system(page: &mut Page, node: &Value) {
    page.line(0, "System Info:");
    for (name, field) in [
        ("Machine ID", "machineID"),
        ("System UUID", "systemUUID"),
        ("Boot ID", "bootID"),
        ("Kernel Version", "kernelVersion"),
        ("OS Image", "osImage"),
        ("Operating System", "operatingSystem"),
        ("Architecture", "architecture"),
        ("Container Runtime Version", "containerRuntimeVersion"),
        ("Kubelet Version", "kubeletVersion"),
    ] {
        page.field(1, name, text(node, &format!("/status/nodeInfo/{field}")));
    }
    if !text(node, "/spec/podCIDR").is_empty() {
        page.field(0, "PodCIDR", text(node, "/spec/podCIDR"));
        let all: Vec<String> = list(node, "/spec/podCIDRs").iter().map(go_text).collect();
        page.field(0, "PodCIDRs", all.join(","));
    }
    if !text(node, "/spec/providerID").is_empty() {
        page.field(0, "ProviderID", text(node, "/spec/providerID"));
    }
}

/// The sum over a pod's containers of a request or a limit, in thousandths.
fn amount(pod: &Value, sort: &str, resource: &str) -> i128 {
    let of =
        |container: &Value| quantity::parse(text(container, &format!("/resources/{sort}/{resource}"))).unwrap_or(0);
    let main: i128 = list(pod, "/spec/containers").iter().map(of).sum();
    let init = list(pod, "/spec/initContainers").iter().map(of).max().unwrap_or(0);
    main.max(init)
}

/// CPU in thousandths, bytes with the largest suffix that leaves no rest.
fn shown(resource: &str, millis: i128) -> String {
    if resource == "cpu" {
        return if millis % 1000 == 0 { (millis / 1000).to_string() } else { format!("{millis}m") };
    }
    let bytes = millis / 1000;
    for (suffix, size) in [("Gi", 1_i128 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)] {
        if bytes > 0 && bytes % size == 0 {
            return format!("{}{suffix}", bytes / size);
        }
    }
    bytes.to_string()
}

fn workload(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let terms = format!("spec.nodeName={},status.phase!=Succeeded,status.phase!=Failed", item.name);
    let fields = FieldSelector::parse(&terms).map_err(Failure::Message)?;
    let pods = call.list(KindRef::of::<Pod>(), "", Options { fields, ..Options::default() })?;
    let now = call.context.api.now();
    let part = |resource: &str, millis: i128| {
        let whole = quantity::parse(text(&item.value, &format!("/status/allocatable/{resource}"))).unwrap_or(0);
        let percent = if whole > 0 { millis * 100 / whole } else { 0 };
        format!("{} ({percent}%)", shown(resource, millis))
    };
    page.field(0, "Non-terminated Pods", format!("({} in total)", pods.len()));
    page.line(1, "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge");
    page.line(1, "---------\t----\t\t------------\t----------\t---------------\t-------------\t---");
    for pod in &pods {
        let created = text(pod, "/metadata/creationTimestamp").parse().map(Time::from_timestamp).unwrap_or(now);
        page.line(
            1,
            [
                text(pod, "/metadata/namespace"),
                text(pod, "/metadata/name"),
                "",
                &part("cpu", amount(pod, "requests", "cpu")),
                &part("cpu", amount(pod, "limits", "cpu")),
                &part("memory", amount(pod, "requests", "memory")),
                &part("memory", amount(pod, "limits", "memory")),
                &human_duration(now.since(created)),
            ]
            .join("\t"),
        );
    }
    page.line(0, "Allocated resources:");
    page.line(1, "(Total limits may be over 100 percent, i.e., overcommitted.)");
    page.line(1, "Resource\tRequests\tLimits");
    page.line(1, "--------\t--------\t------");
    let allocatable = item.value.pointer("/status/allocatable").and_then(Value::as_object);
    let others = allocatable.into_iter().flatten().map(|(name, _)| name.as_str());
    let huge = others.filter(|name| name.starts_with("hugepages-"));
    for resource in ["cpu", "memory", "ephemeral-storage"].into_iter().chain(huge) {
        let sum = |sort: &str| pods.iter().map(|pod| amount(pod, sort, resource)).sum();
        page.line(1, format!("{resource}\t{}\t{}", part(resource, sum("requests")), part(resource, sum("limits"))));
    }
    Ok(())
}

pub fn namespace(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    super::name_and_labels(item, page);
    page.field(0, "Status", text(&item.value, "/status/phase"));
    page.line(0, "");
    let quotas = call.list(KindRef::of::<ResourceQuota>(), &item.name, Options::default())?;
    if quotas.is_empty() {
        page.line(0, "No resource quota.");
    } else {
        page.line(0, "Resource Quotas");
        for quota in &quotas {
            page.line(1, format!("Name:\t{}", text(quota, "/metadata/name")));
            page.line(1, "Resource\tUsed\tHard");
            page.line(1, "--------\t---\t---");
            let hard = quota.pointer("/status/hard").and_then(Value::as_object);
            for (resource, amount) in hard.into_iter().flatten() {
                let used = quota.pointer("/status/used").and_then(|used| used.get(resource)).map(go_text);
                page.line(1, format!("{resource}\t{}\t{}", used.unwrap_or_default(), go_text(amount)));
            }
        }
    }
    page.line(0, "");
    let ranges = call.list(KindRef::of::<LimitRange>(), &item.name, Options::default())?;
    if ranges.is_empty() {
        page.line(0, "No LimitRange resource.");
        return Ok(());
    }
    page.line(0, "Resource Limits");
    for range in &ranges {
        page.line(1, "Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio");
        page.line(1, "----\t--------\t---\t---\t---------------\t-------------\t-----------------------");
        for limit in list(range, "/spec/limits") {
            limit_lines(page, limit);
        }
    }
    Ok(())
}

fn limit_lines(page: &mut Page, limit: &Value) {
    let fields = ["min", "max", "defaultRequest", "default", "maxLimitRequestRatio"];
    let mut resources: Vec<&String> =
        fields.iter().filter_map(|field| limit.get(field)?.as_object()).flat_map(|amounts| amounts.keys()).collect();
    resources.sort();
    resources.dedup();
    for resource in resources {
        let cell = |field: &&str| {
            let amount = limit.get(field).and_then(|amounts| amounts.get(resource.as_str()));
            amount.map_or("-".into(), go_text)
        };
        let cells: Vec<String> = fields.iter().map(cell).collect();
        page.line(1, format!("{}\t{resource}\t{}", text(limit, "/type"), cells.join("\t")));
    }
}
