//! Create, update and patch: the order in which an object is defaulted, admitted, checked and written.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::strategy::{Strategy, strategy};
use super::validation::metadata;
use super::{ApiServer, Moment, access, admission, decode, managed, owners, patch as patches, read, versions};
use crate::api::Key;
use crate::api::object::Object;
use crate::api::request::{Answer, Body, PatchType, Request, Response, Verb};
use crate::api::status::{Cause, Status};
use crate::api::user::User;

pub(super) const OTHER_NAMESPACE: &str =
    "the namespace of the provided object does not match the namespace sent on the request";

/// What a write does to who manages the fields of the object.
#[derive(Clone, Copy, PartialEq)]
pub enum Managers {
    /// The writer manages what it changes.
    Writer,
    /// The new object carries its managers already.
    Known,
}

pub fn create(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let (mut object, mut warnings) = decode::body(request)?;
    owners::keep_once(&mut object, &mut warnings, "");
    if object.revision > 0 {
        return Err(Status::unexplained("resourceVersion should not be set on objects to be created"));
    }
    create_object(server, request, object, Managers::Writer, warnings, moment)
}

fn create_object(
    server: &mut ApiServer,
    request: &Request,
    mut object: Object,
    managers: Managers,
    mut warnings: Vec<String>,
    moment: &mut Moment<'_>,
) -> Result<Response, Status> {
    place(request, &mut object)?;
    let kind = &object.kind.clone();
    let strategy = strategy(kind);
    begin(&mut object, strategy, moment);
    let has_status = kind.codec.has_status && !kind.codec.whole || kind.has_subresource("status");
    if has_status && !strategy.keeps_new_status() {
        object.set_status_part((kind.codec.new_status)());
    }
    if object.is::<Pod>() {
        server.pod_specs.defaulted.run(&mut object, |pod| strategy.default(pod));
    } else {
        strategy.default(&mut object);
    }
    if managers == Managers::Writer {
        managed::take_sent(None, &mut object, request);
        managed::record(None, &mut object, request, moment.now);
    }
    admission::admit(server, request, None, &mut object, &mut warnings, moment)?;
    owners::keep_once(&mut object, &mut warnings, owners::AFTER_ADMISSION);
    access::escalation::check(server, request, None, &object)?;
    match &request.user {
        Some(user) => strategy.keep_requestor(&mut object, user),
        None => strategy.keep_requestor(&mut object, &User::administrator()),
    }
    strategy.prepare_create(&mut object, server, moment)?;
    let causes = versions::validate(request, None, &object).unwrap_or_else(|| {
        let mut causes = metadata::validate(&object, strategy);
        if object.is::<Pod>() {
            causes.extend(server.pod_specs.valid.check(&object, |pod| strategy.validate_create(pod)));
        } else {
            causes.extend(strategy.validate_create(&object));
        }
        causes
    });
    refuse(&object, causes)?;
    warn(&mut warnings, request, strategy, None, &object);
    admission::validate(server, request, None, &object, &mut warnings, moment)?;
    let object = server.put(object, None, request, moment)?;
    Ok(Response::Object(Answer { object, created: true, deleted: false, warnings: warnings.into() }))
}

pub fn update(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let (mut object, mut warnings) = decode::body(request)?;
    patches::check_place(&object, request)?;
    owners::keep_once(&mut object, &mut warnings, "");
    let old = match read::existing(server, request) {
        Err(_) if request.subresource.is_empty() && strategy(&request.kind).creates_on_update() => {
            object.revision = 0;
            return create_object(server, request, object, Managers::Writer, warnings, moment);
        }
        found => found?,
    };
    replace(server, request, old, object, Managers::Writer, warnings, moment)
}

