//! Deletion: at once, or in two steps where finalizers or a grace period hold the object.
//! <https://kubernetes.io/docs/concepts/architecture/garbage-collection/>

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};

use super::strategy::strategy;
use super::{ApiServer, Moment, admission, read};
use crate::api::Key;
use crate::api::object::Object;
use crate::api::request::{Answer, List, Propagation, Request, Response};
use crate::api::status::Status;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

pub fn delete(server: &mut ApiServer, request: &Request, moment: &mut Moment<'_>) -> Result<Response, Status> {
    let old = read::existing(server, request)?;
    check_preconditions(&old, request)?;
    strategy(&request.kind).check_delete(&old)?;
    let mut warnings = Vec::new();
    admission::validate_delete(server, request, &old, &mut warnings, moment)?;
    let mut object = old.clone();
    add_propagation_finalizer(&mut object, request.options.propagation);
    strategy(&request.kind).prepare_delete(&mut object, moment);
    let grace = strategy(&request.kind).grace_period_seconds(&object, request.options.grace_period_seconds);
    let held = object.metadata().finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty())
        || has_spec_finalizers(&object);
    if grace <= 0 && !held {
        server.remove(&old, request, moment)?;
        let deleted = !strategy(&request.kind).returns_deleted();
        let mut last = old;
        if last.is::<Pod>() {
            mark(&mut last, 0, moment);
        }
        return Ok(Response::Object(Answer { object: last, created: false, deleted, warnings: warnings.into() }));
    }
    mark(&mut object, grace, moment);
    if object.same(&old) {
        return Ok(super::answer(old));
    }
    let object = server.put(object, Some(old.revision), request, moment)?;
    Ok(super::answer(object))
}

pub fn delete_collection(
    server: &mut ApiServer,
    request: &Request,
    moment: &mut Moment<'_>,
) -> Result<Response, Status> {
    let list = read::list(server, request)?;
    for object in &list.items {
        let one = Request { key: object.key.clone(), ..request.clone() };
        match delete(server, &one, moment) {
            Err(status) if !status.is_not_found() => return Err(status),
            _ => {}
        }
    }
    Ok(Response::List(List { revision: server.store.revision(), ..list }))
}

fn check_preconditions(old: &Object, request: &Request) -> Result<(), Status> {
    let Key { name, .. } = &old.key;
    if let Some(uid) = request.options.precondition_uid.as_deref().filter(|uid| *uid != old.uid()) {
        let detail = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            old.uid()
        );
        return Err(Status::precondition_failed(&old.kind, name, &detail));
    }
    if let Some(revision) = request.options.precondition_revision.filter(|revision| *revision != old.revision) {
        let detail = format!(
            "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            old.revision
        );
        return Err(Status::precondition_failed(&old.kind, name, &detail));
    }
    Ok(())
}

/// Foreground and orphan deletions are held by a finalizer that the garbage collector takes away.
fn add_propagation_finalizer(object: &mut Object, propagation: Option<Propagation>) {
    let wanted = match propagation {
        None | Some(Propagation::Background) => return,
        Some(Propagation::Foreground) => FOREGROUND,
        Some(Propagation::Orphan) => ORPHAN,
    };
    if object.metadata().finalizers.iter().flatten().any(|finalizer| finalizer == wanted) {
        return;
    }
    object.metadata_mut().finalizers.get_or_insert_default().push(wanted.to_owned());
}

/// Sets the time at which the object is due to go; a second delete can only shorten it.
fn mark(object: &mut Object, grace_seconds: i64, moment: &Moment<'_>) {
    let known = object.metadata().deletion_grace_period_seconds;
    if object.is_terminating() && known.is_none_or(|known| known <= grace_seconds) {
        return;
    }
    let at = moment.now + Duration::from_secs(grace_seconds.max(0) as u64);
    let generation = object.metadata().generation.map(|generation| generation + 1);
    let first = !object.is_terminating();
    let metadata = object.metadata_mut();
    metadata.deletion_timestamp = Some(at.to_meta());
    metadata.deletion_grace_period_seconds = Some(grace_seconds.max(0));
    if first {
        metadata.generation = generation;
    }
    if object.is::<Namespace>() {
        object.status_mut::<Namespace>().phase = Some("Terminating".into());
    }
}

/// A namespace is also held by `spec.finalizers`.
pub fn has_spec_finalizers(object: &Object) -> bool {
    object.is::<Namespace>() && object.spec::<Namespace>().finalizers.as_ref().is_some_and(|list| !list.is_empty())
}
