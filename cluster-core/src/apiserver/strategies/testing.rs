//! One kind of an API without controllers, for the tests of strategies.

use serde_json::Value;

use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::request::{Body, PatchType, Request, Response, Verb};
use crate::api::status::Status;
use crate::{Cluster, Config};

pub struct Api {
    cluster: Cluster,
    kind: KindRef,
}

impl Api {
    pub fn new<K: Resource>() -> Api {
        Api { cluster: Cluster::new(Config { nodes: 0, ..Config::default() }), kind: K::kind().clone() }
    }

    /// The same cluster through another kind.
    pub fn of<K: Resource>(self) -> Api {
        Api { kind: K::kind().clone(), ..self }
    }

    fn key(&self, name: &str) -> Key {
        Key::new(if self.kind.namespaced { "default" } else { "" }, name)
    }

    pub fn send(&mut self, verb: Verb, name: &str, subresource: &'static str, body: Value) -> Result<Value, Status> {
        let mut request = Request::new(&"kubectl".into(), verb, &self.kind, self.key(name));
        request.body = Body::Json(body);
        request.subresource = subresource;
        match self.cluster.request(request)? {
            Response::Object(answer) => Ok(answer.object.to_json()),
            Response::List(list) => Ok(list.items.iter().map(|object| object.to_json()).collect()),
        }
    }

    pub fn create(&mut self, object: Value) -> Result<Value, Status> {
        self.send(Verb::Create, "", "", object)
    }

    pub fn get(&mut self, name: &str) -> Result<Value, Status> {
        self.send(Verb::Get, name, "", Value::Null)
    }

    pub fn put(&mut self, object: Value) -> Result<Value, Status> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.send(Verb::Update, &name, "", object)
    }

    pub fn merge(&mut self, name: &str, patch: Value) -> Result<Value, Status> {
        self.send(Verb::Patch(PatchType::Merge), name, "", patch)
    }

    pub fn merge_status(&mut self, name: &str, patch: Value) -> Result<Value, Status> {
        self.send(Verb::Patch(PatchType::Merge), name, "status", patch)
    }

    pub fn delete(&mut self, name: &str) -> Result<Value, Status> {
        self.send(Verb::Delete, name, "", Value::Null)
    }

    /// What is wrong with a new object.
    pub fn refusal(&mut self, object: Value) -> Vec<String> {
        told(self.create(object))
    }

    /// What is wrong with a change.
    pub fn merge_refusal(&mut self, name: &str, patch: Value) -> Vec<String> {
        told(self.merge(name, patch))
    }
}

/// Each cause with its field; the message where there are none.
pub fn told(answer: Result<Value, Status>) -> Vec<String> {
    match answer {
        Ok(_) => Vec::new(),
        Err(status) if status.causes().is_empty() => vec![status.message],
        Err(status) => status.causes().iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect(),
    }
}
