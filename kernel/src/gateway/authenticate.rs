//! Who asks: by the certificate of the connection, by bearer token (the administrator's or a ServiceAccount's), or
//! nobody in particular.
//! <https://kubernetes.io/docs/reference/access-authn-authz/authentication/>

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use cluster_core::api::status::Status;
use cluster_core::api::user::User;

use super::handle::{Gateway, gone, text};

pub struct Credentials {
    /// The token of the administrator, which stands in the kubeconfig.
    pub token: String,
}

/// # Errors
/// 401 with a token that nobody has. Who shows none is anonymous.
pub async fn user(gateway: &Gateway, head: &Parts) -> Result<Arc<User>, Status> {
    if let Some(user) = head.extensions.get::<Arc<User>>() {
        return Ok(user.clone());
    }
    match bearer_token(&head.headers) {
        None => Ok(Arc::new(User::anonymous())),
        Some(token) if same(token, &gateway.credentials.token) => Ok(Arc::new(User::administrator())),
        Some(token) => {
            let token = token.to_owned();
            let user = gateway.live.ask(move |cluster| cluster.authenticate(&token)).await.map_err(gone)??;
            Ok(Arc::new(user))
        }
    }
}

/// The token of an `Authorization: Bearer TOKEN` header; any other scheme, and no token, count as none.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, header::AUTHORIZATION)?.trim().split_once(' ')?;
    let token = token.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Compares in a time that says nothing about where two tokens differ.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_schemes_and_empty_tokens_are_none() {
        for (value, expected) in [
            ("Bearer secret", Some("secret")),
            ("bearer secret", Some("secret")),
            ("Bearer ", None),
            ("Bearer", None),
            ("", None),
            ("Basic dTpw", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            assert_eq!(bearer_token(&headers), expected, "{value}");
        }
        assert!(same("secret", "secret") && !same("secret", "secreT") && !same("secret", "secrets"));
    }
}
