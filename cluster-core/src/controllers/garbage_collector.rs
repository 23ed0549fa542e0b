//! garbage-collector-controller: deletes objects whose owners are gone, and carries out foreground and orphan deletion.
//! A key is the uid of an object.
//! <https://kubernetes.io/docs/concepts/architecture/garbage-collection/>

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::json;

use super::cache::View;
use super::controller::{Controller, EventNote, Plan, Step, Watch};
use crate::api::kind::KindRef;
use crate::api::object::Object;
use crate::api::request::{PatchType, Propagation};
use crate::api::{Key, kinds};
use crate::store::Change;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

pub struct GarbageCollector;

impl Controller for GarbageCollector {
    fn name(&self) -> &str {
        "garbage-collector-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        collectable_kinds().map(|kind| Watch::with(kind, concerned)).collect()
    }

    fn watch_custom(&self, kind: &KindRef) -> Option<Watch> {
        Some(Watch::with(kind, concerned))
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(object) = view.by_uid(&key.name) else { return plan };
        if object.is_terminating() && has_finalizer(object, ORPHAN) {
            orphan_dependents(object, view, &mut plan);
        } else if deletes_dependents(object) {
            if !view.dependents(object.uid()).any(|dependent| blocks(dependent, object.uid())) {
                remove_finalizer(object, FOREGROUND, "nothing that blocks its deletion is left", &mut plan);
            }
        } else if !object.is_terminating() {
            judge_by_owners(object, view, &mut plan);
        }
        plan
    }
}

/// Built-in kinds whose objects are stored and deleted, each once though it may be served in two versions; events are
/// left alone.
fn collectable_kinds() -> impl Iterator<Item = &'static KindRef> {
    let mut slots = std::collections::BTreeSet::new();
    let stored = |kind: &&KindRef| kind.allows("delete") && kind.allows("list") && *kind.kind != *"Event";
    kinds::built_in().iter().filter(stored).filter(move |kind| slots.insert(kind.slot))
}

/// The uids of the objects that must be looked at after a change.
fn concerned(view: &View<'_>, change: &Change) -> Vec<Key> {
    let (before, after) = (&change.before, &change.after);
    if let (Some(before), Some(after)) = (before, after)
        && Arc::ptr_eq(before.metadata_arc(), after.metadata_arc())
    {
        return Vec::new();
    }
    let mut uids: Vec<&str> = Vec::new();
    let (owners_before, owners_after) = (owners(before), owners(after));
    if let Some(after) = after {
        let starts = after.is_terminating() && (has_finalizer(after, FOREGROUND) || has_finalizer(after, ORPHAN));
        let lives = |owner: &OwnerReference| {
            let found = view.by_uid(&owner.uid).filter(|owner| !deletes_dependents(owner));
            found.is_some_and(|owner| owner.key.namespace.is_empty() || owner.key.namespace == after.key.namespace)
        };
        if starts || (owners_after != owners_before && !owners_after.iter().all(lives)) {
            uids.push(after.uid());
        }
        if deletes_dependents(after) && !before.as_ref().is_some_and(deletes_dependents) {
            uids.extend(view.dependents(after.uid()).map(Object::uid));
        }
    } else if let Some(gone) = before {
        uids.extend(view.dependents(gone.uid()).map(Object::uid));
    }
    // An owner may have waited for what is no longer its dependent.
    if owners_before != owners_after {
        let waiting = |owner: &&OwnerReference| view.by_uid(&owner.uid).is_some_and(deletes_dependents);
        uids.extend(owners_before.iter().filter(waiting).map(|owner| owner.uid.as_str()));
    }
    uids.into_iter().map(Key::cluster).collect()
}

fn owners(object: &Option<Object>) -> &[OwnerReference] {
    object.as_ref().and_then(|object| object.metadata().owner_references.as_deref()).unwrap_or_default()
}

fn has_finalizer(object: &Object, name: &str) -> bool {
    object.metadata().finalizers.iter().flatten().any(|finalizer| finalizer == name)
}

/// It is being deleted in the foreground: its dependents go first.
fn deletes_dependents(object: &Object) -> bool {
    object.is_terminating() && has_finalizer(object, FOREGROUND)
}

