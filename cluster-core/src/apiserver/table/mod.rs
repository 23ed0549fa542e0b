//! Objects as the server prints them in rows: what `kubectl get` shows, for every kind.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables>

mod age;
mod autoscaling;
mod custom;
mod events;
mod extension;
mod network;
mod nodes;
mod objects;
mod pods;
mod policy;
mod storage;
mod workloads;

use serde_json::{Value, json};

use super::ApiServer;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::List;
use crate::api::schema::Schema;
use crate::clock::Time;

pub use age::human_duration;

/// meta/v1 `Table`, without its envelope.
#[derive(Clone, Debug)]
pub struct Table {
    pub kind: KindRef,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

/// A `TableColumnDefinition`.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    /// An OpenAPI type: `string`, `integer`, `boolean`, `date` …
    pub type_: String,
    /// `name` for the column that names the object, else mostly empty.
    pub format: String,
    pub description: String,
    /// 0 is always shown, more only in wide tables.
    pub priority: i32,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub cells: Vec<Value>,
    /// `TableRowCondition`s: that a pod has ended.
    pub conditions: Vec<Value>,
    pub object: Object,
}

/// meta/v1 `ListMeta`: which revision a list shows, and where it goes on.
#[derive(Clone, Debug, Default)]
pub struct ListMeta {
    pub revision: u64,
    pub continue_token: String,
    pub remaining: Option<usize>,
}

impl ListMeta {
    pub fn of(list: &List) -> ListMeta {
        let (revision, remaining) = (list.revision, list.remaining);
        ListMeta { revision, continue_token: list.continue_token.clone(), remaining }
    }

    pub fn to_json(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if !self.continue_token.is_empty() {
            metadata["continue"] = self.continue_token.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

impl Table {
    /// The objects' part of the JSON is up to the caller: whole objects, their metadata, or none.
    pub fn to_json(&self, list: &ListMeta, mut object: impl FnMut(&Object) -> Value) -> Value {
        let schema = Schema::of(&self.kind);
        let columns: Vec<Value> = self.columns.iter().map(|column| column.to_json(schema)).collect();
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let mut value = json!({"cells": row.cells, "object": object(&row.object)});
                if !row.conditions.is_empty() {
                    value["conditions"] = row.conditions.as_slice().into();
                }
                value
            })
            .collect();
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list.to_json(),
            "columnDefinitions": columns, "rows": rows,
        })
    }
}

impl Column {
    fn to_json(&self, schema: Option<Schema<'_>>) -> Value {
        let described = schema.filter(|_| self.description.is_empty()).map(|schema| description(&self.name, schema));
        let description = described.unwrap_or_else(|| self.description.clone());
        json!({
            "name": self.name, "type": self.type_, "format": self.format, "description": description,
            "priority": self.priority,
        })
    }
}

/// How one kind is printed.
struct Printer {
    kind: fn() -> &'static KindRef,
    fits: fn(&Object) -> bool,
    /// Names of columns, `, ` between them. A mark at the end says more: `*` only in wide tables, then `#` an integer,
    /// `?` a boolean, `@` a date.
    columns: &'static str,
    cells: fn(&Object, Time) -> Vec<Value>,
}

/// Writes `PRINTERS`: one line a kind, the type of its objects, its columns and the function that fills them.
macro_rules! printers {
    ($($type:ty: $columns:literal => $cells:expr,)*) => {
        pub(super) const PRINTERS: &[super::Printer] = &[$(
            super::Printer {
                kind: <$type as crate::api::kind::Resource>::kind,
                fits: crate::api::object::Object::is::<$type>,
                columns: $columns,
                cells: $cells,
            },
        )*];
    };
}

/// A row: each cell anything that JSON can hold.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(serde_json::Value::from($cell)),*] };
}

use {cells, printers};

