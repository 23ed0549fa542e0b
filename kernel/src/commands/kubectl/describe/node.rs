//! Nodes, and what runs on them.

use std::collections::{BTreeMap, BTreeSet};

use cluster_core::api::kind::KindRef;
use cluster_core::api::quantity;
use cluster_core::api::request::Options;
use cluster_core::api::selector::FieldSelector;
use cluster_core::apiserver::table::human_duration;
use cluster_core::clock::Time;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::Value;

use super::super::failure::{Failure, Outcome};
use super::super::jsonpath::go_text;
use super::super::resources::Item;
use super::super::verb::Call;
use super::amounts::{self, Amounts};
use super::{Page, fields, is_true, joined, labels_and_annotations, list, name, or, or_none, text, time};

/// So many pools of devices are listed, and how many more there are.
const POOLS_MAX: usize = 10;

pub fn node(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let node = &item.value;
    name(item, page);
    page.field(0, "Roles", or_none(&roles(node).join(",")));
    labels_and_annotations(item, page);
    page.field(0, "CreationTimestamp", time(text(node, "/metadata/creationTimestamp")));
    taints(page, list(node, "/spec/taints"));
    page.field(0, "Unschedulable", is_true(node, "/spec/unschedulable"));
    lease(call, item, page)?;
    conditions(page, list(node, "/status/conditions"));
    page.line(0, "Addresses:");
    for address in list(node, "/status/addresses") {
        page.field(1, text(address, "/type"), text(address, "/address"));
    }
    for (name, path) in [("Capacity", "/status/capacity"), ("Allocatable", "/status/allocatable")] {
        let mut amounts = fields(node, path).peekable();
        if amounts.peek().is_some() {
            page.line(0, format!("{name}:"));
        }
        amounts.for_each(|(resource, amount)| page.field(1, resource, go_text(amount)));
    }
    devices(call, item, page);
    system(page, node);
    workload(call, item, page)
}

fn roles(node: &Value) -> Vec<&str> {
    let found: BTreeSet<&str> = fields(node, "/metadata/labels")
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    found.into_iter().collect()
}

fn taints(page: &mut Page, taints: &[Value]) {
    let mut sorted: Vec<&Value> = taints.iter().collect();
    sorted.sort_by_key(|taint| (text(taint, "/effect"), text(taint, "/key")));
    let line = |taint: &Value| {
        let value = text(taint, "/value");
        let value = if value.is_empty() { String::new() } else { format!("={value}") };
        let effect = text(taint, "/effect");
        let effect = if effect.is_empty() { String::new() } else { format!(":{effect}") };
        format!("{}{value}{effect}", text(taint, "/key"))
    };
    page.lines(0, "Taints", sorted.into_iter().map(line));
}

fn lease(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    match call.get(KindRef::of::<Lease>(), "kube-node-lease", &item.name) {
        Ok(lease) => {
            let moment = |path: &str| match text(&lease, path) {
                "" => "<unset>".to_owned(),
                moment => time(moment),
            };
            page.line(0, "Lease:");
            page.field(1, "HolderIdentity", or(text(&lease, "/spec/holderIdentity"), "<unset>"));
            page.field(1, "AcquireTime", moment("/spec/acquireTime"));
            page.field(1, "RenewTime", moment("/spec/renewTime"));
        }
        Err(Failure::Server(status)) => page.field(0, "Lease", format!("Failed to get lease: {}", status.message)),
        Err(other) => return Err(other),
    }
    Ok(())
}

fn conditions(page: &mut Page, conditions: &[Value]) {
    if conditions.is_empty() {
        return;
    }
    let row = |condition: &Value| {
        let of = |field: &str| text(condition, field);
        [
            of("/type"),
            of("/status"),
            &time(of("/lastHeartbeatTime")),
            &time(of("/lastTransitionTime")),
            of("/reason"),
            of("/message"),
        ]
        .join(" \t")
    };
    page.line(0, "Conditions:");
    let header = ["Type", "Status", "LastHeartbeatTime", "LastTransitionTime", "Reason", "Message"];
    page.table(1, &header, conditions.iter().map(row));
}

