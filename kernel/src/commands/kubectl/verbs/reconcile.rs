//! `kubectl auth reconcile`: roles and bindings that grant what files say, as what is there and what is granted, not as
//! lists of fields.
//! <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#kubectl-auth-reconcile>

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::{Body, Options, Request, Verb as ApiVerb};
use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};

use super::super::client;
use super::super::failure::{Failure, Outcome};
use super::super::flags::switch;
use super::super::manifests::{FILENAME, KUSTOMIZE, RECURSIVE};
use super::super::output::{DRY_RUN, DryRun, OUTPUT, SHOW_MANAGED_FIELDS, TEMPLATE};
use super::super::resources::Item;
use super::super::verb::{Call, Verb};

const REMOVES_PERMISSIONS: &str = "remove-extra-permissions";
const REMOVES_SUBJECTS: &str = "remove-extra-subjects";
const GROUP: &str = "rbac.authorization.k8s.io";
/// Where it says "false", the server's own reconciliation keeps away, and so does this.
const PROTECTION: &str = "rbac.authorization.kubernetes.io/autoupdate";

pub const VERB: Verb = Verb {
    name: "auth reconcile",
    aliases: &[],
    flags: &[
        FILENAME,
        RECURSIVE,
        KUSTOMIZE,
        OUTPUT,
        TEMPLATE,
        SHOW_MANAGED_FIELDS,
        DRY_RUN,
        switch(REMOVES_PERMISSIONS),
        switch(REMOVES_SUBJECTS),
    ],
    run,
};

fn run(call: &mut Call<'_, '_>) -> Outcome {
    call.require_files()?;
    let dry_run = call.dry_run()?;
    call.format()?;
    for item in call.manifests()? {
        let of_group = *item.kind.group == *GROUP;
        match &*item.kind.kind {
            "Role" | "ClusterRole" if of_group => reconcile(call, &item, &RULES, dry_run)?,
            "RoleBinding" | "ClusterRoleBinding" if of_group => reconcile(call, &item, &SUBJECTS, dry_run)?,
            _ => {}
        }
    }
    Ok(())
}

/// What an object grants, as a list.
struct Grants {
    field: &'static str,
    /// What is told of it: missing ones, extra ones.
    missing: &'static str,
    extra: &'static str,
    removes: &'static str,
    /// The parts of the second list that the first does not grant.
    uncovered: fn(&[Value], &[Value]) -> Vec<Value>,
    shown: fn(&Value) -> String,
}

const RULES: Grants = Grants {
    field: "rules",
    missing: "missing rules added",
    extra: "extra rules removed",
    removes: REMOVES_PERMISSIONS,
    uncovered: uncovered_rules,
    shown: |rule| go(rule, RULE_FIELDS),
};
const SUBJECTS: Grants = Grants {
    field: "subjects",
    missing: "missing subjects added",
    extra: "extra subjects removed",
    removes: REMOVES_SUBJECTS,
    uncovered: |known, wanted| {
        wanted.iter().filter(|subject| !known.iter().any(|k| same(k, subject))).cloned().collect()
    },
    shown: |subject| go(subject, SUBJECT_FIELDS),
};

/// Fields as Go names them and as JSON does.
const RULE_FIELDS: &[(&str, &str)] = &[
    ("Verbs", "verbs"),
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("ResourceNames", "resourceNames"),
    ("NonResourceURLs", "nonResourceURLs"),
];
const SUBJECT_FIELDS: &[(&str, &str)] =
    &[("Kind", "kind"), ("APIGroup", "apiGroup"), ("Name", "name"), ("Namespace", "namespace")];

/// What has to be done to an object.
enum Operation {
    None,
    Create,
    Update,
    Recreate,
}

fn reconcile(call: &mut Call<'_, '_>, item: &Item, grants: &Grants, dry_run: DryRun) -> Outcome {
    let Item { kind, namespace, name, value: wanted, .. } = item;
    let existing = match call.get(kind, namespace, name) {
        Ok(existing) => Some(existing),
        Err(failure) if failure.is_not_found() => None,
        Err(failure) => return Err(failure),
    };
    let list = |value: &Value| value[grants.field].as_array().cloned().unwrap_or_default();
    let (mut missing, mut extra) = (Vec::new(), Vec::new());
    let (operation, result) = match existing {
        None => {
            missing = list(wanted);
            (Operation::Create, wanted.clone())
        }
        Some(existing) if existing["roleRef"] != wanted["roleRef"] => (Operation::Recreate, wanted.clone()),
        Some(existing) => {
            missing = (grants.uncovered)(&list(&existing), &list(wanted));
            extra = (grants.uncovered)(&list(wanted), &list(&existing));
            let removes = call.parsed.switch(grants.removes);
            let mut result = existing.clone();
            for field in ["labels", "annotations"] {
                for (key, value) in wanted["metadata"][field].as_object().into_iter().flatten() {
                    result["metadata"][field][key] = value.clone();
                }
            }
            if removes && !extra.is_empty() {
                result[grants.field] = list(wanted).into();
            } else if !missing.is_empty() {
                result[grants.field] = list(&existing).into_iter().chain(missing.iter().cloned()).collect();
            }
            if !removes {
                extra.clear();
            }
            (if result == existing { Operation::None } else { Operation::Update }, result)
        }
    };
    let protected = result["metadata"]["annotations"][PROTECTION] == "false";
    let result = match dry_run {
        DryRun::None if !protected => write(call, item, &operation, result)?,
        _ => result,
    };
    call.changed(&Item { value: result, ..item.clone() }, "reconciled", dry_run)?;
    let caveat = if protected { format!(", but object opted out ({PROTECTION}: false)") } else { String::new() };
    let what = match operation {
        Operation::None => return Ok(()),
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Recreate => "recreate",
    };
    call.context.error_line(format!("\treconciliation required {what}{caveat}"));
    for (title, list) in [(grants.missing, missing), (grants.extra, extra)] {
        if !list.is_empty() {
            call.context.error_line(format!("\t{title}:"));
            list.iter().for_each(|one| call.context.error_line(format!("\t\t{}", (grants.shown)(one))));
        }
    }
    Ok(())
}

