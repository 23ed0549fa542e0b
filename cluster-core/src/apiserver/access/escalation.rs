//! Nobody grants what they do not have: writes of roles and bindings are held against the writer's own rules.
//! <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping>

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef};

use super::rbac::{GROUP, covers_path, rules_of, rules_of_role};
use super::{Attributes, Decision, Target, authorize};
use crate::api::object::Object;
use crate::api::request::Request;
use crate::api::status::Status;
use crate::api::user::{MASTERS, User};
use crate::apiserver::ApiServer;

/// Looks at a role or binding as it would be written.
///
/// # Errors
/// 403 that lists the rules which the user lacks; 404 if a binding names a role that does not exist.
pub fn check(server: &ApiServer, request: &Request, old: Option<&Object>, new: &Object) -> Result<(), Status> {
    let Some(user) = request.user.as_deref().filter(|user| !user.is_in(MASTERS)) else { return Ok(()) };
    if *new.kind.group != *GROUP || old.is_some_and(|old| differs_only_in_owners(old, new)) {
        return Ok(());
    }
    if new.is::<RoleBinding>() {
        check_binding(server, user, new, &new.spec::<RoleBinding>().role_ref)
    } else if new.is::<ClusterRoleBinding>() {
        check_binding(server, user, new, &new.spec::<ClusterRoleBinding>().role_ref)
    } else if may(server, user, "escalate", Attributes::of(request).target) {
        Ok(())
    } else if new.is::<ClusterRole>() {
        let role = new.spec::<ClusterRole>();
        confirm(server, user, new, role.rules.as_deref().unwrap_or_default())?;
        let gathers = |object: &Object| object.spec::<ClusterRole>().aggregation_rule.is_some();
        if gathers(new) || old.is_some_and(gathers) {
            let detail = "must have cluster-admin privileges to use the aggregationRule";
            let refused = |_| Status::forbidden(&new.kind, &new.key.name, detail);
            confirm(server, user, new, &everything()).map_err(refused)?;
        }
        Ok(())
    } else {
        confirm(server, user, new, new.spec::<Role>().rules.as_deref().unwrap_or_default())
    }
}

/// What the garbage collector changes: it grants nothing.
fn differs_only_in_owners(old: &Object, new: &Object) -> bool {
    let mut metadata = new.metadata().clone();
    metadata.owner_references = old.metadata().owner_references.clone();
    metadata.finalizers = old.metadata().finalizers.clone();
    old.same_spec(new) && metadata == *old.metadata() && metadata != *new.metadata()
}

fn check_binding(server: &ApiServer, user: &User, binding: &Object, role: &RoleRef) -> Result<(), Status> {
    let namespace = &binding.key.namespace;
    let resource = match role.kind.as_str() {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        // Validation tells what is wrong with it.
        _ => return Ok(()),
    };
    let group = role.api_group.as_deref().unwrap_or_default();
    if may(server, user, "bind", Target::resource(group, resource, "", namespace, &role.name)) {
        return Ok(());
    }
    let rules: Vec<PolicyRule> = rules_of_role(server, role, namespace)?.into_iter().cloned().collect();
    confirm(server, user, binding, &rules)
}

fn may(server: &ApiServer, user: &User, verb: &str, target: Target) -> bool {
    matches!(authorize(server, user, &Attributes { verb: verb.into(), target }), Decision::Allowed(_))
}

fn everything() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    let resources =
        PolicyRule { api_groups: Some(all()), resources: Some(all()), verbs: all(), ..PolicyRule::default() };
    let paths = PolicyRule { non_resource_urls: Some(all()), verbs: all(), ..PolicyRule::default() };
    [resources, paths]
}

