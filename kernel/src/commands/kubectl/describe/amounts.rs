//! What containers and pods ask for, and may have at most. (k8s.io/component-helpers/resource)

use std::collections::BTreeMap;

use cluster_core::api::quantity;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use super::{fields, list, text};

/// Resource to amount.
pub type Amounts = BTreeMap<String, Quantity>;

/// Requests or limits of a pod, `sort` being `requests` or `limits`: its containers together, or, if that is more, what
/// its init containers need in their turn; of resources that the pod itself speaks of, that; and its overhead.
pub fn of_pod(pod: &Value, sort: &str) -> Amounts {
    let mut sum = Amounts::new();
    for container in list(pod, "/spec/containers") {
        add(&mut sum, &of_container(container, sort));
    }
    let (mut sidecars, mut at_start) = (Amounts::new(), Amounts::new());
    for container in list(pod, "/spec/initContainers") {
        let mut own = of_container(container, sort);
        if text(container, "/restartPolicy") == "Always" {
            add(&mut sum, &own);
            add(&mut sidecars, &own);
            own.clone_from(&sidecars);
        } else {
            add(&mut own, &sidecars);
        }
        raise(&mut at_start, own);
    }
    raise(&mut sum, at_start);
    for (resource, amount) in resources(pod.pointer("/spec/resources"), sort) {
        sum.insert(resource, amount);
    }
    let overhead: Amounts = fields(pod, "/spec/overhead").filter_map(amount).collect();
    for (resource, amount) in overhead {
        let is_bounded = sort == "requests" || sum.get(&resource).is_some_and(|limit| quantity::millis(limit) > 0);
        if is_bounded {
            add(&mut sum, &Amounts::from([(resource, amount)]));
        }
    }
    sum
}

fn of_container(container: &Value, sort: &str) -> Amounts {
    resources(container.get("resources"), sort)
}

fn resources(resources: Option<&Value>, sort: &str) -> Amounts {
    let amounts = resources.and_then(|resources| resources.get(sort)).and_then(Value::as_object);
    amounts.into_iter().flatten().filter_map(amount).collect()
}

fn amount((resource, amount): (&String, &Value)) -> Option<(String, Quantity)> {
    Some((resource.clone(), Quantity(amount.as_str()?.to_owned())))
}

/// Adds amounts to others, in the notation of what is there.
pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (resource, amount) in more {
        let together = match sum.get(resource) {
            Some(known) if quantity::parse(&known.0) != Some(0) => quantity::sum([known, amount].into_iter()),
            _ => amount.clone(),
        };
        sum.insert(resource.clone(), together);
    }
}

fn raise(amounts: &mut Amounts, at_least: Amounts) {
    for (resource, amount) in at_least {
        let known = amounts.get(&resource).and_then(|known| quantity::parse(&known.0)).unwrap_or(-1);
        if quantity::parse(&amount.0).is_some_and(|amount| amount > known) {
            amounts.insert(resource, amount);
        }
    }
}

/// What a variable of a `resourceFieldRef` holds: the amount in divisors, rounded up.
pub fn resource_field(container: &Value, field: &Value) -> Option<i128> {
    let (sort, resource) = text(field, "/resource").split_once('.')?;
    let amount = resources(container.get("resources"), sort).get(resource).cloned();
    let millis = amount.and_then(|amount| quantity::parse(&amount.0)).unwrap_or(0);
    let divisor = quantity::parse(text(field, "/divisor")).filter(|divisor| *divisor > 0).unwrap_or(1000);
    Some(millis.div_euclid(divisor) + i128::from(millis.rem_euclid(divisor) != 0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_needs_what_its_containers_need() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = container("100m");
        sidecar["restartPolicy"] = "Always".into();
        let pod = json!({"spec": {
            "containers": [container("300m"), container("1")],
            "initContainers": [sidecar, container("2")],
            "overhead": {"cpu": "50m"},
        }});
        assert_eq!(of_pod(&pod, "requests")["cpu"].0, "2150m");
        assert_eq!(of_pod(&pod, "limits").get("cpu"), None);
    }

    #[test]
    fn a_variable_holds_whole_divisors() {
        let container = json!({"resources": {"limits": {"cpu": "100m", "memory": "64Mi"}}});
        let of = |resource: &str, divisor: &str| {
            resource_field(&container, &json!({"resource": resource, "divisor": divisor}))
        };
        assert_eq!(of("limits.cpu", "0"), Some(1));
        assert_eq!(of("limits.cpu", "1m"), Some(100));
        assert_eq!(of("limits.memory", "1Mi"), Some(64));
        assert_eq!(of("requests.memory", "0"), Some(0));
    }
}
