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

/// Of a static pod, kubelets report with the UID that they gave it themselves.
const MIRROR: &str = "/metadata/annotations/kubernetes.io~1config.mirror";

pub fn events(call: &mut Call<'_, '_>, item: &Item, page: &mut Page) -> Outcome {
    let kind = &*item.kind.kind;
    let uid = match text(&item.value, MIRROR) {
        "" => text(&item.value, "/metadata/uid"),
        mirrored => mirrored,
    };
    // Of pods events count whatever they call the kind.
    let about = if kind == "Pod" { String::new() } else { format!(",involvedObject.kind={kind}") };
    let mut found = about_uid(call, item, &about, uid)?;
    if kind == "Node" {
        // Kubelets report about their node without knowing its UID.
        found.extend(about_uid(call, item, &about, &item.name)?);
    }
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
    found.iter().for_each(|event| page.line(1, row(event, now)));
    Ok(())
}

fn about_uid(call: &mut Call<'_, '_>, item: &Item, about: &str, uid: &str) -> Result<Vec<Value>, Failure> {
    let Item { name, namespace, .. } = item;
    let terms =
        format!("involvedObject.name={name},involvedObject.namespace={namespace}{about},involvedObject.uid={uid}");
    let fields = FieldSelector::parse(&terms).map_err(Failure::Message)?;
    call.list(KindRef::of::<Event>(), namespace, Options { fields, ..Options::default() })
}

fn row(event: &Value, now: Time) -> String {
    let message = text(event, "/message").trim();
    let message = match text(event, "/involvedObject/fieldPath") {
        "" => message.to_owned(),
        path => format!("{path}: {message}"),
    };
    [text(event, "/type"), text(event, "/reason"), &age(event, now), from(event), &message].join("\t")
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
    moment(event, &["/eventTime", "/firstTimestamp"])
}

/// `5s`, or `5s (x3 over 10m)` for one that came several times.
pub fn age(event: &Value, now: Time) -> String {
    let since = |moment: Option<Time>| moment.map_or_else(|| "<unknown>".into(), |at| human_duration(now.since(at)));
    let count = |path: &str| event.pointer(path).and_then(Value::as_i64);
    let first = since(first_seen(event));
    if let Some(series) = event.get("series").filter(|series| series.is_object()) {
        let last = since(moment(series, &["/lastObservedTime"]));
        format!("{last} (x{} over {first})", count("/series/count").unwrap_or(0))
    } else if let Some(count) = count("/count").filter(|count| *count > 1) {
        format!("{} (x{count} over {first})", since(moment(event, &["/lastTimestamp"])))
    } else {
        first
    }
}

/// Who reported it: `kubelet, node-1` is told as its component alone.
fn from(event: &Value) -> &str {
    match text(event, "/source/component") {
        "" => text(event, "/reportingComponent"),
        component => component,
    }
}
