//! What a controller is: a function from what its informers know to an ordered list of writes.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::cache::View;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::{Options, PatchType, Propagation, Request, Verb};
use crate::api::status::Status;
use crate::api::{Key, Name};
use crate::apiserver::access::tokens::TokenSigner;
use crate::clock::{Class, Time};
pub use crate::events::EventNote;
use crate::store::Change;
use crate::trace::Actor;

/// One control loop. It keeps no state of its own: what it must remember is in objects, but for what it should do less and
/// less often, and for what a restart may forget.
/// <https://kubernetes.io/docs/concepts/architecture/controller/>
pub trait Controller: Send + Sync {
    /// As the trace and events name it: `replicaset-controller`.
    fn name(&self) -> &str;

    /// Which kinds it watches, and which keys it looks at again when one of them changes.
    fn watches(&self) -> Vec<Watch>;

    /// What it reads before it decides, where nothing can be watched: the answers are in [`View::answers`].
    fn asks(&self, _key: &Key, _view: &View<'_>) -> Vec<Request> {
        Vec::new()
    }

    /// Compares what is wished with what is there, and says what to write. It gets no diff and no event, only the key.
    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan;

    /// How it watches a kind that a CustomResourceDefinition brings, if it wants to.
    fn watch_custom(&self, _kind: &KindRef) -> Option<Watch> {
        None
    }

    /// It also looks at every key that it watches this often, whether anything has happened or not.
    fn resync(&self) -> Option<Duration> {
        None
    }
}

pub struct Watch {
    pub kind: KindRef,
    pub enqueue: Enqueue,
    /// How long the keys wait before they are looked at, and whether that is work that somebody waits for.
    pub delay: fn(&View<'_>, &Change) -> (Duration, Class),
}

/// From a change to the keys that should be looked at.
pub enum Enqueue {
    /// The object itself.
    Itself,
    /// The object's controlling owner, if it is of this kind.
    Owner(KindRef),
    /// Every object of this kind, in the namespace of what changed (anywhere, if that has none).
    Each(KindRef),
    /// What this function says.
    With(fn(&View<'_>, &Change) -> Vec<Key>),
}

impl Watch {
    pub fn new(kind: &KindRef, enqueue: Enqueue) -> Watch {
        Watch { kind: kind.clone(), enqueue, delay: |_, _| (Duration::ZERO, Class::Work) }
    }

    pub fn itself(kind: &KindRef) -> Watch {
        Watch::new(kind, Enqueue::Itself)
    }

    pub fn owner(kind: &KindRef, owner: &KindRef) -> Watch {
        Watch::new(kind, Enqueue::Owner(owner.clone()))
    }

    pub fn with(kind: &KindRef, keys: fn(&View<'_>, &Change) -> Vec<Key>) -> Watch {
        Watch::new(kind, Enqueue::With(keys))
    }

    /// The same, but the keys wait so long that more changes can gather, or until it is their time.
    pub fn delayed(self, delay: fn(&View<'_>, &Change) -> (Duration, Class)) -> Watch {
        Watch { delay, ..self }
    }
}

/// What a reconcile wants done, in order. The runner stops at the first refusal and looks again later.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// Look again after this time even if nothing changes.
    pub requeue_after: Option<Duration>,
    /// The same, but for something that is under way, like a pod that is about to count as available: a cluster is
    /// not settled before.
    pub continue_after: Option<Duration>,
    /// The reconcile failed: look again with backoff, once its steps are done.
    pub error: Option<String>,
    /// Names of what it does now and should do less and less often, see [`View::backoff`].
    pub backoffs: Vec<Name>,
    /// What [`View::remembered`] gives the next time that this key is looked at.
    pub memory: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Clone, Debug)]
pub enum Step {
    Write(Box<Write>),
    /// A read before writes that could do harm if the cache lags: the plan only goes on if nothing is found.
    Absence(Box<Absence>),
    /// An Event about an object.
    Event(Box<EventNote>),
}

/// A GET that should find nothing, or nothing of this uid; or a LIST that should be empty.
#[derive(Clone, Debug)]
pub struct Absence {
    pub request: Request,
    pub uid: Option<String>,
}

/// One write. The runner fills in actor and causes.
#[derive(Clone, Debug)]
pub struct Write {
    pub request: Request,
    /// Told as an Event if the write succeeds.
    pub event: Option<EventNote>,
    /// Told as an Event, with the server's message behind it, if the write fails.
    pub failure: Option<EventNote>,
    /// A refusal with one of these reasons (or causes) is as good as success: `NotFound` for a delete.
    pub tolerated: &'static [&'static str],
    /// Written if the write is refused, before the plan is given up.
    pub confession: Option<Confession>,
    /// Puts into the object what only the holder of the key of ServiceAccounts can: a token.
    pub sign: Option<Sign>,
    /// The same, with the key of the authority of certificates.
    pub certify: Option<Certify>,
}

pub type Sign = fn(&mut Object, &dyn TokenSigner);
pub type Certify = fn(&mut Object, &dyn TokenSigner, Time);

/// A status that tells of a refusal.
#[derive(Clone, Debug)]
pub struct Confession {
    pub object: Object,
    /// Puts the refusal into the status of the object.
    pub tell: fn(&mut Object, &Status, Time),
}

impl Plan {
    /// Nothing to do.
    pub fn done() -> Plan {
        Plan::default()
    }

