//! What objects use of what a ResourceQuota counts: asked when an object is admitted, and when a quota is counted anew.
//! <https://kubernetes.io/docs/concepts/policy/resource-quotas/>

mod claims;
pub mod pods;
mod services;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaSpec, ScopedResourceSelectorRequirement, Service,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::quantity;

/// Amounts by the names of resources.
pub type Amounts = BTreeMap<String, Quantity>;

/// Kinds whose objects are also counted under their plain name.
const COUNTED_BY_NAME: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

/// What an object uses, by the names that quotas count.
pub fn usage(object: &Object) -> Amounts {
    let mut used = Amounts::from([(count_name(&object.kind), one())]);
    if object.is::<Pod>() {
        used.extend(pods::usage(object));
    } else if object.is::<Service>() {
        used.extend(services::usage(object));
    } else if object.is::<PersistentVolumeClaim>() {
        used.extend(claims::usage(object));
    } else if object.kind.group.is_empty() && COUNTED_BY_NAME.contains(&&*object.kind.resource) {
        used.insert(object.kind.resource.to_string(), one());
    }
    used
}

/// Objects of this kind use this resource.
pub fn counts(kind: &KindRef, resource: &str) -> bool {
    if resource == count_name(kind) {
        return true;
    }
    match (&*kind.group, &*kind.resource) {
        ("", "pods") => pods::counts(resource),
        ("", "services") => services::counts(resource),
        ("", "persistentvolumeclaims") => claims::counts(resource),
        ("", name) => COUNTED_BY_NAME.contains(&name) && name == resource,
        _ => false,
    }
}

/// The quota is about such objects, in all of its scopes.
pub fn is_in_scopes(quota: &ResourceQuotaSpec, object: &Object) -> bool {
    let plain = quota.scopes.iter().flatten().map(|scope| ScopedResourceSelectorRequirement {
        scope_name: scope.clone(),
        operator: "Exists".into(),
        values: None,
    });
    let selected =
        quota.scope_selector.iter().flat_map(|selector| selector.match_expressions.iter().flatten().cloned());
    plain.chain(selected).all(|scope| {
        if object.is::<Pod>() {
            pods::is_in_scope(&scope, object)
        } else {
            object.is::<PersistentVolumeClaim>() && claims::is_in_scope(&scope, object)
        }
    })
}

/// What the objects of a namespace use of a quota's resources, each resource with at least 0.
pub fn total<'a>(quota: &Object, objects: impl Iterator<Item = &'a Object>) -> Amounts {
    let spec = quota.spec::<ResourceQuota>();
    let hard = spec.hard.clone().unwrap_or_default();
    let mut total: Amounts = hard.keys().map(|name| (name.clone(), zero())).collect();
    for object in objects.filter(|object| is_in_scopes(spec, object)) {
        total = add(&total, &mask(&usage(object), &hard));
    }
    total
}

/// `count/pods`, `count/deployments.apps`.
fn count_name(kind: &KindRef) -> String {
    format!("count/{}", kind.qualified_resource())
}

fn one() -> Quantity {
    Quantity("1".into())
}

fn zero() -> Quantity {
    Quantity("0".into())
}

fn whole(number: usize) -> Quantity {
    Quantity(number.to_string())
}

/// An amount in a scope's list of values, as the operators of selectors read it.
fn selects(scope: &ScopedResourceSelectorRequirement, name: Option<&str>) -> bool {
    let listed = |name: &str| scope.values.iter().flatten().any(|value| value == name);
    match scope.operator.as_str() {
        "Exists" => name.is_some(),
        "DoesNotExist" => name.is_none(),
        "In" => name.is_some_and(listed),
        "NotIn" => !name.is_some_and(listed),
        _ => false,
    }
}

pub fn compare(one: &Quantity, other: &Quantity) -> Ordering {
    let amount = |quantity: &Quantity| quantity::parse(&quantity.0).unwrap_or(0);
    amount(one).cmp(&amount(other))
}

pub fn is_zero(amount: &Quantity) -> bool {
    compare(amount, &zero()) == Ordering::Equal
}

/// Both together. An amount is shown in the format of the one that is not zero.
pub fn add(one: &Amounts, other: &Amounts) -> Amounts {
    combine(one, other, |one, other| match is_zero(one) {
        true => quantity::sum([other].into_iter()),
        false => quantity::sum([one, other].into_iter()),
    })
}

