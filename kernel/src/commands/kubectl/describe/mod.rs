//! What `kubectl describe` prints of an object: one file a group of kinds, all of them functions of one shape.
//! (`ResourceDescriber` of k8s.io/kubectl/pkg/describe.)

mod amounts;
mod autoscaling;
mod batch;
mod certificates;
mod container;
mod events;
mod generic;
mod ingress;
mod namespace;
mod network;
mod network_policy;
mod node;
mod objects;
mod page;
mod pod;
mod policy;
mod rbac;
mod service;
mod storage;
mod template;
mod volumes;
mod workloads;

use cluster_core::api::selector::Selector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::failure::{Failure, Outcome};
use super::resources::Item;
use super::verb::Call;

pub use events::{age as event_age, last_seen as event_last_seen};
use page::Page;
pub use template::template;

type Describer = fn(&mut Call<'_, '_>, &Item, &mut Page) -> Outcome;

/// Group, kind, describer, and whether events stand below. All other kinds are told field by field.
const DESCRIBERS: &[(&str, &str, Describer, bool)] = &[
    ("", "ConfigMap", objects::config_map, true),
    ("", "Endpoints", service::endpoints, true),
    ("", "LimitRange", namespace::limit_range, false),
    ("", "Namespace", namespace::namespace, false),
    ("", "Node", node::node, true),
    ("", "PersistentVolume", storage::persistent_volume, true),
    ("", "PersistentVolumeClaim", storage::persistent_volume_claim, true),
    ("", "Pod", pod::pod, true),
    ("", "ReplicationController", workloads::replication_controller, true),
    ("", "ResourceQuota", namespace::resource_quota, false),
    ("", "Secret", objects::secret, false),
    ("", "Service", service::service, true),
    ("", "ServiceAccount", objects::service_account, true),
    ("apps", "DaemonSet", workloads::daemon_set, true),
    ("apps", "Deployment", workloads::deployment, true),
    ("apps", "ReplicaSet", workloads::replica_set, true),
    ("apps", "StatefulSet", workloads::stateful_set, true),
    ("autoscaling", "HorizontalPodAutoscaler", autoscaling::horizontal_pod_autoscaler, true),
    ("batch", "CronJob", batch::cron_job, true),
    ("batch", "Job", batch::job, true),
    ("certificates.k8s.io", "CertificateSigningRequest", certificates::certificate_signing_request, true),
    ("discovery.k8s.io", "EndpointSlice", service::endpoint_slice, true),
    ("networking.k8s.io", "IPAddress", network::ip_address, true),
    ("networking.k8s.io", "Ingress", ingress::ingress, true),
    ("networking.k8s.io", "IngressClass", network::ingress_class, true),
    ("networking.k8s.io", "NetworkPolicy", network_policy::network_policy, false),
    ("networking.k8s.io", "ServiceCIDR", network::service_cidr, true),
    ("policy", "PodDisruptionBudget", policy::pod_disruption_budget, true),
    ("rbac.authorization.k8s.io", "ClusterRole", rbac::role, false),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", rbac::binding, false),
    ("rbac.authorization.k8s.io", "Role", rbac::role, false),
    ("rbac.authorization.k8s.io", "RoleBinding", rbac::binding, false),
    ("scheduling.k8s.io", "PriorityClass", policy::priority_class, true),
    ("storage.k8s.io", "CSINode", storage::csi_node, true),
    ("storage.k8s.io", "StorageClass", storage::storage_class, true),
    ("storage.k8s.io", "VolumeAttributesClass", storage::volume_attributes_class, true),
];

/// The description of one object.
pub fn describe(call: &mut Call<'_, '_>, item: &Item, with_events: bool) -> Result<String, Failure> {
    let known = DESCRIBERS.iter().find(|(group, kind, ..)| *item.kind.group == **group && *item.kind.kind == **kind);
    let (describer, has_events) = known.map_or((generic::generic as Describer, true), |row| (row.2, row.3));
    let mut page = Page::default();
    describer(call, item, &mut page)?;
    if has_events && with_events {
        events::events(call, item, &mut page)?;
    }
    Ok(page.finish())
}

/// A text in an object, empty if it is not there.
fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, path: &str) -> i64 {
    value.pointer(path).and_then(Value::as_i64).unwrap_or(0)
}

fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The fields of a map in an object, none if it is not there.
fn fields<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.pointer(path).and_then(Value::as_object).into_iter().flatten()
}

/// Texts of a list, with something between them.
fn joined(value: &Value, path: &str, separator: &str) -> String {
    list(value, path).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(separator)
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

fn or_none(text: &str) -> &str {
    or(text, "<none>")
}

/// What a field holds as Go prints it; what stands for one that is not there.
fn shown(value: &Value, path: &str, otherwise: &str) -> String {
    match value.pointer(path) {
        None | Some(Value::Null) => otherwise.to_owned(),
        Some(found) => super::jsonpath::go_text(found),
    }
}

fn is_true(value: &Value, path: &str) -> bool {
    value.pointer(path) == Some(&Value::Bool(true))
}

/// `True`, `False`, or `<unset>`.
fn capital(value: &Value, path: &str) -> &'static str {
    match value.pointer(path).and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    }
}

/// A timestamp as descriptions have it: `Thu, 01 Jan 2026 00:00:01 +0000`. The one that is not there is Go's first.
fn time(timestamp: &str) -> String {
    match timestamp.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string(),
        Err(_) => "Mon, 01 Jan 0001 00:00:00 +0000".into(),
    }
}

/// Labels in one line, `<none>` if there are none.
fn labels_line(labels: Option<&Value>) -> String {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let pairs: Vec<String> = labels.map(|(key, value)| format!("{key}={}", super::jsonpath::go_text(value))).collect();
    or_none(&pairs.join(",")).to_owned()
}

/// A label selector in one line, empty if it selects everything.
fn selector(value: Option<&Value>) -> String {
    let Some(Ok(mut wanted)) = value.cloned().map(serde_json::from_value::<LabelSelector>) else {
        return String::new();
    };
    let expressions = wanted.match_expressions.iter_mut().flatten();
    expressions.flat_map(|expression| expression.values.iter_mut()).for_each(|values| values.sort());
    Selector::of(&wanted).to_string()
}

/// `Deployment/web`, if something manages the object.
fn controlled_by(value: &Value, page: &mut Page) {
    let owner = list(value, "/metadata/ownerReferences").iter().find(|owner| is_true(owner, "/controller"));
    if let Some(owner) = owner {
        page.field(0, "Controlled By", format!("{}/{}", text(owner, "/kind"), text(owner, "/name")));
    }
}

/// The name and, for a kind that has one, the namespace.
fn name(item: &Item, page: &mut Page) {
    page.field(0, "Name", &item.name);
    if item.kind.namespaced {
        page.field(0, "Namespace", &item.namespace);
    }
}

fn labels_and_annotations(item: &Item, page: &mut Page) {
    page.labels(0, "Labels", item.value.pointer("/metadata/labels"));
    page.annotations(0, "Annotations", item.value.pointer("/metadata/annotations"));
}

fn name_and_labels(item: &Item, page: &mut Page) {
    name(item, page);
    labels_and_annotations(item, page);
}

/// `Running`, or how long it has been going.
fn phase(call: &Call<'_, '_>, value: &Value) -> String {
    match text(value, "/metadata/deletionTimestamp").parse().map(cluster_core::clock::Time::from_timestamp) {
        Ok(asked) => {
            let lasts = cluster_core::apiserver::table::human_duration(call.context.api.now().since(asked));
            format!("Terminating (lasts {lasts})")
        }
        Err(_) => text(value, "/status/phase").to_owned(),
    }
}

/// Conditions of a workload: type, status, reason.
fn short_conditions(page: &mut Page, conditions: &[Value]) {
    let row = |condition: &Value| {
        format!("{} \t{}\t{}", text(condition, "/type"), text(condition, "/status"), text(condition, "/reason"))
    };
    if !conditions.is_empty() {
        page.line(0, "Conditions:");
        page.table(1, &["Type", "Status", "Reason"], conditions.iter().map(row));
    }
}

/// Conditions with the time of their last transition.
fn conditions(page: &mut Page, conditions: &[Value]) {
    let row = |condition: &Value| {
        let of = |field: &str| text(condition, field);
        [of("/type"), of("/status"), &time(of("/lastTransitionTime")), of("/reason"), of("/message")].join("\t")
    };
    page.line(0, "Conditions:");
    page.table(1, &["Type", "Status", "LastTransitionTime", "Reason", "Message"], conditions.iter().map(row));
}
