//! Roles and their bindings. <https://kubernetes.io/docs/reference/access-authn-authz/rbac/>

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use serde_json::json;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::shown::Struct;
use crate::apiserver::validation::{names, selectors};

const GROUP: &str = "rbac.authorization.k8s.io";

pub struct Roles;

impl Strategy for Roles {
    fn check_name(&self, name: &str) -> Vec<String> {
        names::path_segment(name)
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let mut causes = Causes::new();
        rules(&mut causes, object.spec::<Role>().rules.as_deref(), true);
        causes.into()
    }

    fn creates_on_update(&self) -> bool {
        true
    }
}

pub struct ClusterRoles;

impl Strategy for ClusterRoles {
    fn check_name(&self, name: &str) -> Vec<String> {
        names::path_segment(name)
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (role, mut causes) = (object.spec::<ClusterRole>(), Causes::new());
        rules(&mut causes, role.rules.as_deref(), false);
        if let Some(aggregation) = &role.aggregation_rule {
            let path = Path::new("aggregationRule.clusterRoleSelectors");
            let chosen = aggregation.cluster_role_selectors.as_deref().unwrap_or_default();
            if chosen.is_empty() {
                causes.required(&path, "at least one clusterRoleSelector required if aggregationRule is non-nil");
            }
            for (index, selector) in chosen.iter().enumerate() {
                selectors::label_selector(&mut causes, &path.index(index), Some(selector));
            }
        }
        causes.into()
    }

    fn creates_on_update(&self) -> bool {
        true
    }
}

pub struct RoleBindings;

impl Strategy for RoleBindings {
    fn check_name(&self, name: &str) -> Vec<String> {
        names::path_segment(name)
    }

    fn default(&self, object: &mut Object) {
        let binding = object.spec_mut::<RoleBinding>();
        default_groups(&mut binding.role_ref, binding.subjects.as_deref_mut().unwrap_or_default());
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let binding = object.spec::<RoleBinding>();
        validate_binding(&binding.role_ref, binding.subjects.as_deref().unwrap_or_default(), true)
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        same_role(&old.spec::<RoleBinding>().role_ref, &new.spec::<RoleBinding>().role_ref)
    }

    fn creates_on_update(&self) -> bool {
        true
    }
}

pub struct ClusterRoleBindings;

impl Strategy for ClusterRoleBindings {
    fn check_name(&self, name: &str) -> Vec<String> {
        names::path_segment(name)
    }

    fn default(&self, object: &mut Object) {
        let binding = object.spec_mut::<ClusterRoleBinding>();
        default_groups(&mut binding.role_ref, binding.subjects.as_deref_mut().unwrap_or_default());
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let binding = object.spec::<ClusterRoleBinding>();
        validate_binding(&binding.role_ref, binding.subjects.as_deref().unwrap_or_default(), false)
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        same_role(&old.spec::<ClusterRoleBinding>().role_ref, &new.spec::<ClusterRoleBinding>().role_ref)
    }

    fn creates_on_update(&self) -> bool {
        true
    }
}

