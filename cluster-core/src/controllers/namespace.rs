//! namespace-controller: empties a namespace that terminates, then lets it go.
//! <https://kubernetes.io/docs/tasks/administer-cluster/namespaces/#deleting-a-namespace>
//! Pods go first, so that nothing they stand on (a NetworkPolicy, a Secret) is gone while they run: KEP-5080.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition, Pod};

use super::cache::View;
use super::controller::{Controller, Plan, Watch};
use crate::api::kind::{KindRef, Resource};
use crate::api::object::Object;
use crate::api::request::{Propagation, Request, Verb};
use crate::api::{Key, Name, kinds};
use crate::store::Change;

const FINALIZER: &str = "kubernetes";

pub struct NamespaceController;

impl Controller for NamespaceController {
    fn name(&self) -> &str {
        "namespace-controller"
    }

    fn watches(&self) -> Vec<Watch> {
        let mut slots = BTreeSet::new();
        let content = kinds::built_in().iter().filter(|kind| is_content(kind));
        let content = content.filter(|kind| slots.insert(kind.slot)).map(|kind| Watch::with(kind, emptied));
        [Watch::itself(Namespace::kind())].into_iter().chain(content).collect()
    }

    fn watch_custom(&self, kind: &KindRef) -> Option<Watch> {
        is_content(kind).then(|| Watch::with(kind, emptied))
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let mut plan = Plan::done();
        let Some(namespace) = view.get::<Namespace>(key).filter(|namespace| namespace.is_terminating()) else {
            return plan;
        };
        if !holds(namespace) {
            return plan;
        }
        let name = &namespace.key.name;
        let kinds: Vec<&KindRef> = view.kinds().iter().filter(|kind| is_content(kind)).collect();
        let has_pods = view.list_of(Pod::kind(), name).next().is_some();
        let is_turn = |kind: &&&KindRef| !has_pods || kind.slot == Pod::kind().slot;
        let left = |kind: &&&KindRef| view.list_of(kind, name).any(|object| !object.is_terminating());
        for kind in kinds.iter().filter(is_turn).filter(left) {
            let mut request = Request::new(&"".into(), Verb::DeleteCollection, kind, Key::new(name.clone(), ""));
            request.options.propagation = Some(Propagation::Background);
            plan.write(request, "its namespace terminates");
        }
        if !plan.is_empty() {
            return plan;
        }
        let content: Vec<&Object> = kinds.iter().flat_map(|kind| view.list_of(kind, name)).collect();
        // What remains is counted once the pods are gone.
        let told = with_conditions(namespace, if has_pods { &[] } else { &content }, view);
        if !told.same_status(namespace) {
            plan.update_status(told, "what is left in it has changed");
        }
        if content.is_empty() {
            for kind in kinds {
                plan.unless_any(kind, name.clone());
            }
            finalize(namespace, &mut plan);
        }
        plan
    }
}

fn is_content(kind: &KindRef) -> bool {
    kind.namespaced && kind.allows("delete") && kind.allows("list")
}

/// Something in a terminating namespace is gone, or on its way.
fn emptied(view: &View<'_>, change: &Change) -> Vec<Key> {
    if change.after.as_ref().is_some_and(|after| !after.is_terminating()) {
        return Vec::new();
    }
    let key = Key::cluster(change.key().namespace.clone());
    let terminates = view.get::<Namespace>(&key).is_some_and(Object::is_terminating);
    if terminates { vec![key] } else { Vec::new() }
}

