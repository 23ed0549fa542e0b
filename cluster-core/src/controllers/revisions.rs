//! ControllerRevisions: the pod templates that a StatefulSet or a DaemonSet has had, one object each.
//! <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/controller-revision-v1/>

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

use super::controller::Plan;
use crate::api::object::Object;
use crate::random::safe_encode;

/// So much of an owner's name stands in the names of its revisions: the hash must fit behind it.
const STEM_LENGTH_MAX: usize = 223;

/// What a revision keeps of its owner: its pod template, as the strategic merge patch that puts it back.
pub fn template_patch(owner: &Object) -> Value {
    let mut whole = owner.to_json();
    let mut template = whole.pointer_mut("/spec/template").map_or_else(|| json!({}), Value::take);
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// The pod template that a revision keeps, or what is wrong with its data.
pub fn template(revision: &Object) -> Result<PodTemplateSpec, String> {
    let template = data(revision).and_then(|data| data.pointer("/spec/template")).cloned().unwrap_or_default();
    serde_json::from_value(template).map_err(|error| format!("ControllerRevision {}: {error}", revision.key))
}

/// FNV-1 of the data and of the count of collisions so far.
pub fn hash(data: &Value, collision_count: i32) -> String {
    let text = format!("{data}{collision_count}");
    let hash = text.bytes().fold(2_166_136_261, |hash: u32, byte| hash.wrapping_mul(16_777_619) ^ u32::from(byte));
    safe_encode(&hash.to_string())
}

pub fn name(owner: &Object, hash: &str) -> String {
    let stem: String = owner.key.name.chars().take(STEM_LENGTH_MAX).collect();
    format!("{stem}-{hash}")
}

/// A revision that isn't there yet. It carries the owner's annotations.
pub fn build(owner: &Object, name: &str, labels: BTreeMap<String, String>, data: Value, number: i64) -> Object {
    let spec = ControllerRevision { data: Some(RawExtension(data)), revision: number, ..Default::default() };
    let mut revision = Object::new::<ControllerRevision>(&owner.key.namespace, name, spec);
    let metadata = revision.metadata_mut();
    metadata.labels = Some(labels);
    metadata.annotations = owner.metadata().annotations.clone().filter(|annotations| !annotations.is_empty());
    metadata.owner_references = Some(vec![owner.controller_reference()]);
    revision
}

pub fn number(revision: &Object) -> i64 {
    revision.spec::<ControllerRevision>().revision
}

/// Oldest first, as all functions here expect them.
pub fn sort(revisions: &mut [&Object]) {
    revisions.sort_by(|a, b| {
        let place = |revision: &Object| (number(revision), revision.metadata().creation_timestamp.clone());
        place(a).cmp(&place(b)).then_with(|| a.key.name.cmp(&b.key.name))
    });
}

pub fn next_number(revisions: &[&Object]) -> i64 {
    revisions.last().map_or(1, |newest| number(newest) + 1)
}

pub fn holds(revision: &Object, patch: &Value) -> bool {
    data(revision) == Some(patch)
}

fn data(revision: &Object) -> Option<&Value> {
    revision.spec::<ControllerRevision>().data.as_ref().map(|data| &data.0)
}

/// An old template is wanted again: its revision becomes the newest.
pub fn renumber(revision: &Object, number: i64, plan: &mut Plan) -> Object {
    let mut renumbered = revision.clone();
    renumbered.spec_mut::<ControllerRevision>().revision = number;
    plan.update(renumbered.clone(), "its template is wanted again");
    renumbered
}

/// Deletes the oldest of those that nothing lives by, so that no more than `limit` of them are left.
pub fn truncate(revisions: &[&Object], live: &BTreeSet<&str>, limit: i32, plan: &mut Plan) {
    let Ok(limit) = usize::try_from(limit) else { return };
    let history: Vec<_> = revisions.iter().filter(|revision| !live.contains(&*revision.key.name)).collect();
    for revision in &history[..history.len().saturating_sub(limit)] {
        plan.delete(revision, "the history is longer than its limit");
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::StatefulSet;

    use super::*;

    fn owner(image: &str) -> Object {
        let template = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": image, "resources": {}}]}});
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "serviceName": "web", "template": template});
        let value = json!({"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": spec});
        Object::from_json(crate::api::kind::KindRef::of::<StatefulSet>(), value).unwrap()
    }

    fn revision(name: &str, image: &str, number: i64) -> Object {
        build(&owner(image), name, BTreeMap::new(), template_patch(&owner(image)), number)
    }

    #[test]
    fn a_revision_keeps_the_template_as_a_patch() {
        let kept = revision("web-1", "img:1", 1);
        let data = kept.to_json()["data"].take();
        assert_eq!(data["spec"]["template"]["$patch"], "replace");
        assert_eq!(data["spec"]["template"]["spec"]["containers"][0]["resources"], json!({}));
        assert_eq!(template(&kept).unwrap(), owner("img:1").spec::<StatefulSet>().template);
        assert!(holds(&kept, &template_patch(&owner("img:1"))) && !holds(&kept, &template_patch(&owner("img:2"))));
    }

    #[test]
    fn a_collision_makes_another_name() {
        let data = template_patch(&owner("img:1"));
        assert_ne!(hash(&data, 0), hash(&data, 1));
        assert!(name(&owner("img:1"), &hash(&data, 0)).starts_with("web-"));
    }

    #[test]
    fn the_oldest_of_what_is_not_lived_by_goes_first() {
        let (a, b, c) = (revision("a", "1", 3), revision("b", "2", 1), revision("c", "3", 2));
        let mut all = vec![&a, &b, &c];
        sort(&mut all);
        assert_eq!(all.iter().map(|revision| &*revision.key.name).collect::<Vec<_>>(), ["b", "c", "a"]);
        assert_eq!(next_number(&all), 4);
        let mut plan = Plan::done();
        truncate(&all, &BTreeSet::from(["a"]), 1, &mut plan);
        assert_eq!(plan.steps.len(), 1);
        let mut plan = Plan::done();
        truncate(&all, &BTreeSet::from(["a"]), -1, &mut plan);
        assert!(plan.steps.is_empty(), "a negative limit keeps everything");
    }
}