const ALL: &[&[Printer]] = &[
    pods::PRINTERS,
    workloads::PRINTERS,
    autoscaling::PRINTERS,
    network::PRINTERS,
    nodes::PRINTERS,
    objects::PRINTERS,
    events::PRINTERS,
    storage::PRINTERS,
    policy::PRINTERS,
    extension::PRINTERS,
];

impl ApiServer {
    /// The table of some objects of one kind at this moment.
    pub fn table(&self, kind: &KindRef, objects: &[Object], now: Time) -> Table {
        if objects.first().is_some_and(autoscaling::is_scale) {
            return autoscaling::scales(objects, now);
        }
        if super::aggregation::is_of(kind) {
            return super::aggregation::table(kind, objects);
        }
        match ALL.iter().copied().flatten().find(|printer| (printer.kind)() == kind) {
            Some(printer) => built_in(printer, objects, now),
            None => custom::table(self.definition_of(kind), kind, objects, now),
        }
    }

    fn definition_of(&self, kind: &KindRef) -> Option<&Object> {
        let key = crate::api::Key::cluster(kind.qualified_resource());
        self.custom.own_definition(kind).or_else(|| self.store.get(custom::definition_kind(), &key))
    }
}

fn built_in(printer: &Printer, objects: &[Object], now: Time) -> Table {
    let columns: Vec<Column> = printer.columns.split(", ").map(column).collect();
    let row = |object: &Object| {
        let mut cells = if (printer.fits)(object) { (printer.cells)(object, now) } else { cells![&*object.key.name] };
        cells.resize(columns.len(), Value::from(""));
        Row { cells, conditions: pods::conditions(object), object: object.clone() }
    };
    let rows = objects.iter().map(row).collect();
    Table { kind: (printer.kind)().clone(), columns, rows }
}

/// What the schema says of the field that a column shows.
fn description(column: &str, schema: Schema<'_>) -> String {
    let mut field = column.to_owned();
    if let Some(first) = field.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let place = match column {
        "Name" | "Age" | "Created At" => {
            let field = if column == "Name" { "name" } else { "creationTimestamp" };
            schema.property("metadata").and_then(|metadata| metadata.property(field))
        }
        _ => ["", "spec", "status"].into_iter().find_map(|part| {
            let part = if part.is_empty() { schema } else { schema.property(part)? };
            part.properties().find(|(name, _)| *name == field).map(|(_, schema)| schema)
        }),
    };
    place.map(|place| place.description().to_owned()).unwrap_or_default()
}

fn column(text: &str) -> Column {
    let (text, type_) = match text.chars().next_back() {
        Some('#') => (&text[..text.len() - 1], "integer"),
        Some('?') => (&text[..text.len() - 1], "boolean"),
        Some('@') => (&text[..text.len() - 1], "date"),
        _ => (text, "string"),
    };
    let (name, priority) = text.strip_suffix('*').map_or((text, 0), |name| (name, 1));
    // Of an event the last column is its name; a volume attachment's attacher counts as a name, too.
    let format = if matches!(name, "Name" | "Attacher") { "name" } else { "" };
    Column { name: name.into(), type_: type_.into(), format: format.into(), description: String::new(), priority }
}

/// `<none>` for what is not there.
fn or_none(text: Option<&str>) -> &str {
    text.filter(|text| !text.is_empty()).unwrap_or("<none>")
}

/// Names and images of containers, as wide tables list them.
fn containers(spec: Option<&k8s_openapi::api::core::v1::PodSpec>) -> (String, String) {
    let all = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let names: Vec<&str> = all.iter().map(|container| container.name.as_str()).collect();
    let images: Vec<&str> = all.iter().map(|container| container.image.as_deref().unwrap_or_default()).collect();
    (names.join(","), images.join(","))
}

