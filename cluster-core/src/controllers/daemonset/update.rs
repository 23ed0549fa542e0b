//! A rolling update: old pods go as far as `maxUnavailable` lets them, or new ones come first as far as `maxSurge` does.
//! <https://kubernetes.io/docs/tasks/manage-daemon/update-daemon-set/>

use k8s_openapi::api::apps::v1::{DaemonSetSpec, RollingUpdateDaemonSet};

use super::{Sync, Work};
use crate::api::object::Object;
use crate::controllers::share::scaled;

fn rolling_update(spec: &DaemonSetSpec) -> Option<&RollingUpdateDaemonSet> {
    let strategy = spec.update_strategy.as_ref().filter(|strategy| strategy.type_.as_deref() == Some("RollingUpdate"));
    strategy.and_then(|strategy| strategy.rolling_update.as_ref())
}

/// Two pods may be on a node while it is updated.
pub(super) fn surges(spec: &DaemonSetSpec) -> bool {
    rolling_update(spec).is_some_and(|update| scaled(update.max_surge.as_ref(), 100, true) > 0)
}

/// The pods on one node that are not on their way out.
enum Generations<'a> {
    None,
    New(&'a Object),
    Old(&'a Object),
    Both {
        new: &'a Object,
        old: &'a Object,
    },
    /// More than one of a kind: the next look makes order first.
    Unclear,
}

impl<'a> Sync<'a> {
    pub(super) fn roll(&self) -> Work<'a> {
        let Some(update) = rolling_update(self.spec) else { return Work::default() };
        let desired = self.nodes.values().filter(|place| place.takes).count() as i32;
        let surge = scaled(update.max_surge.as_ref(), desired, true);
        let unavailable = scaled(update.max_unavailable.as_ref(), desired, true);
        if surge == 0 {
            // One at least must be able to go.
            self.replace(unavailable.max(1))
        } else {
            self.surge(surge, desired)
        }
    }

    fn generations(&self, pods: &[&'a Object]) -> Generations<'a> {
        let present = pods.iter().copied().filter(|pod| !pod.is_terminating());
        let (new, old): (Vec<&Object>, Vec<&Object>) = present.partition(|pod| self.is_updated(pod));
        match (new.as_slice(), old.as_slice()) {
            ([], []) => Generations::None,
            ([new], []) => Generations::New(new),
            ([], [old]) => Generations::Old(old),
            ([new], [old]) => Generations::Both { new, old },
            _ => Generations::Unclear,
        }
    }

    /// Deletes old pods; each node gets its new one when it has none any more.
    fn replace(&self, unavailable_max: i32) -> Work<'a> {
        let mut unavailable = 0;
        let (mut broken, mut candidates) = (Vec::new(), Vec::new());
        for pods in self.pods.values() {
            match self.generations(pods) {
                Generations::New(pod) if self.is_available(pod) => {}
                Generations::Old(pod) if self.is_available(pod) => candidates.push(pod),
                Generations::Old(pod) => {
                    broken.push(pod);
                    unavailable += 1;
                }
                _ => unavailable += 1,
            }
        }
        let room = (unavailable_max - unavailable).max(0) as usize;
        candidates.truncate(room);
        Work { create: Vec::new(), delete: [broken, candidates].concat() }
    }

    /// Creates new pods beside old ones, and deletes these when the new ones are available.
    fn surge(&self, surge_max: i32, desired: i32) -> Work<'a> {
        let (mut surging, mut available) = (0, 0);
        let (mut allowed, mut candidates) = (Vec::new(), Vec::new());
        // Old pods on nodes that should have none any more.
        let mut stranded = Vec::new();
        let mut delete = Vec::new();
        for (node, pods) in &self.pods {
            let generations = self.generations(pods);
            let counted = match &generations {
                Generations::Old(pod) | Generations::Both { old: pod, .. } | Generations::New(pod) => Some(*pod),
                _ => None,
            };
            available += i32::from(counted.is_some_and(|pod| self.is_available(pod)));
            match generations {
                Generations::Unclear => surging += 1,
                Generations::Old(pod) => {
                    let takes = self.nodes.get(node).is_some_and(|place| place.takes);
                    match (self.is_available(pod), takes) {
                        (true, true) => candidates.push(*node),
                        (true, false) => stranded.push(pod),
                        (false, true) => allowed.push(*node),
                        (false, false) => delete.push(pod),
                    }
                }
                Generations::Both { new, .. } if !self.is_available(new) => surging += 1,
                Generations::Both { old, .. } => delete.push(old),
                Generations::New(_) | Generations::None => {}
            }
        }
        stranded.truncate((available - desired).max(0) as usize);
        candidates.truncate((surge_max - surging).max(0) as usize);
        delete.extend(stranded);
        allowed.extend(candidates);
        Work { create: allowed, delete }
    }
}
