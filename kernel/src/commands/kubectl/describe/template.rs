//! Pod templates, and what a pod asks of its node.

use serde_json::Value;

use super::container::Containers;
use super::volumes::volumes;
use super::{Page, list, number, or_none, selector, text};

/// A template by itself, as the history of a rollout shows it: tabs stay tabs.
pub fn template(template: &Value) -> String {
    let mut page = Page::default();
    in_page(&mut page, template);
    page.0
}

/// `Pod Template:` and all of it.
pub fn in_page(page: &mut Page, template: &Value) {
    page.line(0, "Pod Template:");
    page.labels(1, "Labels", template.pointer("/metadata/labels"));
    let annotations = template.pointer("/metadata/annotations");
    if annotations.and_then(Value::as_object).is_some_and(|all| !all.is_empty()) {
        page.annotations(1, "Annotations", annotations);
    }
    let account = text(template, "/spec/serviceAccountName");
    if !account.is_empty() {
        page.field(1, "Service Account", account);
    }
    let containers = |heading, specs| Containers { heading, specs, statuses: &[], pod: None };
    let init = list(template, "/spec/initContainers");
    if !init.is_empty() {
        containers("Init Containers", init).print(page);
    }
    containers("Containers", list(template, "/spec/containers")).print(page);
    volumes(page, true, list(template, "/spec/volumes"));
    spread(page, 1, list(template, "/spec/topologySpreadConstraints"));
    let priority = text(template, "/spec/priorityClassName");
    if !priority.is_empty() {
        page.field(1, "Priority Class Name", priority);
    }
    page.labels(1, "Node-Selectors", template.pointer("/spec/nodeSelector"));
    tolerations(page, 1, list(template, "/spec/tolerations"));
    scheduling_group(page, 1, template);
}

pub fn tolerations(page: &mut Page, level: usize, tolerations: &[Value]) {
    let mut sorted: Vec<&Value> = tolerations.iter().collect();
    sorted.sort_by_key(|toleration| text(toleration, "/key"));
    page.lines(level, "Tolerations", sorted.into_iter().map(toleration));
}

/// How pods are to be spread: `zone:DoNotSchedule when max skew 1 is exceeded for selector app=web`.
pub fn spread(page: &mut Page, level: usize, constraints: &[Value]) {
    if constraints.is_empty() {
        return;
    }
    let mut sorted: Vec<&Value> = constraints.iter().collect();
    sorted.sort_by_key(|constraint| text(constraint, "/topologyKey"));
    let line = |constraint: &Value| {
        let labels = constraint.get("labelSelector").map(|labels| selector(Some(labels)));
        let labels = labels.map(|labels| format!(" for selector {}", or_none(&labels))).unwrap_or_default();
        format!(
            "{}:{} when max skew {} is exceeded{labels}",
            text(constraint, "/topologyKey"),
            text(constraint, "/whenUnsatisfiable"),
            number(constraint, "/maxSkew")
        )
    };
    page.lines(level, "Topology Spread Constraints", sorted.into_iter().map(line));
}

/// The group that a pod is scheduled with, of a pod or a template.
pub fn scheduling_group(page: &mut Page, level: usize, of: &Value) {
    let group = text(of, "/spec/schedulingGroup/podGroupName");
    if !group.is_empty() {
        page.line(level, "SchedulingGroup:");
        page.field(1, "PodGroupName", group);
    }
}

/// `node.kubernetes.io/not-ready:NoExecute op=Exists for 300s`
fn toleration(toleration: &Value) -> String {
    let mut line = text(toleration, "/key").to_owned();
    if !text(toleration, "/value").is_empty() {
        line.push_str(&format!("={}", text(toleration, "/value")));
    }
    if !text(toleration, "/effect").is_empty() {
        line.push_str(&format!(":{}", text(toleration, "/effect")));
    }
    if text(toleration, "/operator") == "Exists" && text(toleration, "/value").is_empty() {
        line.push_str(if line.is_empty() { "op=Exists" } else { " op=Exists" });
    }
    if let Some(seconds) = toleration.get("tolerationSeconds").and_then(Value::as_i64) {
        line.push_str(&format!(" for {seconds}s"));
    }
    line
}