/// A label selector in one line: `app=web,tier in (back,front)`.
fn selector_text(selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector) -> String {
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        terms.push((key.clone(), format!("{key}={value}")));
    }
    for expression in selector.match_expressions.iter().flatten() {
        let key = &expression.key;
        let mut values = expression.values.clone().unwrap_or_default();
        values.sort();
        let values = values.join(",");
        let text = match expression.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.clone(),
            "DoesNotExist" => format!("!{key}"),
            other => format!("{key} {other} ({values})"),
        };
        terms.push((key.clone(), text));
    }
    terms.sort();
    match terms.is_empty() {
        true => "<none>".into(),
        false => terms.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(","),
    }
}

/// Labels in one line, `<none>` if there are none.
fn labels_text<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let pairs: Vec<String> = labels.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    if pairs.is_empty() { "<none>".into() } else { pairs.join(",") }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
    use serde_json::json;

    use super::*;

    fn cells_of(kind: &KindRef, object: Value, now: Time) -> String {
        let object = Object::from_json(kind, object).unwrap();
        let table = ApiServer::new().table(kind, &[object], now);
        let cells: Vec<String> = table.rows[0]
            .cells
            .iter()
            .map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned))
            .collect();
        cells.join(" | ")
    }

    fn pod(status: Value) -> String {
        let pod = json!({
            "metadata": {"name": "web", "creationTimestamp": "2026-01-01T00:00:10Z"},
            "spec": {"initContainers": [{"name": "one"}, {"name": "two"}], "containers": [{"name": "web"}]},
            "status": status,
        });
        cells_of(KindRef::of::<Pod>(), pod, Time::from_secs(310))
    }

    #[test]
    fn a_pod_says_what_holds_it_up() {
        let terminated =
            json!({"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T00:05:05Z"}});
        for (status, expected) in [
            (json!({"phase": "Pending"}), "web | 0/1 | Pending | 0 | 5m"),
            (
                json!({"phase": "Pending", "initContainerStatuses": [
                    {"name": "one", "restartCount": 0, "ready": true, "image": "", "imageID": "", "state": {"terminated": {"exitCode": 0}}},
                    {"name": "two", "restartCount": 0, "ready": false, "image": "", "imageID": "", "state": {"running": {}}}]}),
                "web | 0/1 | Init:1/2 | 0 | 5m",
            ),
            (
                json!({"phase": "Running", "containerStatuses": [{"name": "web", "restartCount": 2, "ready": false,
                    "image": "", "imageID": "", "lastState": terminated,
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
                "web | 0/1 | CrashLoopBackOff | 2 (5s ago) | 5m",
            ),
            (
                json!({"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"name": "web",
                    "restartCount": 0, "ready": true, "image": "", "imageID": "", "state": {"running": {}}}]}),
                "web | 1/1 | Running | 0 | 5m",
            ),
        ] {
            let row = pod(status.clone());
            assert!(row.starts_with(expected), "{row} for {status}");
        }
    }

    #[test]
    fn services_and_config_maps() {
        let service = json!({
            "metadata": {"name": "web"},
            "spec": {"type": "NodePort", "clusterIP": "10.96.0.9", "selector": {"app": "web"},
                "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]},
        });
        assert_eq!(
            cells_of(KindRef::of::<Service>(), service, Time::ZERO),
            "web | NodePort | 10.96.0.9 | <none> | 80:30080/TCP,53/UDP | <unknown> | app=web"
        );
        let map = json!({"metadata": {"name": "c", "creationTimestamp": "2026-01-01T00:00:00Z"}, "data": {"a": "1", "b": "2"}});
        assert_eq!(cells_of(KindRef::of::<ConfigMap>(), map, Time::from_secs(7)), "c | 2 | 7s");
    }

    #[test]
    fn each_kind_but_reviews_has_a_printer() {
        let printed = |kind: &KindRef| ALL.iter().copied().flatten().any(|printer| (printer.kind)() == kind);
        let without: Vec<String> = crate::api::kinds::built_in()
            .iter()
            .filter(|kind| kind.allows("list") && !printed(kind))
            .map(KindRef::qualified_resource)
            .collect();
        assert_eq!(without, Vec::<String>::new());
    }
}