pub fn patch(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let is_apply = request.verb == Verb::Patch(PatchType::Apply);
    let old = match read::existing(server, request) {
        Err(missing) if missing.is_not_found() && is_apply && request.subresource.is_empty() => {
            let mut object = patches::apply::apply_to(request, None, moment.now)?;
            object.revision = 0;
            return create_object(server, request, object, Managers::Known, Vec::new(), moment);
        }
        found => found?,
    };
    let (mut object, warnings) = if is_apply {
        (patches::apply::apply_to(request, Some(&old), moment.now)?, Vec::new())
    } else {
        patches::apply_to(server, request, &old)?
    };
    if object.revision == 0 {
        object.revision = old.revision;
    }
    let managers = if is_apply { Managers::Known } else { Managers::Writer };
    replace(server, request, old, object, managers, warnings, moment)
}

/// Writes `new` over `old`, keeping what the writer of this subresource may not change.
pub fn replace(
    server: &mut ApiServer,
    request: &Request,
    old: Object,
    mut new: Object,
    managers: Managers,
    mut warnings: Vec<String>,
    moment: &mut Moment<'_>,
) -> Result<Response, Status> {
    let kind = &old.kind;
    if new.revision > 0 && new.revision != old.revision {
        return Err(Status::stale(kind, &old.key.name));
    }
    if matches!(request.verb, Verb::Update) {
        check_uid(&old, new.uid())?;
    }
    let strategy = strategy(kind);
    if new.revision == 0 && strategy.needs_resource_version() {
        return Err(Status::resource_version_required(kind, &old.key.name));
    }
    let mut is_written = false;
    if managers == Managers::Writer {
        is_written = managed::take_sent(Some(&old), &mut new, request);
    }
    keep_metadata(&old, &mut new);
    if request.subresource == "status" {
        new.set_spec_part(old.spec_part().clone());
        strategy.prepare_status_update(&old, &mut new, moment);
        if managers == Managers::Writer {
            managed::record(Some(&old), &mut new, request, moment.now);
        }
        let mut causes = metadata::validate_update(&old, &new);
        causes.extend(strategy.validate_status_update(&old, &new));
        refuse(&new, causes)?;
    } else if matches!(request.subresource, "approval" | "finalize") {
        // The subresource itself has made this of the old object, and checked it.
        if managers == Managers::Writer {
            managed::record(Some(&old), &mut new, request, moment.now);
        }
        refuse(&new, metadata::validate_update(&old, &new))?;
    } else {
        if kind.has_subresource("status") {
            new.set_status_part(old.status_part().clone());
        }
        strategy.default(&mut new);
        if managers == Managers::Writer {
            managed::record(Some(&old), &mut new, request, moment.now);
        }
        strategy.prepare_update(&old, &mut new, server, moment)?;
        admission::admit(server, request, Some(&old), &mut new, &mut warnings, moment)?;
        owners::keep_once(&mut new, &mut warnings, owners::AFTER_ADMISSION);
        access::escalation::check(server, request, Some(&old), &new)?;
        if strategy.changes_generation(&old, &new) {
            let generation = old.metadata().generation.unwrap_or(0) + 1;
            new.metadata_mut().generation = Some(generation);
        }
        let causes = versions::validate(request, Some(&old), &new).unwrap_or_else(|| {
            let mut causes = metadata::validate_update(&old, &new);
            causes.extend(strategy.validate_replacement(&old, &new));
            causes
        });
        refuse(&new, causes)?;
        warn(&mut warnings, request, strategy, Some(&old), &new);
    }
    admission::validate(server, request, Some(&old), &new, &mut warnings, moment)?;
    if new.metadata() == old.metadata() {
        new.set_metadata(old.metadata_arc().clone());
    }
    new.revision = old.revision;
    let warnings: Arc<[String]> = warnings.into();
    if managers == Managers::Known {
        is_written = !managed::same_fields(managed::entries(&old), managed::entries(&new));
    }
    if new.same(&old) && !is_written {
        return Ok(Response::Object(Answer { object: old, created: false, deleted: false, warnings }));
    }
    if released(&new) {
        server.remove(&old, request, moment)?;
        return Ok(Response::Object(Answer { object: new, created: false, deleted: true, warnings }));
    }
    let object = server.put(new, Some(old.revision), request, moment)?;
    Ok(Response::Object(Answer { object, created: false, deleted: false, warnings }))
}

