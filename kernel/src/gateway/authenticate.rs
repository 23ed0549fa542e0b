//! Who asks: by bearer token.
//! <https://kubernetes.io/docs/reference/access-authn-authz/authentication/>

use axum::http::{HeaderMap, header};
use cluster_core::api::status::Status;

use super::handle::text;

pub struct Credentials {
    /// The token of the administrator, which stands in the kubeconfig.
    pub token: String,
}

/// # Errors
/// 401 without a token, or with one that nobody has.
pub fn user(credentials: &Credentials, headers: &HeaderMap) -> Result<(), Status> {
    let token = text(headers, header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    match token {
        Some(token) if same(token, &credentials.token) => Ok(()),
        _ => Err(Status::unauthorized()),
    }
}

/// Compares in a time that says nothing about where two tokens differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}
