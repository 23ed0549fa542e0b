//! Acting as somebody else, for those who may: by mode of the user (a node, a ServiceAccount, another), or altogether.
//! <https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/>

use super::{Attributes, Target, require};
use crate::api::status::Status;
use crate::api::user::{ANONYMOUS, AUTHENTICATED, MASTERS, NODES, UNAUTHENTICATED, User, service_account_groups};
use crate::apiserver::{ApiServer, validation::names};

const AUTHENTICATION: &str = "authentication.k8s.io";
/// So many groups or extras are first asked for all at once.
const MANY: usize = 4;

/// How a permission to impersonate is written: `impersonate:MODE` for whom, `impersonate-on:MODE:VERB` for what.
enum Mode {
    Constrained(&'static str),
    /// The verb `impersonate`, which grants all that the user may do.
    Legacy,
}

/// The user that `wanted` becomes for a request of the requestor, with the groups that every such user has.
///
/// # Errors
/// 400 for parts of a user without a name; 403 naming the first permission that lacks.
pub fn impersonate(
    server: &ApiServer,
    requestor: &User,
    wanted: User,
    attributes: &Attributes,
) -> Result<User, Status> {
    if wanted.name.is_empty() {
        return Err(Status::bad_request(format!("requested {} without impersonating a user name", in_go(&wanted))));
    }
    let mut refusal = None;
    let constrained = mode_of(&wanted).map(Mode::Constrained);
    for mode in constrained.into_iter().chain([Mode::Legacy]) {
        match try_mode(server, requestor, &wanted, attributes, &mode) {
            Ok(user) => return Ok(user),
            Err(status) => {
                refusal.get_or_insert(status);
            }
        }
    }
    Err(refusal.unwrap_or_else(|| Status::internal("all impersonation modes failed")))
}

/// The mode in which a user is impersonated. Nodes and ServiceAccounts have nothing but a name there.
fn mode_of(wanted: &User) -> Option<&'static str> {
    let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    match (node(wanted), wanted.as_service_account()) {
        (Some(_), _) => only_name.then_some("arbitrary-node"),
        (_, Some(_)) => only_name.then_some("serviceaccount"),
        _ => Some("user-info"),
    }
}

fn node(user: &User) -> Option<&str> {
    user.as_node().filter(|name| names::dns_subdomain(name).is_empty())
}

fn try_mode(
    server: &ApiServer,
    requestor: &User,
    wanted: &User,
    attributes: &Attributes,
    mode: &Mode,
) -> Result<User, Status> {
    let (verb, group) = match mode {
        Mode::Constrained(mode) => {
            let verb = format!("impersonate-on:{mode}:{}", attributes.verb);
            require(server, requestor, &Attributes { verb, ..attributes.clone() })?;
            (format!("impersonate:{mode}"), AUTHENTICATION)
        }
        Mode::Legacy => ("impersonate".to_owned(), ""),
    };
    let constrained = matches!(mode, Mode::Constrained(_));
    let asked = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| Attributes {
        verb: verb.clone(),
        target: Target::resource(group, resource, subresource, namespace, name),
    };
    let ask = |attributes: &Attributes| require(server, requestor, attributes);
    let mut user = wanted.clone();
    ask(&match (wanted.as_service_account(), node(wanted)) {
        (Some((namespace, name)), _) => {
            if wanted.groups.is_empty() {
                user.groups = service_account_groups(namespace).to_vec();
            }
            asked(group, "serviceaccounts", "", namespace, name)
        }
        (None, Some(node)) if constrained => {
            user.groups = vec![NODES.into()];
            asked(group, "nodes", "", "", node)
        }
        _ => asked(group, "users", "", "", &wanted.name),
    })?;
    if !wanted.uid.is_empty() {
        ask(&asked(AUTHENTICATION, "uids", "", "", &wanted.uid))?;
    }
    if constrained && let Some(group) = wanted.groups.iter().find(|group| group.is_empty() || *group == MASTERS) {
        let named = if group.is_empty() { "empty string" } else { MASTERS };
        let reason = format!("impersonating the {named} group is not allowed");
        return Err(asked(AUTHENTICATION, "groups", "", "", group).refused(requestor, &reason));
    }
    let all_groups = || constrained && wanted.groups.len() >= MANY && ask(&asked(group, "groups", "", "", "*")).is_ok();
    if !all_groups() {
        for name in &wanted.groups {
            ask(&asked(group, "groups", "", "", name))?;
        }
    }
    if constrained && let Some(reason) = wrong_extra(wanted) {
        return Err(asked(AUTHENTICATION, "userextras", "", "", "").refused(requestor, &reason));
    }
    let extras: usize = wanted.extra.values().map(Vec::len).sum();
    let all_extras =
        || constrained && extras >= MANY && ask(&asked(AUTHENTICATION, "userextras", "*", "", "*")).is_ok();
    if !all_extras() {
        for (key, value) in wanted.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value))) {
            ask(&asked(AUTHENTICATION, "userextras", key, "", value))?;
        }
    }
    if user.name == ANONYMOUS {
        user.ensure_group(UNAUTHENTICATED);
    } else if !user.is_in(UNAUTHENTICATED) {
        user.ensure_group(AUTHENTICATED);
    }
    Ok(user)
}

fn wrong_extra(wanted: &User) -> Option<String> {
    let wrong = |(key, values): (&String, &Vec<String>)| match () {
        _ if key.is_empty() => Some("impersonating the empty string key in extra is not allowed".to_owned()),
        _ if *key != key.to_lowercase() => {
            Some(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"))
        }
        _ if values.is_empty() => Some("impersonating empty values in extra is not allowed".to_owned()),
        _ if values.iter().any(String::is_empty) => {
            Some("impersonating the empty string value in extra is not allowed".to_owned())
        }
        _ => None,
    };
    wanted.extra.iter().find_map(wrong)
}

/// A user as Go prints one with `%#v`.
fn in_go(user: &User) -> String {
    let list = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra = match user.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let pairs: Vec<String> =
                user.extra.iter().map(|(key, values)| format!("{key:?}:{}", list(values))).collect();
            format!("map[string][]string{{{}}}", pairs.join(", "))
        }
    };
    format!("&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}", user.name, user.uid)
}
