//! Events: what components tell about objects, with repeats counted instead of written again.
//! <https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/>

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use serde_json::json;

use crate::HashMap;
use crate::api::Key;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::{PatchType, Request};
use crate::clock::Time;
use crate::faults::node_of;
use crate::trace::Actor;

/// Finds the Event that an equal one was written to before, as client-go's correlator does.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    known: HashMap<Identity, Known>,
}

/// What makes two Events the same: source, object, type, reason, message.
type Identity = (Actor, String, &'static str, String);

#[derive(Clone, Debug)]
struct Known {
    key: Key,
    count: i32,
}

impl Recorder {
    /// The request that records a note: a new Event, or a higher count on the one that said the same.
    pub fn request(&mut self, actor: &Actor, note: &EventNote, now: Time) -> Option<Request> {
        let identity = (actor.clone(), note.regarding.uid().to_owned(), note.reason, note.message.clone());
        if let Some(known) = self.known.get_mut(&identity) {
            if note.once {
                return None;
            }
            known.count += 1;
            let body = if note.action.is_empty() {
                json!({"count": known.count, "lastTimestamp": now.to_meta()})
            } else {
                json!({"series": {"count": known.count, "lastObservedTime": now.to_micro_time()}})
            };
            let kind = KindRef::of::<Event>();
            return Some(Request::patch(actor, kind, known.key.clone(), PatchType::Merge, body).because("seen again"));
        }
        let object = new_event(actor, note, now, self.known.len() as u64);
        self.known.insert(identity, Known { key: object.key.clone(), count: 1 });
        Some(Request::create(actor, object).because(note.reason))
    }
}

fn new_event(actor: &Actor, note: &EventNote, now: Time, serial: u64) -> Object {
    let regarding = &note.regarding;
    let namespace = if regarding.key.namespace.is_empty() { "default" } else { &regarding.key.namespace };
    let nanos = now.timestamp().as_nanosecond() as u64 + serial % 1000;
    let name = format!("{}.{nanos:x}", regarding.key.name);
    let component = note.source.or(actor.split('/').next()).unwrap_or_default().to_owned();
    let event = Event {
        involved_object: ObjectReference {
            api_version: Some(regarding.kind.api_version()),
            kind: Some(regarding.kind.kind.to_string()),
            name: Some(regarding.key.name.to_string()),
            namespace: (!regarding.key.namespace.is_empty()).then(|| regarding.key.namespace.to_string()),
            uid: Some(regarding.uid().to_owned()),
            resource_version: (regarding.revision > 0).then(|| regarding.revision.to_string()),
            field_path: None,
        },
        reason: Some(note.reason.into()),
        message: Some(note.message.clone()),
        type_: Some(if note.warning { "Warning" } else { "Normal" }.into()),
        ..Event::default()
    };
    let event = if note.action.is_empty() {
        recorded_as_core(event, component, node_of(actor), now)
    } else {
        recorded_as_events(event, component, note.action, now)
    };
    Object::new::<Event>(namespace, &name, event)
}

/// As client-go's older recorder writes them.
fn recorded_as_core(event: Event, component: String, host: Option<&str>, now: Time) -> Event {
    Event {
        source: Some(EventSource { component: Some(component.clone()), host: host.map(str::to_owned) }),
        reporting_component: Some(component),
        first_timestamp: Some(now.to_meta()),
        last_timestamp: Some(now.to_meta()),
        count: Some(1),
        ..event
    }
}

/// As its newer one does, for components that use `events.k8s.io`.
fn recorded_as_events(event: Event, component: String, action: &str, now: Time) -> Event {
    Event {
        action: Some(action.to_owned()),
        event_time: Some(now.to_micro_time()),
        reporting_instance: Some(format!("{component}-control-plane")),
        reporting_component: Some(component),
        source: Some(EventSource::default()),
        ..event
    }
}

/// An Event to be recorded. `{}` in the message stands for the name of the object that was written.
#[derive(Clone, Debug)]
pub struct EventNote {
    pub regarding: Object,
    pub warning: bool,
    pub reason: &'static str,
    pub message: String,
    /// Who tells it, if not the controller under its own name.
    pub source: Option<&'static str>,
    /// Told again, it does not even count.
    pub once: bool,
    /// What was being done. A component that says this writes Events of `events.k8s.io`, as kube-scheduler does.
    pub action: &'static str,
}

impl EventNote {
    pub fn normal(regarding: &Object, reason: &'static str, message: impl Into<String>) -> EventNote {
        let (regarding, message) = (regarding.clone(), message.into());
        EventNote { regarding, warning: false, reason, message, source: None, once: false, action: "" }
    }

    pub fn warning(regarding: &Object, reason: &'static str, message: impl Into<String>) -> EventNote {
        EventNote { warning: true, ..EventNote::normal(regarding, reason, message) }
    }

    pub fn from(self, source: &'static str) -> EventNote {
        EventNote { source: Some(source), ..self }
    }

    pub fn once(self) -> EventNote {
        EventNote { once: true, ..self }
    }

    pub fn doing(self, action: &'static str) -> EventNote {
        EventNote { action, ..self }
    }
}
