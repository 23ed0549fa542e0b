//! Events: what components tell about objects, with repeats counted instead of written again.
//! <https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/>

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use serde_json::json;

use crate::HashMap;
use crate::api::event::EventFields;
use crate::api::kind::KindRef;
use crate::api::object::{Object, Part};
use crate::api::request::{PatchType, Request};
use crate::api::{Key, Name};
use crate::clock::Time;
use crate::faults::node_of;
use crate::trace::Actor;

/// So many Events of one source about one object may come at once; then one every five minutes.
const BURST: f64 = 25.0;
const REFILL_SECONDS: f64 = 300.0;
/// From so many different messages of one reason on, within ten minutes, they are combined into one Event.
const SIMILAR_MAX: usize = 10;
const SIMILAR_WINDOW: Duration = Duration::from_secs(600);

/// Counts repeats, combines similar Events and drops floods, as client-go's correlator does.
/// <https://pkg.go.dev/k8s.io/client-go/tools/record#EventCorrelator>
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// By the uid of the object that they tell about.
    sources: HashMap<Name, Arc<Vec<Source>>>,
    written: u64,
}

#[derive(Clone, Debug)]
struct Source {
    actor: Actor,
    tokens: f64,
    refilled: Time,
    groups: Vec<Group>,
}

/// Events of one source about one object with one reason.
#[derive(Clone, Debug)]
struct Group {
    warning: bool,
    reason: &'static str,
    last: Time,
    told: Vec<Told>,
    /// The Event into which further ones are combined.
    combined: Option<Box<Known>>,
}

#[derive(Clone, Debug)]
struct Told {
    /// The Event as it was first written, for its message.
    event: Part,
    /// It counts towards what is combined.
    fresh: bool,
    known: Known,
}

#[derive(Clone, Debug)]
struct Known {
    key: Key,
    count: i32,
}

impl Recorder {
    /// The request that records a note: a new Event, or a higher count on the one that said the same; nothing if its
    /// source has told too much.
    pub fn request(&mut self, actor: &Actor, note: &EventNote, now: Time) -> Option<Request> {
        let sources = Arc::make_mut(self.sources.get_or_default(note.regarding.uid().into()));
        let known = sources.iter().position(|source| source.actor == *actor);
        let index = known.unwrap_or_else(|| {
            push(sources, Source { actor: actor.clone(), tokens: BURST, refilled: now, groups: Vec::new() })
        });
        let source = &mut sources[index];
        let flooded = note.action.is_empty() && !source.accept(now);
        let group = source.group(note, now);
        if let Some(told) = group.told.iter_mut().find(|told| told.says(&note.message)) {
            told.fresh = true;
            if note.once || flooded {
                return None;
            }
            return Some(seen_again(actor, &mut told.known, note, None, now));
        }
        let similar = group.told.iter().filter(|told| told.fresh).count() + 1;
        let combine = note.action.is_empty() && similar >= SIMILAR_MAX;
        if flooded {
            return None;
        }
        let message = if combine { format!("(combined from similar events): {}", note.message) } else { String::new() };
        if let Some(known) = group.combined.as_mut().filter(|_| combine) {
            return Some(seen_again(actor, known, note, Some(&message), now));
        }
        self.written += 1;
        let object = match combine {
            true => new_event(actor, &EventNote { message, ..note.clone() }, now, self.written),
            false => new_event(actor, note, now, self.written),
        };
        let known = Known { key: object.key.clone(), count: 1 };
        if combine {
            group.combined = Some(Box::new(known));
        } else {
            push(&mut group.told, Told { event: object.spec_part().clone(), fresh: true, known });
        }
        Some(Request::create(actor, object).because(note.reason))
    }
}

impl Source {
    /// Takes a token, if there is one.
    fn accept(&mut self, now: Time) -> bool {
        let refill = now.since(self.refilled).as_secs_f64() / REFILL_SECONDS;
        self.tokens = (self.tokens + refill).min(BURST);
        self.refilled = now;
        let accepted = self.tokens >= 1.0;
        if accepted {
            self.tokens -= 1.0;
        }
        accepted
    }

    fn group(&mut self, note: &EventNote, now: Time) -> &mut Group {
        let known = self.groups.iter().position(|group| group.reason == note.reason && group.warning == note.warning);
        let index = known.unwrap_or_else(|| {
            let (warning, reason) = (note.warning, note.reason);
            push(&mut self.groups, Group { warning, reason, last: now, told: Vec::new(), combined: None })
        });
        let group = &mut self.groups[index];
        if now.since(group.last) > SIMILAR_WINDOW {
            group.told.iter_mut().for_each(|told| told.fresh = false);
        }
        group.last = now;
        group
    }
}

