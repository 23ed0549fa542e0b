//! What `kubectl describe` prints of an object: one file a group of kinds, all of them a function of one shape.
//! (`Describer` of k8s.io/kubectl/pkg/describe.)

mod cluster;
mod container;
mod events;
mod objects;
mod pod;
mod service;
mod template;
mod workloads;

use serde_json::Value;

use super::failure::Outcome;
use super::resources::Item;
use super::verb::Call;

pub use events::{age as event_age, last_seen as event_last_seen};
pub use template::template;

type Describer = fn(&mut Call<'_, '_>, &Item, &mut Page) -> Outcome;

/// Kind to describer; all other kinds are told field by field.
const DESCRIBERS: &[(&str, &str, Describer)] = &[
    ("", "Pod", pod::pod),
    ("", "Service", service::service),
    ("", "Node", cluster::node),
    ("", "Namespace", cluster::namespace),
    ("", "ConfigMap", objects::config_map),
    ("", "Secret", objects::secret),
    ("apps", "Deployment", workloads::deployment),
    ("apps", "ReplicaSet", workloads::replica_set),
    ("apps", "DaemonSet", workloads::daemon_set),
    ("apps", "StatefulSet", workloads::stateful_set),
    ("discovery.k8s.io", "EndpointSlice", service::endpoint_slice),
];

/// The description of one object.
pub fn describe(call: &mut Call<'_, '_>, item: &Item) -> Result<String, super::failure::Failure> {
    let known = DESCRIBERS.iter().find(|(group, kind, _)| *item.kind.group == **group && *item.kind.kind == **kind);
    let mut page = Page::default();
    match known {
        Some((_, _, describer)) => describer(call, item, &mut page)?,
        None => objects::generic(item, &mut page),
    }
    let (group, kind) = (&*item.kind.group, &*item.kind.kind);
    if !matches!((group, kind), ("", "Secret" | "Namespace")) && call.parsed.switch_or_on("show-events") {
        events::events(call, item, &mut page)?;
    }
    Ok(page.finish())
}

/// Text with tabs, which become columns in the end.
#[derive(Default)]
pub struct Page(String);

impl Page {
    /// A line, indented by two spaces a level.
    pub fn line(&mut self, level: usize, text: impl AsRef<str>) {
        self.0.push_str(&"  ".repeat(level));
        self.0.push_str(text.as_ref());
        self.0.push('\n');
    }

    /// `Name:  web`
    pub fn field(&mut self, level: usize, name: &str, value: impl std::fmt::Display) {
        self.line(level, format!("{name}:\t{value}"));
    }

    /// Labels or annotations, one a line: `app=web`, with `: ` for annotations.
    pub fn pairs(&mut self, level: usize, name: &str, pairs: Option<&Value>, separator: &str) {
        let pairs = pairs.and_then(Value::as_object).cloned().unwrap_or_default();
        let shown: Vec<String> = pairs
            .iter()
            .filter(|(key, _)| *key != super::verbs::LAST_APPLIED)
            .flat_map(|(key, value)| {
                let value = super::jsonpath::go_text(value);
                if value.contains('\n') || key.len() + value.len() + 2 > 140 && separator == ": " {
                    let mut lines = vec![format!("{key}:")];
                    lines.extend(value.trim_end_matches('\n').lines().map(|line| format!("  {line}")));
                    return lines;
                }
                vec![format!("{key}{separator}{value}")]
            })
            .collect();
        match shown.split_first() {
            None => self.field(level, name, "<none>"),
            Some((first, rest)) => {
                self.field(level, name, first);
                rest.iter().for_each(|pair| self.line(level, format!("\t{pair}")));
            }
        }
    }

    /// Lines with tabs in them, in columns two spaces apart.
    fn finish(self) -> String {
        use std::io::Write;
        let mut writer = tabwriter::TabWriter::new(Vec::new()).minwidth(0).padding(2);
        // Writing into memory does not fail.
        let _ = writer.write_all(self.0.as_bytes());
        match writer.into_inner() {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => self.0,
        }
    }
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

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

/// A timestamp as descriptions have it: `Thu, 01 Jan 2026 00:00:01 +0000`.
fn time(timestamp: &str) -> String {
    match timestamp.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string(),
        Err(_) => "<unset>".into(),
    }
}

/// A label selector in one line.
fn selector(value: Option<&Value>) -> String {
    let parsed = value.cloned().and_then(|value| serde_json::from_value(value).ok());
    let text = parsed.map(|selector| cluster_core::api::selector::Selector::of(&selector).to_string());
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "<none>".into())
}

/// `Deployment/web`, if something manages the object.
fn controlled_by(value: &Value, page: &mut Page) {
    let owner = list(value, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true);
    if let Some(owner) = owner {
        page.field(0, "Controlled By", format!("{}/{}", text(owner, "/kind"), text(owner, "/name")));
    }
}

fn name_and_labels(item: &Item, page: &mut Page) {
    page.field(0, "Name", &item.name);
    if item.kind.namespaced {
        page.field(0, "Namespace", &item.namespace);
    }
    page.pairs(0, "Labels", item.value.pointer("/metadata/labels"), "=");
    page.pairs(0, "Annotations", item.value.pointer("/metadata/annotations"), ": ");
}
