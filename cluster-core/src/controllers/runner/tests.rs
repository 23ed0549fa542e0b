//! The runner under faults.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::Cluster;
use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::{PatchType, Request};
use crate::controllers::cache::View;
use crate::controllers::controller::Watch;
use crate::controllers::testing::*;
use crate::faults::{Edge, Effect, Rule};

use super::*;

fn set(name: &str, replicas: i32) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    })
}

fn rule(edge: Edge, effect: Effect, times: Option<u32>) -> Rule {
    let component = match edge {
        Edge::Delivery => "kube-controller-manager",
        Edge::Request => "replicaset-controller",
    };
    let (component, kind) = (component.into(), "pods".into());
    Rule { edge, component, kind, name: "".into(), effect, times, until: None }
}

fn active(cluster: &Cluster, owner: &str) -> Vec<Object> {
    let owned = |pod: &&Object| {
        pod.controller().is_some_and(|reference| reference.name == owner) && crate::controllers::pods::is_active(pod)
    };
    cluster.list::<Pod>("default").filter(owned).cloned().collect()
}

#[test]
fn a_key_waits_until_the_cache_shows_its_own_writes() {
    for times in [Some(1), None] {
        let mut cluster = control_plane();
        cluster.add_rule(rule(Edge::Delivery, Effect::Delay(Duration::from_secs(2)), times), "pods are late");
        create::<ReplicaSet>(&mut cluster, set("web", 3));
        cluster.advance(Duration::from_secs(10), |_| true);
        assert_eq!(events(&cluster, "web").len(), 3);
        assert_eq!(active(&cluster, "web").len(), 3);
        let set = cluster.get::<ReplicaSet>("default", "web").unwrap().to_json();
        assert_eq!(set["status"]["replicas"], 3, "late is not lost");
    }
}

#[test]
fn a_refused_write_ends_the_plan_and_is_tried_again_later() {
    let mut cluster = control_plane();
    cluster.add_rule(rule(Edge::Request, Effect::Drop, Some(3)), "requests fail");
    create::<ReplicaSet>(&mut cluster, set("web", 3));
    settle(&mut cluster);
    assert_eq!(active(&cluster, "web").len(), 3);
    let refused = events(&cluster, "web").iter().filter(|event| event.starts_with("FailedCreate")).count();
    assert_eq!(refused, 1, "equal events are counted, not written again");
}

/// Labels what it sees, then says that it failed.
struct Unlucky;

impl Controller for Unlucky {
    fn name(&self) -> &str {
        "unlucky"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::itself(ReplicaSet::kind())]
    }

    fn reconcile(&self, key: &Key, view: &View<'_>) -> Plan {
        let Some(set) = view.get::<ReplicaSet>(key) else { return Plan::done() };
        let mut plan = Plan::failed("no answer");
        plan.patch(set, PatchType::Merge, json!({"metadata": {"labels": {"seen": "yes"}}}), "it was seen");
        plan
    }
}

#[test]
fn a_plan_that_failed_writes_what_it_has_and_comes_back_later_and_later() {
    let mut cluster = control_plane();
    cluster.join(Arc::new(Unlucky));
    create::<ReplicaSet>(&mut cluster, set("web", 0));
    let tries = |cluster: &Cluster| cluster.trace().iter().filter(|entry| &*entry.actor == "unlucky").count();
    cluster.advance(Duration::from_secs(10), |_| true);
    let early = tries(&cluster);
    cluster.advance(Duration::from_secs(3600), |_| true);
    let late = tries(&cluster);
    assert_eq!(cluster.get::<ReplicaSet>("default", "web").unwrap().to_json()["metadata"]["labels"]["seen"], "yes");
    assert!(early > 5 && late > early && late < 3 * early, "{early} within 10 s, {late} within an hour");
}

#[test]
fn a_create_whose_answer_is_lost_is_not_done_twice_for_long() {
    let mut cluster = control_plane();
    cluster.add_rule(rule(Edge::Request, Effect::LoseAnswer, Some(2)), "answers are lost");
    create::<ReplicaSet>(&mut cluster, set("web", 3));
    play_kubelets(&mut cluster);
    assert_eq!(active(&cluster, "web").len(), 3);
}

