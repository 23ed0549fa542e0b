//! The events at the end of a description.

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use cluster_core::api::selector::FieldSelector;
use cluster_core::apiserver::table::human_duration;
use cluster_core::clock::Time;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::super::failure::{Failure, Outcome};
use super::super::resources::Item;
use super::super::verb::Call;
use super::{Page, text};

pub fn events(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let kind = &item.kind.kind;
    // Kubelets report about their node without knowing its UID.
    let uid = if &**kind == "Node" { &item.name } else { text(&item.value, "/metadata/uid") };
    let terms = format!("involvedObject.name={},involvedObject.kind={kind},involvedObject.uid={uid}", item.name);
    let fields = FieldSelector::parse(&terms).map_err(Failure::Message)?;
    let options = Options { fields, ..Options::default() };
    let mut found = call.list(KindRef::of::<Event>(), &item.namespace, options)?;
    if found.is_empty() {
        page.field(0, "Events", "<none>");
        return Ok(());
    }
    // As kubectl sorts them: those of events.k8s.io, which have no such field, come first.
    found.sort_by_key(|event| moment(event, &["/lastTimestamp"]));
    let now = call.context.api.now();
    page.line(0, "Events:");
    page.line(1, "Type\tReason\tAge\tFrom\tMessage");
    page.line(1, "----\t------\t----\t----\t-------");
    for event in &found {
        page.line(
            1,
            [
                text(event, "/type"),
                text(event, "/reason"),
                &age(event, now),
                &from(event),
                text(event, "/message").trim(),
            ]
            .join("\t"),
        );
    }
    Ok(())
}

fn moment(event: &Value, fields: &[&str]) -> Option<Time> {
    let found = fields.iter().find_map(|field| event.pointer(field).and_then(Value::as_str));
    found.and_then(|text| text.parse().ok()).map(Time::from_timestamp)
}

/// When an event was last seen.
pub fn last_seen(event: &Value) -> Option<Time> {
    moment(event, &["/series/lastObservedTime", "/lastTimestamp", "/firstTimestamp", "/eventTime"])
}

fn first_seen(event: &Value) -> Option<Time> {
    moment(event, &["/firstTimestamp", "/eventTime"])
}

/// `5s`, or `5s (x3 over 10m)` for one that came several times.
pub fn age(event: &Value, now: Time) -> String {
    let since = |moment: Option<Time>| moment.map_or_else(|| "<unknown>".into(), |at| human_duration(now.since(at)));
    let count = event.pointer("/series/count").or(event.get("count")).and_then(Value::as_i64).unwrap_or(1);
    match count > 1 {
        true => format!("{} (x{count} over {})", since(last_seen(event)), since(first_seen(event))),
        false => since(first_seen(event)),
    }
}

/// Who reported it: `kubelet, node-1` is told as its component alone.
fn from(event: &Value) -> String {
    match text(event, "/source/component") {
        "" => text(event, "/reportingComponent").to_owned(),
        component => component.to_owned(),
    }
}
