//! ResourceQuotas. <https://kubernetes.io/docs/concepts/policy/resource-quotas/>

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec, ScopedResourceSelectorRequirement};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::json;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::{names, resources};

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
const OPPOSITES: [(&str, &str); 2] = [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")];

/// Scopes that select by what they are, not by values.
const WITHOUT_VALUES: [&str; 5] =
    ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];

const RESOURCES: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "storage",
];

pub struct Rules;

impl Strategy for Rules {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<ResourceQuota>(), Path::new("spec"), Causes::new());
        amounts(&mut causes, &path.child("hard"), spec.hard.as_ref());
        scopes(&mut causes, &path, spec);
        let selector_path = path.child("scopeSelector.matchExpressions");
        let requirements = spec.scope_selector.iter().flat_map(|selector| &selector.match_expressions).flatten();
        let mut selected = BTreeSet::new();
        for requirement in requirements {
            scope_requirement(&mut causes, &selector_path, requirement);
            selected.insert(requirement.scope_name.as_str());
        }
        conflicts(&mut causes, &selector_path, &selected, spec);
        causes.into()
    }

    fn validate_update(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new, mut causes) = (old.spec::<ResourceQuota>(), new.spec::<ResourceQuota>(), Causes::new());
        let scopes = |spec: &ResourceQuotaSpec| spec.scopes.iter().flatten().cloned().collect::<BTreeSet<_>>();
        if scopes(old) != scopes(new) {
            causes.invalid(&Path::new("spec.scopes"), json!(new.scopes), "field is immutable");
        }
        causes.into()
    }

    fn validate_status_update(&self, _: &Object, new: &Object) -> Vec<Cause> {
        let (status, mut causes) = (new.status::<ResourceQuota>(), Causes::new());
        amounts(&mut causes, &Path::new("status.hard"), status.hard.as_ref());
        amounts(&mut causes, &Path::new("status.used"), status.used.as_ref());
        causes.into()
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

fn amounts(causes: &mut Causes, path: &Path, amounts: Option<&BTreeMap<String, Quantity>>) {
    for (name, amount) in amounts.into_iter().flatten() {
        let path = path.key(name);
        causes.invalid_each(&path, name, names::qualified_name(name));
        let known = RESOURCES.contains(&name.as_str())
            || ["hugepages-", "requests.hugepages-", "limits.hugepages-"].iter().any(|prefix| name.starts_with(prefix));
        if !name.contains('/') && !known {
            causes.invalid(&path, name.as_str(), "must be a standard resource for quota");
        }
        resources::amount(causes, &path, name, amount);
    }
}

fn scopes(causes: &mut Causes, path: &Path, spec: &ResourceQuotaSpec) {
    let path = path.child("scopes");
    let scopes = spec.scopes.as_deref().unwrap_or_default();
    for _ in scopes.iter().filter(|scope| !SCOPES.contains(&scope.as_str())) {
        causes.invalid(&path, json!(scopes), "unsupported scope");
    }
    conflicts(causes, &path, &scopes.iter().map(String::as_str).collect(), spec);
}

fn conflicts(causes: &mut Causes, path: &Path, scopes: &BTreeSet<&str>, spec: &ResourceQuotaSpec) {
    for _ in OPPOSITES.iter().filter(|(one, other)| scopes.contains(one) && scopes.contains(other)) {
        causes.invalid(path, json!(spec.scopes), "conflicting scopes");
    }
}

fn scope_requirement(causes: &mut Causes, path: &Path, requirement: &ScopedResourceSelectorRequirement) {
    let ScopedResourceSelectorRequirement { operator, scope_name, values } = requirement;
    if !SCOPES.contains(&scope_name.as_str()) {
        causes.invalid(&path.child("scopeName"), scope_name.as_str(), "unsupported scope");
    }
    if WITHOUT_VALUES.contains(&scope_name.as_str()) && operator != "Exists" {
        let detail = "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, \
                      ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
                      ResourceQuotaScopeCrossNamespacePodAffinity";
        causes.invalid(&path.child("operator"), operator.as_str(), detail);
    }
    let values = values.as_deref().unwrap_or_default();
    match operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            causes.required(&path.child("values"), detail);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "must be no value when `operator` is 'Exists' or 'DoesNotExist' for scope selector";
            causes.invalid(&path.child("values"), json!(values), detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => causes.invalid(&path.child("operator"), other, "not a valid selector operator"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn resources_and_scopes_are_known_ones() {
        let mut api = Api::new::<ResourceQuota>();
        let spec = json!({"hard": {"pods": "1500m", "teapots": "1"}, "scopes": ["BestEffort", "NotBestEffort"]});
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "a"}, "spec": spec})),
            [
                "spec.hard[pods]: Invalid value: \"1500m\": must be an integer",
                "spec.hard[teapots]: Invalid value: \"teapots\": must be a standard resource for quota",
                "spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes",
            ]
        );
        api.create(json!({"metadata": {"name": "a"}, "spec": {"scopes": ["BestEffort"]}})).unwrap();
        assert_eq!(
            api.merge_refusal("a", json!({"spec": {"scopes": ["Terminating"]}})),
            ["spec.scopes: Invalid value: [\"Terminating\"]: field is immutable"]
        );
    }
}
