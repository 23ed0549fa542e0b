//! Who may do what: authorization of every request that comes with a user, reviews of it, and acting as somebody else.
//! <https://kubernetes.io/docs/reference/access-authn-authz/authorization/>

mod attributes;
pub mod bootstrap;
pub mod escalation;
pub mod impersonation;
pub mod rbac;
pub mod reviews;
pub mod tokens;

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::api::Key;
    use crate::api::request::{Body, Request, Response, Verb};
    use crate::api::user::User;
    use crate::{Cluster, Config};

    /// A cluster in which `devs` may read pods of the namespace default and write roles there.
    fn cluster() -> Cluster {
        let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
        let rules = json!([
            {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]},
            {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create", "update"]},
        ]);
        create(&mut cluster, None, "roles", json!({"metadata": {"name": "dev"}, "rules": rules})).unwrap();
        create(&mut cluster, None, "rolebindings", binding("dev", "Role")).unwrap();
        cluster
    }

    fn binding(role: &str, kind: &str) -> Value {
        json!({
            "metadata": {"name": role}, "roleRef": {"kind": kind, "name": role},
            "subjects": [{"kind": "Group", "name": "devs"}],
        })
    }

    fn create(cluster: &mut Cluster, user: Option<User>, resource: &str, body: Value) -> Result<Response, String> {
        let kind = cluster.resource("rbac.authorization.k8s.io", "v1", resource).unwrap().clone();
        let namespace = if kind.namespaced { "default" } else { "" };
        let request = Request {
            user: user.map(Arc::new),
            body: Body::Json(body),
            ..Request::new(&"test".into(), Verb::Create, &kind, Key::new(namespace, ""))
        };
        cluster.request(request).map_err(|status| status.message)
    }

    fn alice() -> User {
        User::authenticated("alice", ["devs".to_owned()])
    }

    #[test]
    fn roles_decide_what_a_user_may() {
        let mut cluster = cluster();
        let pods = cluster.resource("", "v1", "pods").unwrap().clone();
        let mut ask = |verb, namespace: &str| {
            let mut request = Request::new(&"test".into(), verb, &pods, Key::new(namespace, ""));
            request.user = Some(Arc::new(alice()));
            cluster.request(request).map(|_| ()).map_err(|status| status.message)
        };
        assert_eq!(ask(Verb::List, "default"), Ok(()));
        assert_eq!(
            ask(Verb::List, "").unwrap_err(),
            r#"pods is forbidden: User "alice" cannot list resource "pods" in API group "" at the cluster scope"#
        );
        assert_eq!(
            ask(Verb::DeleteCollection, "default").unwrap_err(),
            r#"pods is forbidden: User "alice" cannot deletecollection resource "pods" in API group "" in the namespace "default""#
        );
    }

    #[test]
    fn nobody_grants_what_they_lack() {
        let mut cluster = cluster();
        let role = |name: &str, verbs: Value| {
            let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]);
            json!({"metadata": {"name": name}, "rules": rules})
        };
        create(&mut cluster, Some(alice()), "roles", role("reader", json!(["get"]))).unwrap();
        let refused = create(&mut cluster, Some(alice()), "roles", role("killer", json!(["get", "delete", "patch"])));
        assert_eq!(
            refused.unwrap_err(),
            "roles.rbac.authorization.k8s.io \"killer\" is forbidden: user \"alice\" (groups=[\"devs\" \
             \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
             {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"patch\"]}"
        );
        let refused = create(&mut cluster, Some(alice()), "rolebindings", binding("cluster-admin", "ClusterRole"));
        assert!(refused.unwrap_err().ends_with(
            "not currently held:\n{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n\
             {NonResourceURLs:[\"*\"], Verbs:[\"*\"]}"
        ));
        let missing = create(&mut cluster, Some(alice()), "rolebindings", binding("nosuch", "ClusterRole"));
        assert_eq!(missing.unwrap_err(), "clusterroles.rbac.authorization.k8s.io \"nosuch\" not found");
    }

    #[test]
    fn acting_as_somebody_takes_a_permission() {
        let cluster = cluster();
        let wanted = User { name: "bob".into(), ..User::default() };
        let attributes =
            super::Attributes { verb: "list".into(), target: super::Target::resource("", "pods", "", "default", "") };
        let refused = cluster.impersonate(&alice(), wanted.clone(), &attributes).unwrap_err();
        assert_eq!(
            refused.message,
            r#"pods is forbidden: User "alice" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "default""#
        );
        let bob = cluster.impersonate(&User::administrator(), wanted, &attributes).unwrap();
        assert_eq!(bob.groups, ["system:authenticated"]);
    }
}
