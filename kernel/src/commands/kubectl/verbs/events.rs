//! `kubectl events`

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::super::columns;
use super::super::describe::{event_age, event_last_seen};
use super::super::failure::{Failure, Outcome, message};
use super::super::flags::{integer, switch, text};
use super::super::output::{Format, OUTPUT};
use super::super::resources::{Item, find_kind};
use super::super::verb::{Call, Verb};

pub const VERB: Verb = Verb {
    name: "events",
    aliases: &[],
    flags: &[
        OUTPUT,
        switch("all-namespaces").short('A'),
        switch("no-headers"),
        switch("watch").short('w'),
        text("for"),
        text("types"),
        integer("chunk-size"),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let about = match call.parsed.text("for") {
        None => None,
        Some(about) => match about.split_once('/') {
            Some((type_, name)) if !type_.is_empty() && !name.is_empty() => {
                let kinds = call.context.api.kinds()?;
                let Some(kind) = find_kind(&kinds, type_) else {
                    return Err(Failure::Raw(format!("the server doesn't have a resource type {type_:?}")));
                };
                Some((kind.kind.to_string(), name.to_owned()))
            }
            _ => return message("--for must be in resource/name form"),
        },
    };
    let types: Vec<String> = call.parsed.list("types").map(str::to_lowercase).collect();
    if types.iter().any(|type_| !matches!(type_.as_str(), "normal" | "warning")) {
        return message("valid --types are Normal or Warning");
    }
    call.format()?;
    let everywhere = call.parsed.switch("all-namespaces");
    let namespace = if everywhere { String::new() } else { call.namespace.clone() };
    let mut events = call.list(KindRef::of::<Event>(), &namespace, Options::default())?;
    let text = |event: &Value, path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    events.retain(|event| {
        let meant = about.as_ref().is_none_or(|(kind, name)| {
            text(event, "/involvedObject/kind") == *kind && text(event, "/involvedObject/name") == *name
        });
        meant && (types.is_empty() || types.contains(&text(event, "/type").to_lowercase()))
    });
    if events.is_empty() {
        let place = if everywhere { String::new() } else { format!(" in {} namespace", call.namespace) };
        call.context.error_line(format!("No events found{place}."));
        return Ok(());
    }
    events.sort_by_key(event_last_seen);
    match call.format()? {
        Format::Human => {}
        format => {
            let items: Vec<Item> = events.into_iter().map(|event| Item::new(KindRef::of::<Event>(), event)).collect();
            return call.print_objects(&format, &items, true);
        }
    }
    let now = call.context.api.now();
    let mut rows = Vec::new();
    let first = |cells: Vec<String>, namespace: String| match everywhere {
        true => [vec![namespace], cells].concat(),
        false => cells,
    };
    if !call.parsed.switch("no-headers") {
        let header = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"].map(str::to_owned).to_vec();
        rows.push(first(header, "NAMESPACE".into()));
    }
    for event in &events {
        let object = format!("{}/{}", text(event, "/involvedObject/kind"), text(event, "/involvedObject/name"));
        let cells = vec![
            event_age(event, now),
            text(event, "/type"),
            text(event, "/reason"),
            object,
            text(event, "/message").trim().to_owned(),
        ];
        rows.push(first(cells, text(event, "/metadata/namespace")));
    }
    call.context.print(columns::align(&rows));
    Ok(())
}