/// Devices that belong to this node alone; a server that does not know of devices has none.
fn devices(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) {
    let Ok(fields) = FieldSelector::parse(&format!("spec.nodeName={}", item.name)) else { return };
    let options = Options { fields, ..Options::default() };
    let slices = call.list(KindRef::of::<ResourceSlice>(), "", options).unwrap_or_default();
    let mut pools: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for slice in &slices {
        let pool = pools.entry((text(slice, "/spec/driver"), text(slice, "/spec/pool/name"))).or_default();
        pool.0 += 1;
        pool.1 += list(slice, "/spec/devices").len();
    }
    if pools.is_empty() {
        return;
    }
    page.line(0, "Node-Local ResourceSlices:");
    let rows = pools.iter().map(|((driver, pool), (slices, devices))| format!("{driver}\t{pool}\t{slices}\t{devices}"));
    page.table(1, &["Driver", "Pool", "Slices", "Devices"], rows.take(POOLS_MAX));
    if pools.len() > POOLS_MAX {
        page.line(1, format!("...and {} more pools", pools.len() - POOLS_MAX));
    }
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
    for (name, value) in [
        ("PodCIDR", text(node, "/spec/podCIDR")),
        ("PodCIDRs", &joined(node, "/spec/podCIDRs", ",")),
        ("ProviderID", text(node, "/spec/providerID")),
    ] {
        if !value.is_empty() {
            page.field(0, name, value);
        }
    }
}

/// Amounts beside what a node has of them.
struct Share<'a> {
    node: &'a Value,
}

impl Share<'_> {
    /// `500m (13%)`
    fn of(&self, amounts: &Amounts, resource: &str) -> String {
        let amount = amounts.get(resource).map_or("0", |amount| amount.0.as_str());
        format!("{amount} ({}%)", self.percent(amount, resource))
    }

    fn percent(&self, amount: &str, resource: &str) -> i128 {
        let whole = quantity::parse(self.has(resource)).unwrap_or(0);
        let amount = quantity::parse(amount).unwrap_or(0);
        if whole > 0 { amount * 100 / whole } else { 0 }
    }

    /// What pods may use of it.
    fn has(&self, resource: &str) -> &str {
        self.all().find(|(name, _)| *name == resource).and_then(|(_, amount)| amount.as_str()).unwrap_or_default()
    }

    fn all(&self) -> impl Iterator<Item = (&String, &Value)> {
        let has_allocatable = fields(self.node, "/status/allocatable").next().is_some();
        fields(self.node, if has_allocatable { "/status/allocatable" } else { "/status/capacity" })
    }
}

fn workload(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let terms = format!("spec.nodeName={},status.phase!=Succeeded,status.phase!=Failed", item.name);
    let fields = FieldSelector::parse(&terms).map_err(Failure::Message)?;
    let pods = match call.list(KindRef::of::<Pod>(), "", Options { fields, ..Options::default() }) {
        Ok(pods) => pods,
        Err(Failure::Server(status)) if status.reason == "Forbidden" => {
            page.field(0, "Pods", "not authorized");
            return Ok(());
        }
        Err(failure) => return Err(failure),
    };
    let now = call.context.api.now();
    let share = Share { node: &item.value };
    page.field(0, "Non-terminated Pods", format!("({} in total)", pods.len()));
    let (mut requests, mut limits) = (Amounts::new(), Amounts::new());
    let mut rows = Vec::new();
    for pod in &pods {
        let (of_requests, of_limits) = (amounts::of_pod(pod, "requests"), amounts::of_pod(pod, "limits"));
        let created = text(pod, "/metadata/creationTimestamp").parse().map(Time::from_timestamp).unwrap_or(now);
        rows.push(
            [
                text(pod, "/metadata/namespace"),
                text(pod, "/metadata/name"),
                "",
                &share.of(&of_requests, "cpu"),
                &share.of(&of_limits, "cpu"),
                &share.of(&of_requests, "memory"),
                &share.of(&of_limits, "memory"),
                &human_duration(now.since(created)),
            ]
            .join("\t"),
        );
        amounts::add(&mut requests, &of_requests);
        amounts::add(&mut limits, &of_limits);
    }
    let header = ["Namespace", "Name", "", "CPU Requests", "CPU Limits", "Memory Requests", "Memory Limits", "Age"];
    page.table(1, &header, rows);
    page.line(0, "Allocated resources:");
    page.line(1, "(Total limits may be over 100 percent, i.e., overcommitted.)");
    let is_huge = |name: &&str| name.starts_with("hugepages-");
    let is_other = |name: &&str| !matches!(*name, "cpu" | "memory" | "ephemeral-storage" | "pods" | "storage");
    let names: Vec<&str> = share.all().map(|(name, _)| name.as_str()).collect();
    let counted = ["cpu", "memory", "ephemeral-storage"].into_iter().chain(names.iter().copied().filter(is_huge));
    let shares = counted.map(|name| format!("{name}\t{}\t{}", share.of(&requests, name), share.of(&limits, name)));
    let plain = |amounts: &Amounts, name: &str| amounts.get(name).map_or("0".to_owned(), |amount| amount.0.clone());
    let others = names.iter().filter(|name| is_other(name) && !is_huge(name));
    let others = others.map(|name| format!("{name}\t{}\t{}", plain(&requests, name), plain(&limits, name)));
    page.table(1, &["Resource", "Requests", "Limits"], shares.chain(others));
    Ok(())
}
