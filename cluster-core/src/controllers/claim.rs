//! Which objects a workload owns: those it controls and its selector matches. It adopts matching ones that nobody
//! controls and releases its own that match no longer.
//! <https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#non-template-pod-acquisitions>

use serde_json::json;

use super::cache::View;
use super::controller::Plan;
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::PatchType;
use crate::api::selector::Selector;

/// The children of `owner` among the objects of a kind, by name, those that the plan adopts among them. Only what
/// `counts` is looked at.
pub fn claim<'a>(
    owner: &'a Object,
    kind: &KindRef,
    selector: &Selector,
    view: &View<'a>,
    counts: impl Fn(&Object) -> bool,
    plan: &mut Plan,
) -> Vec<&'a Object> {
    claim_and_hold(owner, kind, selector, None, view, counts, plan)
}

/// The same, where each child carries a finalizer of its owner's.
pub fn claim_and_hold<'a>(
    owner: &'a Object,
    kind: &KindRef,
    selector: &Selector,
    finalizer: Option<&str>,
    view: &View<'a>,
    counts: impl Fn(&Object) -> bool,
    plan: &mut Plan,
) -> Vec<&'a Object> {
    let mut children = Vec::new();
    for child in view.controlled_of(kind, owner.uid()).filter(|child| counts(child)) {
        if selector.matches(child.metadata().labels.as_ref()) {
            children.push(child);
        } else if !owner.is_terminating() {
            release(owner, child, finalizer, plan);
        }
    }
    if owner.is_terminating() {
        return children;
    }
    let orphans = view.uncontrolled_of(kind, &owner.key.namespace);
    let adoptable = |orphan: &&Object| counts(orphan) && !orphan.is_terminating();
    for orphan in orphans.filter(adoptable).filter(|orphan| selector.matches(orphan.metadata().labels.as_ref())) {
        adopt(owner, orphan, finalizer, plan);
        children.push(orphan);
    }
    children
}

/// The owner becomes the controller of what has none, and holds it by a finalizer, if it has one.
pub fn adopt(owner: &Object, orphan: &Object, finalizer: Option<&str>, plan: &mut Plan) {
    let owners: Vec<_> = orphan.metadata().owner_references.iter().flatten().cloned().collect();
    let owners: Vec<_> = owners.into_iter().chain([owner.controller_reference()]).collect();
    let mut patch = json!({"metadata": {"uid": orphan.uid(), "ownerReferences": owners}});
    if let Some(finalizer) = finalizer {
        let others = finalizers_without(orphan, finalizer);
        patch["metadata"]["finalizers"] = others.chain([finalizer]).collect();
    }
    let reason = "the selector matches it and nobody controls it";
    plan.patch(orphan, PatchType::Merge, patch, reason).tolerate(&["NotFound"]);
}

fn release(owner: &Object, child: &Object, finalizer: Option<&str>, plan: &mut Plan) {
    let others: Vec<_> =
        child.metadata().owner_references.iter().flatten().filter(|known| known.uid != owner.uid()).collect();
    let owners = if others.is_empty() { json!(null) } else { json!(others) };
    let mut patch = json!({"metadata": {"uid": child.uid(), "ownerReferences": owners}});
    if let Some(finalizer) = finalizer {
        patch["metadata"]["finalizers"] = finalizers_without(child, finalizer).collect();
    }
    let reason = "the selector does not match it any more";
    plan.patch(child, PatchType::Merge, patch, reason).tolerate(&["NotFound", "Invalid"]);
}

fn finalizers_without<'a>(object: &'a Object, finalizer: &'a str) -> impl Iterator<Item = &'a str> {
    object.metadata().finalizers.iter().flatten().map(String::as_str).filter(move |known| *known != finalizer)
}
