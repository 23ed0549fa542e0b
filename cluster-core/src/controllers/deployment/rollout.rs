//! From the old ReplicaSets to the new one, a step each time that pods become available or go.

use k8s_openapi::api::core::v1::Pod;

use super::replica_sets::NewSet;
use super::{Sync, available, fenceposts, total, wanted};
use crate::api::object::Object;
use crate::controllers::pods;

impl Sync<'_> {
    /// RollingUpdate: grow the new ReplicaSet as far as the surge allows, else shrink the old ones as far as enough
    /// pods stay available.
    pub(super) fn roll(&mut self) {
        if self.ensure_new() == NewSet::Written {
            return;
        }
        if !self.grow_new() && !self.shrink_old() && self.is_complete() {
            self.clean_up();
        }
        self.sync_rollout_status();
    }

    fn grow_new(&mut self) -> bool {
        let Some(index) = self.new else { return false };
        let size = wanted(&self.sets[index]);
        let target = if size > self.replicas { self.replicas } else { self.new_size(size) };
        self.resize(index, target)
    }

    fn shrink_old(&mut self) -> bool {
        let old = self.active_old();
        if old.is_empty() {
            return false;
        }
        let wanted_total = total(self.sets.iter().map(wanted));
        let available_min = self.replicas - fenceposts::max_unavailable(self.spec);
        let new_unavailable = self.new.map_or(0, |new| wanted(&self.sets[new]) - available(&self.sets[new]));
        let surplus = wanted_total.saturating_sub(available_min).saturating_sub(new_unavailable);
        if surplus <= 0 {
            return false;
        }
        let Some(cleaned) = self.shrink_unhealthy(&old, surplus) else { return false };
        let available_total = total(self.sets.iter().map(available));
        let shrunk = self.shrink_in_order(&old, available_total - available_min);
        cleaned || shrunk
    }

    /// Pods that are not available go first: nobody misses them. `None` if a status still counts a pod that has to go: what
    /// is available can't be told before its controller has counted anew.
    fn shrink_unhealthy(&mut self, old: &[usize], mut surplus: i32) -> Option<bool> {
        let mut changed = false;
        for &index in old {
            if surplus <= 0 {
                break;
            }
            let (size, healthy) = (wanted(&self.sets[index]), available(&self.sets[index]));
            if healthy > size {
                return None;
            }
            let cut = surplus.min(size - healthy);
            if cut > 0 {
                surplus -= cut;
                changed |= self.resize(index, size - cut);
            }
        }
        Some(changed)
    }

    fn shrink_in_order(&mut self, old: &[usize], mut surplus: i32) -> bool {
        let mut changed = false;
        for &index in old {
            let size = wanted(&self.sets[index]);
            let cut = surplus.min(size);
            if cut > 0 {
                surplus -= cut;
                changed |= self.resize(index, size - cut);
            }
        }
        changed
    }

    /// Recreate: all old pods go, then the new ones come.
    pub(super) fn recreate(&mut self) {
        if self.update_new() == NewSet::Written {
            return;
        }
        let mut shrunk = false;
        for index in self.active_old() {
            shrunk |= self.resize(index, 0);
        }
        if shrunk || self.old_pods_run() {
            return self.sync_rollout_status();
        }
        if self.ensure_new() == NewSet::Written {
            return;
        }
        if let Some(new) = self.new {
            self.resize(new, self.replicas);
        }
        if self.is_complete() {
            self.clean_up();
        }
        self.sync_rollout_status();
    }

    fn old_pods_run(&self) -> bool {
        let runs = |set: &Object| {
            self.view.controlled::<Pod>(set.uid()).any(|pod| !pods::is_finished(pod))
                || super::status::counted(set).replicas > 0
        };
        self.old().any(runs)
    }
}
