//! An API that another server answers for: metrics.k8s.io, of metrics-server. Nothing of it is stored here; requests are
//! passed on while an APIService says so and somebody answers.
//! <https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/>

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use serde_json::{Value, json};

use super::table::{Column, Row, Table};
use super::{ApiServer, read};
use crate::api::kind::{JSON_CODEC, Kind, KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::{Answer, List, Request, Response, Verb};
use crate::api::status::Status;
use crate::api::{Key, Name, kinds, quantity};
use crate::clock::Time;
use crate::store::Change;

pub const GROUP: &str = "metrics.k8s.io";
pub const VERSION: &str = "v1beta1";
/// The name of the APIService.
pub const API_SERVICE: &str = "v1beta1.metrics.k8s.io";
/// How far two readings lie apart.
const WINDOW: &str = "15s";

/// What was used: CPU time a second, and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    pub cpu_nanos: u64,
    pub memory_bytes: u64,
}

/// What metrics-server has to tell.
#[derive(Clone, Debug, Default)]
pub struct ResourceMetrics {
    pub at: Time,
    pub nodes: BTreeMap<Name, Usage>,
    /// By container.
    pub pods: BTreeMap<Key, Vec<(Name, Usage)>>,
}

#[derive(Clone, Default)]
pub struct Aggregation {
    /// There is an APIService.
    registered: bool,
    /// What the server behind it has; `None` if it does not answer.
    pub(crate) metrics: Option<Arc<ResourceMetrics>>,
}

impl Aggregation {
    /// The kinds that discovery tells of.
    pub fn kinds(&self) -> &'static [KindRef] {
        if self.registered { kinds() } else { &[] }
    }

    pub fn observe(&mut self, change: &Change) {
        if change.object().is::<APIService>() && *change.key().name == *API_SERVICE {
            self.registered = change.after.is_some();
        }
    }
}

pub fn kinds() -> &'static [KindRef; 2] {
    static KINDS: LazyLock<[KindRef; 2]> =
        LazyLock::new(|| [kind(0, "NodeMetrics", "nodes", false), kind(1, "PodMetrics", "pods", true)]);
    &KINDS
}

pub fn node_metrics() -> &'static KindRef {
    &kinds()[0]
}

pub fn pod_metrics() -> &'static KindRef {
    &kinds()[1]
}

fn kind(index: usize, kind: &str, resource: &str, namespaced: bool) -> KindRef {
    KindRef::new(Kind {
        slot: kinds::built_in().len() + index,
        group: GROUP.into(),
        version: VERSION.into(),
        kind: kind.into(),
        resource: resource.into(),
        singular: "".into(),
        namespaced,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: ["get", "list"].map(Name::from).to_vec(),
        subresources: Vec::new(),
        codec: JSON_CODEC,
        type_name: "".into(),
        schema: None,
        definition: None,
        warning: "".into(),
    })
}

pub fn is_of(kind: &KindRef) -> bool {
    *kind.group == *GROUP
}

/// # Errors
/// 404 if there is no such API or object, 503 if nobody answers, 405 for everything but reads.
pub fn answer(server: &ApiServer, request: &Request, now: Time) -> Result<Response, Status> {
    let name = if request.key.name.is_empty() { String::new() } else { format!(" {}", request.key.name) };
    // As client-go puts it: by the method of HTTP.
    let method = if request.verb == Verb::List { "get" } else { request.verb.as_str() };
    let asked = format!("({method} {}{name})", request.kind.qualified_resource());
    if !server.aggregation.registered {
        let missing = Status::unknown_resource();
        return Err(Status { message: format!("{} {asked}", missing.message), ..missing });
    }
    let Some(metrics) = &server.aggregation.metrics else {
        return Err(Status::unavailable(format!("the server is currently unable to handle the request {asked}")));
    };
    let kind = &request.kind;
    match request.verb {
        Verb::Get => {
            let found = objects(server, metrics, kind, now).find(|object| object.key == request.key);
            let object = found.ok_or_else(|| missing(request))?;
            Ok(Response::Object(Answer { object, created: false, deleted: false, warnings: Arc::new([]) }))
        }
        Verb::List => {
            read::check_labels(&request.options.labels)?;
            let namespace = &request.key.namespace;
            let is_meant = |object: &Object| {
                let field = |path: &str| match path {
                    "metadata.name" => Some(object.key.name.to_string().into()),
                    "metadata.namespace" => Some(object.key.namespace.to_string().into()),
                    _ => None,
                };
                (namespace.is_empty() || object.key.namespace == *namespace)
                    && request.options.labels.matches(object.metadata().labels.as_ref())
                    && request.options.fields.matches(field)
            };
            let items = objects(server, metrics, kind, now).filter(is_meant).collect();
            let (revision, continue_token) = (server.store.revision(), String::new());
            Ok(Response::List(List { kind: kind.clone(), revision, items, continue_token, remaining: None }))
        }
        _ => Err(Status::unknown_method()),
    }
}

