//! The revisions of a DaemonSet: one for each template that it has had, known by the hash that its pods carry.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use serde_json::json;

use super::placement::HASH_LABEL;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::PatchType;
use crate::api::selector::Selector;
use crate::controllers::cache::View;
use crate::controllers::claim::claim;
use crate::controllers::controller::Plan;
use crate::controllers::revisions;

pub(super) struct History<'a> {
    /// Those of other templates, the oldest first.
    old: Vec<&'a Object>,
    /// The label of pods of the present template.
    pub hash: String,
    pub collision_count: Option<i32>,
}

impl<'a> History<'a> {
    /// Finds the revision of the present template, or plans to make it.
    pub(super) fn of(set: &'a Object, selector: &Selector, view: &View<'a>, plan: &mut Plan) -> History<'a> {
        let mut known = claim(set, ControllerRevision::kind(), selector, view, |_| true, plan);
        revisions::sort(&mut known);
        let data = revisions::template_patch(set);
        let (mut current, old): (Vec<&Object>, Vec<&Object>) =
            known.into_iter().partition(|revision| revisions::holds(revision, &data));
        let number = old.last().map_or(0, |newest| revisions::number(newest)) + 1;
        let collision_count = set.status::<DaemonSet>().collision_count;
        let Some(kept) = current.pop() else {
            return History::with_new(set, data, number, old, view, plan);
        };
        let hash = kept.label(HASH_LABEL).unwrap_or(&kept.key.name).to_owned();
        if !current.is_empty() {
            merge(set, &current, &hash, view, plan);
        }
        if revisions::number(kept) < number {
            revisions::renumber(kept, number, plan);
        }
        History { old, hash, collision_count }
    }

    fn with_new(
        set: &'a Object,
        data: serde_json::Value,
        number: i64,
        old: Vec<&'a Object>,
        view: &View<'a>,
        plan: &mut Plan,
    ) -> History<'a> {
        let mut collision_count = set.status::<DaemonSet>().collision_count;
        let template = set.spec::<DaemonSet>().template.metadata.as_ref();
        let labels = template.and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
        loop {
            let hash = revisions::hash(&data, collision_count.unwrap_or(0));
            let name = revisions::name(set, &hash);
            let taken = view.get::<ControllerRevision>(&Key::new(set.key.namespace.clone(), name.as_str()));
            if taken.is_some_and(|taken| !revisions::holds(taken, &data)) {
                collision_count = Some(collision_count.unwrap_or(0) + 1);
                continue;
            }
            if taken.is_none() {
                let labels = labels.into_iter().chain([(HASH_LABEL.to_owned(), hash.clone())]).collect();
                let revision = revisions::build(set, &name, labels, data, number);
                plan.create(revision, "no revision has the present template").tolerate(&["NamespaceTerminating"]);
            }
            return History { old, hash, collision_count };
        }
    }

    /// Deletes the oldest revisions that no pod is of, if there are more old ones than wished.
    pub(super) fn clean_up(&self, set: &Object, pods: &[&Object], plan: &mut Plan) {
        let limit = set.spec::<DaemonSet>().revision_history_limit.unwrap_or(10);
        let surplus = self.old.len().saturating_sub(limit.try_into().unwrap_or(0));
        let live: BTreeSet<&str> = pods.iter().filter_map(|pod| pod.label(HASH_LABEL)).collect();
        let dead =
            self.old.iter().filter(|revision| !revision.label(HASH_LABEL).is_some_and(|hash| live.contains(hash)));
        for revision in dead.take(surplus) {
            plan.delete(revision, "the history is longer than its limit");
        }
    }
}

/// Several revisions have the present template: all pods get the label of the one that is kept.
fn merge(set: &Object, surplus: &[&Object], hash: &str, view: &View<'_>, plan: &mut Plan) {
    for pod in view.controlled::<k8s_openapi::api::core::v1::Pod>(set.uid()) {
        if pod.label(HASH_LABEL) != Some(hash) {
            let patch = json!({"metadata": {"labels": {HASH_LABEL: hash}}});
            plan.patch(pod, PatchType::Merge, patch, "its revision is merged with another").tolerate(&["NotFound"]);
        }
    }
    for revision in surplus {
        plan.delete(revision, "another has the same template");
    }
}
