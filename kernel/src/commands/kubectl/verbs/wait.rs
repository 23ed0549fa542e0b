//! `kubectl wait`

use std::time::Duration;

use serde_json::Value;

use super::super::failure::{Failure, Outcome, all_of, message};
use super::super::flags::{FOREVER, duration, switch, text};
use super::super::jsonpath::{self, Template};
use super::super::manifests::{FILENAME, RECURSIVE};
use super::super::output::{DryRun, OUTPUT, column_path};
use super::super::resources::{Item, targets};
use super::super::verb::{Call, Verb};
use super::delete::wait_until_gone;

pub const VERB: Verb = Verb {
    name: "wait",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        OUTPUT,
        switch("all"),
        switch("all-namespaces").short('A'),
        switch("local"),
        text("selector").short('l'),
        text("field-selector"),
        text("for"),
        duration("timeout"),
    ],
    run,
};

/// What is waited for.
enum Wanted {
    Create,
    Delete,
    Condition { type_: String, status: String },
    Path { path: Template, value: Option<String> },
}

fn wanted(text: &str) -> Result<Wanted, Failure> {
    match text.split_once('=').map_or((text, None), |(sort, rest)| (sort, Some(rest))) {
        ("create" | "Create", None) => Ok(Wanted::Create),
        ("delete" | "Delete", None) => Ok(Wanted::Delete),
        ("condition", Some(rest)) => {
            let (type_, status) = rest.split_once('=').unwrap_or((rest, "true"));
            Ok(Wanted::Condition { type_: type_.to_owned(), status: status.to_owned() })
        }
        ("jsonpath", Some("")) => message("jsonpath expression cannot be empty"),
        ("jsonpath", Some(rest)) => {
            // A value stands behind the braces of the path.
            let end = rest.rfind('}').map_or(rest.len(), |end| end + 1);
            let (path, value) = match rest[end..].strip_prefix('=') {
                Some(value) => (&rest[..end], Some(value)),
                None => match rest.split_once('=') {
                    Some((path, value)) if !rest.contains('{') => (path, Some(value)),
                    _ => (rest, None),
                },
            };
            if value.is_some_and(|value| value.trim().is_empty()) {
                return message(
                    "jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3",
                );
            }
            let value = value.map(|value| value.trim_matches(['\'', '"']).to_owned());
            Ok(Wanted::Path { path: column_path(path)?, value })
        }
        ("", _) => message("unrecognized condition: []"),
        _ => message(format!("unrecognized condition: {text:?}")),
    }
}

fn holds(wanted: &Wanted, object: &Value) -> bool {
    match wanted {
        Wanted::Create => true,
        Wanted::Delete => false,
        Wanted::Condition { type_, status } => {
            let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
            let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
            conditions.into_iter().flatten().any(|condition| {
                let is = |field: &str, text: &str| {
                    condition[field].as_str().is_some_and(|found| found.eq_ignore_ascii_case(text))
                };
                let observed = condition["observedGeneration"]
                    .as_i64()
                    .or(object.pointer("/status/observedGeneration").and_then(Value::as_i64));
                is("type", type_)
                    && is("status", status)
                    && observed.is_none_or(|seen| generation.is_none_or(|now| seen >= now))
            })
        }
        Wanted::Path { path, value } => match (path.values(object).unwrap_or_default().as_slice(), value) {
            ([], _) => false,
            (_, None) => true,
            ([found], Some(value)) => jsonpath::go_text(found) == *value,
            _ => false,
        },
    }
}

fn run(call: &mut Call<'_, '_>) -> Outcome {
    let wanted = wanted(call.parsed.text("for").unwrap_or_default())?;
    let patience = call.parsed.duration("timeout").unwrap_or(Duration::from_secs(30)).min(FOREVER);
    if matches!(wanted, Wanted::Create) {
        return created(call, patience);
    }
    let (items, mut failures) = call.items()?;
    if matches!(wanted, Wanted::Delete) {
        failures.retain(|failure| !failure.is_not_found());
    } else if items.is_empty() && failures.is_empty() {
        return message("no matching resources found");
    }
    for item in items {
        let outcome = match &wanted {
            Wanted::Delete => {
                let uid = item.value.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
                wait_until_gone(call, &item, &uid, patience)
            }
            wanted => until(call, &item, wanted, patience),
        };
        match outcome {
            Ok(()) if matches!(wanted, Wanted::Delete) => {}
            Ok(()) => call.changed(&item, "condition met", DryRun::None)?,
            Err(failure) => failures.push(failure),
        }
    }
    all_of(failures)
}

fn until(call: &mut Call<'_, '_>, item: &Item, wanted: &Wanted, patience: Duration) -> Outcome {
    let started = call.context.api.now();
    let mut value = item.value.clone();
    while !holds(wanted, &value) {
        if call.context.api.now().since(started) >= patience {
            return message(format!("timed out waiting for the condition on {}/{}", item.kind.resource, item.name));
        }
        if !call.context.api.wait(Duration::from_millis(50)) {
            return Err(Failure::Quiet);
        }
        value = call.get(&item.kind, &item.namespace, &item.name)?;
    }
    Ok(())
}

/// Waits until what is named is there.
fn created(call: &mut Call<'_, '_>, patience: Duration) -> Outcome {
    let args = call.parsed.args.clone();
    let started = call.context.api.now();
    for target in targets(call, &args)? {
        let name = target.name.unwrap_or_default();
        loop {
            let namespace = call.namespace.clone();
            match call.get(&target.kind, &namespace, &name) {
                Ok(value) => {
                    call.changed(&Item::new(&target.kind, value), "condition met", DryRun::None)?;
                    break;
                }
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return Err(failure),
            }
            if call.context.api.now().since(started) >= patience {
                return message("timed out waiting for the condition");
            }
            if !call.context.api.wait(Duration::from_millis(50)) {
                return Err(Failure::Quiet);
            }
        }
    }
    Ok(())
}
