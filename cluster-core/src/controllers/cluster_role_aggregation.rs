//! clusterrole-aggregation-controller: writes down which rules an aggregated ClusterRole gathers from others.
//! <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles>

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::store::Change;

pub struct ClusterRoleAggregationController;

impl Controller for ClusterRoleAggregationController {
    fn name(&self) -> &str {
        "clusterrole-aggregation-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::with(ClusterRole::kind(), roles_that_gather)]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(role) = view.get::<ClusterRole>(key) else { return plan };
        let Some(selectors) = selectors(role) else { return plan };
        let rules = gathered(role, &selectors, view);
        if rules != role.spec::<ClusterRole>().rules.as_deref().unwrap_or_default() {
            let mut filled = role.clone();
            filled.spec_mut::<ClusterRole>().rules = (!rules.is_empty()).then_some(rules);
            plan.update(filled, "the roles that it gathers have changed");
        }
        plan
    }
}

/// What it gathers from; `None` for a role with rules of its own.
fn selectors(role: &Object) -> Option<Vec<Selector>> {
    let rule = role.spec::<ClusterRole>().aggregation_rule.as_ref()?;
    Some(rule.cluster_role_selectors.iter().flatten().map(Selector::of).collect())
}

/// The rules of all other roles that are selected, each once, in the order of the selectors and of the roles' names.
fn gathered(role: &Object, selectors: &[Selector], view: &View<'_>) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in selectors {
        let others = view.list::<ClusterRole>("").filter(|other| other.key != role.key);
        for other in others.filter(|other| selector.matches(other.metadata().labels.as_ref())) {
            for rule in other.spec::<ClusterRole>().rules.iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}

/// Any role may be one that others gather from. A gathering one that another selects comes in by its own change.
fn roles_that_gather(view: &View<'_>, change: &Change) -> Vec<Key> {
    let changed: Vec<&Object> = [&change.before, &change.after].into_iter().flatten().collect();
    let concerned = |role: &&Object| {
        role.key == *change.key()
            || selectors(role).is_some_and(|selectors| {
                let selects = |other: &&Object| {
                    let labels = other.metadata().labels.as_ref();
                    selectors.iter().any(|selector| selector.matches(labels))
                };
                changed.iter().any(selects)
            })
    };
    let gathers = view.list::<ClusterRole>("").filter(|role| selectors(role).is_some());
    gathers.filter(concerned).map(|role| role.key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Cluster;
    use crate::controllers::testing::*;

    fn role(name: &str, part: bool, resources: &[&str]) -> Value {
        let labels = if part { json!({"part-of": "all"}) } else { json!({}) };
        let rule = |resource: &&str| json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"]});
        json!({"metadata": {"name": name, "labels": labels}, "rules": resources.iter().map(rule).collect::<Vec<_>>()})
    }

    fn rules(cluster: &Cluster) -> Vec<String> {
        let role = cluster.get::<ClusterRole>("", "all").unwrap().spec::<ClusterRole>();
        role.rules.iter().flatten().flat_map(|rule| rule.resources.clone().unwrap()).collect()
    }

    #[test]
    fn rules_are_gathered_once_by_name_and_follow() {
        let mut cluster = control_plane();
        create::<ClusterRole>(&mut cluster, role("b", true, &["pods", "nodes"]));
        create::<ClusterRole>(&mut cluster, role("a", true, &["pods"]));
        create::<ClusterRole>(&mut cluster, role("other", false, &["secrets"]));
        let selectors = json!({"clusterRoleSelectors": [{"matchLabels": {"part-of": "all"}}]});
        create::<ClusterRole>(&mut cluster, json!({"metadata": {"name": "all"}, "aggregationRule": selectors}));
        settle(&mut cluster);
        assert_eq!(rules(&cluster), ["pods", "nodes"]);
        patch::<ClusterRole>(&mut cluster, "other", json!({"metadata": {"labels": {"part-of": "all"}}})).unwrap();
        delete::<ClusterRole>(&mut cluster, "b").unwrap();
        settle(&mut cluster);
        assert_eq!(rules(&cluster), ["pods", "secrets"]);
    }

    #[test]
    fn the_roles_that_every_cluster_has_are_filled() {
        let mut cluster = control_plane();
        settle(&mut cluster);
        let view = cluster.get::<ClusterRole>("", "view").unwrap().spec::<ClusterRole>();
        assert!(view.rules.as_ref().is_some_and(|rules| !rules.is_empty()));
    }
}
