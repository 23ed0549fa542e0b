//! `kubectl create role`, `clusterrole`, `rolebinding`, `clusterrolebinding`
//! <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#command-line-utilities>

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde_json::{Value, json};

use super::super::super::failure::{Failure, Outcome, message};
use super::super::super::flags::text;
use super::super::super::resources::find_kind;
use super::super::super::verb::{Call, Verb};
use super::{create_flags, generated, name_of};

const GROUP: &str = "rbac.authorization.k8s.io";

pub const ROLE: Verb = Verb {
    name: "create role",
    aliases: &[],
    about: "Create a role with single rule",
    usage: "create role NAME --verb=verb --resource=resource.group/subresource [--resource-name=resourcename] [--dry-run=server|client|none] [options]",
    flags: create_flags![text("verb"), text("resource"), text("resource-name")],
    run: |call| {
        let name = name_of(call)?;
        if !call.parsed.has("verb") {
            return message("at least one verb must be specified");
        }
        if !call.parsed.has("resource") {
            return message("at least one resource must be specified");
        }
        let rules = resource_rules(call)?;
        generated::<Role>(call, json!({"metadata": {"name": name}, "rules": rules}), "failed to create role: ")
    },
};

pub const CLUSTER_ROLE: Verb = Verb {
    name: "create clusterrole",
    aliases: &[],
    about: "Create a cluster role",
    usage: "create clusterrole NAME --verb=verb --resource=resource.group [--resource-name=resourcename] [--dry-run=server|client|none] [options]",
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
    about: "Create a role binding for a particular role or cluster role",
    usage: "create rolebinding NAME --clusterrole=NAME|--role=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none] [options]",
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
    about: "Create a cluster role binding for a particular cluster role",
    usage: "create clusterrolebinding NAME --clusterrole=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none] [options]",
    flags: create_flags![text("clusterrole"), text("user"), text("group"), text("serviceaccount")],
    run: |call| {
        let name = name_of(call)?;
        let Some(role) = call.parsed.text("clusterrole").map(str::to_owned) else {
            return message("clusterrole must be specified");
        };
        let binding = binding(call, &name, "ClusterRole", &role)?;
        generated::<ClusterRoleBinding>(call, binding, "failed to create clusterrolebinding: ")
    },
};

fn cluster_role(call: &mut Call<'_, '_>) -> Outcome {
    let name = name_of(call)?;
    let mut role = json!({"metadata": {"name": name}});
    if let Some(text) = call.parsed.text("aggregation-rule") {
        let labels: serde_json::Map<String, Value> = text
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect();
        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": labels}]});
        role["rules"] = json!([]);
    } else {
        if !call.parsed.has("verb") {
            return message("at least one verb must be specified");
        }
        let paths: Vec<String> = call.parsed.list("non-resource-url").map(str::to_owned).collect();
        if paths.is_empty() && !call.parsed.has("resource") {
            return message("one of resource or nonResourceURL must be specified");
        }
        let mut rules = if call.parsed.has("resource") { resource_rules(call)? } else { Vec::new() };
        if !paths.is_empty() {
            rules.push(json!({"nonResourceURLs": paths, "verbs": verbs(call)}));
        }
        role["rules"] = rules.into();
    }
    generated::<ClusterRole>(call, role, "failed to create clusterrole: ")
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
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for word in call.parsed.list("resource") {
        let (word, subresource) = word.split_once('/').map_or((word, None), |(word, part)| (word, Some(part)));
        let (group, resource) = match word {
            "*" => (String::new(), "*".to_owned()),
            _ => {
                let missing = || Failure::Raw(format!("the server doesn't have a resource type {word:?}"));
                let kind = find_kind(&kinds, word).ok_or_else(missing)?;
                (kind.group.to_string(), kind.resource.to_string())
            }
        };
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
        let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs(call)});
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
        for name in call.parsed.list(flag) {
            subjects.push(json!({"kind": subject, "apiGroup": GROUP, "name": name}));
        }
    }
    for account in call.parsed.list("serviceaccount") {
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
