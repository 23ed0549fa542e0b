//! What the expressions of policies can name, and what these names stand for in a request.
//! <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#validation-expression>

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Map, Value as Json, json};

use super::expressions::Expression;
use super::{Attributes, Operation};
use crate::api::Key;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::Request;
use crate::api::user::User;
use crate::apiserver::ApiServer;
use crate::apiserver::access::{self, Target};
use crate::apiserver::cel::library::authorizer::{Check, Decide, Decision, Question};
use crate::apiserver::cel::types::{ObjectType, Type};
use crate::apiserver::cel::value::Value;
use crate::apiserver::cel::{Activation, Budget, Environment, Error};

/// The names and their types. `variables` are those that the policy defines before.
pub fn environment(has_params: bool, variables: Option<BTreeMap<String, Type>>) -> Environment<'static> {
    let authorizer = Type::Opaque("kubernetes.authorization.Authorizer");
    let mut names = vec![
        ("object", Type::Dyn),
        ("oldObject", Type::Dyn),
        ("request", request_type()),
        ("namespaceObject", namespace_type()),
        ("authorizer", authorizer),
        ("authorizer.requestResource", Type::Opaque("kubernetes.authorization.ResourceCheck")),
    ];
    if has_params {
        names.push(("params", Type::Dyn));
    }
    if let Some(fields) = variables {
        names.push(("variables", Type::Object(Arc::new(ObjectType { name: "kubernetes.variables".into(), fields }))));
    }
    Environment::new(names)
}

fn request_type() -> Type {
    let kind = |name: &str, field: &'static str| {
        Type::object(name, [("group", Type::String), ("version", Type::String), (field, Type::String)])
    };
    let group_kind = kind("kubernetes.GroupVersionKind", "kind");
    let resource = kind("kubernetes.GroupVersionResource", "resource");
    let user = Type::object(
        "kubernetes.UserInfo",
        [
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", Type::list(Type::String)),
            ("extra", Type::map(Type::list(Type::String))),
        ],
    );
    Type::object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", group_kind.clone()),
            ("resource", resource.clone()),
            ("subResource", Type::String),
            ("requestKind", group_kind),
            ("requestResource", resource),
            ("requestSubResource", Type::String),
            ("name", Type::String),
            ("namespace", Type::String),
            ("operation", Type::String),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

fn namespace_type() -> Type {
    let texts = || Type::map(Type::String);
    let metadata = [
        ("name", Type::String),
        ("generateName", Type::String),
        ("namespace", Type::String),
        ("labels", texts()),
        ("annotations", texts()),
        ("UID", Type::String),
        ("creationTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("deletionTimestamp", Type::Timestamp),
        ("generation", Type::Int),
        ("resourceVersion", Type::String),
        ("finalizers", Type::list(Type::String)),
    ];
    let condition = [
        ("status", Type::String),
        ("type", Type::String),
        ("lastTransitionTime", Type::Timestamp),
        ("message", Type::String),
        ("reason", Type::String),
    ];
    let condition = Type::object("kubernetes.NamespaceCondition", condition);
    let spec = Type::object("kubernetes.NamespaceSpec", [("finalizers", Type::list(Type::String))]);
    let status = [("conditions", Type::list(condition)), ("phase", Type::String)];
    Type::object(
        "kubernetes.Namespace",
        [
            ("metadata", Type::object("kubernetes.NamespaceMetadata", metadata)),
            ("spec", spec),
            ("status", Type::object("kubernetes.NamespaceStatus", status)),
        ],
    )
}

/// What a request shows to expressions, whichever the policy.
#[derive(Clone)]
pub struct Shown {
    object: Value,
    old: Value,
    request: Value,
    namespace: Value,
    decide: Arc<Decide>,
    /// What the request is about, as the authorizer sees it.
    resource: Question,
}

impl Shown {
    pub fn of(server: &ApiServer, attributes: &Attributes<'_>, object: Option<&Object>) -> Shown {
        let seen = |object: Option<&Object>| object.map_or(Value::Null, |object| Value::from_json(&object.to_json()));
        Shown {
            object: seen(object),
            old: seen(attributes.old),
            request: Value::from_json(&request_json(attributes, object)),
            namespace: namespace_of(server, attributes, object).map_or(Value::Null, namespace_value),
            decide: authorizer(server, attributes.request),
            resource: resource(attributes, object),
        }
    }

    /// The same request with another object.
    pub fn with_object(&self, object: &Json) -> Shown {
        Shown { object: Value::from_json(object), ..self.clone() }
    }
}

/// The namespace of the object.
pub fn namespace_of<'a>(
    server: &'a ApiServer,
    attributes: &Attributes<'_>,
    object: Option<&Object>,
) -> Option<&'a Object> {
    let name = object.or(attributes.old).map(|object| object.key.namespace.clone())?;
    server.store.get(KindRef::of::<Namespace>(), &Key::cluster(name))
}

fn namespace_value(namespace: &Object) -> Value {
    let mut json = namespace.to_json();
    if let Some(Json::Object(metadata)) = json.get_mut("metadata") {
        metadata.retain(|field, _| !matches!(field.as_str(), "managedFields" | "uid" | "ownerReferences"));
        metadata.insert("UID".into(), namespace.uid().into());
    }
    Value::from_json(&json)
}

