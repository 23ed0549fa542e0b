//! Watches over HTTP: one JSON line an event, for as long as the client listens.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Response as HttpResponse, StatusCode};
use cluster_core::api::object::Object;
use cluster_core::api::request::Request;
use cluster_core::api::status::Status;
use cluster_core::apiserver::table::ListMeta;
use cluster_core::apiserver::watching::{Batch, OpenWatch, Told};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::accept::{Form, Wanted};
use super::answer;
use super::handle::gone;
use super::live::Live;
use super::order;
use super::query::Query;

/// A watch that names no end lasts this long (`--min-request-timeout` is 30 minutes, and up to twice that).
const TIMEOUT: Duration = Duration::from_secs(45 * 60);
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// The last bookmark comes so long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Batches that may lie ready for a slow client; until it has read them its watch stands still.
const BATCHES_MAX: usize = 4;

/// Opens the watch and answers with its events as they come.
pub async fn watch(
    live: Live,
    request: Request,
    wanted: Wanted,
    timeout: Option<Duration>,
    query: &Query,
) -> Result<HttpResponse<Body>, Status> {
    let opened = live.ask(move |cluster| cluster.open_watch(&request)).await.map_err(gone)??;
    let (lines, read) = mpsc::channel::<Bytes>(BATCHES_MAX);
    let query = query.clone();
    tokio::spawn(async move {
        let deadline = Instant::now() + timeout.unwrap_or(TIMEOUT);
        tell(live, opened, wanted, query, deadline, lines).await;
    });
    let stream = futures_util::stream::unfold(read, |mut read| async {
        let lines = read.recv().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(lines), read))
    });
    Ok(answer::bytes(StatusCode::OK, "application/json", Body::from_stream(stream)))
}

/// Sends events until the deadline, the end of the watch, or the client's leave.
async fn tell(
    live: Live,
    mut watch: OpenWatch,
    wanted: Wanted,
    query: Query,
    deadline: Instant,
    lines: mpsc::Sender<Bytes>,
) {
    let last_bookmark = deadline - BOOKMARK_BEFORE_END;
    let now = Instant::now();
    let never = deadline + BOOKMARK_PERIOD;
    let mut next_bookmark = if last_bookmark > now { (now + BOOKMARK_PERIOD).min(last_bookmark) } else { never };
    let mut first = true;
    loop {
        // A cursor that is waited for in vain is lost with the wait, so it goes there as a copy.
        let (text, ends) = tokio::select! {
            () = lines.closed() => return,
            () = tokio::time::sleep_until(deadline) => return,
            () = tokio::time::sleep_until(next_bookmark), if watch.bookmarks => {
                next_bookmark = if next_bookmark < last_bookmark {
                    (next_bookmark + BOOKMARK_PERIOD).min(last_bookmark)
                } else {
                    never
                };
                let mut cursor = watch.clone();
                let Ok((cursor, told)) = live.ask(move |cluster| { let told = cursor.bookmark(cluster.store()); (cursor, told) }).await else { return };
                watch = cursor;
                let Some(told) = told else { continue };
                (line(&watch, &told, wanted.form, None), false)
            }
            next = live.next(watch.clone()) => {
                let Ok((cursor, batch)) = next else { return };
                watch = cursor;
                match batch {
                    Batch::End(status) => (format!("{}\n", json!({"type": "ERROR", "object": status.to_json()})), true),
                    Batch::Events(events) if wanted.form == Form::Table => {
                        let Ok(text) = tables(&live, &watch, events, &query, &mut first).await else { return };
                        (text, false)
                    }
                    Batch::Events(events) => {
                        (events.iter().map(|told| line(&watch, told, wanted.form, None)).collect(), false)
                    }
                }
            }
        };
        if lines.send(Bytes::from(text)).await.is_err() || ends {
            return;
        }
    }
}

/// One event as a line; in place of the object its table, if there is one.
pub(super) fn line(watch: &OpenWatch, told: &Told, form: Form, table: Option<Value>) -> String {
    let (event_type, object) = match told {
        Told::Event(event_type, object) => (event_type.as_str(), table.unwrap_or_else(|| answer::object(object, form))),
        Told::Bookmark { revision, initial } => ("BOOKMARK", bookmark(watch, *revision, *initial, form)),
    };
    format!("{{\"type\":\"{event_type}\",\"object\":{}}}\n", order::line(&object))
}

/// An object of the watched kind with nothing but its revision.
fn bookmark(watch: &OpenWatch, revision: u64, initial: bool, form: Form) -> Value {
    let kind = &watch.watcher.kind;
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if initial {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    if matches!(form, Form::One | Form::Metadata) {
        return json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
    }
    let empty = Object::from_json(kind, json!({})).map(|object| object.to_json()).unwrap_or_default();
    let mut object = empty;
    object["metadata"]["resourceVersion"] = metadata["resourceVersion"].take();
    if initial {
        object["metadata"]["annotations"] = metadata["annotations"].take();
    }
    object
}

/// Events whose objects are tables of one row; only the first one names the columns.
async fn tables(
    live: &Live,
    watch: &OpenWatch,
    events: Vec<Told>,
    query: &Query,
    first: &mut bool,
) -> Result<String, super::live::Gone> {
    let kind = watch.watcher.kind.clone();
    let asked = events.clone();
    let tables = live
        .ask(move |cluster| {
            let table = |told: &Told| match told {
                Told::Event(_, object) => {
                    let list = ListMeta { revision: object.revision, ..ListMeta::default() };
                    Some((cluster.table(&kind, std::slice::from_ref(object)), list))
                }
                Told::Bookmark { .. } => None,
            };
            asked.iter().map(table).collect::<Vec<_>>()
        })
        .await?;
    let mut text = String::new();
    for (told, table) in events.iter().zip(tables) {
        let table = table.map(|(table, list)| {
            let mut value = table.to_json(&list, |object| answer::row_object(object, query));
            if !std::mem::take(first) {
                value["columnDefinitions"] = Value::Null;
            }
            value
        });
        text.push_str(&line(watch, told, Form::Table, table));
    }
    Ok(text)
}
