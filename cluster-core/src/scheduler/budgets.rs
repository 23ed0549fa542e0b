//! Budgets of disruptions. Preemption keeps to them as far as it can, and breaks them if nothing else makes room.
//! <https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#poddisruptionbudget-is-supported-but-not-guaranteed>

use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use super::pod::PodInfo;
use crate::api::Key;
use crate::api::object::Object;
use crate::api::selector::Selector;

#[derive(Clone, Debug, Default)]
pub struct Budgets(imbl::OrdMap<Key, Object>);

/// What a budget still allows while victims are counted.
struct Left<'a> {
    budget: &'a Object,
    selector: Selector,
    disruptions: i32,
}

impl Budgets {
    /// False if it is about something else.
    pub fn put(&mut self, object: &Object) -> bool {
        let is_budget = object.is::<PodDisruptionBudget>();
        if is_budget {
            self.0.insert(object.key.clone(), object.clone());
        }
        is_budget
    }

    pub fn remove(&mut self, object: &Object) -> bool {
        let is_budget = object.is::<PodDisruptionBudget>();
        if is_budget {
            self.0.remove(&object.key);
        }
        is_budget
    }

    /// Parts victims into those whose end breaks a budget and the others; who comes first uses budgets up first.
    pub fn part(&self, victims: Vec<Arc<PodInfo>>) -> (Vec<Arc<PodInfo>>, Vec<Arc<PodInfo>>) {
        if self.0.is_empty() {
            return (Vec::new(), victims);
        }
        let mut left: Vec<Left<'_>> = self.0.values().map(Left::new).collect();
        victims.into_iter().partition(|victim| {
            let mut breaks = false;
            for budget in left.iter_mut().filter(|budget| budget.concerns(victim)) {
                budget.disruptions -= 1;
                breaks |= budget.disruptions < 0;
            }
            breaks
        })
    }
}

impl Left<'_> {
    fn new(budget: &Object) -> Left<'_> {
        let (spec, status) = (budget.spec::<PodDisruptionBudget>(), budget.status::<PodDisruptionBudget>());
        let selector = spec.selector.as_ref().map(Selector::of).unwrap_or_default();
        Left { selector, disruptions: status.disruptions_allowed.unwrap_or(0), budget }
    }

    /// A budget without a selector concerns nobody here; a pod whose eviction it has granted is counted already.
    fn concerns(&self, pod: &PodInfo) -> bool {
        let granted = &self.budget.status::<PodDisruptionBudget>().disrupted_pods;
        self.budget.key.namespace == pod.ask.namespace
            && !self.selector.is_everything()
            && !pod.ask.labels.is_empty()
            && self.selector.matches(Some(&pod.ask.labels))
            && !granted.as_ref().is_some_and(|granted| granted.contains_key(&*pod.key().name))
    }
}
