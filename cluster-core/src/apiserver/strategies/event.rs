//! Events. They are kept as core/v1; `versions` converts from and to events.k8s.io/v1, which asks for more.
//! <https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/>

use k8s_openapi::api::core::v1::{Event, EventSeries};

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::names;

const TEXT_BYTES_MAX: usize = 128;
const NOTE_BYTES_MAX: usize = 1024;

pub struct Rules;

impl Strategy for Rules {
    fn check_name(&self, name: &str) -> Vec<String> {
        names::path_segment(name)
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        common(&mut causes, object, "reportingComponent");
        causes.into()
    }

    fn creates_on_update(&self) -> bool {
        true
    }
}

fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

/// What holds in both groups; the field of the reporter is called differently in each.
fn common(causes: &mut Causes, object: &Object, reporter: &str) {
    let (event, namespace) = (object.spec::<Event>(), &*object.key.namespace);
    let involved = text(&event.involved_object.namespace);
    let cluster_wide: &[&str] = if event.event_time.is_none() { &["default"] } else { &["default", "kube-system"] };
    let apart = match involved {
        "" => !cluster_wide.contains(&namespace),
        other => event.event_time.is_none() && other != namespace,
    };
    if apart {
        causes.invalid(&Path::new("involvedObject.namespace"), involved, "does not match event.namespace");
    }
    if event.event_time.is_none() {
        return;
    }
    let (path, component) = (Path::new(reporter), text(&event.reporting_component));
    if component.is_empty() {
        causes.required(&path, "");
    }
    causes.invalid_each(&path, component, names::qualified_name(component));
    let texts = [
        ("reportingInstance", text(&event.reporting_instance)),
        ("action", text(&event.action)),
        ("reason", text(&event.reason)),
    ];
    for (field, value) in texts {
        if value.is_empty() {
            causes.required(&Path::new(field), "");
        }
        at_most(causes, field, value, TEXT_BYTES_MAX);
    }
    at_most(causes, "message", text(&event.message), NOTE_BYTES_MAX);
}

fn at_most(causes: &mut Causes, field: &str, value: &str, bytes_max: usize) {
    if value.len() > bytes_max {
        causes.invalid(&Path::new(field), "", format!("can have at most {bytes_max} characters"));
    }
}

/// What events.k8s.io/v1 asks of an Event that is written through it.
pub fn validate_new_style(old: Option<&Object>, object: &Object) -> Causes {
    let (event, mut causes) = (object.spec::<Event>(), Causes::new());
    common(&mut causes, object, "reportingController");
    if let Some(old) = old {
        let before = old.spec::<Event>();
        if before.series != event.series {
            series(&mut causes, event.series.as_ref());
        }
        causes.immutable(&Path::new("involvedObject"), &before.involved_object, &event.involved_object);
        for (field, before, after) in [
            ("reason", &before.reason, &event.reason),
            ("message", &before.message, &event.message),
            ("type", &before.type_, &event.type_),
            ("action", &before.action, &event.action),
            ("reportingController", &before.reporting_component, &event.reporting_component),
            ("reportingInstance", &before.reporting_instance, &event.reporting_instance),
        ] {
            causes.immutable(&Path::new(field), before, after);
        }
        return causes;
    }
    causes.invalid_each(&Path::new("metadata.name"), &object.key.name, names::dns_subdomain(&object.key.name));
    series(&mut causes, event.series.as_ref());
    if event.event_time.is_none() {
        causes.required(&Path::new("eventTime"), "");
    }
    let kind = text(&event.type_);
    if !matches!(kind, "Normal" | "Warning") {
        causes.invalid(&Path::new("type"), "", format!("has invalid value: {kind}"));
    }
    let source = event.source.as_ref().is_some_and(|s| !text(&s.component).is_empty() || !text(&s.host).is_empty());
    for (field, set) in [
        ("firstTimestamp", event.first_timestamp.is_some()),
        ("lastTimestamp", event.last_timestamp.is_some()),
        ("count", event.count.unwrap_or(0) != 0),
        ("source", source),
    ] {
        if set {
            causes.invalid(&Path::new(field), "", "needs to be unset");
        }
    }
    causes
}

fn series(causes: &mut Causes, series: Option<&EventSeries>) {
    let Some(series) = series else { return };
    if series.count.unwrap_or(0) < 2 {
        causes.invalid(&Path::new("series.count"), "", "should be at least 2");
    }
    if series.last_observed_time.is_none() {
        causes.required(&Path::new("series.lastObservedTime"), "");
    }
}
