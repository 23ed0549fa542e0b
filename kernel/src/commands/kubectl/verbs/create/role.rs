//! `kubectl create role`, `clusterrole`, `rolebinding`, `clusterrolebinding`
//! <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#command-line-utilities>

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::flags::text;
use super::super::super::resources::find_kind;
use super::super::super::verb::{Call, Verb};
use super::{create_flags, generated, name_of};

pub const GROUP: &str = "rbac.authorization.k8s.io";

pub const ROLE: Verb = Verb {
    name: "create role",
    aliases: &[],
    flags: create_flags![text("verb"), text("resource"), text("resource-name")],
    run: |call| {
        let name = name_of(call)?;
        if !call.parsed.has("verb") {
            return message("at least one verb must be specified");
        }
        warn_of_verbs(call);
        if !call.parsed.has("resource") {
            return message("at least one resource must be specified");
        }
        let rules = resource_rules(call)?;
        generated::<Role>(call, json!({"metadata": {"name": name}, "rules": rules}), "")
    },
};

pub const CLUSTER_ROLE: Verb = Verb {
    name: "create clusterrole",
    aliases: &[],
    flags: create_flags![
        text("verb"),
        text("resource"),
        text("resource-name"),
        text("non-resource-url"),
        text("aggregation-rule"),
    ],
    run: cluster_role,
};

pub const ROLE_BINDING: Verb = Verb {
    name: "create rolebinding",
    aliases: &[],
    flags: create_flags![text("clusterrole"), text("role"), text("user"), text("group"), text("serviceaccount")],
    run: |call| {
        let name = name_of(call)?;
        let (kind, role) = match (call.parsed.text("role"), call.parsed.text("clusterrole")) {
            (Some(role), None) => ("Role", role.to_owned()),
            (None, Some(role)) => ("ClusterRole", role.to_owned()),
            _ => return message("exactly one of clusterrole or role must be specified"),
        };
        let binding = binding(call, &name, kind, &role)?;
        generated::<RoleBinding>(call, binding, "failed to create rolebinding: ")
    },
};

pub const CLUSTER_ROLE_BINDING: Verb = Verb {
    name: "create clusterrolebinding",
    aliases: &[],
    flags: create_flags![text("clusterrole"), text("user"), text("group"), text("serviceaccount")],
    run: |call| {
        call.require(&["clusterrole"])?;
        let name = name_of(call)?;
        let role = call.parsed.text("clusterrole").unwrap_or_default().to_owned();
        let binding = binding(call, &name, "ClusterRole", &role)?;
        generated::<ClusterRoleBinding>(call, binding, "failed to create clusterrolebinding: ")
    },
};

/// Verbs that mean something to resources, and to paths that are none.
const RESOURCE_VERBS: &[&str] = &[
    "*",
    "get",
    "delete",
    "list",
    "create",
    "update",
    "patch",
    "watch",
    "proxy",
    "deletecollection",
    "use",
    "bind",
    "escalate",
    "impersonate",
];
const PATH_VERBS: &[&str] = &["*", "get", "post", "put", "delete", "patch", "head", "options"];

/// Verbs that mean something to these resources only.
const SPECIAL_VERBS: &[(&str, &[(&str, &str)])] = &[
    ("use", &[("policy", "podsecuritypolicies"), ("extensions", "podsecuritypolicies")]),
    ("bind", &[(GROUP, "roles"), (GROUP, "clusterroles")]),
    ("escalate", &[(GROUP, "roles"), (GROUP, "clusterroles")]),
    ("impersonate", &[("", "users"), ("", "serviceaccounts"), ("", "groups"), ("authentication.k8s.io", "userextras")]),
];

fn warn_of_verbs(call: &mut Call<'_, '_>) {
    for verb in verbs(call).iter().filter(|verb| !RESOURCE_VERBS.contains(&verb.as_str())) {
        call.warn(format!("'{verb}' is not a standard resource verb"));
    }
}