impl Told {
    fn says(&self, message: &str) -> bool {
        let event = self.event.downcast_ref::<EventFields>();
        event.and_then(|event| event.message.as_deref()).unwrap_or_default() == message
    }
}

/// Adds to a list that most often has one entry, without the room for more, and says where the entry is.
fn push<T>(list: &mut Vec<T>, entry: T) -> usize {
    list.reserve_exact(1);
    list.push(entry);
    list.len() - 1
}

/// Counts one more on an Event that is there, perhaps with a new message.
fn seen_again(actor: &Actor, known: &mut Known, note: &EventNote, message: Option<&str>, now: Time) -> Request {
    known.count += 1;
    let mut body = if note.action.is_empty() {
        json!({"count": known.count, "lastTimestamp": now.to_meta()})
    } else {
        json!({"series": {"count": known.count, "lastObservedTime": now.to_micro_time()}})
    };
    if let Some(message) = message {
        body["message"] = message.into();
    }
    let kind = KindRef::of::<Event>();
    Request::patch(actor, kind, known.key.clone(), PatchType::Merge, body).because("seen again")
}

fn new_event(actor: &Actor, note: &EventNote, now: Time, serial: u64) -> Object {
    let regarding = &note.regarding;
    let namespace = if regarding.key.namespace.is_empty() { "default" } else { &regarding.key.namespace };
    let nanos = now.timestamp().as_nanosecond() as u64 + serial % 1000;
    let name = format!("{}.{nanos:x}", regarding.key.name);
    let own = actor.split('/').next();
    let component = note.source.as_deref().or(own).unwrap_or_default().to_owned();
    let event = EventFields {
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
        ..EventFields::default()
    };
    let event = if note.action.is_empty() {
        recorded_as_core(event, component, node_of(actor), now)
    } else {
        recorded_as_events(event, component, note.action, now)
    };
    Object::new::<Event>(namespace, &name, event)
}

/// As client-go's older recorder writes them.
fn recorded_as_core(event: EventFields, component: String, host: Option<&str>, now: Time) -> EventFields {
    EventFields {
        source: Some(EventSource { component: Some(component.clone()), host: host.map(str::to_owned) }),
        reporting_component: Some(component),
        first_timestamp: Some(now.to_meta()),
        last_timestamp: Some(now.to_meta()),
        count: Some(1),
        ..event
    }
}

/// As its newer one does, for components that use `events.k8s.io`.
fn recorded_as_events(event: EventFields, component: String, action: &str, now: Time) -> EventFields {
    EventFields {
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
    pub source: Option<Name>,
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

    pub fn from(self, source: impl Into<Name>) -> EventNote {
        EventNote { source: Some(source.into()), ..self }
    }

    pub fn once(self) -> EventNote {
        EventNote { once: true, ..self }
    }

    pub fn doing(self, action: &'static str) -> EventNote {
        EventNote { action, ..self }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::api::request::{Body, Verb};

    fn told(recorder: &mut Recorder, message: &str, at: u64) -> Option<(Verb, String)> {
        let pod = Object::new::<Pod>("default", "web", Default::default());
        let note = EventNote::normal(&pod, "Created", message);
        let request = recorder.request(&"kubelet/node-1".into(), &note, Time::from_secs(at))?;
        let text = match &request.body {
            Body::Object(object) => object.spec::<Event>().message.clone().unwrap_or_default(),
            Body::Json(patch) => patch["count"].to_string(),
            Body::None => String::new(),
        };
        Some((request.verb, text))
    }

    #[test]
    fn a_repeat_is_counted() {
        let mut recorder = Recorder::default();
        assert_eq!(told(&mut recorder, "a", 0), Some((Verb::Create, "a".into())));
        assert_eq!(told(&mut recorder, "a", 1), Some((Verb::Patch(PatchType::Merge), "2".into())));
    }

    #[test]
    fn many_alike_are_combined_and_a_flood_is_dropped() {
        let mut recorder = Recorder::default();
        for number in 0..9 {
            assert_eq!(told(&mut recorder, &number.to_string(), 0).unwrap().0, Verb::Create);
        }
        let combined = Some((Verb::Create, "(combined from similar events): 9".into()));
        assert_eq!(told(&mut recorder, "9", 0), combined);
        let passed = (10..40).filter(|number| told(&mut recorder, &number.to_string(), 0).is_some()).count();
        assert_eq!(passed, 15, "25 at once");
        assert!(told(&mut recorder, "later", 299).is_none());
        assert!(told(&mut recorder, "later", 301).is_some(), "then one every five minutes");
    }
}
