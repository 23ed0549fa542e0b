//! What a Job says about failures that count more or less than others, and about when it has had success enough.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy>
//! <https://kubernetes.io/docs/concepts/workloads/controllers/job/#success-policy>

use k8s_openapi::api::batch::v1::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern, SuccessPolicy,
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

use super::indexes::Indexes;
use crate::api::Key;
use crate::api::object::Object;

/// What follows from the failure of a pod.
#[derive(Debug, PartialEq)]
pub enum Failure {
    Counts,
    Ignored,
    FailsIndex,
    /// With the message that the Job will show.
    FailsJob(String),
}

/// The first rule that matches decides; without one a failure counts.
pub fn judge(policy: Option<&PodFailurePolicy>, pod: &Object) -> Failure {
    let rules = policy.into_iter().flat_map(|policy| &policy.rules);
    for (position, rule) in rules.enumerate() {
        let Key { namespace, name } = &pod.key;
        let what = if let Some(requirement) = &rule.on_exit_codes {
            exited_with(pod, requirement).map(|(container, code)| {
                format!("Container {} for pod {namespace}/{name} failed with exit code {code}", container.name)
            })
        } else {
            let patterns = rule.on_pod_conditions.as_deref().unwrap_or_default();
            matching_condition(pod, patterns)
                .map(|condition| format!("Pod {namespace}/{name} has condition {}", condition.type_))
        };
        match (what, rule.action.as_str()) {
            (Some(_), "Ignore") => return Failure::Ignored,
            (Some(_), "Count") => return Failure::Counts,
            (Some(_), "FailIndex") => return Failure::FailsIndex,
            (Some(what), "FailJob") => {
                return Failure::FailsJob(format!("{what} matching FailJob rule at index {position}"));
            }
            _ => {}
        }
    }
    Failure::Counts
}

fn exited_with<'a>(
    pod: &'a Object,
    requirement: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<(&'a ContainerStatus, i32)> {
    let status = pod.status::<Pod>();
    let containers = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
    let named =
        containers.filter(|container| requirement.container_name.as_ref().is_none_or(|name| *name == container.name));
    let ended = |container: &'a ContainerStatus| {
        let terminated = container.state.as_ref()?.terminated.as_ref()?;
        Some((container, terminated.exit_code))
    };
    let listed = |code: i32| match requirement.operator.as_str() {
        "In" => requirement.values.contains(&code),
        "NotIn" => !requirement.values.contains(&code),
        _ => false,
    };
    named.filter_map(ended).find(|(_, code)| *code != 0 && listed(*code))
}

fn matching_condition<'a>(
    pod: &'a Object,
    patterns: &[PodFailurePolicyOnPodConditionsPattern],
) -> Option<&'a PodCondition> {
    let matches = |condition: &PodCondition, pattern: &PodFailurePolicyOnPodConditionsPattern| {
        condition.type_ == pattern.type_ && condition.status == pattern.status.as_deref().unwrap_or("True")
    };
    let mut conditions = pod.status::<Pod>().conditions.iter().flatten();
    conditions.find(|condition| patterns.iter().any(|pattern| matches(condition, pattern)))
}

/// The message that tells which rule these successes fulfil.
pub fn success(policy: Option<&SuccessPolicy>, completions: i32, succeeded: &Indexes) -> Option<String> {
    if succeeded.total() == 0 {
        return None;
    }
    let enough = |count: i32, needed: Option<i32>| needed.is_some_and(|needed| count >= needed);
    let position = policy?.rules.iter().position(|rule| match &rule.succeeded_indexes {
        Some(text) => {
            let required = Indexes::parse(text, completions);
            let reached = required.common(succeeded);
            required.total() > 0 && (reached == required.total() || enough(reached, rule.succeeded_count))
        }
        None => enough(succeeded.total(), rule.succeeded_count),
    })?;
    Some(format!("Matched rules at index {position}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::kind::Resource;

    fn failed_pod() -> Object {
        let pod = json!({
            "metadata": {"name": "p", "namespace": "default"},
            "status": {
                "phase": "Failed",
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                "containerStatuses": [
                    {"name": "side", "state": {"terminated": {"exitCode": 0}}},
                    {"name": "main", "state": {"terminated": {"exitCode": 42}}},
                ],
            },
        });
        Object::from_json(Pod::kind(), pod).unwrap()
    }

    fn judged(rules: serde_json::Value) -> Failure {
        let policy: PodFailurePolicy = serde_json::from_value(json!({"rules": rules})).unwrap();
        judge(Some(&policy), &failed_pod())
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let codes = |action: &str, operator: &str, values: &[i32]| json!({"action": action, "onExitCodes": {"operator": operator, "values": values}});
        let disrupted = json!({"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]});
        assert_eq!(judged(json!([codes("Ignore", "In", &[1])])), Failure::Counts);
        assert_eq!(
            judged(json!([codes("Ignore", "NotIn", &[0, 42]), codes("FailIndex", "In", &[42])])),
            Failure::FailsIndex
        );
        let message = "Pod default/p has condition DisruptionTarget matching FailJob rule at index 1";
        assert_eq!(judged(json!([codes("Ignore", "In", &[1]), disrupted])), Failure::FailsJob(message.into()));
        let message = "Container main for pod default/p failed with exit code 42 matching FailJob rule at index 0";
        assert_eq!(judged(json!([codes("FailJob", "In", &[42])])), Failure::FailsJob(message.into()));
    }

    #[test]
    fn success_is_enough_indexes_or_certain_ones() {
        let policy = json!({"rules": [{"succeededIndexes": "0,2-4", "succeededCount": 2}, {"succeededCount": 3}]});
        let policy: SuccessPolicy = serde_json::from_value(policy).unwrap();
        let met = |succeeded: &str| success(Some(&policy), 10, &Indexes::parse(succeeded, 10));
        assert_eq!(met(""), None);
        assert_eq!(met("1,5"), None);
        assert_eq!(met("0,1,3").as_deref(), Some("Matched rules at index 0"));
        assert_eq!(met("5-7").as_deref(), Some("Matched rules at index 1"));
    }
}
