//! The RBAC authorizer: rules that roles list and bindings give to users, groups and ServiceAccounts.
//! <https://kubernetes.io/docs/reference/access-authn-authz/rbac/>

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};

use super::{Attributes, Decision, Target};
use crate::api::Key;
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::api::status::Status;
use crate::api::user::User;
use crate::apiserver::ApiServer;

pub const GROUP: &str = "rbac.authorization.k8s.io";

pub fn authorize(server: &ApiServer, user: &User, attributes: &Attributes) -> Decision {
    let namespace = match &attributes.target {
        Target::Resource { namespace, .. } => namespace.as_str(),
        Target::Path(_) => "",
    };
    let mut reason = None;
    let missing = visit(server, user, namespace, &mut |source, rule| {
        if allows(rule, attributes) {
            reason = Some(format!("RBAC: allowed by {source}"));
        }
        reason.is_none()
    });
    match (reason, missing.as_slice()) {
        (Some(reason), _) => Decision::Allowed(reason),
        (None, []) => Decision::NoOpinion(String::new()),
        (None, [one]) => Decision::NoOpinion(format!("RBAC: {one}")),
        (None, more) => Decision::NoOpinion(format!("RBAC: [{}]", more.join(", "))),
    }
}

/// The rules that a user has in a namespace (empty: everywhere), and the roles that bindings name in vain.
pub fn rules_of(server: &ApiServer, user: &User, namespace: &str) -> (Vec<PolicyRule>, Vec<String>) {
    let mut rules = Vec::new();
    let missing = visit(server, user, namespace, &mut |_, rule| {
        rules.push(rule.clone());
        true
    });
    (rules, missing)
}

/// The rules of the role that a binding in a namespace (empty: a ClusterRoleBinding) refers to.
///
/// # Errors
/// 404 if there is no such role.
pub fn rules_of_role<'a>(
    server: &'a ApiServer,
    reference: &RoleRef,
    namespace: &str,
) -> Result<Vec<&'a PolicyRule>, Status> {
    fn find<'a, K: Resource>(server: &'a ApiServer, namespace: &str, name: &str) -> Result<&'a Object, Status> {
        let found = server.store.get(KindRef::of::<K>(), &Key::new(namespace, name));
        found.ok_or_else(|| Status::not_found(KindRef::of::<K>(), name))
    }
    let name = &reference.name;
    match reference.kind.as_str() {
        "Role" => Ok(find::<Role>(server, namespace, name)?.spec::<Role>().rules.iter().flatten().collect()),
        "ClusterRole" => {
            let mut rules = Vec::new();
            gather(server, find::<ClusterRole>(server, "", name)?, &mut BTreeSet::new(), &mut rules);
            Ok(rules)
        }
        other => Err(Status::unexplained(format!("unsupported role reference kind: {other:?}"))),
    }
}

/// Adds the rules of a ClusterRole, those of the roles that it aggregates included.
fn gather<'a>(server: &'a ApiServer, role: &'a Object, seen: &mut BTreeSet<&'a str>, rules: &mut Vec<&'a PolicyRule>) {
    if !seen.insert(&role.key.name) {
        return;
    }
    let whole = role.spec::<ClusterRole>();
    let Some(aggregation) = &whole.aggregation_rule else { return rules.extend(whole.rules.iter().flatten()) };
    let selectors: Vec<Selector> = aggregation.cluster_role_selectors.iter().flatten().map(Selector::of).collect();
    for other in server.store.list(KindRef::of::<ClusterRole>(), "") {
        let labels = other.metadata().labels.as_ref();
        if selectors.iter().any(|selector| selector.matches(labels)) {
            gather(server, other, seen, rules);
        }
    }
}

/// Shows the rules of a user with where they come from, until the visitor has seen enough. Returns what is wrong
/// with bindings of theirs.
fn visit(
    server: &ApiServer,
    user: &User,
    namespace: &str,
    visitor: &mut dyn FnMut(&Source<'_>, &PolicyRule) -> bool,
) -> Vec<String> {
    let mut missing = Vec::new();
    let mut go_on = |binding: &Object, reference: &RoleRef, subjects: &Option<Vec<Subject>>| {
        let in_namespace = &binding.key.namespace;
        let Some(subject) = subjects.iter().flatten().find(|subject| means(subject, user, in_namespace)) else {
            return true;
        };
        let source = Source { binding, reference, subject };
        match rules_of_role(server, reference, in_namespace) {
            Ok(rules) => rules.into_iter().all(|rule| visitor(&source, rule)),
            Err(_) => {
                missing.push(format!("{}.{GROUP} {:?} not found", reference.kind.to_lowercase(), reference.name));
                true
            }
        }
    };
    for binding in server.store.list(KindRef::of::<ClusterRoleBinding>(), "") {
        let bound = binding.spec::<ClusterRoleBinding>();
        if !go_on(binding, &bound.role_ref, &bound.subjects) {
            return missing;
        }
    }
    if !namespace.is_empty() {
        for binding in server.store.list(KindRef::of::<RoleBinding>(), namespace) {
            let bound = binding.spec::<RoleBinding>();
            if !go_on(binding, &bound.role_ref, &bound.subjects) {
                break;
            }
        }
    }
    missing
}

/// Why somebody has a rule.
struct Source<'a> {
    binding: &'a Object,
    reference: &'a RoleRef,
    subject: &'a Subject,
}

