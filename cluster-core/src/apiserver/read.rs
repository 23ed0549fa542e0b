//! Reads: one object, or a list at one revision.

use crate::api::object::Object;
use crate::api::request::{List, Request};
use crate::api::status::Status;
use crate::apiserver::{ApiServer, fields};

pub fn get(server: &ApiServer, request: &Request) -> Result<Object, Status> {
    existing(server, request)
}

/// The object that a request is about.
pub fn existing(server: &ApiServer, request: &Request) -> Result<Object, Status> {
    let object = server.store.get(&request.kind, &request.key).cloned();
    let mut object = object.ok_or_else(|| Status::not_found(&request.kind, &request.key.name))?;
    object.kind = request.kind.clone();
    Ok(object)
}

pub fn list(server: &ApiServer, request: &Request) -> Result<List, Status> {
    let options = &request.options;
    fields::check(&request.kind, &options.fields)?;
    let selected = |object: &&Object| {
        options.labels.matches(object.metadata().labels.as_ref())
            && (options.fields.is_everything() || options.fields.matches(|path| fields::field(object, path)))
    };
    let items = server.store.list(&request.kind, &request.key.namespace).filter(selected).cloned().collect();
    Ok(List {
        kind: request.kind.clone(),
        revision: server.store.revision(),
        items,
        continue_token: String::new(),
        remaining: None,
    })
}
