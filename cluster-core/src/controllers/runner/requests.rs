//! How the requests of a plan are sent: writes with what goes along with them, and reads.

use super::super::controller::{Absence, EventNote, Plan, Write};
use crate::api::request::{Body, Request, Response};
use crate::api::status::Status;
use crate::trace::{Actor, Causes};
use crate::world::World;

/// What the apiserver says to what a controller asks before it decides.
pub(super) fn ask(asks: Vec<Request>, actor: &Actor, world: &mut World) -> Vec<Result<Response, Status>> {
    asks.into_iter().map(|ask| world.request(Request { actor: actor.clone(), ..ask })).collect()
}

/// Sends one write. Answers with what the cache must see before the key is looked at again; for a refusal, with what is
/// to be written about it.
pub(super) fn send(
    write: &Write,
    actor: &Actor,
    causes: &Causes,
    world: &mut World,
) -> Result<Option<(usize, u64)>, Option<Plan>> {
    let mut request = write.request.clone();
    request.actor = actor.clone();
    request.causes = causes.clone();
    if let (Some(sign), Body::Object(object), Some(signer)) = (write.sign, &mut request.body, &world.apiserver.signer) {
        sign(object, &**signer);
    }
    if let (Some(certify), Body::Object(object), Some(authority)) =
        (write.certify, &mut request.body, &world.apiserver.authority)
    {
        certify(object, &**authority, world.now);
    }
    let slot = request.kind.slot;
    let name_in =
        |note: &EventNote, name: &str| EventNote { message: note.message.replace("{}", name), ..note.clone() };
    match world.request(request) {
        Ok(response) => {
            let object = response.object();
            if let (Some(note), Some(object)) = (&write.event, &object) {
                world.event(actor, &name_in(note, &object.key.name), causes);
            }
            let revision = world.apiserver.last_revision_of(slot);
            Ok(Some((slot, revision)))
        }
        Err(status) if is_tolerated(write, &status) => Ok(None),
        Err(status) => {
            if let Some(note) = &write.failure {
                let note = EventNote { message: format!("{}{}", note.message, status.message), ..note.clone() };
                world.event(actor, &note, causes);
            }
            Err(write.confession.as_ref().map(|confession| {
                let mut object = confession.object.clone();
                (confession.tell)(&mut object, &status, world.now);
                let mut plan = Plan::done();
                plan.update_status(object, "a write was refused");
                plan
            }))
        }
    }
}

pub(super) fn is_absent(absence: &Absence, actor: &Actor, world: &mut World) -> bool {
    let request = Request { actor: actor.clone(), ..absence.request.clone() };
    match world.request(request) {
        Ok(Response::List(list)) => list.items.is_empty(),
        Ok(Response::Object(answer)) => absence.uid.as_deref().is_some_and(|uid| uid != answer.object.uid()),
        Err(status) => status.is_not_found(),
    }
}

fn is_tolerated(write: &Write, status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes).map(|cause| cause.reason);
    causes.chain([status.reason]).any(|reason| write.tolerated.contains(&reason))
}
