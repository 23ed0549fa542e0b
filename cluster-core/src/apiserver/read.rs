//! Reads: one object, or a list as it stood at one revision, whole or in pages.
//! <https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions>

use std::borrow::Cow;
use std::ops::Bound;

use crate::api::Key;
use crate::api::object::Object;
use crate::api::request::{List, Options, Request};
use crate::api::selector::Selector;
use crate::api::status::{Cause, Status};
use crate::apiserver::continuation::Continuation;
use crate::apiserver::validation::names;
use crate::apiserver::{ApiServer, custom, fields, versions};
use crate::store::{Objects, Store};

/// # Errors
/// 404; 500 for a resource version that is no number, 504 for one that is not yet.
pub fn get(server: &ApiServer, request: &Request) -> Result<Object, Status> {
    match request.options.resource_version.as_str() {
        "" | "0" => {}
        text => reached(revision(text)?, &server.store)?,
    }
    existing(server, request)
}

/// The object that a request is about, as it is kept, in the version of the request.
pub fn existing(server: &ApiServer, request: &Request) -> Result<Object, Status> {
    let object = server.store.get(&request.kind, &request.key).cloned();
    let object = object.ok_or_else(|| Status::not_found(versions::kept(&request.kind), &request.key.name))?;
    server.one_in_version_of(&request.kind, object)
}

/// # Errors
/// 400 and 422 for options that make no sense, 410 for a revision that has been compacted, 504 for one that is not yet.
pub fn list(server: &ApiServer, request: &Request) -> Result<List, Status> {
    let options = &request.options;
    check_options(options)?;
    check_labels(&options.labels)?;
    fields::check(&request.kind, &options.fields)?;
    let store = &server.store;
    let namespace = &request.key.namespace;
    let continuation = Continuation::of(request)?;
    let revision = match &continuation {
        Some(continuation) => continuation.revision,
        None => revision_of(options, store)?,
    }
    .unwrap_or(store.revision());
    let objects = objects_at(store, request, revision, continuation.as_ref())?;

    let start = match &continuation {
        Some(continuation) => Bound::Excluded(continuation.after.clone()),
        None => Bound::Included(Key::new(namespace.clone(), "")),
    };
    let stored = objects
        .range((start, Bound::Unbounded))
        .map(|(_, object)| object)
        .take_while(|object| namespace.is_empty() || object.key.namespace == *namespace);
    let (items, left) = if custom::has_converter(&request.kind) {
        // Selectors are about the version that is asked for.
        page(server.in_version_of(&request.kind, stored.cloned().collect())?.iter(), options)
    } else {
        page(stored, options)
    };
    let is_everything = options.labels.is_everything() && options.fields.is_everything();
    let (mut continue_token, mut remaining) = (String::new(), None);
    if let Some(last) = items.last().filter(|_| left > 0) {
        // With selectors nobody knows how many of those that are left will be selected.
        remaining = is_everything.then_some(left);
        continue_token = Continuation::after(&last.key, revision, namespace).to_token();
    }
    Ok(List { kind: request.kind.clone(), revision, items, continue_token, remaining })
}

/// The first of these that are selected, as many as are wanted, and how many are left.
fn page<'a>(mut candidates: impl Iterator<Item = &'a Object>, options: &Options) -> (Vec<Object>, usize) {
    let selects = |object: &&Object| {
        options.labels.matches(object.metadata().labels.as_ref())
            && (options.fields.is_everything() || options.fields.matches(|path| fields::field(object, path)))
    };
    let items = candidates.by_ref().filter(selects).take(options.limit.unwrap_or(usize::MAX)).cloned().collect();
    (items, if options.limit.is_some() { candidates.count() } else { 0 })
}

/// The revision that a first page is asked at; `None` for the present.
fn revision_of(options: &Options, store: &Store) -> Result<Option<u64>, Status> {
    let text = options.resource_version.as_str();
    if matches!(text, "" | "0") {
        return Ok(None);
    }
    let revision = revision(text)
        .map_err(|status| Status::bad_request(format!("invalid resource version: {}", status.message)))?;
    reached(revision, store)?;
    let is_exact = match options.resource_version_match.as_str() {
        "" => options.limit.is_some(),
        matching => matching == "Exact",
    };
    Ok(is_exact.then_some(revision))
}

fn objects_at<'a>(
    store: &'a Store,
    request: &Request,
    revision: u64,
    continuation: Option<&Continuation>,
) -> Result<Cow<'a, Objects>, Status> {
    store.objects_at(&request.kind, revision).ok_or_else(|| match continuation {
        None => Status::expired("The resourceVersion for the provided list is too old."),
        Some(continuation) => {
            let mut status = Status::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new \
                 list without the continue parameter, or use the continue token in this response to retrieve the \
                 remainder of the results. Continuing with the provided token results in an inconsistent list - \
                 objects that were created, modified, or deleted between the time the first chunk was returned and \
                 now may show up in the list.",
            );
            status.continue_token = continuation.inconsistent(&request.key.namespace).to_token();
            status
        }
    })
}

/// A resource version as gets and watches read it.
pub fn revision(text: &str) -> Result<u64, Status> {
    text.parse().map_err(|_| {
        let out_of_range = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let problem = if out_of_range { "value out of range" } else { "invalid syntax" };
        let problem = format!("strconv.ParseUint: parsing {text:?}: {problem}");
        Status::unexplained(format!("resourceVersion: Invalid value: {text:?}: {problem}"))
    })
}

/// Refuses what lies in the future.
pub fn reached(revision: u64, store: &Store) -> Result<(), Status> {
    let current = store.revision();
    if revision <= current {
        return Ok(());
    }
    let mut status = Status::timeout(format!("Timeout: Too large resource version: {revision}, current: {current}"));
    let details = status.details.get_or_insert_default();
    details.retry_after_seconds = 1;
    details.causes = vec![Cause {
        reason: "ResourceVersionTooLarge",
        message: "Too large resource version".into(),
        field: String::new(),
    }];
    Err(status)
}

/// Which options of a list go together.
fn check_options(options: &Options) -> Result<(), Status> {
    let matching = options.resource_version_match.as_str();
    let version = options.resource_version.as_str();
    let mut causes = Vec::new();
    let mut forbid = |field: &str, detail: &str| causes.push(Cause::forbidden(field, detail));
    if !matching.is_empty() {
        if version.is_empty() {
            forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !options.continue_token.is_empty() {
            forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            let supported = ["Exact", "NotOlderThan", ""];
            causes.push(Cause::unsupported("resourceVersionMatch", matching, &supported));
        } else if matching == "Exact" && version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(Cause::forbidden("resourceVersionMatch", detail));
        }
    }
    if options.send_initial_events.is_some() {
        causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid_options("ListOptions", causes)) }
}

/// Refuses keys and values that no label can have.
pub fn check_labels(selector: &Selector) -> Result<(), Status> {
    for (key, values, compares) in selector.terms() {
        let unable = |field: &str, value: &str, detail: &str| {
            let cause = Cause::invalid(field, value, detail);
            Err(Status::bad_request(format!("unable to parse requirement: {}: {}", cause.field, cause.message)))
        };
        if let Some(detail) = names::qualified_name(key).first() {
            return unable("<nil>", key, detail);
        }
        for (index, value) in values.iter().enumerate() {
            if compares && value.parse::<i64>().is_err() {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                return unable(&format!("values[{index}]"), value, detail);
            }
            if let Some(detail) = names::label_value(value).first() {
                return unable(&format!("values[{index}][{key}]"), value, detail);
            }
        }
    }
    Ok(())
}