/// The request as admission sees it. Empty fields are not there.
fn request_json(attributes: &Attributes<'_>, object: Option<&Object>) -> Json {
    let request = attributes.request;
    let kind = &request.kind;
    let group_kind = json!({"group": &*kind.group, "version": &*kind.version, "kind": &*kind.kind});
    let resource = json!({"group": &*kind.group, "version": &*kind.version, "resource": &*kind.resource});
    let mut fields = Map::new();
    fields.insert("kind".into(), group_kind.clone());
    fields.insert("resource".into(), resource.clone());
    fields.insert("requestKind".into(), group_kind);
    fields.insert("requestResource".into(), resource);
    let key = object.or(attributes.old).map_or_else(|| request.key.clone(), |object| object.key.clone());
    for (field, text) in [
        ("subResource", request.subresource),
        ("requestSubResource", request.subresource),
        ("name", &key.name),
        ("namespace", &key.namespace),
    ] {
        if !text.is_empty() {
            fields.insert(field.into(), text.into());
        }
    }
    fields.insert("operation".into(), attributes.operation.as_str().into());
    fields.insert("userInfo".into(), user_info(request));
    fields.insert("dryRun".into(), request.options.dry_run.into());
    fields.insert("options".into(), options(attributes));
    Json::Object(fields)
}

/// Who asks. A request without a user comes from the cluster's administrator.
fn user_info(request: &Request) -> Json {
    request.user.as_ref().map_or_else(|| User::administrator().to_json(), |user| user.to_json())
}

fn options(attributes: &Attributes<'_>) -> Json {
    let kind = match attributes.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return Json::Null,
    };
    let mut options = json!({"apiVersion": "meta.k8s.io/v1", "kind": kind});
    let manager = &attributes.request.options.field_manager;
    if !manager.is_empty() {
        options["fieldManager"] = manager.as_str().into();
    }
    options
}

/// The values of all names while one policy looks at a request.
pub struct Scene<'a> {
    pub shown: Shown,
    /// `None` without parameters.
    pub params: Option<Value>,
    variables: &'a [(String, Expression)],
    /// Variables are computed when they are first used.
    computed: RefCell<BTreeMap<String, Result<Value, Error>>>,
}

impl<'a> Scene<'a> {
    pub fn new(shown: Shown, params: Option<Value>, variables: &'a [(String, Expression)]) -> Scene<'a> {
        Scene { shown, params, variables, computed: RefCell::default() }
    }
}

impl Activation for Scene<'_> {
    fn variable(&self, name: &str, budget: &Budget) -> Option<Result<Value, Error>> {
        let known = match name {
            "object" => &self.shown.object,
            "oldObject" => &self.shown.old,
            "request" => &self.shown.request,
            "namespaceObject" => &self.shown.namespace,
            "params" => self.params.as_ref().unwrap_or(&Value::Null),
            "authorizer" => {
                return Some(Ok(Value::Authorizer(Arc::new(Check::new(self.shown.decide.clone())))));
            }
            "authorizer.requestResource" => {
                let check = Check::of_resource(self.shown.decide.clone(), self.shown.resource.clone());
                return Some(Ok(Value::Authorizer(Arc::new(check))));
            }
            other => {
                let variable = other.strip_prefix("variables.")?;
                if let Some(known) = self.computed.borrow().get(variable) {
                    return Some(known.clone());
                }
                let (_, expression) = self.variables.iter().find(|(known, _)| known == variable)?;
                let value = expression.evaluate(self, budget).map_err(|error| {
                    let text = format!("composited variable \"{variable}\" fails to evaluate: {error}");
                    if let Error::Failed(_) = error { Error::Failed(text) } else { error }
                });
                self.computed.borrow_mut().insert(variable.to_owned(), value.clone());
                return Some(value);
            }
        };
        Some(Ok(known.clone()))
    }
}

/// Asks for the user of the request, or for the service account that the expression names, by the roles of this moment.
fn authorizer(server: &ApiServer, request: &Request) -> Arc<Decide> {
    let server = server.clone();
    let user = request.user.as_deref().cloned().unwrap_or_else(User::administrator);
    Arc::new(move |question| {
        let account = question.service_account.as_ref().map(|(namespace, name)| User::service_account(namespace, name));
        let Question { group, resource, subresource, namespace, name, .. } = question;
        let target = match question.path.as_str() {
            "" => Target::resource(group, resource, subresource, namespace, name),
            path => Target::Path(path.into()),
        };
        let asked = access::Attributes { verb: question.verb.clone(), target };
        match access::authorize(&server, account.as_ref().unwrap_or(&user), &asked) {
            access::Decision::Allowed(reason) => Decision { allowed: true, reason, ..Decision::default() },
            access::Decision::NoOpinion(reason) => Decision { reason, ..Decision::default() },
        }
    })
}

fn resource(attributes: &Attributes<'_>, object: Option<&Object>) -> Question {
    let request = attributes.request;
    let key = object.or(attributes.old).map_or(&request.key, |object| &object.key);
    Question {
        group: request.kind.group.to_string(),
        resource: request.kind.resource.to_string(),
        subresource: request.subresource.into(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        ..Question::default()
    }
}
