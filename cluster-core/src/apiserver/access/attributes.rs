//! What a request wants, as authorizers see it.

use crate::api::request::Request;
use crate::api::selector::FieldSelector;
use crate::api::status::Status;
use crate::api::user::User;

/// A verb and what it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributes {
    /// Of the API (`get`, `deletecollection`), of a special permission (`impersonate`), or of HTTP, in lower case.
    pub verb: String,
    pub target: Target,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Empty texts: the core group, no subresource, the cluster scope, a collection.
    Resource { group: String, resource: String, subresource: String, namespace: String, name: String },
    /// A path that is no resource.
    Path(String),
}

impl Attributes {
    pub fn path(verb: impl Into<String>, path: impl Into<String>) -> Attributes {
        Attributes { verb: verb.into(), target: Target::Path(path.into()) }
    }

    pub fn of(request: &Request) -> Attributes {
        let (kind, key) = (&request.kind, &request.key);
        let target = Target::resource(&kind.group, &kind.resource, request.subresource, &key.namespace, &key.name);
        let target = target.picked_by(&request.options.fields);
        Attributes { verb: request.verb.as_str().into(), target }
    }

    /// 403, with the reason behind it if the authorizers gave one.
    pub fn refused(&self, user: &User, reason: &str) -> Status {
        let (who, verb) = (&user.name, &self.verb);
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        match &self.target {
            Target::Path(path) => {
                Status::denied("", "", "", &format!("User {who:?} cannot {verb} path {path:?}{reason}"))
            }
            Target::Resource { group, resource, subresource, namespace, name } => {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let place = match namespace.as_str() {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                let detail = format!(
                    "User {who:?} cannot {verb} resource \"{resource}{slash}{subresource}\" in API group {group:?} {place}{reason}"
                );
                Status::denied(group, resource, name, &detail)
            }
        }
    }
}

impl Target {
    /// As a URL names it. A namespace lies in itself.
    pub fn resource(group: &str, resource: &str, subresource: &str, namespace: &str, name: &str) -> Target {
        let namespace = if group.is_empty() && resource == "namespaces" { name } else { namespace };
        Target::Resource {
            group: group.into(),
            resource: resource.into(),
            subresource: subresource.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// A collection from which a selector picks one object by name is about that one.
    pub fn picked_by(mut self, fields: &FieldSelector) -> Target {
        if let Target::Resource { name, .. } = &mut self
            && name.is_empty()
            && let Some(picked) = fields.exact("metadata.name")
        {
            *name = picked.to_owned();
        }
        self
    }
}
