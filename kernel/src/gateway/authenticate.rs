//! Who asks: by bearer token, or nobody in particular.
//! <https://kubernetes.io/docs/reference/access-authn-authz/authentication/>

use std::sync::Arc;

use axum::http::{HeaderMap, header};
use cluster_core::api::status::Status;
use cluster_core::api::user::User;

use super::handle::text;

pub struct Credentials {
    /// The token of the administrator, which stands in the kubeconfig.
    pub token: String,
}

/// # Errors
/// 401 with a token that nobody has. Who shows none is anonymous.
pub fn user(credentials: &Credentials, headers: &HeaderMap) -> Result<Arc<User>, Status> {
    match bearer_token(headers) {
        None => Ok(Arc::new(User::anonymous())),
        Some(token) if same(token, &credentials.token) => Ok(Arc::new(User::administrator())),
        Some(_) => Err(Status::unauthorized()),
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
    fn a_wrong_token_is_refused_and_none_is_anonymous() {
        let credentials = Credentials { token: "secret".into() };
        let ask = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            user(&credentials, &headers).map(|user| user.name.clone()).map_err(|status| status.code)
        };
        assert_eq!(ask("Bearer secret").unwrap(), "admin");
        assert_eq!(ask("bearer secret").unwrap(), "admin");
        assert_eq!(ask("Bearer wrong"), Err(401));
        for nobody in ["", "Bearer ", "Bearer", "Basic dTpw"] {
            assert_eq!(ask(nobody).unwrap(), "system:anonymous", "{nobody}");
        }
    }
}
