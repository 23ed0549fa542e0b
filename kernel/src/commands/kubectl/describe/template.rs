//! Pod templates, volumes, what a pod asks of its node.

use serde_json::Value;

use super::super::jsonpath::go_text;
use super::container::{INNER, containers};
use super::{Page, list, or_none, text};

/// A template by itself, as the history of a rollout shows it: tabs stay tabs.
pub fn template(template: &Value) -> String {
    let mut page = Page::default();
    in_page(&mut page, template);
    page.0
}

/// `Pod Template:` and all of it.
pub fn in_page(page: &mut Page, template: &Value) {
    page.line(0, "Pod Template:");
    page.pairs(1, "Labels", template.pointer("/metadata/labels"), "=");
    let annotations = template.pointer("/metadata/annotations");
    if annotations.and_then(Value::as_object).is_some_and(|all| !all.is_empty()) {
        page.pairs(1, "Annotations", annotations, ": ");
    }
    let account = text(template, "/spec/serviceAccountName");
    if !account.is_empty() {
        page.field(1, "Service Account", account);
    }
    containers(page, 1, "Init Containers", list(template, "/spec/initContainers"), &[], " ");
    containers(page, 1, "Containers", list(template, "/spec/containers"), &[], " ");
    volumes(page, 1, " ", list(template, "/spec/volumes"));
    let priority = text(template, "/spec/priorityClassName");
    if !priority.is_empty() {
        page.field(1, "Priority Class Name", priority);
    }
    page.pairs(1, "Node-Selectors", template.pointer("/spec/nodeSelector"), "=");
    tolerations(page, 1, list(template, "/spec/tolerations"));
}

pub fn tolerations(page: &mut Page, level: usize, tolerations: &[Value]) {
    let mut lines: Vec<String> = tolerations.iter().map(toleration).collect();
    lines.sort();
    match lines.split_first() {
        None => page.field(level, "Tolerations", "<none>"),
        Some((first, rest)) => {
            page.field(level, "Tolerations", first);
            rest.iter().for_each(|line| page.line(level, format!("\t{line}")));
        }
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

/// Where a volume's content is from: its field, its name and what is told of it.
type Source = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const SOURCES: &[Source] = &[
    (
        "emptyDir",
        "EmptyDir (a temporary directory that shares a pod's lifetime)",
        &[("Medium", "/medium"), ("SizeLimit", "/sizeLimit")],
    ),
    ("configMap", "ConfigMap (a volume populated by a ConfigMap)", &[("Name", "/name"), ("Optional", "/optional")]),
    ("secret", "Secret (a volume populated by a Secret)", &[("SecretName", "/secretName"), ("Optional", "/optional")]),
    ("hostPath", "HostPath (bare host directory volume)", &[("Path", "/path"), ("HostPathType", "/type")]),
    (
        "persistentVolumeClaim",
        "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        &[("ClaimName", "/claimName"), ("ReadOnly", "/readOnly")],
    ),
    ("projected", "Projected (a volume that contains injected data from multiple sources)", &[]),
    ("downwardAPI", "DownwardAPI (a volume populated by information about the pod)", &[]),
];

pub fn volumes(page: &mut Page, level: usize, space: &str, volumes: &[Value]) {
    if volumes.is_empty() {
        page.field(level, "Volumes", "<none>");
        return;
    }
    page.line(level, "Volumes:");
    for volume in volumes {
        page.line(level, format!("{space}{}:", text(volume, "/name")));
        let known = SOURCES.iter().find(|(field, ..)| volume.get(field).is_some());
        let Some((field, type_, details)) = known else {
            page.field(INNER, "Type", "<unknown>");
            continue;
        };
        page.field(INNER, "Type", type_);
        let source = &volume[*field];
        for (name, path) in *details {
            page.field(INNER, name, detail(source, name, path));
        }
        if *field == "projected" {
            projected(page, INNER, source);
        }
    }
}

fn detail(source: &Value, name: &str, path: &str) -> String {
    match (source.pointer(path), name) {
        (Some(value), _) => go_text(value),
        (None, "Optional" | "ReadOnly") => "false".into(),
        (None, "SizeLimit") => "<unset>".into(),
        (None, _) => String::new(),
    }
}

fn projected(page: &mut Page, level: usize, source: &Value) {
    for part in list(source, "/sources") {
        if let Some(token) = part.get("serviceAccountToken") {
            page.field(level, "TokenExpirationSeconds", go_text(&token["expirationSeconds"]));
        } else if let Some(map) = part.get("configMap") {
            page.field(level, "ConfigMapName", or_none(text(map, "/name")));
            page.field(level, "Optional", map["optional"] == true);
        } else if let Some(secret) = part.get("secret") {
            page.field(level, "SecretName", or_none(text(secret, "/name")));
            page.field(level, "Optional", secret["optional"] == true);
        } else if part.get("downwardAPI").is_some() {
            page.field(level, "DownwardAPI", true);
        }
    }
}
