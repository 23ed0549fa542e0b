//! Logs over HTTP: `GET …/pods/NAME/log`, as they are or as they come.
//! <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#get-read-log-of-the-specified-pod>

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Method, Response as HttpResponse, StatusCode};
use cluster_core::Cluster;
use cluster_core::api::Key;
use cluster_core::api::kind::{JSON_CODEC, Kind, KindRef};
use cluster_core::api::status::{Cause, Status};
use cluster_core::clock::Time;
use cluster_core::cluster::containers::{LogCursor, LogOptions};
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::answer;
use super::handle::{Gateway, gone};
use super::live::Live;
use super::query::Query;
use super::route::Place;

/// How often a log that is followed is looked at.
const FOLLOW_PERIOD: Duration = Duration::from_millis(50);
/// Pieces of a log that may lie ready for a slow client.
const PIECES_MAX: usize = 16;

/// What a pod streams.
pub enum Stream {
    Log,
    /// Several at once over one connection.
    Channels,
}

/// What a place streams; none if it is an object like others.
pub fn stream(place: &Place, method: &Method) -> Option<Stream> {
    let pod = place.group.is_empty() && place.version == "v1" && place.resource == "pods" && !place.name.is_empty();
    match (pod.then_some(place.subresource.as_str())?, method) {
        ("log", &Method::GET) => Some(Stream::Log),
        ("exec" | "attach" | "portforward", &Method::GET | &Method::POST) => Some(Stream::Channels),
        _ => None,
    }
}

pub fn key(place: &Place) -> Key {
    Key::new(place.namespace.as_str(), place.name.as_str())
}

pub async fn log(gateway: &Gateway, place: &Place, query: &Query) -> Result<HttpResponse<Body>, Status> {
    let pod = key(place);
    let asked = query.clone();
    let container = query.get("container").unwrap_or_default().to_owned();
    let begin = move |cluster: &mut Cluster| {
        let options = options(&asked, &pod.name, cluster.now())?;
        let (lines, cursor) = cluster.log(&pod, &container, &options)?;
        Ok::<_, Status>((options, lines, cursor))
    };
    let (options, lines, cursor) = gateway.live.ask(begin).await.map_err(gone)??;
    let mut left = options.bytes_max();
    let text = options.limited(options.text(&lines), &mut left);
    let body = match cursor.filter(|_| options.follow && left > 0) {
        None => Body::from(text),
        Some(cursor) => {
            let (pieces, read) = mpsc::channel::<Bytes>(PIECES_MAX);
            tokio::spawn(follow(gateway.live.clone(), options, text, left, cursor, pieces));
            let stream = futures_util::stream::unfold(read, |mut read| async {
                let piece = read.recv().await?;
                Some((Ok::<Bytes, Infallible>(piece), read))
            });
            Body::from_stream(stream)
        }
    };
    Ok(answer::bytes(StatusCode::OK, "text/plain", body))
}

/// Tells what is printed until the container ends, the client leaves, or the limit is reached.
async fn follow(
    live: Live,
    options: LogOptions,
    mut text: String,
    mut left: usize,
    mut cursor: LogCursor,
    pieces: mpsc::Sender<Bytes>,
) {
    let mut goes_on = true;
    loop {
        if !text.is_empty() && pieces.send(text.into()).await.is_err() || !goes_on || left == 0 {
            return;
        }
        tokio::select! {
            () = pieces.closed() => return,
            () = tokio::time::sleep(FOLLOW_PERIOD) => {}
        }
        let Ok((lines, more, moved)) = read(&live, cursor).await else { return };
        (cursor, goes_on) = (moved, more);
        text = options.limited(options.text(&lines), &mut left);
    }
}

/// What a log has behind a cursor, whether more may come, and the cursor behind that.
pub async fn read(
    live: &Live,
    mut cursor: LogCursor,
) -> Result<(Vec<cluster_core::runtime::container::LogLine>, bool, LogCursor), super::live::Gone> {
    live.ask(move |cluster| {
        let (lines, more) = cluster.log_after(&mut cursor);
        (lines, more, cursor)
    })
    .await
}

/// # Errors
/// 400 for what can't be read, 422 for what can't be asked.
fn options(query: &Query, pod: &str, now: Time) -> Result<LogOptions, Status> {
    let integer = |name: &str| query.integer(name);
    let (tail, limit, seconds) = (integer("tailLines")?, integer("limitBytes")?, integer("sinceSeconds")?);
    let since_time = match query.get("sinceTime").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => Some(text.parse::<Timestamp>().map_err(|_| {
            Status::bad_request(format!(
                "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?}"
            ))
        })?),
    };
    let mut causes = Vec::new();
    if let Some(lines) = tail.filter(|lines| *lines < 0) {
        causes.push(Cause::invalid("tailLines", lines, "must be greater than or equal to 0"));
    }
    if let Some(bytes) = limit.filter(|bytes| *bytes < 1) {
        causes.push(Cause::invalid("limitBytes", bytes, "must be greater than 0"));
    }
    if seconds.is_some() && since_time.is_some() {
        causes.push(Cause::forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
    } else if let Some(seconds) = seconds.filter(|seconds| *seconds < 1) {
        causes.push(Cause::invalid("sinceSeconds", seconds, "must be greater than 0"));
    }
    if !causes.is_empty() {
        return Err(Status::invalid(&log_options_kind(), pod, causes));
    }
    let of_time = |time| now.since(Time::from_timestamp(time));
    Ok(LogOptions {
        follow: query.is_true("follow"),
        previous: query.is_true("previous"),
        timestamps: query.is_true("timestamps"),
        tail_lines: tail.and_then(|lines| usize::try_from(lines).ok()),
        since: seconds.map(|seconds| Duration::from_secs(seconds.unsigned_abs())).or(since_time.map(of_time)),
        limit_bytes: limit.and_then(|bytes| usize::try_from(bytes).ok()),
    })
}

/// The kind that refusals of a log's options speak of; it has no collection.
fn log_options_kind() -> KindRef {
    KindRef::new(Kind {
        slot: usize::MAX,
        group: "".into(),
        version: "v1".into(),
        kind: "PodLogOptions".into(),
        resource: "podlogoptions".into(),
        singular: "podlogoptions".into(),
        namespaced: true,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Vec::new(),
        subresources: Vec::new(),
        codec: JSON_CODEC,
        type_name: "".into(),
        schema: None,
        definition: None,
        warning: "".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked_as_pod_log_options() {
        let asked = |query: &str| options(&Query::parse(Some(query)), "web", Time::from_secs(100));
        let options = asked("follow=true&tailLines=3&sinceSeconds=10&limitBytes=7").unwrap();
        assert_eq!((options.follow, options.tail_lines, options.limit_bytes), (true, Some(3), Some(7)));
        assert_eq!(options.since, Some(Duration::from_secs(10)));
        assert_eq!(asked("sinceTime=2026-01-01T00:01:00Z").unwrap().since, Some(Duration::from_secs(40)));
        let message = asked("tailLines=-1").unwrap_err().message;
        assert_eq!(
            message,
            "PodLogOptions \"web\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0"
        );
        assert_eq!(asked("sinceSeconds=0").unwrap_err().code, 422);
        assert_eq!(asked("tailLines=many").unwrap_err().code, 400);
    }
}
