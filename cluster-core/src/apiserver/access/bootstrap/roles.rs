//! The default roles and who has them.
//! <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings>

use k8s_openapi::api::rbac::v1::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::super::rbac::GROUP;
use super::lines;
use crate::api::object::Object;

const CLUSTER_ROLES: &str = include_str!("cluster_roles.txt");
const CLUSTER_ROLE_BINDINGS: &str = include_str!("cluster_role_bindings.txt");
const ROLES: &str = include_str!("roles.txt");
const ROLE_BINDINGS: &str = include_str!("role_bindings.txt");

const CONTROLLER: &str = "system:controller:";

pub fn all() -> impl Iterator<Item = Object> {
    let cluster_roles = sections(CLUSTER_ROLES).map(cluster_role);
    let of_controllers = sections(CLUSTER_ROLES)
        .filter_map(|section| section.name.strip_prefix(CONTROLLER))
        .map(|name| cluster_role_binding(&format!("{CONTROLLER}{name}"), vec![service_account("kube-system", name)]));
    let of_others = lines(CLUSTER_ROLE_BINDINGS).map(|line| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        cluster_role_binding(name, words.map(subject).collect())
    });
    let roles = sections(ROLES).map(|section| {
        let (namespace, name) = section.name.split_once('/').unwrap_or_default();
        let role = Role { rules: Some(section.rules), metadata: ObjectMeta::default() };
        described(Object::new::<Role>(namespace, name, role))
    });
    let role_bindings = lines(ROLE_BINDINGS).map(role_binding);
    cluster_roles.chain(of_controllers).chain(of_others).chain(roles).chain(role_bindings)
}

/// A role of a table: a line with its name and what it takes part in, then its rules.
struct Section {
    name: &'static str,
    part_of: Option<&'static str>,
    gathers: Option<&'static str>,
    rules: Vec<PolicyRule>,
}

fn sections(table: &'static str) -> impl Iterator<Item = Section> {
    let mut lines = lines(table).peekable();
    std::iter::from_fn(move || {
        let mut head = lines.next()?.split(' ');
        let mut section =
            Section { name: head.next().unwrap_or_default(), part_of: None, gathers: None, rules: Vec::new() };
        for word in head {
            match word.split_at(1) {
                ("+", role) => section.part_of = Some(role),
                (_, role) => section.gathers = Some(role),
            }
        }
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            section.rules.extend(rule(line.trim_start()));
        }
        Some(section)
    })
}

/// `apps deployments read`, `"" configmaps=settings get`, `path /healthz get`; `None` for anything else.
pub fn rule(line: &str) -> Option<PolicyRule> {
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut words = line.split(' ');
    let (place, what, verbs) = (words.next()?, words.next()?, words.next()?);
    let verbs = list(match verbs {
        "read" => "get,list,watch",
        "write" => "create,delete,deletecollection,patch,update",
        "crud" => "create,delete,deletecollection,get,list,patch,update,watch",
        verbs => verbs,
    });
    if place == "path" {
        return Some(PolicyRule { non_resource_urls: Some(list(what)), verbs, ..PolicyRule::default() });
    }
    let (resources, names) = what.split_once('=').map_or((what, None), |(what, names)| (what, Some(names)));
    Some(PolicyRule {
        api_groups: Some(list(&place.replace("\"\"", ""))),
        resources: Some(list(resources)),
        resource_names: names.map(list),
        verbs,
        ..PolicyRule::default()
    })
}

fn cluster_role(section: Section) -> Object {
    let label = |role: &str| format!("rbac.authorization.k8s.io/aggregate-to-{role}");
    let selector = |role: &str| LabelSelector {
        match_labels: Some([(label(role), "true".to_owned())].into()),
        ..LabelSelector::default()
    };
    let role = ClusterRole {
        aggregation_rule: section
            .gathers
            .map(|role| AggregationRule { cluster_role_selectors: Some(vec![selector(role)]) }),
        // The controller of aggregated roles fills them.
        rules: section.gathers.is_none().then_some(section.rules),
        metadata: ObjectMeta::default(),
    };
    let mut object = described(Object::new::<ClusterRole>("", section.name, role));
    if let Some(role) = section.part_of {
        object.metadata_mut().labels.get_or_insert_default().insert(label(role), "true".into());
    }
    object
}

fn cluster_role_binding(name: &str, subjects: Vec<Subject>) -> Object {
    let subjects = (!subjects.is_empty()).then_some(subjects);
    let binding =
        ClusterRoleBinding { role_ref: reference("ClusterRole", name), subjects, metadata: ObjectMeta::default() };
    described(Object::new::<ClusterRoleBinding>("", name, binding))
}

fn role_binding(line: &str) -> Object {
    let mut words = line.split(' ');
    let (namespace, name) = words.next().and_then(|word| word.split_once('/')).unwrap_or_default();
    let role_ref = reference("Role", words.next().unwrap_or_default());
    let subjects = Some(words.map(subject).collect());
    described(Object::new::<RoleBinding>(
        namespace,
        name,
        RoleBinding { role_ref, subjects, metadata: ObjectMeta::default() },
    ))
}

fn reference(kind: &str, name: &str) -> RoleRef {
    RoleRef { api_group: Some(GROUP.into()), kind: kind.into(), name: name.into() }
}

/// `User:NAME`, `Group:NAME`, `ServiceAccount:NAMESPACE/NAME`.
pub fn subject(word: &str) -> Subject {
    let (kind, name) = word.split_once(':').unwrap_or_default();
    match name.split_once('/') {
        Some((namespace, name)) => service_account(namespace, name),
        None => Subject { api_group: Some(GROUP.into()), kind: kind.into(), name: name.into(), namespace: None },
    }
}

fn service_account(namespace: &str, name: &str) -> Subject {
    let namespace = Some(namespace.to_owned());
    Subject { api_group: None, kind: "ServiceAccount".into(), name: name.into(), namespace }
}

/// Marks an object as one that the server keeps up to date.
fn described(mut object: Object) -> Object {
    let metadata = object.metadata_mut();
    metadata.labels = Some([("kubernetes.io/bootstrapping".to_owned(), "rbac-defaults".to_owned())].into());
    metadata.annotations = Some([("rbac.authorization.kubernetes.io/autoupdate".to_owned(), "true".to_owned())].into());
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_to_the_last_line() {
        let rules: usize = [CLUSTER_ROLES, ROLES].into_iter().flat_map(sections).map(|role| role.rules.len()).sum();
        let written = [CLUSTER_ROLES, ROLES].into_iter().flat_map(lines).filter(|line| line.starts_with(' ')).count();
        assert_eq!(rules, written);
        let named = |kind: &str| all().filter(|object| *object.kind.kind == *kind).count();
        assert_eq!(
            (named("ClusterRole"), named("ClusterRoleBinding"), named("Role"), named("RoleBinding")),
            (69, 50, 7, 7)
        );
        assert!(all().all(|object| !object.key.name.is_empty()));
    }

    #[test]
    fn a_rule_is_a_line() {
        let read = rule("\"\",events.k8s.io events=one read").unwrap();
        assert_eq!(read.api_groups.unwrap(), ["", "events.k8s.io"]);
        assert_eq!(read.resource_names.unwrap(), ["one"]);
        assert_eq!(read.verbs, ["get", "list", "watch"]);
        assert_eq!(rule("path /livez get").unwrap().non_resource_urls.unwrap(), ["/livez"]);
    }
}
