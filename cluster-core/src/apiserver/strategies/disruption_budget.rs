//! PodDisruptionBudgets. <https://kubernetes.io/docs/tasks/run-application/configure-pdb/>

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use crate::api::object::Object;
use crate::api::status::Cause;
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};
use crate::apiserver::validation::shown::Struct;
use crate::apiserver::validation::{names, selectors};

pub struct Rules;

impl Strategy for Rules {
    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (spec, path, mut causes) = (object.spec::<PodDisruptionBudget>(), Path::new("spec"), Causes::new());
        if spec.min_available.is_some() && spec.max_unavailable.is_some() {
            let shown = [
                ("MinAvailable", json!(spec.min_available)),
                ("Selector", json!(spec.selector)),
                ("MaxUnavailable", json!(spec.max_unavailable)),
                ("UnhealthyPodEvictionPolicy", json!(spec.unhealthy_pod_eviction_policy)),
            ];
            causes.invalid_struct(&path, Struct(&shown), "minAvailable and maxUnavailable cannot be both set");
        }
        for (field, amount) in [("minAvailable", &spec.min_available), ("maxUnavailable", &spec.max_unavailable)] {
            if let Some(amount) = amount {
                number_or_share(&mut causes, &path.child(field), amount);
            }
        }
        selectors::label_selector(&mut causes, &path.child("selector"), spec.selector.as_ref());
        if let Some(policy) = &spec.unhealthy_pod_eviction_policy {
            let policies = ["AlwaysAllow", "IfHealthyBudget"];
            causes.one_of(&path.child("unhealthyPodEvictionPolicy"), Some(policy), &policies);
        }
        causes.into()
    }

    fn validate_status_update(&self, _: &Object, new: &Object) -> Vec<Cause> {
        let (status, path, mut causes) = (new.status::<PodDisruptionBudget>(), Path::new("status"), Causes::new());
        for (field, number) in [
            ("disruptionsAllowed", status.disruptions_allowed),
            ("currentHealthy", status.current_healthy),
            ("desiredHealthy", status.desired_healthy),
            ("expectedPods", status.expected_pods),
        ] {
            causes.non_negative(&path.child(field), number);
        }
        causes.into()
    }

    fn tracks_generation(&self) -> bool {
        true
    }

    fn needs_resource_version(&self) -> bool {
        true
    }
}

fn number_or_share(causes: &mut Causes, path: &Path, amount: &IntOrString) {
    match amount {
        IntOrString::Int(number) => causes.non_negative(path, Some(*number)),
        IntOrString::String(text) => {
            let wrong = names::percent(text);
            let share = text.trim_end_matches('%').parse::<u64>().unwrap_or(0);
            if wrong.is_empty() && share > 100 {
                causes.invalid(path, text.as_str(), "must not be greater than 100%");
            }
            causes.invalid_each(path, text, wrong);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver::strategies::testing::{Api, told};

    #[test]
    fn one_number_that_makes_sense() {
        let mut api = Api::new::<PodDisruptionBudget>();
        let mut refusal = |spec| api.refusal(json!({"metadata": {"name": "a"}, "spec": spec}));
        assert_eq!(
            refusal(json!({"minAvailable": 1, "maxUnavailable": 1, "selector": {}})),
            ["spec: Invalid value: {\"MinAvailable\":1,\"Selector\":{},\"MaxUnavailable\":1,\
              \"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be both set"]
        );
        assert_eq!(
            refusal(json!({"minAvailable": "101%"})),
            ["spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"]
        );
        assert_eq!(
            refusal(json!({"minAvailable": -1})),
            ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"]
        );
    }

    #[test]
    fn its_status_counts_from_zero() {
        let mut api = Api::new::<PodDisruptionBudget>();
        let made = api.create(json!({"metadata": {"name": "a"}, "spec": {"minAvailable": 1}})).unwrap();
        assert_eq!(
            made["status"],
            json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0})
        );
        let refused = api.merge_status("a", json!({"status": {"disruptionsAllowed": -1}}));
        assert_eq!(told(refused), ["status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0"]);
    }
}
