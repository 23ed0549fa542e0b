//! What the server counts, as Prometheus reads it.
//! <https://kubernetes.io/docs/reference/instrumentation/metrics/>

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::http::{Method, Request, StatusCode};

use super::query::Query;
use super::route::{Place, Route, route};

/// Upper bounds of the histogram of durations, in seconds.
const BOUNDS_S: [f64; 8] = [0.005, 0.025, 0.1, 0.2, 0.4, 0.8, 1.0, 5.0];

/// So many combinations of labels at most are told apart: nobody fills the memory by asking for what there is not.
const LABELS_MAX: usize = 4096;

#[derive(Default)]
pub struct Metrics {
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    requests: BTreeMap<Labels, u64>,
    durations: BTreeMap<&'static str, Durations>,
}

#[derive(Default)]
struct Durations {
    buckets: [u64; BOUNDS_S.len()],
    count: u64,
    sum: Duration,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    verb: &'static str,
    code: u16,
}

impl Labels {
    fn of(place: Place, verb: &'static str, code: StatusCode) -> Labels {
        let scope = match (&*place.resource, &*place.name, &*place.namespace) {
            ("", ..) => "",
            (_, "", "") => "cluster",
            (_, "", _) => "namespace",
            _ => "resource",
        };
        let Place { group, version, resource, subresource, .. } = place;
        Labels { group, version, resource, subresource, scope, verb, code: code.as_u16() }
    }
}

/// A request that is being answered.
pub struct Asked {
    place: Option<Place>,
    verb: &'static str,
    begun: Instant,
}

impl Asked {
    pub fn of<B>(request: &Request<B>) -> Asked {
        let place = match route(request.uri().path()) {
            Route::Resource(place) => Some(place),
            Route::Other => None,
        };
        let collection = place.as_ref().is_some_and(|place| place.name.is_empty());
        let watches = || Query::parse(request.uri().query()).is_true("watch");
        let verb = match *request.method() {
            Method::GET | Method::HEAD if collection && watches() => "WATCH",
            Method::GET | Method::HEAD if collection => "LIST",
            Method::GET | Method::HEAD => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE if collection => "DELETECOLLECTION",
            Method::DELETE => "DELETE",
            _ => "other",
        };
        Asked { place, verb, begun: Instant::now() }
    }
}

impl Asked {
    /// Nothing is served there: the place has no name of its own.
    pub fn led_nowhere(&mut self) {
        self.place = None;
    }
}

impl Metrics {
    /// Counts a request that has its answer.
    pub fn count(&self, asked: Asked, code: StatusCode) {
        let Ok(mut counted) = self.counted.lock() else { return };
        let mut labels = Labels::of(asked.place.unwrap_or_default(), asked.verb, code);
        if counted.requests.len() >= LABELS_MAX && !counted.requests.contains_key(&labels) {
            labels = Labels::of(Place::default(), asked.verb, code);
        }
        *counted.requests.entry(labels).or_default() += 1;
        // A watch takes as long as its client likes.
        if asked.verb != "WATCH" {
            counted.durations.entry(asked.verb).or_default().observe(asked.begun.elapsed());
        }
    }

    /// The text of `/metrics`; `objects` are the resources of the store with the numbers of their objects.
    pub fn text(&self, objects: &[(String, usize)]) -> String {
        let mut text = String::new();
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        };
        head(&mut text, "apiserver_request_total", "counter", "Requests that were answered.");
        let Ok(counted) = self.counted.lock() else { return text };
        for (labels, count) in &counted.requests {
            let Labels { group, version, resource, subresource, scope, verb, code } = labels;
            let _ = writeln!(
                text,
                "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",dry_run=\"\",group={group:?},\
                 resource={resource:?},scope=\"{scope}\",subresource={subresource:?},verb=\"{verb}\",\
                 version={version:?}}} {count}"
            );
        }
        let name = "apiserver_request_duration_seconds";
        head(&mut text, name, "histogram", "How long answers took, watches aside.");
        for (verb, durations) in &counted.durations {
            for (bound, count) in BOUNDS_S.iter().zip(durations.buckets) {
                let _ = writeln!(text, "{name}_bucket{{verb=\"{verb}\",le=\"{bound}\"}} {count}");
            }
            let Durations { count, sum, .. } = durations;
            let _ = writeln!(text, "{name}_bucket{{verb=\"{verb}\",le=\"+Inf\"}} {count}");
            let _ = writeln!(text, "{name}_sum{{verb=\"{verb}\"}} {}", sum.as_secs_f64());
            let _ = writeln!(text, "{name}_count{{verb=\"{verb}\"}} {count}");
        }
        head(&mut text, "apiserver_storage_objects", "gauge", "Objects in the store, by resource.");
        for (resource, count) in objects {
            let _ = writeln!(text, "apiserver_storage_objects{{resource={resource:?}}} {count}");
        }
        text
    }
}

impl Durations {
    fn observe(&mut self, duration: Duration) {
        for (bound, count) in BOUNDS_S.iter().zip(&mut self.buckets) {
            *count += u64::from(duration.as_secs_f64() <= *bound);
        }
        self.count += 1;
        self.sum += duration;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_what_they_asked() {
        let metrics = Metrics::default();
        for path in ["/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/pods", "/healthz"] {
            let request = Request::get(path).body(()).unwrap();
            metrics.count(Asked::of(&request), StatusCode::OK);
        }
        let text = metrics.text(&[("pods".into(), 2)]);
        let line = "apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\",group=\"\",\
                    resource=\"pods\",scope=\"namespace\",subresource=\"\",verb=\"LIST\",version=\"v1\"} 2\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("apiserver_request_duration_seconds_count{verb=\"LIST\"} 2\n"));
        assert!(text.ends_with("apiserver_storage_objects{resource=\"pods\"} 2\n"));
    }
}
