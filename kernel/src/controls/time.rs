//! Controls of time: forward, back, aside.

use std::time::Duration;

use cluster_core::Cluster;
use cluster_core::api::object::Object;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::{Args, duration};
use crate::output::{CellError, Output, Sink};
use crate::session::Session;

/// How long `%until` waits if not told otherwise.
const UNTIL_SECONDS_MAX: u64 = 600;

pub fn advance(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let by = duration(args.one()?)?;
    session.advance(by, sink)
}

pub fn until(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (words, limit) = match args.words.as_slice() {
        [words @ .., "within", limit] => (words, duration(limit)?),
        words => (words, Duration::from_secs(UNTIL_SECONDS_MAX)),
    };
    let (&[target, condition], language) = (words, session.language()) else { return Err(args.wrong()) };
    let (kind, key) = session.target(target)?;
    let holds = |cluster: &Cluster| {
        let object = cluster.store().get(&kind, &key);
        condition_holds(object, condition)
    };
    let start = session.cluster.now();
    let deadline = start + limit;
    let mut looked_at = None;
    let reached = loop {
        // Only a write can change the answer.
        let revision = session.cluster.revision();
        if looked_at.replace(revision) != Some(revision) && holds(&session.cluster) {
            break true;
        }
        if session.cluster.now() >= deadline || !session.step_before(deadline) {
            break holds(&session.cluster);
        }
        if sink.interrupted() {
            return Err(session.interrupted());
        }
    };
    session.tell(sink);
    let passed = seconds(session.cluster.now().since(start));
    if reached {
        let text = if language.is_japanese() {
            format!("{target} {condition}: {passed} 後に成り立ちました\n")
        } else {
            format!("{target} {condition}: holds after {passed}\n")
        };
        sink.put(Output::Stdout(text));
        return Ok(());
    }
    let text = if language.is_japanese() {
        format!("{target} {condition}: {} 待っても成り立ちませんでした", seconds(limit))
    } else {
        format!("{target} {condition}: did not hold within {}", seconds(limit))
    };
    Err(CellError::new("NotReached", text))
}

pub fn seconds(duration: Duration) -> String {
    format!("{:.3}s", duration.as_secs_f64())
}

/// `ready`, `gone`, a condition's type (`Available`, `!Ready`), or `.path=value`.
fn condition_holds(object: Option<&Object>, condition: &str) -> bool {
    if condition == "gone" {
        return object.is_none();
    }
    let Some(object) = object else { return false };
    let json = object.to_json();
    if let Some((path, wanted)) = condition.strip_prefix('.').and_then(|rest| rest.split_once('=')) {
        let pointer = format!("/{}", path.replace('.', "/"));
        return match json.pointer(&pointer) {
            Some(Value::String(text)) => text == wanted,
            Some(value) => serde_json::from_str::<Value>(wanted).is_ok_and(|wanted| wanted == *value),
            None => wanted.is_empty(),
        };
    }
    let status = |name: &str| {
        let conditions = json.pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().find(|c| c["type"] == name).and_then(|c| c["status"].as_str()) == Some("True")
    };
    match condition {
        "ready" if object.is::<Pod>() => status("Ready"),
        "ready" => match json.pointer("/spec/replicas").and_then(Value::as_i64) {
            Some(replicas) => {
                let count = |field: &str| json["status"][field].as_i64().unwrap_or(0);
                let observed = json["status"]["observedGeneration"] == json["metadata"]["generation"];
                observed && count("readyReplicas") == replicas && count("replicas") == replicas
            }
            None => status("Ready"),
        },
        name => match name.strip_prefix('!') {
            Some(name) => !status(name),
            None => status(name),
        },
    }
}

pub fn rewind(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let cells = match args.words.as_slice() {
        [] => 1,
        [count] => count.parse().map_err(|_| args.wrong())?,
        _ => return Err(args.wrong()),
    };
    let undone = session.rewind(cells)?;
    sink.put(Output::Stdout(undone));
    Ok(())
}

pub fn fork(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let name = args.one()?.to_owned();
    session.keep_fork(&name);
    let at = session.cluster.now();
    let text = match session.language().is_japanese() {
        true => format!("{at} の時点のクラスタを {name} として取っておきました\n"),
        false => format!("the cluster as it is at {at} is kept as {name}\n"),
    };
    sink.put(Output::Stdout(text));
    Ok(())
}

pub fn switch(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let name = args.one()?.to_owned();
    let text = session.switch_to(&name)?;
    sink.put(Output::Stdout(text));
    Ok(())
}

pub fn restore(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let name = args.one()?;
    let snapshot = session.fork(name)?.clone();
    session.cluster.restore_etcd(&snapshot, name);
    session.settle(sink)
}

pub fn diff(args: &Args<'_>, session: &mut Session, sink: &mut dyn Sink) -> Result<(), CellError> {
    let (first, second) = match args.words.as_slice() {
        [first] => (session.fork(first)?, &session.cluster),
        [first, second] => (session.fork(first)?, session.fork(second)?),
        _ => return Err(args.wrong()),
    };
    let mut lines = Vec::new();
    for kind in second.kinds().filter(|kind| !matches!(&*kind.kind, "Event" | "Lease")) {
        let (before, after) = (first.store().objects(kind), second.store().objects(kind));
        let name = |object: &Object| format!("{}/{}", kind.singular, object.key.name);
        for (key, object) in after {
            match before.get(key) {
                None => lines.push(format!("+ {}", name(object))),
                Some(old) if !old.same(object) => {
                    let mut paths = Vec::new();
                    changed_paths(&old.to_json(), &object.to_json(), "", &mut paths);
                    paths.retain(|path| path != "metadata.resourceVersion");
                    paths.truncate(6);
                    lines.push(format!("~ {}: {}", name(object), paths.join(", ")));
                }
                Some(_) => {}
            }
        }
        for (_, object) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
            lines.push(format!("- {}", name(object)));
        }
    }
    let nothing = session.language().say("違いはありません", "no difference");
    let text = if lines.is_empty() { format!("{nothing}\n") } else { lines.join("\n") + "\n" };
    sink.put(Output::Stdout(text));
    Ok(())
}

/// The paths at which two values differ.
pub fn changed_paths(old: &Value, new: &Value, path: &str, paths: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let fields: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for field in fields {
                let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
                let (old, new) = (old.get(field).unwrap_or(&Value::Null), new.get(field).unwrap_or(&Value::Null));
                changed_paths(old, new, &path, paths);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                changed_paths(old, new, &format!("{path}[{index}]"), paths);
            }
        }
        (old, new) if old != new => paths.push(path.to_owned()),
        _ => {}
    }
}