/// What is left of the first; below zero where the second is more.
pub fn subtract(one: &Amounts, other: &Amounts) -> Amounts {
    let negative = |amount: &Quantity| match amount.0.strip_prefix('-') {
        Some(positive) => Quantity(positive.to_owned()),
        None => Quantity(format!("-{}", amount.0)),
    };
    add(one, &other.iter().map(|(name, amount)| (name.clone(), negative(amount))).collect())
}

/// The larger of both, by resource.
fn larger(one: &Amounts, other: &Amounts) -> Amounts {
    combine(one, other, |one, other| match compare(one, other) {
        Ordering::Less => other.clone(),
        _ => one.clone(),
    })
}

fn combine(one: &Amounts, other: &Amounts, with: impl Fn(&Quantity, &Quantity) -> Quantity) -> Amounts {
    let mut all = one.clone();
    for (name, amount) in other {
        let combined = all.get(name).map_or_else(|| amount.clone(), |known| with(known, amount));
        all.insert(name.clone(), combined);
    }
    all
}

/// Those amounts whose resources the other list has, too.
pub fn mask(amounts: &Amounts, names: &Amounts) -> Amounts {
    amounts.iter().filter(|(name, _)| names.contains_key(*name)).map(|(name, a)| (name.clone(), a.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::kind::Resource;

    fn amounts(pairs: &[(&str, &str)]) -> Amounts {
        pairs.iter().map(|(name, amount)| (name.to_string(), Quantity(amount.to_string()))).collect()
    }

    fn pod(spec: serde_json::Value) -> Object {
        Object::from_json(Pod::kind(), json!({"metadata": {"name": "a", "namespace": "n"}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_pod_uses_requests_and_limits() {
        let pod = pod(json!({"containers": [
            {"name": "a", "resources": {"requests": {"cpu": "250m"}, "limits": {"memory": "128Mi"}}},
            {"name": "b", "resources": {"requests": {"cpu": "1", "example.com/gpu": "2"}, "limits": {"memory": "256Mi"}}},
        ]}));
        let expected = amounts(&[
            ("count/pods", "1"),
            ("cpu", "1250m"),
            ("limits.memory", "384Mi"),
            ("pods", "1"),
            ("requests.cpu", "1250m"),
            ("requests.example.com/gpu", "2"),
        ]);
        assert_eq!(usage(&pod), expected);
    }

    #[test]
    fn services_count_their_ports_and_claims_their_class() {
        let object = |kind, json| Object::from_json(kind, json).unwrap();
        let service = object(
            Service::kind(),
            json!({"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]}}),
        );
        let expected = amounts(&[
            ("count/services", "1"),
            ("services", "1"),
            ("services.loadbalancers", "1"),
            ("services.nodeports", "2"),
        ]);
        assert_eq!(usage(&service), expected);
        let claim = object(
            PersistentVolumeClaim::kind(),
            json!({"metadata": {"name": "c"}, "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}}}),
        );
        assert_eq!(usage(&claim)["fast.storageclass.storage.k8s.io/requests.storage"].0, "5Gi");
        assert!(counts(&claim.kind, "fast.storageclass.storage.k8s.io/persistentvolumeclaims"));
        assert!(!counts(&claim.kind, "pods"));
    }

    #[test]
    fn a_scope_leaves_other_pods_out() {
        let scoped = |scope: &str| ResourceQuotaSpec { scopes: Some(vec![scope.into()]), ..Default::default() };
        let mut short = pod(json!({"containers": [], "activeDeadlineSeconds": 5}));
        short.status_mut::<Pod>().qos_class = Some("BestEffort".into());
        assert!(is_in_scopes(&scoped("Terminating"), &short));
        assert!(is_in_scopes(&scoped("BestEffort"), &short));
        assert!(!is_in_scopes(&scoped("NotTerminating"), &short));
        assert!(!is_in_scopes(&scoped("PriorityClass"), &short));
    }

    #[test]
    fn amounts_keep_their_format() {
        let sum = add(&amounts(&[("memory", "0")]), &amounts(&[("memory", "600Mi")]));
        assert_eq!(sum["memory"].0, "600Mi");
        assert_eq!(subtract(&sum, &amounts(&[("memory", "88Mi")]))["memory"].0, "512Mi");
    }
}
