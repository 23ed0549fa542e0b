//! What clients ask of the apiserver and what it answers, without the bytes of HTTP.

use std::sync::Arc;

use serde_json::Value;

use super::kind::{KindRef, Resource};
use super::object::Object;
use super::selector::{FieldSelector, Selector};
use super::user::User;
use super::{Key, Name};
use crate::cause::{Actor, Causes};

/// Every subresource of a built-in kind.
pub const SUBRESOURCES: &[&str] = &[
    "approval",
    "attach",
    "binding",
    "ephemeralcontainers",
    "eviction",
    "exec",
    "finalize",
    "log",
    "portforward",
    "proxy",
    "resize",
    "scale",
    "status",
    "token",
];

/// One request of one client.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who asks, as the trace names it: `kubectl`, `replicaset-controller`, `kubelet/node-1`.
    pub actor: Actor,
    /// Who asks, as authentication found out. `None` is a component of this process or its learner, who may do all.
    pub user: Option<Arc<User>>,
    /// What led to this request.
    pub causes: Causes,
    /// In words, for the trace: why the client does this.
    pub reason: Name,
    pub verb: Verb,
    pub kind: KindRef,
    /// Namespace and name; an empty namespace means all of them (or a cluster-scoped kind), an empty name a collection.
    pub key: Key,
    /// Empty for the object itself.
    pub subresource: &'static str,
    pub body: Body,
    pub options: Options,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch(PatchType),
    Delete,
    DeleteCollection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    Json,
    Merge,
    StrategicMerge,
    /// Server-side apply.
    Apply,
}

impl Verb {
    /// As RBAC and audit logs name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch(_) => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub enum Body {
    #[default]
    None,
    Json(Value),
    /// From clients in this process, which need no JSON.
    Object(Object),
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub dry_run: bool,
    pub field_manager: String,
    pub force: bool,
    pub field_validation: FieldValidation,
    /// What a strict reader says of the text of the body: `duplicate field "data.k"`.
    pub strict_errors: Vec<String>,
    /// The paths of all keys in the order of that text, if one stands there twice.
    pub key_order: Vec<String>,
    pub grace_period_seconds: Option<i64>,
    pub propagation: Option<Propagation>,
    /// Delete only if it still is this object.
    pub precondition_uid: Option<String>,
    pub precondition_revision: Option<u64>,
    pub labels: Selector,
    pub fields: FieldSelector,
    pub limit: Option<usize>,
    pub continue_token: String,
    pub resource_version: String,
    pub resource_version_match: String,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
}

/// What happens to fields that the kind does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// What the apiserver answers to a request that it granted.
#[derive(Clone, Debug)]
pub enum Response {
    Object(Answer),
    List(List),
}

/// One object. `created` makes it a 201; warnings go beside it.
#[derive(Clone, Debug)]
pub struct Answer {
    pub object: Object,
    pub created: bool,
    /// A delete that is over: the object is gone and this was its last state. Clients are told by a Status.
    pub deleted: bool,
    pub warnings: Arc<[String]>,
}

#[derive(Clone, Debug)]
pub struct List {
    pub kind: KindRef,
    pub revision: u64,
    pub items: Vec<Object>,
    pub continue_token: String,
    pub remaining: Option<usize>,
}

impl Response {
    /// The object of an answer about one object.
    pub fn object(self) -> Option<Object> {
        match self {
            Response::Object(answer) => Some(answer.object),
            Response::List(_) => None,
        }
    }

    pub fn items(self) -> Vec<Object> {
        match self {
            Response::List(list) => list.items,
            Response::Object(answer) => vec![answer.object],
        }
    }
}

impl Request {
    pub fn new(actor: &Actor, verb: Verb, kind: &KindRef, key: Key) -> Request {
        Request {
            actor: actor.clone(),
            user: None,
            causes: Causes::default(),
            reason: Name::default(),
            verb,
            kind: kind.clone(),
            key,
            subresource: "",
            body: Body::None,
            options: Options::default(),
        }
    }

    pub fn get<K: Resource>(actor: &Actor, namespace: &str, name: &str) -> Request {
        Request::new(actor, Verb::Get, K::kind(), Key::new(namespace, name))
    }

    pub fn list<K: Resource>(actor: &Actor, namespace: &str) -> Request {
        Request::new(actor, Verb::List, K::kind(), Key::new(namespace, ""))
    }

    pub fn create(actor: &Actor, object: Object) -> Request {
        let (kind, key) = (object.kind.clone(), Key::new(object.key.namespace.clone(), Name::default()));
        Request { body: Body::Object(object), ..Request::new(actor, Verb::Create, &kind, key) }
    }

    /// Writes everything but the status.
    pub fn update(actor: &Actor, object: Object) -> Request {
        let (kind, key) = (object.kind.clone(), object.key.clone());
        Request { body: Body::Object(object), ..Request::new(actor, Verb::Update, &kind, key) }
    }

    pub fn update_status(actor: &Actor, object: Object) -> Request {
        Request { subresource: "status", ..Request::update(actor, object) }
    }

    pub fn patch(actor: &Actor, kind: &KindRef, key: Key, patch: PatchType, body: Value) -> Request {
        Request { body: Body::Json(body), ..Request::new(actor, Verb::Patch(patch), kind, key) }
    }

    pub fn delete(actor: &Actor, kind: &KindRef, key: Key) -> Request {
        Request::new(actor, Verb::Delete, kind, key)
    }

    pub fn because(mut self, reason: impl Into<Name>) -> Request {
        self.reason = reason.into();
        self
    }

    pub fn caused_by(mut self, causes: Causes) -> Request {
        self.causes = causes;
        self
    }
}
