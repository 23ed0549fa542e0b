//! PriorityClasses: which values users may give, and the classes that the system keeps.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#priorityclass>

use k8s_openapi::api::scheduling::v1::PriorityClass;

use crate::api::object::Object;
use crate::api::status::{Cause, Status};
use crate::apiserver::strategy::Strategy;
use crate::apiserver::validation::field::{Causes, Path};

const USER_VALUE_MAX: i32 = 1_000_000_000;
const POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

/// The classes of every cluster: name, value, what they are for.
pub const SYSTEM: [(&str, i32, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

pub struct Rules;

impl Strategy for Rules {
    fn default(&self, object: &mut Object) {
        let class = object.spec_mut::<PriorityClass>();
        class.preemption_policy.get_or_insert_with(|| POLICIES[0].into());
        class.value.get_or_insert(0);
        class.global_default.take_if(|is| !*is);
        class.description.take_if(|text| text.is_empty());
    }

    fn validate(&self, object: &Object) -> Vec<Cause> {
        let (class, mut causes) = (object.spec::<PriorityClass>(), Causes::new());
        if object.key.name.starts_with("system-") {
            if let Some(error) = system_class_error(&object.key.name, class) {
                let detail = format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {error}"
                );
                causes.forbidden(&Path::new("metadata.name"), &detail);
            }
        } else if class.value > Some(USER_VALUE_MAX) {
            let detail = format!("maximum allowed value of a user defined priority is {USER_VALUE_MAX}");
            causes.forbidden(&Path::new("value"), &detail);
        }
        causes.one_of(&Path::new("preemptionPolicy"), class.preemption_policy.as_deref(), &POLICIES);
        causes.into()
    }

    fn validate_replacement(&self, old: &Object, new: &Object) -> Vec<Cause> {
        let (old, new, mut causes) = (old.spec::<PriorityClass>(), new.spec::<PriorityClass>(), Causes::new());
        if old.value != new.value {
            causes.forbidden(&Path::new("value"), "may not be changed in an update.");
        }
        causes.immutable(&Path::new("preemptionPolicy"), &old.preemption_policy, &new.preemption_policy);
        causes.into()
    }

    fn check_delete(&self, object: &Object) -> Result<(), Status> {
        let name = &*object.key.name;
        if SYSTEM.iter().any(|(system, ..)| *system == name) {
            let detail = "this is a system priority class and cannot be deleted";
            return Err(Status::forbidden(&object.kind, name, detail));
        }
        Ok(())
    }

    /// It starts at 1 and stays there.
    fn tracks_generation(&self) -> bool {
        true
    }

    fn changes_generation(&self, _: &Object, _: &Object) -> bool {
        false
    }
}

fn system_class_error(name: &str, class: &PriorityClass) -> Option<String> {
    let Some((_, value, _)) = SYSTEM.iter().find(|(system, ..)| *system == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.value != Some(*value) {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    (class.global_default == Some(true)).then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::strategies::testing::Api;

    #[test]
    fn users_have_their_range_and_the_system_its_names() {
        let mut api = Api::new::<PriorityClass>();
        assert_eq!(
            api.refusal(json!({"metadata": {"name": "system-own"}, "value": 5})),
            ["metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. \
              error: system-own is not a known system priority class"]
        );
        let high = json!({"metadata": {"name": "a"}, "value": 2_000_000_000, "preemptionPolicy": "Always"});
        assert_eq!(
            api.refusal(high),
            [
                "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
                "preemptionPolicy: Unsupported value: \"Always\": supported values: \"PreemptLowerPriority\", \"Never\"",
            ]
        );
        let made = api.create(json!({"metadata": {"name": "a"}, "value": 5, "globalDefault": false})).unwrap();
        assert_eq!((&made["metadata"]["generation"], made.get("globalDefault")), (&json!(1), None));
        assert_eq!(api.merge_refusal("a", json!({"value": 6})), ["value: Forbidden: may not be changed in an update."]);
    }
}
