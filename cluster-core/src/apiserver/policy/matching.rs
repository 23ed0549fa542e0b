//! Which requests a policy and its binding are about.
//! <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#matching-requests-matchconstraints>

use k8s_openapi::api::admissionregistration::v1::{MatchResources, NamedRuleWithOperations};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::Attributes;
use super::environment::namespace_of;
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::apiserver::ApiServer;

/// A policy is never asked about policies and webhooks, so that it can always be taken away.
const EXEMPT: &[&str] = &[
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
];

pub fn is_exempt(attributes: &Attributes<'_>) -> bool {
    let kind = &attributes.request.kind;
    *kind.group == *"admissionregistration.k8s.io" && EXEMPT.contains(&&*kind.resource)
}

/// The request is one of those that are described. A binding's description may leave out the rules.
pub fn matches(
    server: &ApiServer,
    attributes: &Attributes<'_>,
    object: Option<&Object>,
    wanted: &MatchResources,
) -> bool {
    let rules = wanted.resource_rules.as_deref().unwrap_or_default();
    let excluded = wanted.exclude_resource_rules.as_deref().unwrap_or_default();
    (rules.is_empty() || rules.iter().any(|rule| rule_matches(rule, attributes, object)))
        && !excluded.iter().any(|rule| rule_matches(rule, attributes, object))
        && namespace_matches(server, attributes, object, &wanted.namespace_selector)
        && object_matches(attributes, object, &wanted.object_selector)
}

fn rule_matches(rule: &NamedRuleWithOperations, attributes: &Attributes<'_>, object: Option<&Object>) -> bool {
    let kind = &attributes.request.kind;
    let any_of = |wanted: &Option<Vec<String>>, found: &str| {
        wanted.iter().flatten().any(|wanted| wanted == "*" || wanted == found)
    };
    let resource = |wanted: &String| {
        let (resource, subresource) = wanted.split_once('/').unwrap_or((wanted, ""));
        (resource == "*" || *resource == *kind.resource)
            && (subresource == "*" || subresource == attributes.request.subresource)
    };
    let Some(about) = object.or(attributes.old) else { return false };
    let in_namespace = !about.key.namespace.is_empty();
    let names = rule.resource_names.as_deref().unwrap_or_default();
    any_of(&rule.operations, attributes.operation.as_str())
        && any_of(&rule.api_groups, &kind.group)
        && any_of(&rule.api_versions, &kind.version)
        && rule.resources.iter().flatten().any(resource)
        && match rule.scope.as_deref() {
            Some("Namespaced") => in_namespace,
            Some("Cluster") => !in_namespace,
            _ => true,
        }
        && (names.is_empty() || names.iter().any(|name| **name == *about.key.name))
}

fn selector(written: &Option<LabelSelector>) -> Option<Selector> {
    written.as_ref().map(Selector::of).filter(|selector| !selector.is_everything())
}

/// Objects outside of namespaces always match; a namespace is selected by its own labels.
fn namespace_matches(
    server: &ApiServer,
    attributes: &Attributes<'_>,
    object: Option<&Object>,
    wanted: &Option<LabelSelector>,
) -> bool {
    let Some(selector) = selector(wanted) else { return true };
    let Some(about) = object.or(attributes.old) else { return true };
    if about.is::<Namespace>() {
        return selector.matches(about.metadata().labels.as_ref());
    }
    if about.key.namespace.is_empty() {
        return true;
    }
    let namespace = namespace_of(server, attributes, object);
    namespace.is_some_and(|namespace| selector.matches(namespace.metadata().labels.as_ref()))
}

/// The object before or after is selected.
fn object_matches(attributes: &Attributes<'_>, object: Option<&Object>, wanted: &Option<LabelSelector>) -> bool {
    let Some(selector) = selector(wanted) else { return true };
    let selected = |object: &Object| selector.matches(object.metadata().labels.as_ref());
    object.is_some_and(selected) || attributes.old.is_some_and(selected)
}