fn write(call: &mut Call<'_, '_>, item: &Item, operation: &Operation, value: Value) -> Result<Value, Failure> {
    let Item { kind, namespace, name, .. } = item;
    let create = |call: &mut Call<'_, '_>, value| call.create(kind, namespace, value, Options::default());
    match operation {
        Operation::None => Ok(value),
        Operation::Create => {
            if kind.namespaced {
                let body = json!({"metadata": {"name": namespace}});
                match call.create(KindRef::of::<Namespace>(), "", body, Options::default()) {
                    Err(Failure::Server(status)) if status.reason == "AlreadyExists" => {}
                    Err(failure) => return Err(failure),
                    Ok(_) => {}
                }
            }
            create(call, value)
        }
        Operation::Update => {
            let request = client::request(ApiVerb::Update, kind, namespace, name);
            call.send_for_object(Request { body: Body::Json(value), ..request })
        }
        Operation::Recreate => {
            call.send_for_object(client::request(ApiVerb::Delete, kind, namespace, name))?;
            create(call, value)
        }
    }
}

fn same(one: &Value, other: &Value) -> bool {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    // Where no group is said, that of the kind is meant.
    let group = |value: &Value| match (text(value, "apiGroup").as_str(), text(value, "kind").as_str()) {
        ("", "User" | "Group") => GROUP.to_owned(),
        (group, _) => group.to_owned(),
    };
    group(one) == group(other)
        && ["kind", "name", "namespace"].iter().all(|field| text(one, field) == text(other, field))
}

/// The wanted rules, taken apart to single verbs and resources, that no known rule covers.
/// (`Covers` of k8s.io/component-helpers/auth/rbac/validation)
fn uncovered_rules(known: &[Value], wanted: &[Value]) -> Vec<Value> {
    let parts = wanted.iter().flat_map(taken_apart);
    parts.filter(|part| !known.iter().any(|rule| covers(rule, part))).collect()
}

fn texts<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn taken_apart(rule: &Value) -> Vec<Value> {
    let mut parts = Vec::new();
    let names = texts(rule, "resourceNames");
    for group in texts(rule, "apiGroups") {
        for resource in texts(rule, "resources") {
            for verb in texts(rule, "verbs") {
                let part = json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
                if names.is_empty() {
                    parts.push(part.clone());
                }
                for name in &names {
                    let mut part = part.clone();
                    part["resourceNames"] = json!([name]);
                    parts.push(part);
                }
            }
        }
    }
    for url in texts(rule, "nonResourceURLs") {
        parts.extend(texts(rule, "verbs").iter().map(|verb| json!({"nonResourceURLs": [url], "verbs": [verb]})));
    }
    parts
}

fn covers(rule: &Value, part: &Value) -> bool {
    let holds = |field: &str| {
        let known = texts(rule, field);
        known.contains(&"*") || texts(part, field).iter().all(|wanted| known.contains(wanted))
    };
    let resource = |wanted: &&str| {
        let known = texts(rule, "resources");
        let whatever = wanted.split_once('/').map(|(_, part)| format!("*/{part}"));
        known.iter().any(|known| *known == "*" || known == wanted || Some(*known) == whatever.as_deref())
    };
    let names = texts(rule, "resourceNames");
    let wanted_names = texts(part, "resourceNames");
    let named = names.is_empty() || !wanted_names.is_empty() && wanted_names.iter().all(|name| names.contains(name));
    let url = |wanted: &&str| {
        texts(rule, "nonResourceURLs")
            .iter()
            .any(|known| known == wanted || known.strip_suffix('*').is_some_and(|start| wanted.starts_with(start)))
    };
    holds("verbs")
        && holds("apiGroups")
        && texts(part, "resources").iter().all(resource)
        && named
        && texts(part, "nonResourceURLs").iter().all(url)
}

/// As Go prints a struct: `{Verbs:[get] APIGroups:[] …}`.
fn go(value: &Value, fields: &[(&str, &str)]) -> String {
    let shown = |name: &str| match &value[name] {
        Value::Array(items) => format!("[{}]", items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        Value::String(text) => text.clone(),
        _ if fields == RULE_FIELDS => "[]".to_owned(),
        _ => String::new(),
    };
    let fields: Vec<String> = fields.iter().map(|(name, field)| format!("{name}:{}", shown(field))).collect();
    format!("{{{}}}", fields.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rule_does_not_grant_is_told_in_parts() {
        let known = [json!({"apiGroups": [""], "resources": ["pods", "*/scale"], "verbs": ["get", "list"]})];
        let wanted = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "watch"]});
        let missing = uncovered_rules(&known, &[wanted]);
        let shown: Vec<String> = missing.iter().map(|rule| go(rule, RULE_FIELDS)).collect();
        assert_eq!(shown, ["{Verbs:[watch] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}"]);
        let scale = json!({"apiGroups": [""], "resources": ["replicationcontrollers/scale"], "verbs": ["get"]});
        assert!(uncovered_rules(&known, &[scale]).is_empty());
        let one = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"]});
        assert!(uncovered_rules(&known, std::slice::from_ref(&one)).is_empty());
        assert_eq!(uncovered_rules(&[one], &known).len(), 4);
    }
}
