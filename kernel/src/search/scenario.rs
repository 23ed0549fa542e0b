//! What a search sets up: objects, the edits of people in their order, and when all is well.

use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Body, PatchType, Propagation, Request, Verb};
use cluster_core::api::{Key, Name};
use cluster_core::trace::Actor;
use serde_json::{Map, Value, json};

use crate::grading::words::Words;

/// A test of the objects of a cluster; the error says what is there instead.
pub type Test = fn(&Scene<'_>) -> Result<(), Words>;

/// A world for controllers, small enough to be searched.
#[derive(Clone)]
pub struct Scenario {
    pub name: &'static str,
    /// Created before the controllers start, in this order.
    pub start: Vec<Value>,
    /// What people and others outside do then, in this order.
    pub edits: Vec<Edit>,
    /// How many controllers are expected.
    pub controllers: usize,
    /// Loops of kube-controller-manager that take part.
    pub loops: &'static [&'static str],
    /// The specs are met. It is looked at when all has come to rest.
    pub met: Test,
    /// What must hold after every write.
    pub safe: Test,
    /// Whether the spec of this object is met now, as its status may claim with `Ready` and `observedGeneration`.
    pub ready: Option<fn(&Scene<'_>, &Value) -> bool>,
    /// How long after the last edit the controllers' own timers are followed.
    pub horizon: Duration,
    /// The same edits end alike, in whatever order things happen.
    pub confluent: bool,
    /// Without faults, so many writes that change something are enough.
    pub writes_max: Option<usize>,
    /// How often a key may be looked at within a virtual minute after the last change from outside.
    pub runs_a_minute_max: u32,
    /// Kinds that stand for things outside of the cluster, which no garbage collector knows.
    pub external: &'static [&'static str],
    /// Kinds that several may write to.
    pub shared: &'static [&'static str],
    /// Objects that belong to nobody may be taken into care.
    pub adopts: bool,
}

impl Scenario {
    /// Nothing there, nothing demanded but what holds for all controllers.
    pub fn new(name: &'static str) -> Scenario {
        Scenario {
            name,
            start: Vec::new(),
            edits: Vec::new(),
            controllers: 1,
            loops: &[],
            met: |_| Ok(()),
            safe: |_| Ok(()),
            ready: None,
            horizon: Duration::ZERO,
            confluent: true,
            writes_max: None,
            runs_a_minute_max: 30,
            external: &[],
            shared: &[],
            adopts: false,
        }
    }
}

/// Something that is done from outside.
#[derive(Clone, Debug)]
pub struct Edit {
    /// In a few words: `scale to 2`.
    pub name: Words,
    pub act: Act,
    /// It disturbs what controllers have made, rather than ask for something else.
    pub disturbs: bool,
}

#[derive(Clone, Debug)]
pub enum Act {
    Create(Value),
    /// A JSON merge patch. The object is named by `apiVersion`, `kind` and `metadata`, which stay.
    Patch(Value),
    /// The same for the status.
    PatchStatus(Value),
    Delete(Value, Propagation),
    /// Deletes the first object of this kind that somebody controls.
    DeleteOwned(Value),
    /// Time passes, counted from the edit before.
    Wait(Duration),
}

impl Edit {
    pub fn new(name: impl Into<Words>, act: Act) -> Edit {
        Edit { name: name.into(), act, disturbs: false }
    }

    pub fn disturbance(name: impl Into<Words>, act: Act) -> Edit {
        Edit { name: name.into(), act, disturbs: true }
    }
}

/// An object by its kind and name, with more fields merged in.
pub fn object(api_version: &str, kind: &str, name: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    merge(&mut object, more);
    if object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = json!("default");
    }
    object
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

impl Act {
    /// The request that does it; none for what is none. The error names a kind that the cluster does not serve.
    pub fn request(&self, cluster: &Cluster) -> Result<Option<Request>, String> {
        let (object, verb, subresource) = match self {
            Act::Create(object) => (object, Verb::Create, ""),
            Act::Patch(object) => (object, Verb::Patch(PatchType::Merge), ""),
            Act::PatchStatus(object) => (object, Verb::Patch(PatchType::Merge), "status"),
            Act::Delete(object, _) | Act::DeleteOwned(object) => (object, Verb::Delete, ""),
            Act::Wait(_) => return Ok(None),
        };
        let text = |value: &Value| Name::from(value.as_str().unwrap_or_default());
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let kind: &KindRef =
            cluster.kind(&api_version, &kind).ok_or_else(|| format!("no kind {api_version} {kind} is served"))?;
        let namespace = if kind.namespaced { text(&object["metadata"]["namespace"]) } else { Name::default() };
        let name = if verb == Verb::Create { Name::default() } else { text(&object["metadata"]["name"]) };
        let mut request = Request::new(&Actor::from("user"), verb, kind, Key::new(namespace, name));
        request.subresource = subresource;
        let mut object = object.clone();
        if let (false, Some(metadata)) = (kind.namespaced, object["metadata"].as_object_mut()) {
            metadata.remove("namespace");
        }
        match self {
            Act::Delete(_, propagation) => request.options.propagation = Some(*propagation),
            Act::DeleteOwned(_) => {
                let first = cluster.list_of(kind, &request.key.namespace).find(|object| object.controller().is_some());
                let Some(key) = first.map(|object| object.key.clone()) else { return Ok(None) };
                request.key = key;
            }
            Act::Create(_) => request.body = Body::Json(object),
            _ => {
                let names = |(name, _): &(String, Value)| name != "apiVersion" && name != "kind";
                let fields: Map<String, Value> = object
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .filter(names)
                    .collect();
                request.body = Body::Json(Value::Object(fields));
            }
        }
        Ok(Some(request))
    }
}

/// The objects of a cluster as JSON, for tests.
pub struct Scene<'a>(pub &'a Cluster);

impl Scene<'_> {
    /// The objects of a kind, in every namespace, sorted by namespace and name.
    pub fn list(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let kind = self.0.kind(api_version, kind);
        kind.into_iter().flat_map(|kind| self.0.list_of(kind, "")).map(|object| object.to_json()).collect()
    }

    /// An object of the namespace `default`, or of none.
    pub fn get(&self, api_version: &str, kind: &str, name: &str) -> Option<Value> {
        let kind = self.0.kind(api_version, kind)?;
        let namespace = if kind.namespaced { "default" } else { "" };
        self.0.store().get(kind, &Key::new(namespace, name)).map(|object| object.to_json())
    }

    /// The moment, as API objects write it.
    pub fn now(&self) -> kernetes_controller::Time {
        kernetes_controller::Time(self.0.now().timestamp().as_millisecond())
    }
}