fn holds(namespace: &Object) -> bool {
    namespace.spec::<Namespace>().finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

fn finalize(namespace: &Object, plan: &mut Plan) {
    let mut namespace = namespace.clone();
    // Its conditions may just have been written.
    namespace.revision = 0;
    if let Some(finalizers) = &mut namespace.spec_mut::<Namespace>().finalizers {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    let request = Request { subresource: "finalize", ..Request::update(&"".into(), namespace) };
    plan.write(request, "nothing is left in it").tolerate(&["NotFound"]);
}

fn with_conditions(namespace: &Object, content: &[&Object], view: &View<'_>) -> Object {
    let (mut resources, mut finalizers) = (BTreeMap::<String, usize>::new(), BTreeMap::<&str, usize>::new());
    for object in content {
        *resources.entry(format!("{}.{}", object.kind.resource, object.kind.group)).or_default() += 1;
        for finalizer in object.metadata().finalizers.iter().flatten() {
            *finalizers.entry(finalizer).or_default() += 1;
        }
    }
    let resources: Vec<_> = resources.iter().map(|(name, n)| format!("{name} has {n} resource instances")).collect();
    let finalizers: Vec<_> = finalizers.iter().map(|(name, n)| format!("{name} in {n} resource instances")).collect();
    let mut told = namespace.clone();
    let mut say = |condition_type: &str, is: bool, reason: &str, message: String| {
        let condition = NamespaceCondition {
            type_: condition_type.into(),
            status: if is { "True" } else { "False" }.into(),
            reason: Some(reason.into()),
            message: Some(message),
            last_transition_time: Some(view.now.to_meta()),
        };
        put(&mut told, condition);
    };
    let fine = |text: &str| text.to_owned();
    let discovered = fine("All resources successfully discovered");
    say("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered", discovered);
    let parsed = fine("All legacy kube types successfully parsed");
    say("NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions", parsed);
    let deleted = fine("All content successfully deleted, may be waiting on finalization");
    say("NamespaceDeletionContentFailure", false, "ContentDeleted", deleted);
    if resources.is_empty() {
        say("NamespaceContentRemaining", false, "ContentRemoved", fine("All content successfully removed"));
    } else {
        let text = format!("Some resources are remaining: {}", resources.join(", "));
        say("NamespaceContentRemaining", true, "SomeResourcesRemain", text);
    }
    if finalizers.is_empty() {
        let text = fine("All content-preserving finalizers finished");
        say("NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers", text);
    } else {
        let text = format!("Some content in the namespace has finalizers remaining: {}", finalizers.join(", "));
        say("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", text);
    }
    told
}

/// A condition that says the same keeps its time.
fn put(namespace: &mut Object, mut condition: NamespaceCondition) {
    let conditions = namespace.status_mut::<Namespace>().conditions.get_or_insert_default();
    match conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        Some(known) => {
            if known.status == condition.status {
                condition.last_transition_time = known.last_transition_time.clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}

/// The namespaces that take new objects, for controllers that put something into each.
pub fn is_active(namespace: &Object) -> bool {
    !namespace.is_terminating()
}

/// The key of the namespace that a changed object is in.
pub fn of_change(change: &Change) -> Vec<Key> {
    vec![Key::cluster(Name::clone(&change.key().namespace))]
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
    use serde_json::json;

    use super::*;
    use crate::Cluster;
    use crate::controllers::testing::*;

    fn with_map(finalizers: &[&str]) -> Cluster {
        let mut cluster = control_plane();
        create::<Namespace>(&mut cluster, json!({"metadata": {"name": "team"}}));
        settle(&mut cluster);
        let metadata = json!({"name": "stuck", "namespace": "team", "finalizers": finalizers});
        create::<ConfigMap>(&mut cluster, json!({"metadata": metadata}));
        create::<Secret>(&mut cluster, json!({"metadata": {"name": "s", "namespace": "team"}}));
        settle(&mut cluster);
        cluster
    }

    #[test]
    fn a_deleted_namespace_is_emptied_and_then_gone() {
        let mut cluster = with_map(&[]);
        assert!(cluster.get::<ServiceAccount>("team", "default").is_some());
        assert!(cluster.get::<ConfigMap>("team", "kube-root-ca.crt").is_some());
        delete::<Namespace>(&mut cluster, "team").unwrap();
        settle(&mut cluster);
        assert!(cluster.get::<Namespace>("", "team").is_none());
        let left = cluster.kinds().filter(|kind| kind.namespaced).map(|kind| cluster.list_of(kind, "team").count());
        assert_eq!(left.sum::<usize>(), 0);
    }

    #[test]
    fn pods_go_before_what_they_stand_on() {
        let mut cluster = with_map(&[]);
        let pod = json!({"metadata": {"name": "p", "namespace": "team", "finalizers": ["test/hold"]},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
        create::<Pod>(&mut cluster, pod);
        delete::<Namespace>(&mut cluster, "team").unwrap();
        settle(&mut cluster);
        assert!(cluster.get::<Pod>("team", "p").unwrap().is_terminating());
        assert!(cluster.get::<ConfigMap>("team", "stuck").is_some());
        let body = json!({"metadata": {"finalizers": null}});
        let patch = crate::api::request::PatchType::Merge;
        cluster.request(Request::patch(&user(), Pod::kind(), Key::new("team", "p"), patch, body)).unwrap();
        settle(&mut cluster);
        assert!(cluster.get::<Namespace>("", "team").is_none());
    }

    #[test]
    fn what_holds_a_namespace_is_told_in_its_conditions() {
        let mut cluster = with_map(&["test/hold"]);
        delete::<Namespace>(&mut cluster, "team").unwrap();
        settle(&mut cluster);
        let json = cluster.get::<Namespace>("", "team").unwrap().to_json();
        let told: Vec<String> = json["status"]["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| {
                format!(
                    "{} {} {}",
                    c["type"].as_str().unwrap(),
                    c["status"].as_str().unwrap(),
                    c["message"].as_str().unwrap()
                )
            })
            .collect();
        assert_eq!(
            told[3],
            "NamespaceContentRemaining True Some resources are remaining: configmaps. has 1 resource instances"
        );
        assert_eq!(
            told[4],
            "NamespaceFinalizersRemaining True Some content in the namespace has finalizers remaining: test/hold in 1 resource instances"
        );
        let key = Key::new("team", "stuck");
        let body = json!({"metadata": {"finalizers": null}});
        let request = Request::patch(&user(), ConfigMap::kind(), key, crate::api::request::PatchType::Merge, body);
        cluster.request(request).unwrap();
        settle(&mut cluster);
        assert!(cluster.get::<Namespace>("", "team").is_none());
    }
}
