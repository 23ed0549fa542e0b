//! Who asks: what authentication finds out, and what authorization and admission look at.
//! <https://kubernetes.io/docs/reference/access-authn-authz/authentication/>

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub const ANONYMOUS: &str = "system:anonymous";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
pub const AUTHENTICATED: &str = "system:authenticated";
/// Its members may do anything, whatever the roles say.
pub const MASTERS: &str = "system:masters";
pub const NODES: &str = "system:nodes";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const NODE: &str = "system:node:";

/// `UserInfo` of authentication.k8s.io.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user who has proved who they are.
    pub fn authenticated(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> User {
        let mut user = User { name: name.into(), groups: groups.into_iter().collect(), ..User::default() };
        user.ensure_group(AUTHENTICATED);
        user
    }

    /// The cluster's administrator: who a request without a user comes from.
    pub fn administrator() -> User {
        User { uid: "admin".into(), ..User::authenticated("admin", [MASTERS.to_owned()]) }
    }

    /// Whoever shows no credentials.
    pub fn anonymous() -> User {
        User { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..User::default() }
    }

    pub fn service_account(namespace: &str, name: &str) -> User {
        User::authenticated(service_account_name(namespace, name), service_account_groups(namespace))
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }

    pub fn ensure_group(&mut self, group: &str) {
        if !self.is_in(group) {
            self.groups.push(group.to_owned());
        }
    }

    /// Namespace and name of the ServiceAccount that the user is, if it is one.
    pub fn as_service_account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
        (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
    }

    /// The node that the user is, if it is one.
    pub fn as_node(&self) -> Option<&str> {
        self.name.strip_prefix(NODE).filter(|name| !name.is_empty())
    }

    /// As `userInfo` and `user` in reviews show it: what is empty is absent.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        for (field, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                fields.insert(field.into(), text.as_str().into());
            }
        }
        if !self.groups.is_empty() {
            fields.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            fields.insert("extra".into(), json!(self.extra));
        }
        Value::Object(fields)
    }
}

/// `system:serviceaccount:NAMESPACE:NAME`
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT}{namespace}:{name}")
}

/// The groups of every ServiceAccount of a namespace.
pub fn service_account_groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_a_user_is() {
        let user = |name: &str| User { name: name.into(), ..User::default() };
        assert_eq!(User::service_account("a", "robot").as_service_account(), Some(("a", "robot")));
        assert_eq!(user("system:serviceaccount:a").as_service_account(), None);
        assert_eq!(user("system:serviceaccount:a:b:c").as_service_account(), None);
        assert_eq!(user("system:node:node-1").as_node(), Some("node-1"));
        assert_eq!(user("alice").as_node(), None);
    }
}