#[test]
fn an_end_that_was_not_heard_of_is_noticed_when_the_name_is_taken_again() {
    let mut cluster = control_plane();
    let pod = || json!({"metadata": {"name": "owner"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let owner = create::<Pod>(&mut cluster, pod()).controller_reference();
    create::<ConfigMap>(&mut cluster, json!({"metadata": {"name": "owned", "ownerReferences": [owner]}}));
    settle(&mut cluster);
    cluster.add_rule(rule(Edge::Delivery, Effect::Drop, Some(2)), "the deletion is not heard of");
    delete::<Pod>(&mut cluster, "owner").unwrap();
    settle(&mut cluster);
    assert!(cluster.get::<ConfigMap>("default", "owned").is_some());
    create::<Pod>(&mut cluster, pod());
    settle(&mut cluster);
    assert!(cluster.get::<ConfigMap>("default", "owned").is_none());
}

#[test]
fn lost_events_are_made_up_for_by_the_next_ones_or_by_the_next_list() {
    for lost in 1..6 {
        let mut cluster = control_plane();
        create::<ReplicaSet>(&mut cluster, set("web", 3));
        cluster.add_rule(rule(Edge::Delivery, Effect::Drop, Some(lost)), "events are lost");
        play_kubelets(&mut cluster);
        cluster.advance(RELIST, |_| true);
        play_kubelets(&mut cluster);
        assert_eq!(active(&cluster, "web").len(), 3, "{lost} lost");
        let status = cluster.get::<ReplicaSet>("default", "web").unwrap().status::<ReplicaSet>().clone();
        assert_eq!((status.replicas, status.ready_replicas), (3, Some(3)), "{lost} lost");
    }
}

#[test]
fn a_restart_at_any_point_loses_and_doubles_nothing() {
    for steps in 0..40 {
        let mut cluster = control_plane();
        settle(&mut cluster);
        create::<ReplicaSet>(&mut cluster, set("web", 3));
        for _ in 0..steps {
            cluster.step();
        }
        cluster.stop("kube-controller-manager");
        cluster.advance(Duration::from_secs(1), |_| true);
        let before = active(&cluster, "web").len();
        cluster.start("kube-controller-manager");
        play_kubelets(&mut cluster);
        assert_eq!(active(&cluster, "web").len(), 3, "restarted after {steps} steps with {before} pods");
    }
}

#[test]
fn informers_connect_when_the_apiserver_is_back() {
    let mut cluster = control_plane();
    cluster.stop("kube-controller-manager");
    create::<ReplicaSet>(&mut cluster, set("web", 2));
    cluster.stop("kube-apiserver");
    cluster.start("kube-controller-manager");
    cluster.advance(Duration::from_secs(5), |_| true);
    assert_eq!(active(&cluster, "web").len(), 0);
    cluster.start("kube-apiserver");
    cluster.advance(Duration::from_secs(5), |_| true);
    assert_eq!(active(&cluster, "web").len(), 2);
}

#[test]
fn a_loop_that_starts_again_hears_of_what_it_has_missed() {
    let mut cluster = control_plane();
    create::<ReplicaSet>(&mut cluster, set("web", 2));
    play_kubelets(&mut cluster);
    cluster.stop("garbage-collector-controller");
    delete::<ReplicaSet>(&mut cluster, "web").unwrap();
    settle(&mut cluster);
    assert_eq!(active(&cluster, "web").len(), 2);
    cluster.start("garbage-collector-controller");
    settle(&mut cluster);
    assert_eq!(active(&cluster, "web").len(), 0);
}

#[derive(Clone, Debug)]
enum Edit {
    Scale(i32),
    Delete(usize),
    Relabel(usize),
    Wait(u64),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        (0..8_i32).prop_map(Edit::Scale),
        (0..8_usize).prop_map(Edit::Delete),
        (0..8_usize).prop_map(Edit::Relabel),
        (0..20_u64).prop_map(Edit::Wait),
    ];
    proptest::collection::vec(edit, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_to_it_a_replica_set_ends_with_its_pods_and_touches_no_others(edits in edits()) {
        let mut cluster = control_plane();
        create::<ReplicaSet>(&mut cluster, set("other", 2));
        create::<Pod>(&mut cluster, json!({"metadata": {"name": "bare", "labels": {"app": "bare"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}));
        create::<ReplicaSet>(&mut cluster, set("web", 3));
        play_kubelets(&mut cluster);
        let uids = |cluster: &Cluster| {
            let foreign = cluster.list::<Pod>("default").filter(|pod| matches!(pod.label("app"), Some("other" | "bare")));
            foreign.map(|pod| pod.uid().to_owned()).collect::<Vec<_>>()
        };
        let foreign = uids(&cluster);
        let mut wanted = 3;
        for edit in edits {
            let mine = active(&cluster, "web");
            match edit {
                Edit::Scale(replicas) => {
                    wanted = replicas;
                    patch::<ReplicaSet>(&mut cluster, "web", json!({"spec": {"replicas": replicas}})).unwrap();
                }
                Edit::Delete(index) => {
                    if let Some(pod) = mine.get(index) {
                        delete::<Pod>(&mut cluster, &pod.key.name).unwrap();
                    }
                }
                Edit::Relabel(index) => {
                    if let Some(pod) = mine.get(index) {
                        let key = Key::new("default", pod.key.name.clone());
                        let body = json!({"metadata": {"labels": {"app": "aside"}}});
                        let request = Request::patch(&user(), Pod::kind(), key, PatchType::Merge, body);
                        cluster.request(request).unwrap();
                    }
                }
                Edit::Wait(ms) => drop(cluster.advance(Duration::from_millis(ms), |_| true)),
            }
        }
        play_kubelets(&mut cluster);
        prop_assert_eq!(active(&cluster, "web").len(), wanted as usize);
        prop_assert_eq!(uids(&cluster), foreign);
        let revision = cluster.revision();
        cluster.advance(Duration::from_secs(30), |_| true);
        prop_assert_eq!(cluster.revision(), revision, "nothing is written at rest");
    }
}