fn confirm(server: &ApiServer, user: &User, object: &Object, granted: &[PolicyRule]) -> Result<(), Status> {
    let (held, unresolved) = rules_of(server, user, &object.key.namespace);
    let missing = compact(granted.iter().flat_map(atoms).filter(|atom| !held.iter().any(|rule| covers(rule, atom))));
    if missing.is_empty() {
        return Ok(());
    }
    let lines: BTreeSet<String> = missing.iter().map(shown).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let mut detail = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        lines.join("\n")
    );
    if !unresolved.is_empty() {
        detail.push_str(&format!("; resolution errors: [{}]", unresolved.join(", ")));
    }
    Err(Status::forbidden(&object.kind, &object.key.name, &detail))
}

/// A rule as rules of one verb on one thing each.
fn atoms(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| Some(vec![text.clone()]);
    let mut atoms = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for resource in rule.resources.iter().flatten() {
            for verb in &rule.verbs {
                let atom = PolicyRule {
                    api_groups: one(group),
                    resources: one(resource),
                    verbs: vec![verb.clone()],
                    ..PolicyRule::default()
                };
                match rule.resource_names.as_deref() {
                    None | Some([]) => atoms.push(atom),
                    Some(names) => {
                        atoms.extend(names.iter().map(|name| PolicyRule { resource_names: one(name), ..atom.clone() }))
                    }
                }
            }
        }
    }
    for path in rule.non_resource_urls.iter().flatten() {
        for verb in &rule.verbs {
            let verbs = vec![verb.clone()];
            atoms.push(PolicyRule { non_resource_urls: one(path), verbs, ..PolicyRule::default() });
        }
    }
    atoms
}

/// A rule includes one of a single verb on a single thing.
fn covers(rule: &PolicyRule, atom: &PolicyRule) -> bool {
    let includes = |listed: &[String], wanted: &[String]| {
        listed.iter().any(|entry| entry == "*") || wanted.iter().all(|entry| listed.contains(entry))
    };
    let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let resources = list(&rule.resources);
    let has_resource = |wanted: &String| {
        let of_all = wanted.split_once('/').map(|(_, part)| format!("*/{part}"));
        includes(&resources, std::slice::from_ref(wanted)) || of_all.is_some_and(|of_all| resources.contains(&of_all))
    };
    let paths = list(&rule.non_resource_urls);
    let has_path = |wanted: &String| paths.iter().any(|listed| covers_path(listed, wanted));
    let (names, wanted_names) = (list(&rule.resource_names), list(&atom.resource_names));
    includes(&rule.verbs, &atom.verbs)
        && includes(&list(&rule.api_groups), &list(&atom.api_groups))
        && atom.resources.iter().flatten().all(has_resource)
        && atom.non_resource_urls.iter().flatten().all(has_path)
        && (names.is_empty() || !wanted_names.is_empty() && wanted_names.iter().all(|name| names.contains(name)))
}

/// Puts the verbs on one resource together.
fn compact(atoms: impl Iterator<Item = PolicyRule>) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    for atom in atoms {
        let same = |rule: &&mut PolicyRule| {
            atom.resources.is_some()
                && (&rule.api_groups, &rule.resources, &rule.resource_names)
                    == (&atom.api_groups, &atom.resources, &atom.resource_names)
        };
        match rules.iter_mut().find(same) {
            Some(rule) => rule.verbs.extend(atom.verbs),
            None => rules.push(atom),
        }
    }
    rules
}

/// `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`
fn shown(rule: &PolicyRule) -> String {
    let lists = [
        ("APIGroups", rule.api_groups.as_deref()),
        ("Resources", rule.resources.as_deref()),
        ("NonResourceURLs", rule.non_resource_urls.as_deref()),
        ("ResourceNames", rule.resource_names.as_deref()),
        ("Verbs", Some(rule.verbs.as_slice())),
    ];
    let parts: Vec<String> = lists
        .into_iter()
        .filter_map(|(field, list)| Some((field, list?)))
        .filter(|(_, list)| !list.is_empty())
        .map(|(field, list)| format!("{field}:{}", quoted(list)))
        .collect();
    format!("{{{}}}", parts.join(", "))
}

/// As Go prints a list with `%q`.
fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}
