//! A Deployment that changed its size in the middle of a rollout shares the difference among its ReplicaSets.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#proportional-scaling>

use std::cmp::Reverse;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::{Sync, annotations, available, status, total, wanted};
use crate::api::object::Object;

impl Sync<'_> {
    /// One of the ReplicaSets was sized for another size of the whole.
    pub(super) fn is_scaling(&self) -> bool {
        let sized_for = |set: &Object| (wanted(set) > 0).then(|| annotations::desired_replicas(set)).flatten();
        self.sets.iter().filter_map(sized_for).any(|desired| desired != self.replicas)
    }

    pub(super) fn scale(&mut self) {
        if let Some(only) = self.active_or_latest() {
            self.resize(only, self.replicas);
        } else if self.new.is_some_and(|new| self.is_saturated(&self.sets[new])) {
            for index in self.active_old() {
                self.resize(index, 0);
            }
        } else if self.spec.strategy.as_ref().is_some_and(|s| s.type_.as_deref() != Some("Recreate")) {
            self.share();
        }
    }

    /// The only ReplicaSet with pods, or the newest if none has any.
    fn active_or_latest(&self) -> Option<usize> {
        let active: Vec<usize> = (0..self.sets.len()).filter(|index| wanted(&self.sets[*index]) > 0).collect();
        match active.as_slice() {
            [] => self.new.or(self.sets.len().checked_sub(1)),
            [only] => Some(*only),
            _ => None,
        }
    }

    fn is_saturated(&self, set: &Object) -> bool {
        let all = self.replicas;
        wanted(set) == all && annotations::desired_replicas(set) == Some(all) && available(set) == all
    }

    fn share(&mut self) {
        let allowed = if self.replicas > 0 { self.most() } else { 0 };
        let mut order: Vec<usize> = (0..self.sets.len()).filter(|index| wanted(&self.sets[*index]) > 0).collect();
        let before = total(order.iter().map(|index| wanted(&self.sets[*index])));
        let difference = allowed - before;
        // The largest first; of equal ones the newer first when growing, the older first when shrinking.
        order.sort_by_key(|index| {
            let age = if difference > 0 { -(*index as i64) } else { *index as i64 };
            (Reverse(wanted(&self.sets[*index])), age)
        });
        let mut shared = 0;
        let mut sizes = Vec::new();
        for &index in &order {
            let share = self.share_of(&self.sets[index], difference, shared);
            shared += share;
            sizes.push(wanted(&self.sets[index]) + share);
        }
        if let Some(first) = sizes.first_mut() {
            *first = (*first + difference - shared).max(0);
        }
        for (index, size) in order.into_iter().zip(sizes) {
            self.write_size(index, size);
        }
    }

    /// What a ReplicaSet gets of the difference, of which `shared` is given away already.
    fn share_of(&self, set: &Object, difference: i32, shared: i32) -> i32 {
        let left = difference - shared;
        if difference == 0 || left == 0 {
            return 0;
        }
        let fraction = self.fraction_of(set);
        if difference > 0 { fraction.min(left) } else { fraction.max(left) }
    }

    /// By how much the ReplicaSet would change if it kept its share of the whole.
    fn fraction_of(&self, set: &Object) -> i32 {
        let size = wanted(set);
        if self.replicas == 0 {
            return -size;
        }
        let max = f64::from(self.most());
        let known = self.deployment.status::<Deployment>().replicas.unwrap_or(0);
        let max_before = annotations::max_replicas(set).filter(|max| *max != 0).unwrap_or(known);
        if max_before == 0 {
            return 0;
        }
        (f64::from(size) * max / f64::from(max_before)).round() as i32 - size
    }

    /// Deletes the oldest ReplicaSets without pods beyond `revisionHistoryLimit`.
    pub(super) fn clean_up(&mut self) {
        let Some(limit) = self.spec.revision_history_limit.filter(|limit| *limit != i32::MAX) else { return };
        let mut old: Vec<Object> = self.old().filter(|set| !set.is_terminating()).cloned().collect();
        let surplus = old.len().saturating_sub(limit.max(0) as usize);
        old.sort_by_key(annotations::revision);
        for set in old.iter().take(surplus) {
            let observed = set.status::<ReplicaSet>().observed_generation.unwrap_or(0);
            let seen = observed >= set.metadata().generation.unwrap_or(0);
            if status::counted(set).replicas == 0 && wanted(set) == 0 && seen {
                self.plan.delete(set, "the history holds enough revisions");
            }
        }
    }
}