fn rules(causes: &mut Causes, rules: Option<&[PolicyRule]>, namespaced: bool) {
    for (index, rule) in rules.unwrap_or_default().iter().enumerate() {
        let path = Path::new("rules").index(index);
        let is_empty = |list: &Option<Vec<String>>| list.as_ref().is_none_or(|list| list.is_empty());
        if rule.verbs.is_empty() {
            causes.required(&path.child("verbs"), "verbs must contain at least one value");
        }
        if !is_empty(&rule.non_resource_urls) {
            let mut refuse =
                |detail| causes.invalid(&path.child("nonResourceURLs"), json!(rule.non_resource_urls), detail);
            if namespaced {
                refuse("namespaced rules cannot apply to non-resource URLs");
            }
            if ![&rule.api_groups, &rule.resources, &rule.resource_names].into_iter().all(is_empty) {
                refuse("rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if is_empty(&rule.api_groups) {
            causes.required(&path.child("apiGroups"), "resource rules must supply at least one api group");
        }
        if is_empty(&rule.resources) {
            causes.required(&path.child("resources"), "resource rules must supply at least one resource");
        }
    }
}

fn default_groups(role: &mut RoleRef, subjects: &mut [Subject]) {
    role.api_group.take_if(|group| group.is_empty());
    role.api_group.get_or_insert_with(|| GROUP.into());
    for subject in subjects.iter_mut().filter(|subject| matches!(&*subject.kind, "User" | "Group")) {
        subject.api_group.take_if(|group| group.is_empty());
        subject.api_group.get_or_insert_with(|| GROUP.into());
    }
}

fn validate_binding(role: &RoleRef, subjects: &[Subject], namespaced: bool) -> Vec<Cause> {
    let (mut causes, path) = (Causes::new(), Path::new("roleRef"));
    causes.one_of(&path.child("apiGroup"), role.api_group.as_deref(), &[GROUP]);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    causes.one_of(&path.child("kind"), Some(&role.kind), kinds);
    if role.name.is_empty() {
        causes.required(&path.child("name"), "");
    } else {
        causes.invalid_each(&path.child("name"), &role.name, names::path_segment(&role.name));
    }
    for (index, subject) in subjects.iter().enumerate() {
        validate_subject(&mut causes, &Path::new("subjects").index(index), subject, namespaced);
    }
    causes.into()
}

fn validate_subject(causes: &mut Causes, path: &Path, subject: &Subject, namespaced: bool) {
    if subject.name.is_empty() {
        causes.required(&path.child("name"), "");
    }
    match subject.kind.as_str() {
        "ServiceAccount" => {
            if !subject.name.is_empty() {
                causes.invalid_each(&path.child("name"), &subject.name, names::dns_subdomain(&subject.name));
            }
            causes.one_of(&path.child("apiGroup"), subject.api_group.as_deref(), &[""]);
            if !namespaced && subject.namespace.as_deref().unwrap_or_default().is_empty() {
                causes.required(&path.child("namespace"), "");
            }
        }
        "User" | "Group" => causes.one_of(&path.child("apiGroup"), subject.api_group.as_deref(), &[GROUP]),
        other => causes.not_supported(&path.child("kind"), other, &["ServiceAccount", "User", "Group"]),
    }
}

fn same_role(old: &RoleRef, new: &RoleRef) -> Vec<Cause> {
    if old == new {
        return Vec::new();
    }
    let shown = [("APIGroup", json!(new.api_group)), ("Kind", json!(new.kind)), ("Name", json!(new.name))];
    let mut causes = Causes::new();
    causes.invalid_struct(&Path::new("roleRef"), Struct(&shown), "cannot change roleRef");
    causes.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn a_binding_is_completed_and_keeps_its_role() {
        let mut api = Api::new::<RoleBinding>();
        let binding = json!({
            "metadata": {"name": "b:1"}, "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "jane"}, {"kind": "ServiceAccount", "name": "bot"}],
        });
        let made = api.put(binding).unwrap();
        assert_eq!(made["roleRef"]["apiGroup"], GROUP);
        assert_eq!(made["subjects"][0]["apiGroup"], GROUP);
        assert_eq!(made["subjects"][1].get("apiGroup"), None);
        assert_eq!(
            api.merge_refusal("b:1", json!({"roleRef": {"name": "other"}})),
            [
                "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"other\"}: \
              cannot change roleRef"
            ]
        );
    }

    #[test]
    fn rules_need_verbs_and_what_they_apply_to() {
        let mut api = Api::new::<Role>();
        let rules = json!([{"apiGroups": [""], "resources": ["pods"]}, {"verbs": ["get"], "nonResourceURLs": ["/x"]}]);
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "r"}, "rules": rules})),
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[1].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
            ]
        );
        let binding = json!({"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"}});
        assert_eq!(
            api.of::<ClusterRoleBinding>().refusal(binding),
            ["roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""]
        );
    }
}