fn blocks(dependent: &Object, owner_uid: &str) -> bool {
    let references = dependent.metadata().owner_references.iter().flatten();
    references.filter(|owner| owner.uid == owner_uid).any(|owner| owner.block_owner_deletion == Some(true))
}

fn orphan_dependents(owner: &Object, view: &View<'_>, plan: &mut Plan) {
    for dependent in view.dependents(owner.uid()) {
        drop_owners(dependent, |reference| reference.uid == owner.uid(), "its owner is deleted without it", plan);
    }
    remove_finalizer(owner, ORPHAN, "its dependents are orphans now", plan);
}

fn remove_finalizer(object: &Object, name: &str, reason: &'static str, plan: &mut Plan) {
    let left: Vec<_> = object.metadata().finalizers.iter().flatten().filter(|finalizer| *finalizer != name).collect();
    let metadata = json!({"uid": object.uid(), "resourceVersion": object.revision.to_string(), "finalizers": left});
    plan.patch(object, PatchType::Merge, json!({"metadata": metadata}), reason).tolerate(&["NotFound"]);
}

fn drop_owners(object: &Object, gone: impl Fn(&OwnerReference) -> bool, reason: &'static str, plan: &mut Plan) {
    let left: Vec<_> = object.metadata().owner_references.iter().flatten().filter(|owner| !gone(owner)).collect();
    let left = if left.is_empty() { json!(null) } else { json!(left) };
    let patch = json!({"metadata": {"uid": object.uid(), "ownerReferences": left}});
    plan.patch(object, PatchType::Merge, patch, reason).tolerate(&["NotFound"]);
}

/// An object lives as long as one of its owners does.
fn judge_by_owners(object: &Object, view: &View<'_>, plan: &mut Plan) {
    let references: Vec<&OwnerReference> = object.metadata().owner_references.iter().flatten().collect();
    let owner = |reference: &OwnerReference| {
        let found = view.by_uid(&reference.uid);
        found.filter(|owner| owner.key.namespace.is_empty() || owner.key.namespace == object.key.namespace)
    };
    let absent = |reference: &OwnerReference| owner(reference).is_none();
    let waits = |reference: &OwnerReference| owner(reference).is_some_and(deletes_dependents);
    let dead = |reference: &OwnerReference| absent(reference) || waits(reference);
    if !references.iter().any(|reference| dead(reference)) {
        return;
    }
    for reference in references.iter().filter(|reference| absent(reference) && view.by_uid(&reference.uid).is_some()) {
        tell_of_other_namespace(object, reference, plan);
    }
    for reference in references.iter().filter(|reference| absent(reference)) {
        let Some(kind) = kind_of(reference, view) else {
            // Nobody can say whether an owner of an unknown kind exists.
            *plan = Plan::failed(format!("no kind {} in {}", reference.kind, reference.api_version));
            return;
        };
        if kind.namespaced && object.key.namespace.is_empty() {
            // It lies in no namespace in which that owner could be looked for: it stays for ever.
            plan.steps.retain(|step| matches!(step, Step::Event(_)));
            return;
        }
        let namespace = if kind.namespaced { object.key.namespace.clone() } else { "".into() };
        plan.unless_exists(kind, Key::new(namespace, reference.name.as_str()), &reference.uid);
    }
    if !references.iter().all(|reference| dead(reference)) {
        return drop_owners(object, dead, "these owners are gone", plan);
    }
    let waited_for = references.iter().any(|reference| waits(reference));
    let propagation = if has_finalizer(object, ORPHAN) {
        Propagation::Orphan
    } else if has_finalizer(object, FOREGROUND) || (waited_for && view.dependents(object.uid()).next().is_some()) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    if propagation == Propagation::Foreground && view.dependents(object.uid()).any(deletes_dependents) {
        unblock_owners(object, plan);
    }
    let reason = if waited_for { "its owner waits for it to go" } else { "its owner is gone" };
    plan.delete(object, reason).request.options.propagation = Some(propagation);
}

/// Objects that own each other in a circle would wait for each other for ever.
fn unblock_owners(object: &Object, plan: &mut Plan) {
    let mut references = object.metadata().owner_references.clone().unwrap_or_default();
    references.iter_mut().for_each(|reference| reference.block_owner_deletion = Some(false));
    let patch = json!({"metadata": {"uid": object.uid(), "ownerReferences": references}});
    plan.patch(object, PatchType::Merge, patch, "what it owns is deleted in the foreground, too")
        .tolerate(&["NotFound"]);
}

