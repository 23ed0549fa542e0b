//! Events, of the core group and of events.k8s.io.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::events::v1 as events;
use serde_json::Value;

use super::age::since;
use super::{cells, printers};
use crate::api::object::Object;
use crate::clock::Time;

printers! {
    core::Event: "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name*" => event,
    events::Event: "Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name*" => new_event,
}

fn ago(at: Option<Time>, now: Time) -> String {
    at.map_or_else(|| "<unknown>".into(), |at| since(at, now))
}

/// `Pod web` becomes `pod/web`.
fn about(reference: &core::ObjectReference) -> String {
    format!(
        "{}/{}",
        reference.kind.as_deref().unwrap_or_default().to_lowercase(),
        reference.name.as_deref().unwrap_or_default()
    )
}

fn source(component: &str, host: &str) -> String {
    if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") }
}

fn event(object: &Object, now: Time) -> Vec<Value> {
    let event = object.spec::<core::Event>();
    let started = event.event_time.as_ref().map(Time::from);
    let first = event.first_timestamp.as_ref().map(Time::from).or(started);
    let series = event.series.as_ref();
    let last = match series.and_then(|series| series.last_observed_time.as_ref()) {
        Some(time) => Some(Time::from(time)),
        None => event.last_timestamp.as_ref().map(Time::from).or(first),
    };
    let from = event.source.as_ref();
    let component = from.and_then(|source| source.component.as_deref()).filter(|component| !component.is_empty());
    let component = component.or(event.reporting_component.as_deref()).unwrap_or_default();
    let host = from.and_then(|source| source.host.as_deref()).filter(|host| !host.is_empty());
    let instance = host.or(event.reporting_instance.as_deref()).unwrap_or_default();
    cells![
        ago(last, now),
        event.type_.as_deref().unwrap_or_default(),
        event.reason.as_deref().unwrap_or_default(),
        about(&event.involved_object),
        event.involved_object.field_path.as_deref().unwrap_or_default(),
        source(component, instance),
        event.message.as_deref().unwrap_or_default().trim(),
        ago(first, now),
        series.and_then(|series| series.count).or(event.count).unwrap_or(1).to_string(),
        &*object.key.name,
    ]
}

fn new_event(object: &Object, now: Time) -> Vec<Value> {
    let event = object.spec::<events::Event>();
    let started = event.event_time.as_ref().map(Time::from);
    let first = event.deprecated_first_timestamp.as_ref().map(Time::from).or(started);
    let series = event.series.as_ref();
    let last = series.map(|series| Time::from(&series.last_observed_time));
    let last = last.or(event.deprecated_last_timestamp.as_ref().map(Time::from)).or(first);
    let regarding = event.regarding.clone().unwrap_or_default();
    cells![
        ago(last, now),
        event.type_.as_deref().unwrap_or_default(),
        event.reason.as_deref().unwrap_or_default(),
        about(&regarding),
        regarding.field_path.unwrap_or_default(),
        source(
            event.reporting_controller.as_deref().unwrap_or_default(),
            event.reporting_instance.as_deref().unwrap_or_default(),
        ),
        event.note.as_deref().unwrap_or_default().trim(),
        ago(first, now),
        series.map(|series| series.count).or(event.deprecated_count).unwrap_or(1).to_string(),
        &*object.key.name,
    ]
}
