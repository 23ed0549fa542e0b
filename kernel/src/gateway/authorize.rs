//! What a request wants, told from its path alone, and whether its user, or whom that one acts as, may do it.
//! <https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/>

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use cluster_core::api::selector::FieldSelector;
use cluster_core::api::status::Status;
use cluster_core::api::user::{MASTERS, User};
use cluster_core::apiserver::access::{Attributes, Target};
use percent_encoding::percent_decode_str;

use super::handle::{Gateway, gone};
use super::query::Query;
use super::route::{Place, Route};

/// The user for whom the request is carried out.
///
/// # Errors
/// 403 if they may not do it, or the one who asks may not act as them; 400 for a user to act as without a name.
pub async fn user(
    gateway: &Gateway,
    asks: Arc<User>,
    head: &Parts,
    route: &Route,
    query: &Query,
) -> Result<Arc<User>, Status> {
    let wanted = wanted(&head.headers);
    if wanted.is_none() && asks.is_in(MASTERS) {
        return Ok(asks);
    }
    let attributes = match route {
        Route::Resource(place) => of_resource(&head.method, place, query),
        Route::Other => Attributes::path(head.method.as_str().to_lowercase(), head.uri.path()),
    };
    let pass = move |cluster: &mut cluster_core::Cluster| {
        let user = match wanted {
            Some(wanted) => Arc::new(cluster.impersonate(&asks, wanted, &attributes)?),
            None => asks,
        };
        cluster.require(&user, &attributes)?;
        Ok(user)
    };
    gateway.live.ask(pass).await.map_err(gone)?
}

fn of_resource(method: &Method, place: &Place, query: &Query) -> Attributes {
    let collection = place.name.is_empty();
    let verb = match method.as_str() {
        "GET" | "HEAD" if place.watch => "watch",
        "GET" | "HEAD" if collection && query.is_true("watch") => "watch",
        "GET" | "HEAD" if collection => "list",
        "GET" | "HEAD" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if collection => "deletecollection",
        "DELETE" => "delete",
        _ => "",
    };
    let target = Target::resource(&place.group, &place.resource, &place.subresource, &place.namespace, &place.name);
    // A selector that can't be read is refused later, to those who may ask at all.
    let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default()).unwrap_or_default();
    Attributes { verb: verb.into(), target: target.picked_by(&fields) }
}

/// The user that `Impersonate-` headers describe, if there are any.
fn wanted(headers: &HeaderMap) -> Option<User> {
    const EXTRA: &str = "impersonate-extra-";
    let texts = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let first = |name: &str| texts(name).into_iter().next().unwrap_or_default();
    let mut user = User {
        name: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: texts("impersonate-group"),
        ..User::default()
    };
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
            user.extra.entry(key).or_default().extend(texts(name.as_str()));
        }
    }
    (user != User::default()).then_some(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_describe_whom_to_act_as() {
        let mut headers = HeaderMap::new();
        assert_eq!(wanted(&headers), None);
        for (name, value) in
            [("user", "alice"), ("group", "devs"), ("group", "ops"), ("extra-example.org%2fteam", "red")]
        {
            let name = format!("impersonate-{name}");
            headers.append(axum::http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        }
        let user = wanted(&headers).unwrap();
        assert_eq!((user.name.as_str(), user.groups.join(" ")), ("alice", "devs ops".into()));
        assert_eq!(user.extra["example.org/team"], ["red"]);
    }
}
