//! Who may do what: authorization of every request that comes with a user, reviews of it, and acting as somebody else.
//! <https://kubernetes.io/docs/reference/access-authn-authz/authorization/>

mod attributes;
pub mod bootstrap;
pub mod impersonation;
pub mod rbac;
pub mod reviews;

pub use attributes::{Attributes, Target};

use crate::api::request::Request;
use crate::api::status::Status;
use crate::api::user::{MASTERS, User};
use crate::apiserver::ApiServer;

/// What the authorizers say, with their reason, which may be empty.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    Allowed(String),
    NoOpinion(String),
}

/// Asks the authorizers in turn: members of system:masters may do anything, others what roles grant them.
pub fn authorize(server: &ApiServer, user: &User, attributes: &Attributes) -> Decision {
    if user.is_in(MASTERS) {
        return Decision::Allowed(String::new());
    }
    rbac::authorize(server, user, attributes)
}

/// # Errors
/// 403 with the text that names user, verb and what it was about.
pub fn require(server: &ApiServer, user: &User, attributes: &Attributes) -> Result<(), Status> {
    match authorize(server, user, attributes) {
        Decision::Allowed(_) => Ok(()),
        Decision::NoOpinion(reason) => Err(attributes.refused(user, &reason)),
    }
}

/// Lets a request pass whose user may do this. Requests without a user come from inside.
pub fn check(server: &ApiServer, request: &Request) -> Result<(), Status> {
    match &request.user {
        Some(user) if !user.is_in(MASTERS) => require(server, user, &Attributes::of(request)),
        _ => Ok(()),
    }
}