fn missing(request: &Request) -> Status {
    let (resource, name) = match request.kind.namespaced {
        true => ("podmetrics", format!("{}/{}", request.key.namespace, request.key.name)),
        false => ("nodemetrics", request.key.name.to_string()),
    };
    let mut status = Status::not_found(&request.kind, &name);
    status.message = format!("{resource}.{GROUP} {name:?} not found");
    if let Some(details) = &mut status.details {
        details.kind = resource.into();
    }
    status
}

/// Everything that is told of nodes or pods which are still there.
fn objects<'a>(
    server: &'a ApiServer,
    metrics: &'a ResourceMetrics,
    kind: &'a KindRef,
    now: Time,
) -> impl Iterator<Item = Object> + 'a {
    let nodes = metrics.nodes.iter().filter(|_| !kind.namespaced).filter_map(move |(name, usage)| {
        let node = server.store.get(Node::kind(), &Key::cluster(name.clone()))?;
        object(kind, node, metrics.at, now, "usage", usage_json(*usage))
    });
    let pods = metrics.pods.iter().filter(|_| kind.namespaced).filter_map(move |(key, containers)| {
        let pod = server.store.get(Pod::kind(), key)?;
        let container = |(name, usage): &(Name, Usage)| json!({"name": &**name, "usage": usage_json(*usage)});
        object(kind, pod, metrics.at, now, "containers", containers.iter().map(container).collect())
    });
    nodes.chain(pods)
}

fn object(kind: &KindRef, of: &Object, at: Time, now: Time, field: &str, told: Value) -> Option<Object> {
    let mut metadata = json!({"name": &*of.key.name, "creationTimestamp": now.to_meta()});
    if !of.key.namespace.is_empty() {
        metadata["namespace"] = of.key.namespace.as_ref().into();
    }
    if let Some(labels) = &of.metadata().labels {
        metadata["labels"] = json!(labels);
    }
    let mut value = json!({"metadata": metadata, "timestamp": at.to_meta(), "window": WINDOW});
    value[field] = told;
    Object::from_json(kind, value).ok()
}

fn usage_json(usage: Usage) -> Value {
    let shown = |text: String| quantity::canonical(&text).unwrap_or(text);
    let memory = format!("{}Ki", usage.memory_bytes / 1024);
    json!({"cpu": shown(format!("{}n", usage.cpu_nanos)), "memory": shown(memory)})
}

/// As metrics-server prints them. The use of a pod is that of all its containers.
pub fn table(kind: &KindRef, objects: &[Object]) -> Table {
    let column = |(name, type_, format): (&str, &str, &str)| Column {
        name: name.into(),
        type_: type_.into(),
        format: format.into(),
        description: String::new(),
        priority: 0,
    };
    let columns = [
        ("Name", "string", "name"),
        ("cpu", "string", "quantity"),
        ("memory", "string", "quantity"),
        ("Window", "string", "duration"),
    ];
    let row = |object: &Object| {
        let value = object.to_json();
        let containers = value["containers"].as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        let sum = |resource: &str| {
            let amounts = containers.iter().filter_map(|of| of["usage"][resource].as_str());
            let amounts: Vec<_> = amounts.map(|amount| Quantity(amount.to_owned())).collect();
            Value::from(quantity::sum(amounts.iter()).0)
        };
        let cells = vec![object.key.name.as_ref().into(), sum("cpu"), sum("memory"), value["window"].clone()];
        Row { cells, conditions: Vec::new(), object: object.clone() }
    };
    Table { kind: kind.clone(), columns: columns.map(column).to_vec(), rows: objects.iter().map(row).collect() }
}