fn cluster_role(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let mut role = json!({"metadata": {"name": name}});
    let parsed = &call.parsed;
    let others = ["non-resource-url", "verb", "resource", "resource-name"];
    if parsed.has("aggregation-rule") && others.iter().any(|flag| parsed.has(flag)) {
        return message(
            "aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames",
        );
    }
    if let Some(text) = call.parsed.text("aggregation-rule") {
        let labels: serde_json::Map<String, Value> = text
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect();
        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": labels}]});
        role["rules"] = Value::Null;
    } else {
        if !call.parsed.has("verb") {
            return message("at least one verb must be specified");
        }
        let paths: Vec<String> = call.parsed.list("non-resource-url").map(str::to_owned).collect();
        if paths.is_empty() && !call.parsed.has("resource") {
            return message("one of resource or nonResourceURL must be specified");
        }
        let mut rules = Vec::new();
        if call.parsed.has("resource") {
            warn_of_verbs(call);
            rules = resource_rules(call)?;
        }
        if !paths.is_empty() {
            if let Some(verb) = verbs(call).iter().find(|verb| !PATH_VERBS.contains(&verb.as_str())) {
                return message(format!("invalid verb: '{verb}' for nonResourceURL"));
            }
            if paths.iter().any(|path| path != "*" && !path.starts_with('/')) {
                return message("nonResourceURL should start with /");
            }
            if paths.iter().any(|path| path.strip_suffix('*').unwrap_or(path).contains('*')) {
                return message("nonResourceURL only supports wildcard matches when '*' is at the end");
            }
        }
        if !paths.is_empty() {
            rules.push(json!({"nonResourceURLs": paths, "verbs": verbs(call)}));
        }
        role["rules"] = rules.into();
    }
    generated::<ClusterRole>(call, role, "")
}

/// Each verb once; `*` stands for all others.
fn verbs(call: &Call<'_, '_>) -> Vec<String> {
    let mut verbs: Vec<String> = Vec::new();
    for verb in call.parsed.list("verb").map(str::trim) {
        if verb == "*" {
            return vec!["*".into()];
        }
        if !verbs.iter().any(|known| known == verb) {
            verbs.push(verb.to_owned());
        }
    }
    verbs
}

/// A rule for each group that the resources are of: `pods,deployments.apps/scale`.
fn resource_rules(call: &mut Call<'_, '_>) -> Result<Vec<Value>, Failure> {
    let kinds = call.context.api.kinds()?;
    let verbs = verbs(call);
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for word in call.parsed.list("resource") {
        let (word, subresource) = word.split_once('/').map_or((word, None), |(word, part)| (word, Some(part)));
        let (resource, group) = word.split_once('.').unwrap_or((word, ""));
        if resource.is_empty() {
            return message("resource must be specified if apiGroup/subresource specified");
        }
        let (group, resource) = match (resource, find_kind(&kinds, word)) {
            ("*", _) => (group.to_owned(), "*".to_owned()),
            (_, Some(kind)) => (kind.group.to_string(), kind.resource.to_string()),
            (resource, None) => (group.to_owned(), resource.to_owned()),
        };
        let mut known = resource == "*" || find_kind(&kinds, word).is_some();
        for (verb, meant) in SPECIAL_VERBS.iter().filter(|(verb, _)| verbs.iter().any(|asked| asked == verb)) {
            if resource == "*" {
                break;
            }
            if !meant.contains(&(group.as_str(), resource.as_str())) {
                return message(format!("can not perform '{verb}' on '{resource}' in group '{group}'"));
            }
            known = true;
        }
        if !known {
            let of_group = if group.is_empty() { String::new() } else { format!(" in group {group:?}") };
            return Err(Failure::Raw(format!("the server doesn't have a resource type {resource:?}{of_group}")));
        }
        let resource = subresource.map_or(resource.clone(), |part| format!("{resource}/{part}"));
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, resources)) if resources.contains(&resource) => {}
            Some((_, resources)) => resources.push(resource),
            None => groups.push((group, vec![resource])),
        }
    }
    groups.sort();
    let names: Vec<String> = call.parsed.all("resource-name").map(str::to_owned).collect();
    let rule = |(group, resources): (String, Vec<String>)| {
        let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        rule
    };
    Ok(groups.into_iter().map(rule).collect())
}

fn binding(call: &Call<'_, '_>, name: &str, kind: &str, role: &str) -> Result<Value, Failure> {
    let mut subjects = Vec::new();
    for (flag, subject) in [("user", "User"), ("group", "Group")] {
        for name in call.parsed.all(flag) {
            subjects.push(json!({"kind": subject, "apiGroup": GROUP, "name": name}));
        }
    }
    for account in call.parsed.all("serviceaccount") {
        match account.split_once(':') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains(':') => {
                subjects.push(json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}));
            }
            _ => return message("serviceaccount must be <namespace>:<name>"),
        }
    }
    let role = json!({"apiGroup": GROUP, "kind": kind, "name": role});
    let mut binding = json!({"metadata": {"name": name}, "roleRef": role});
    if !subjects.is_empty() {
        binding["subjects"] = subjects.into();
    }
    Ok(binding)
}
