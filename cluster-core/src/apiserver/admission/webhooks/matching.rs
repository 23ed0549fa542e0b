//! Which requests a webhook is asked about.
//! <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-rules>

use k8s_openapi::api::admissionregistration::v1::RuleWithOperations;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::Webhook;
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::api::status::Status;
use crate::apiserver::admission::{Attributes, Operation};
use crate::apiserver::policy;

/// Webhooks are never asked about webhooks and policies, so that they can always be taken away.
pub fn is_exempt(kind: &KindRef) -> bool {
    *kind.group == *"admissionregistration.k8s.io"
}

impl Webhook<'_> {
    /// # Errors
    /// 403 where a condition fails and the webhook may not.
    pub fn matches(&self, attributes: &Attributes<'_>, object: &Object) -> Result<bool, Status> {
        let is_selected = !is_exempt(&object.kind)
            && self.rules.iter().any(|rule| rule_matches(rule, attributes, object))
            && self.namespace_matches(attributes, object)
            && self.object_matches(attributes, object);
        Ok(is_selected && self.meets_conditions(attributes, object)?)
    }

    /// <https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-matchconditions>
    fn meets_conditions(&self, attributes: &Attributes<'_>, object: &Object) -> Result<bool, Status> {
        let shown = (attributes.operation != Operation::Delete).then_some(object);
        match policy::meets_conditions(attributes.server, &attributes.seen(), shown, self.conditions) {
            Err(_) if self.fails_open => Ok(false),
            met => met.map_err(|error| Status::forbidden(&object.kind, &object.key.name, &error)),
        }
    }

    /// Objects outside of namespaces always match; a namespace is selected by its own labels.
    fn namespace_matches(&self, attributes: &Attributes<'_>, object: &Object) -> bool {
        let Some(selector) = selector(self.namespace_selector) else { return true };
        if object.is::<Namespace>() {
            return selector.matches(object.metadata().labels.as_ref());
        }
        if object.key.namespace.is_empty() {
            return true;
        }
        let namespace = Key::cluster(object.key.namespace.clone());
        let namespace = attributes.server.store.get(Namespace::kind(), &namespace);
        namespace.is_some_and(|namespace| selector.matches(namespace.metadata().labels.as_ref()))
    }

    /// The object before or after is selected.
    fn object_matches(&self, attributes: &Attributes<'_>, object: &Object) -> bool {
        let Some(selector) = selector(self.object_selector) else { return true };
        let selected = |object: &Object| selector.matches(object.metadata().labels.as_ref());
        selected(object) || attributes.old.is_some_and(selected)
    }
}

fn selector(written: Option<&LabelSelector>) -> Option<Selector> {
    written.map(Selector::of).filter(|selector| !selector.is_everything())
}

fn rule_matches(rule: &RuleWithOperations, attributes: &Attributes<'_>, object: &Object) -> bool {
    let kind = &attributes.request.kind;
    let any_of = |wanted: &Option<Vec<String>>, found: &str| {
        wanted.iter().flatten().any(|wanted| wanted == "*" || wanted == found)
    };
    let is_resource = |wanted: &String| {
        let (resource, subresource) = wanted.split_once('/').unwrap_or((wanted, ""));
        (resource == "*" || *resource == *kind.resource)
            && (subresource == "*" || subresource == attributes.request.subresource)
    };
    let in_namespace = !object.key.namespace.is_empty();
    any_of(&rule.operations, attributes.operation.as_str())
        && any_of(&rule.api_groups, &kind.group)
        && any_of(&rule.api_versions, &kind.version)
        && rule.resources.iter().flatten().any(is_resource)
        && match rule.scope.as_deref() {
            Some("Namespaced") => in_namespace,
            Some("Cluster") => !in_namespace,
            _ => true,
        }
}