/// Whatever has that uid lies in a namespace that is not the object's.
fn tell_of_other_namespace(object: &Object, owner: &OwnerReference, plan: &mut Plan) {
    let (namespace, OwnerReference { api_version, kind, name, uid, .. }) = (&object.key.namespace, owner);
    let message = format!(
        "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace \"{namespace}\""
    );
    plan.event(EventNote::warning(object, "OwnerRefInvalidNamespace", message));
}

fn kind_of<'a>(reference: &OwnerReference, view: &View<'a>) -> Option<&'a KindRef> {
    let named = |kind: &&KindRef| *kind.kind == *reference.kind && kind.api_version() == reference.api_version;
    kinds::built_in().iter().find(named).or_else(|| view.kinds().iter().find(named))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, Pod};
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use serde_json::Value;

    use super::*;
    use crate::Cluster;
    use crate::api::kind::Resource;
    use crate::api::request::Request;
    use crate::controllers::testing::*;

    fn map(name: &str, owners: &[(&str, &str)], finalizers: &[&str]) -> Value {
        let owners: Vec<_> = owners
            .iter()
            .map(|(name, uid)| {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true})
            })
            .collect();
        json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}})
    }

    fn workload() -> Value {
        json!({
            "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
        })
    }

    fn delete_with<K: Resource>(cluster: &mut Cluster, name: &str, propagation: Propagation) {
        let mut request = Request::delete(&user(), K::kind(), Key::new("default", name));
        request.options.propagation = Some(propagation);
        cluster.request(request).unwrap();
        settle(cluster);
    }

    #[test]
    fn owners_in_other_namespaces_are_told_of_and_count_for_nothing() {
        let mut cluster = control_plane();
        let owner = create::<ConfigMap>(&mut cluster, map("owner", &[], &[]));
        let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid()}]);
        create::<PersistentVolume>(
            &mut cluster,
            json!({"metadata": {"name": "child", "ownerReferences": owners}, "spec": {"capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}}),
        );
        create::<ConfigMap>(
            &mut cluster,
            json!({"metadata": {"name": "far", "namespace": "kube-public", "ownerReferences": owners}}),
        );
        settle(&mut cluster);
        assert!(cluster.get::<PersistentVolume>("", "child").is_some());
        assert!(cluster.get::<ConfigMap>("kube-public", "far").is_none());
        let told = |namespace: &str| {
            let place = format!("namespace: {namespace}, name: owner, uid: {}", owner.uid());
            format!(
                "OwnerRefInvalidNamespace ownerRef [v1/ConfigMap, {place}] does not exist in namespace {namespace:?}"
            )
        };
        assert_eq!(events(&cluster, "child")[0], told(""));
        assert_eq!(events(&cluster, "far")[0], told("kube-public"));
    }

    fn has(cluster: &Cluster, name: &str) -> bool {
        cluster.get::<ConfigMap>("default", name).is_some()
    }

    #[test]
    fn what_a_deleted_deployment_owned_follows_it() {
        let mut cluster = control_plane();
        create::<Deployment>(&mut cluster, workload());
        settle(&mut cluster);
        assert_eq!(cluster.list::<Pod>("default").count(), 2);
        delete_with::<Deployment>(&mut cluster, "web", Propagation::Background);
        assert_eq!(cluster.list::<ReplicaSet>("default").count(), 0);
        assert_eq!(cluster.list::<Pod>("default").count(), 0);
    }

    #[test]
    fn an_object_lives_as_long_as_one_of_its_owners() {
        let mut cluster = control_plane();
        let alive = create::<ConfigMap>(&mut cluster, map("alive", &[], &[]));
        let nobody = ("nobody", "11111111-2222-3333-4444-555555555555");
        create::<ConfigMap>(&mut cluster, map("lost", &[nobody], &[]));
        create::<ConfigMap>(&mut cluster, map("half", &[nobody, ("alive", alive.uid())], &[]));
        settle(&mut cluster);
        assert!(has(&cluster, "alive") && !has(&cluster, "lost"));
        let half = cluster.get::<ConfigMap>("default", "half").unwrap().metadata().owner_references.clone().unwrap();
        assert_eq!(half.iter().map(|owner| &*owner.name).collect::<Vec<_>>(), ["alive"]);
    }

    #[test]
    fn in_the_foreground_the_owner_goes_last() {
        let mut cluster = control_plane();
        let top = create::<ConfigMap>(&mut cluster, map("top", &[], &[]));
        create::<ConfigMap>(&mut cluster, map("free", &[("top", top.uid())], &[]));
        create::<ConfigMap>(&mut cluster, map("held", &[("top", top.uid())], &["test/hold"]));
        settle(&mut cluster);
        delete_with::<ConfigMap>(&mut cluster, "top", Propagation::Foreground);
        assert!(has(&cluster, "top") && has(&cluster, "held") && !has(&cluster, "free"));
        patch::<ConfigMap>(&mut cluster, "held", json!({"metadata": {"finalizers": null}})).unwrap();
        settle(&mut cluster);
        assert!(!has(&cluster, "top") && !has(&cluster, "held"));
    }

    #[test]
    fn a_circle_of_owners_does_not_wait_for_itself() {
        let mut cluster = control_plane();
        let names = ["a", "b", "c"];
        let uids = names.map(|name| create::<ConfigMap>(&mut cluster, map(name, &[], &[])).uid().to_owned());
        for (at, name) in names.iter().enumerate() {
            let owner = (at + 2) % 3;
            let owned = map(name, &[(names[owner], uids[owner].as_str())], &[]);
            patch::<ConfigMap>(&mut cluster, name, json!({"metadata": owned["metadata"]})).unwrap();
        }
        settle(&mut cluster);
        assert!(names.iter().all(|name| has(&cluster, name)));
        delete_with::<ConfigMap>(&mut cluster, "a", Propagation::Foreground);
        assert!(!names.iter().any(|name| has(&cluster, name)));
    }

    #[test]
    fn orphans_stay_without_an_owner() {
        let mut cluster = control_plane();
        create::<ReplicaSet>(&mut cluster, workload());
        settle(&mut cluster);
        delete_with::<ReplicaSet>(&mut cluster, "web", Propagation::Orphan);
        assert_eq!(cluster.list::<ReplicaSet>("default").count(), 0);
        assert_eq!(cluster.list::<Pod>("default").count(), 2);
        assert!(cluster.list::<Pod>("default").all(|pod| pod.metadata().owner_references.is_none()));
    }

    /// A custom resource p of a kind that comes while the collector runs, and a ConfigMap that it owns.
    fn pool_with_child(cluster: &mut Cluster) -> Object {
        create::<CustomResourceDefinition>(
            cluster,
            json!({
                "metadata": {"name": "pools.example.com"},
                "spec": {
                    "group": "example.com", "scope": "Namespaced",
                    "names": {"kind": "Pool", "plural": "pools", "singular": "pool", "listKind": "PoolList"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                        {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
                },
            }),
        );
        settle(cluster);
        let kind = cluster.kind("example.com/v1", "Pool").unwrap().clone();
        let pool = Object::from_json(&kind, json!({"metadata": {"name": "p", "namespace": "default"}})).unwrap();
        let pool = cluster.request(Request::create(&user(), pool)).unwrap().object().unwrap();
        settle(cluster);
        let mut child = map("child", &[("p", pool.uid())], &[]);
        child["metadata"]["ownerReferences"][0]["apiVersion"] = json!("example.com/v1");
        child["metadata"]["ownerReferences"][0]["kind"] = json!("Pool");
        create::<ConfigMap>(cluster, child);
        settle(cluster);
        pool
    }

    #[test]
    fn children_of_custom_resources_that_came_later_are_collected_too() {
        let mut cluster = control_plane();
        let pool = pool_with_child(&mut cluster);
        assert!(has(&cluster, "child"));
        cluster.request(Request::delete(&user(), &pool.kind, pool.key.clone())).unwrap();
        settle(&mut cluster);
        assert!(!has(&cluster, "child"));
    }

    #[test]
    fn a_collector_that_was_off_still_hears_of_custom_resources() {
        let mut cluster = control_plane();
        let pool = pool_with_child(&mut cluster);
        assert!(cluster.stop(GarbageCollector.name()) && cluster.start(GarbageCollector.name()));
        cluster.request(Request::delete(&user(), &pool.kind, pool.key.clone())).unwrap();
        settle(&mut cluster);
        assert!(!has(&cluster, "child"));
    }
}
