//! The revisions of a set: the one that its pods are coming from and the one that they are going to.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};

use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::selector::Selector;
use crate::controllers::cache::View;
use crate::controllers::claim::adopt;
use crate::controllers::controller::Plan;
use crate::controllers::revisions;

const HASH_LABEL: &str = "controller.kubernetes.io/hash";

pub(super) struct History<'a> {
    /// All that the set has, the oldest first.
    known: Vec<&'a Object>,
    /// The template that all pods had before the present update.
    pub current: Object,
    /// The set's present template.
    pub update: Object,
    pub collision_count: i32,
}

impl<'a> History<'a> {
    /// Finds the revision of the present template, or plans to make it. Orphans that the selector matches are adopted.
    pub(super) fn of(set: &'a Object, selector: &Selector, view: &View<'a>, plan: &mut Plan) -> History<'a> {
        let mut known: Vec<_> = view.controlled::<ControllerRevision>(set.uid()).collect();
        known.retain(|revision| selector.matches(revision.metadata().labels.as_ref()));
        let orphans = view.uncontrolled_of(ControllerRevision::kind(), &set.key.namespace);
        for orphan in orphans.filter(|orphan| selector.matches(orphan.metadata().labels.as_ref())) {
            if !set.is_terminating() {
                adopt(set, orphan, None, plan);
            }
            known.push(orphan);
        }
        revisions::sort(&mut known);
        let status = set.status::<StatefulSet>();
        let mut collision_count = status.collision_count.unwrap_or(0);
        let update = match told_by_status(set, &known) {
            Some(update) => update.clone(),
            None => ensure_update(set, &known, &mut collision_count, view, plan),
        };
        let current = known.iter().find(|revision| status.current_revision.as_deref() == Some(&*revision.key.name));
        let current = current.map_or_else(|| update.clone(), |current| (*current).clone());
        History { known, current, update, collision_count }
    }

    /// Keeps the history as short as the set wants it.
    pub(super) fn truncate(&self, set: &Object, pods: &[&Object], plan: &mut Plan) {
        let live = [&self.current, &self.update].map(|revision| &*revision.key.name);
        let live: BTreeSet<&str> = live.into_iter().chain(pods.iter().map(|pod| super::pods::revision(pod))).collect();
        let limit = set.spec::<StatefulSet>().revision_history_limit.unwrap_or(10);
        revisions::truncate(&self.known, &live, limit, plan);
    }
}

/// The status tells of the present spec, so that nothing has to be compared.
fn told_by_status<'a>(set: &Object, known: &[&'a Object]) -> Option<&'a Object> {
    let status = set.status::<StatefulSet>();
    let newest = known.last()?;
    let is_told = status.observed_generation == set.metadata().generation
        && status.update_revision.as_deref() == Some(&*newest.key.name);
    is_told.then_some(newest)
}

/// The newest revision if it has the present template, an older one that becomes the newest, or a new one.
fn ensure_update(
    set: &Object,
    known: &[&Object],
    collision_count: &mut i32,
    view: &View<'_>,
    plan: &mut Plan,
) -> Object {
    let data = revisions::template_patch(set);
    let number = revisions::next_number(known);
    match known.iter().rposition(|revision| revisions::holds(revision, &data)) {
        Some(last) if last + 1 == known.len() => return known[last].clone(),
        Some(old) => return revisions::renumber(known[old], number, plan),
        None => {}
    }
    loop {
        let hash = revisions::hash(&data, *collision_count);
        let name = revisions::name(set, &hash);
        let template = set.spec::<StatefulSet>().template.metadata.as_ref();
        match view.get::<ControllerRevision>(&Key::new(set.key.namespace.clone(), name.as_str())) {
            None => {
                let labels = template.and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
                let labels = labels.into_iter().chain([(HASH_LABEL.to_owned(), hash)]).collect();
                let revision = revisions::build(set, &name, labels, data, number);
                plan.create(revision.clone(), "no revision has the present template");
                return revision;
            }
            Some(other) if revisions::holds(other, &data) => return other.clone(),
            Some(_) => *collision_count += 1,
        }
    }
}
