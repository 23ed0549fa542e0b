//! Questions to the authorizer: `authorizer.group('apps').resource('deployments').check('create').allowed()`.
//! <https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-authorizer-library>

use std::fmt;
use std::sync::Arc;

use super::Function;
use crate::apiserver::cel::value::Value;

/// Whether somebody may do something, and why.
pub type Decide = dyn Fn(&Question) -> Decision + Send + Sync;

/// What is asked. Fields that the expression did not set are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    /// `system:serviceaccount:NAMESPACE:NAME`, if not the user of the request.
    pub service_account: Option<(String, String)>,
    pub path: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub verb: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    pub allowed: bool,
    pub reason: String,
    /// The authorizer could not tell.
    pub error: String,
}

/// A question as far as the expression has put it.
#[derive(Clone)]
pub struct Check {
    decide: Arc<Decide>,
    stage: Stage,
    question: Question,
    decision: Decision,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Start,
    Path,
    Group,
    Resource,
    Decided,
}

impl Check {
    /// What the variable `authorizer` holds.
    pub fn new(decide: Arc<Decide>) -> Check {
        Check { decide, stage: Stage::Start, question: Question::default(), decision: Decision::default() }
    }

    /// What the variable `authorizer.requestResource` holds: the resource of the request itself.
    pub fn of_resource(decide: Arc<Decide>, question: Question) -> Check {
        Check { question, stage: Stage::Resource, ..Check::new(decide) }
    }

    pub fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Start => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
            Stage::Decided => "kubernetes.authorization.Decision",
        }
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.stage, self.question)
    }
}

macro_rules! part {
    ($stage:ident, $field:ident) => {
        |args| step(args, Stage::$stage, |question, mut texts| question.$field = texts.next().unwrap_or_default())
    };
}

pub(super) const FUNCTIONS: &[Function] = &[
    ("kubernetes.authorization.Authorizer.path(string) -> kubernetes.authorization.PathCheck", part!(Path, path)),
    ("kubernetes.authorization.Authorizer.group(string) -> kubernetes.authorization.GroupCheck", part!(Group, group)),
    (
        "kubernetes.authorization.Authorizer.serviceAccount(string, string) -> kubernetes.authorization.Authorizer",
        |args| {
            step(args, Stage::Start, |question, mut texts| question.service_account = texts.next().zip(texts.next()))
        },
    ),
    (
        "kubernetes.authorization.GroupCheck.resource(string) -> kubernetes.authorization.ResourceCheck",
        part!(Resource, resource),
    ),
    (
        "kubernetes.authorization.ResourceCheck.subresource(string) -> kubernetes.authorization.ResourceCheck",
        part!(Resource, subresource),
    ),
    (
        "kubernetes.authorization.ResourceCheck.namespace(string) -> kubernetes.authorization.ResourceCheck",
        part!(Resource, namespace),
    ),
    (
        "kubernetes.authorization.ResourceCheck.name(string) -> kubernetes.authorization.ResourceCheck",
        part!(Resource, name),
    ),
    ("kubernetes.authorization.PathCheck.check(string) -> kubernetes.authorization.Decision", decide),
    ("kubernetes.authorization.ResourceCheck.check(string) -> kubernetes.authorization.Decision", decide),
    ("kubernetes.authorization.Decision.allowed() -> bool", |args| told(args, |decision| decision.allowed.into())),
    ("kubernetes.authorization.Decision.reason() -> string", |args| {
        told(args, |decision| decision.reason.as_str().into())
    }),
    ("kubernetes.authorization.Decision.errored() -> bool", |args| {
        told(args, |decision| (!decision.error.is_empty()).into())
    }),
    ("kubernetes.authorization.Decision.error() -> string", |args| {
        told(args, |decision| decision.error.as_str().into())
    }),
];

type Texts<'a> = Box<dyn Iterator<Item = String> + 'a>;

fn step(args: &[Value], stage: Stage, set: fn(&mut Question, Texts<'_>)) -> Result<Value, String> {
    let Value::Authorizer(check) = &args[0] else { return Err("no such overload".to_owned()) };
    let mut check = Check { stage, ..(**check).clone() };
    let texts = args[1..].iter().filter_map(|arg| match arg {
        Value::String(text) => Some(text.to_string()),
        _ => None,
    });
    set(&mut check.question, Box::new(texts));
    Ok(Value::Authorizer(Arc::new(check)))
}

fn decide(args: &[Value]) -> Result<Value, String> {
    let asked = step(args, Stage::Decided, |question, mut texts| question.verb = texts.next().unwrap_or_default())?;
    let Value::Authorizer(check) = &asked else { return Ok(asked) };
    let decision = (check.decide)(&check.question);
    Ok(Value::Authorizer(Arc::new(Check { decision, ..(**check).clone() })))
}

fn told(args: &[Value], of: fn(&Decision) -> Value) -> Result<Value, String> {
    match &args[0] {
        Value::Authorizer(check) => Ok(of(&check.decision)),
        _ => Err("no such overload".to_owned()),
    }
}