    pub fn failed(error: impl Into<String>) -> Plan {
        Plan { error: Some(error.into()), ..Plan::default() }
    }

    /// A request of any kind, with the reason for it. Adds to the end; the returned write can be refined.
    pub fn write(&mut self, request: Request, reason: impl Into<Cow<'static, str>>) -> &mut Write {
        let reason = Name::from(reason.into());
        let write = Write {
            request: request.because(reason),
            event: None,
            failure: None,
            tolerated: &[],
            confession: None,
            sign: None,
            certify: None,
        };
        self.steps.push(Step::Write(Box::new(write)));
        match self.steps.last_mut() {
            Some(Step::Write(write)) => write,
            _ => unreachable!("a write was just pushed"),
        }
    }

    pub fn create(&mut self, object: Object, reason: impl Into<Cow<'static, str>>) -> &mut Write {
        self.write(Request::create(&nobody(), object), reason)
    }

    pub fn update(&mut self, object: Object, reason: impl Into<Cow<'static, str>>) -> &mut Write {
        self.write(Request::update(&nobody(), object), reason)
    }

    pub fn update_status(&mut self, object: Object, reason: impl Into<Cow<'static, str>>) -> &mut Write {
        self.write(Request::update_status(&nobody(), object), reason)
    }

    pub fn patch(
        &mut self,
        object: &Object,
        patch: PatchType,
        body: Value,
        reason: impl Into<Cow<'static, str>>,
    ) -> &mut Write {
        self.write(Request::patch(&nobody(), &object.kind, object.key.clone(), patch, body), reason)
    }

    /// Deletes exactly this object (by uid). That it is already gone is no failure.
    pub fn delete(&mut self, object: &Object, reason: impl Into<Cow<'static, str>>) -> &mut Write {
        let mut request = Request::new(&nobody(), Verb::Delete, &object.kind, object.key.clone());
        request.options = Options {
            precondition_uid: Some(object.uid().to_owned()),
            propagation: Some(Propagation::Background),
            ..Options::default()
        };
        let write = self.write(request, reason);
        write.tolerated = &["NotFound"];
        write
    }

    /// Goes on only if the apiserver, too, has no object of this uid there (none at all if the uid is empty).
    pub fn unless_exists(&mut self, kind: &KindRef, key: Key, uid: &str) {
        let request = Request::new(&nobody(), Verb::Get, kind, key);
        let uid = (!uid.is_empty()).then(|| uid.to_owned());
        self.steps.push(Step::Absence(Box::new(Absence { request, uid })));
    }

    /// Goes on only if the apiserver, too, has no object of this kind in the namespace.
    pub fn unless_any(&mut self, kind: &KindRef, namespace: Name) {
        let request = Request::new(&nobody(), Verb::List, kind, Key::new(namespace, ""));
        self.steps.push(Step::Absence(Box::new(Absence { request, uid: None })));
    }

    pub fn event(&mut self, event: EventNote) {
        self.steps.push(Step::Event(Box::new(event)));
    }

    /// What the loop calls `id` is done now, and should be done less and less often.
    pub fn back_off(&mut self, id: Name) {
        self.backoffs.push(id);
    }

    /// Keeps this for the next look at the key.
    pub fn remember<T: Any + Send + Sync>(&mut self, memory: T) {
        self.memory = Some(Arc::new(memory));
    }

    /// Looks again after this time at the latest.
    pub fn requeue_after(&mut self, after: Duration) {
        self.requeue_after = Some(self.requeue_after.map_or(after, |known| known.min(after)));
    }

    /// Looks again after this time at the latest, and lets nobody think that things are settled before.
    pub fn continue_after(&mut self, after: Duration) {
        self.continue_after = Some(self.continue_after.map_or(after, |known| known.min(after)));
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.requeue_after.is_none() && self.continue_after.is_none() && self.error.is_none()
    }
}

impl Write {
    pub fn event(&mut self, event: EventNote) -> &mut Write {
        self.event = Some(event);
        self
    }

    pub fn on_failure(&mut self, event: EventNote) -> &mut Write {
        self.failure = Some(event);
        self
    }

    pub fn tolerate(&mut self, reasons: &'static [&'static str]) -> &mut Write {
        self.tolerated = reasons;
        self
    }

    pub fn sign(&mut self, sign: Sign) -> &mut Write {
        self.sign = Some(sign);
        self
    }

    pub fn sign_with_authority(&mut self, certify: Certify) -> &mut Write {
        self.certify = Some(certify);
        self
    }

    /// What the status of `object` says if this write is refused.
    pub fn confess(&mut self, object: Object, tell: fn(&mut Object, &Status, Time)) -> &mut Write {
        self.confession = Some(Confession { object, tell });
        self
    }
}

/// The actor of a planned request, until the runner signs it.
fn nobody() -> Actor {
    static NOBODY: std::sync::LazyLock<Actor> = std::sync::LazyLock::new(|| "".into());
    NOBODY.clone()
}