impl std::fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Source { binding, reference, subject } = self;
        let namespace = &binding.key.namespace;
        let within = |name: &str, namespace: &str| match namespace {
            "" => name.to_owned(),
            namespace => format!("{name}/{namespace}"),
        };
        let binding_name = within(&binding.key.name, namespace);
        write!(f, "{} {binding_name:?} of {} {:?} to ", binding.kind.kind, reference.kind, reference.name)?;
        let subject_name = match subject.kind.as_str() {
            "ServiceAccount" => within(&subject.name, subject.namespace.as_deref().unwrap_or(namespace)),
            _ => subject.name.clone(),
        };
        write!(f, "{} {subject_name:?}", subject.kind)
    }
}

/// A subject of a binding in a namespace is this user.
fn means(subject: &Subject, user: &User, namespace: &str) -> bool {
    match subject.kind.as_str() {
        "User" => user.name == subject.name,
        "Group" => user.is_in(&subject.name),
        "ServiceAccount" => {
            let namespace = subject.namespace.as_deref().filter(|own| !own.is_empty()).unwrap_or(namespace);
            user.as_service_account() == Some((namespace, &subject.name))
        }
        _ => false,
    }
}

fn allows(rule: &PolicyRule, attributes: &Attributes) -> bool {
    let lists = |list: &Option<Vec<String>>, wanted: &str| {
        list.iter().flatten().any(|listed| listed == "*" || listed == wanted)
    };
    if !rule.verbs.iter().any(|verb| verb == "*" || *verb == attributes.verb) {
        return false;
    }
    match &attributes.target {
        Target::Resource { group, resource, subresource, name, .. } => {
            lists(&rule.api_groups, group)
                && rule.resources.iter().flatten().any(|listed| covers_resource(listed, resource, subresource))
                && match rule.resource_names.as_deref() {
                    None | Some([]) => true,
                    Some(names) => names.contains(name),
                }
        }
        Target::Path(path) => rule.non_resource_urls.iter().flatten().any(|listed| covers_path(listed, path)),
    }
}

/// `pods` is no subresource, `pods/log` is that one, `*/scale` that of all, `*` everything.
fn covers_resource(listed: &str, resource: &str, subresource: &str) -> bool {
    match listed.split_once('/') {
        _ if listed == "*" => true,
        None => subresource.is_empty() && listed == resource,
        Some((of, part)) => !subresource.is_empty() && part == subresource && (of == "*" || of == resource),
    }
}

pub fn covers_path(listed: &str, path: &str) -> bool {
    listed == path || listed.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(groups: &str, resources: &str, names: &str, verbs: &str) -> PolicyRule {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        PolicyRule {
            api_groups: Some(list(groups)),
            resources: Some(list(resources)),
            resource_names: (!names.is_empty()).then(|| list(names)),
            verbs: list(verbs),
            ..PolicyRule::default()
        }
    }

    #[test]
    fn a_rule_means_its_groups_resources_names_and_verbs() {
        let ask = |rule: &PolicyRule, verb: &str, resource: &str, name: &str| {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let target = Target::resource("apps", resource, subresource, "a", name);
            allows(rule, &Attributes { verb: verb.into(), target })
        };
        let readers = rule("apps", "deployments deployments/scale", "", "get list");
        assert!(ask(&readers, "get", "deployments", "web"));
        assert!(ask(&readers, "get", "deployments/scale", "web"));
        assert!(!ask(&readers, "get", "deployments/status", "web"));
        assert!(!ask(&readers, "delete", "deployments", "web"));
        let one = rule("*", "*/scale", "web", "*");
        assert!(ask(&one, "patch", "replicasets/scale", "web"));
        assert!(!ask(&one, "patch", "replicasets/scale", "db"));
        assert!(!ask(&one, "list", "replicasets", ""));
        assert!(ask(&rule("apps", "*", "", "*"), "watch", "daemonsets/status", ""));
    }

    #[test]
    fn paths_end_in_a_star_for_all_below() {
        for (listed, path, expected) in [
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/etcd", false),
            ("/api/*", "/api/v1", true),
            ("/api/*", "/api", false),
            ("*", "/metrics", true),
        ] {
            assert_eq!(covers_path(listed, path), expected, "{listed} {path}");
        }
    }
}