/// Nothing holds the object any more that was to be deleted.
fn released(object: &Object) -> bool {
    let metadata = object.metadata();
    object.is_terminating()
        && metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
        && metadata.deletion_grace_period_seconds.unwrap_or(0) == 0
        && !super::delete::has_spec_finalizers(object)
}

/// The writer means this very object, not one of the same name.
pub(super) fn check_uid(old: &Object, uid: &str) -> Result<(), Status> {
    if uid.is_empty() || uid == old.uid() {
        return Ok(());
    }
    let detail = format!(
        "StorageError: invalid object, Code: 4, Key: {}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {uid}, UID in object meta: {}",
        old.kind.registry_prefix(),
        old.key,
        old.uid()
    );
    Err(Status::conflict(&old.kind, &old.key.name, &detail))
}

/// Puts a new object into the namespace of the request, and gives it its name.
fn place(request: &Request, object: &mut Object) -> Result<(), Status> {
    let wanted = if request.kind.namespaced { request.key.namespace.clone() } else { "".into() };
    if request.kind.namespaced && !object.key.namespace.is_empty() && object.key.namespace != wanted {
        return Err(Status::bad_request(OTHER_NAMESPACE));
    }
    if object.key.namespace != wanted || object.metadata().namespace.is_some() == wanted.is_empty() {
        object.rename(Key::new(wanted, object.key.name.clone()));
        if object.key.name.is_empty() {
            object.metadata_mut().name = None;
        }
    }
    Ok(())
}

/// What every new object gets: name, uid, time, generation.
fn begin(object: &mut Object, strategy: &dyn Strategy, moment: &mut Moment<'_>) {
    if object.key.name.is_empty()
        && let Some(prefix) = object.metadata().generate_name.clone().filter(|prefix| !prefix.is_empty())
    {
        let prefix: String = prefix.chars().take(58).collect();
        let name = format!("{prefix}{}", moment.random.suffix());
        object.rename(Key::new(object.key.namespace.clone(), name));
    }
    let (uid, now) = (moment.random.uuid(), moment.now.to_meta());
    // Kinds that don't count leave the number that they are sent.
    let sent = object.metadata().generation.filter(|generation| *generation != 0);
    let generation = if strategy.tracks_generation() { Some(1) } else { sent };
    let metadata = object.metadata_mut();
    metadata.uid = Some(uid);
    metadata.creation_timestamp = Some(now);
    metadata.generation = generation;
    metadata.deletion_timestamp = None;
    metadata.deletion_grace_period_seconds = None;
    metadata.self_link = None;
}

/// Carries over what the server alone decides. What else a writer may not change is refused by validation.
fn keep_metadata(old: &Object, new: &mut Object) {
    if std::ptr::eq(old.metadata(), new.metadata()) {
        return;
    }
    let kept = old.metadata();
    let metadata = new.metadata_mut();
    if metadata.uid.as_ref().is_none_or(String::is_empty) {
        metadata.uid = kept.uid.clone();
    }
    metadata.namespace = kept.namespace.clone();
    metadata.creation_timestamp = kept.creation_timestamp.clone();
    metadata.deletion_timestamp = kept.deletion_timestamp.clone().or(metadata.deletion_timestamp.take());
    let grace = &mut metadata.deletion_grace_period_seconds;
    *grace = grace.or(kept.deletion_grace_period_seconds);
    metadata.generation = kept.generation;
    metadata.generate_name = metadata.generate_name.take().or_else(|| kept.generate_name.clone());
    metadata.self_link = None;
    new.key = old.key.clone();
}

/// Warnings are for those who read them: components of the cluster, which send no JSON, don't.
fn warn(warnings: &mut Vec<String>, request: &Request, strategy: &dyn Strategy, old: Option<&Object>, new: &Object) {
    if matches!(request.body, Body::Json(_)) {
        warnings.extend(strategy.warnings(old, new));
    }
}

fn refuse(object: &Object, causes: impl Into<Vec<Cause>>) -> Result<(), Status> {
    let causes = causes.into();
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid(&object.kind, &object.key.name, causes)) }
}
