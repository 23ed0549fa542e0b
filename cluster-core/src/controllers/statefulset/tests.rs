use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::{Value, json};

use crate::Cluster;
use crate::api::object::Object;
use crate::controllers::revisions;
use crate::controllers::testing::*;

fn web(replicas: i32, spec: Value) -> Value {
    let mut web = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "img:1"}]},
            },
        },
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        web["spec"][field] = value.clone();
    }
    web
}

fn with_claim(policy: Value) -> Value {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    json!({
        "volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {"kind": "d"}}, "spec": spec}],
        "persistentVolumeClaimRetentionPolicy": policy,
    })
}

fn status(cluster: &Cluster) -> Value {
    cluster.get::<StatefulSet>("default", "web").unwrap().to_json()["status"].take()
}

fn names(cluster: &Cluster) -> Vec<String> {
    cluster.list::<Pod>("default").map(|pod| pod.key.name.to_string()).collect()
}

fn images(cluster: &Cluster) -> Vec<String> {
    let image = |pod: &Object| pod.spec::<Pod>().containers[0].image.clone().unwrap_or_default();
    cluster.list::<Pod>("default").map(image).collect()
}

fn use_image(cluster: &mut Cluster, image: &str, ready: bool) {
    let annotations = if ready { json!(null) } else { json!({"sim/ready": "never"}) };
    let containers = json!([{"name": "c", "image": image}]);
    let template = json!({"metadata": {"annotations": annotations}, "spec": {"containers": containers}});
    patch::<StatefulSet>(cluster, "web", json!({"spec": {"template": template}})).unwrap();
}

fn deletions(cluster: &Cluster) -> Vec<String> {
    events(cluster, "web").into_iter().filter(|told| told.starts_with("SuccessfulDelete")).collect()
}

/// Runs what is Pending and ends what is on its way out, until nothing changes.
fn play(cluster: &mut Cluster) {
    loop {
        play_kubelets(cluster);
        let leaving: Vec<_> = cluster.list::<Pod>("default").filter(|pod| pod.is_terminating()).cloned().collect();
        for pod in &leaving {
            force_delete(cluster, &pod.key.name);
        }
        if leaving.is_empty() {
            return;
        }
    }
}

#[test]
fn pods_come_one_after_another_with_names_that_stay() {
    let mut cluster = control_plane();
    create::<StatefulSet>(&mut cluster, web(3, json!({})));
    settle(&mut cluster);
    assert_eq!(names(&cluster), ["web-0"], "the next waits until this one is ready");
    play(&mut cluster);
    assert_eq!(names(&cluster), ["web-0", "web-1", "web-2"]);
    let told: Vec<String> =
        (0..3).map(|n| format!("SuccessfulCreate Create Pod web-{n} in StatefulSet web successful")).collect();
    assert_eq!(events(&cluster, "web"), told);

    let revision = cluster.list::<ControllerRevision>("default").next().unwrap();
    let pod = cluster.get::<Pod>("default", "web-1").unwrap();
    assert_eq!(pod.spec::<Pod>().hostname.as_deref(), Some("web-1"));
    assert_eq!(pod.spec::<Pod>().subdomain.as_deref(), Some("web"));
    assert_eq!(
        json!(pod.metadata().labels),
        json!({"app": "web", "apps.kubernetes.io/pod-index": "1", "controller-revision-hash": &*revision.key.name,
            "statefulset.kubernetes.io/pod-name": "web-1"})
    );
    assert_eq!(
        status(&cluster),
        json!({"availableReplicas": 3, "collisionCount": 0, "currentReplicas": 3, "currentRevision": &*revision.key.name,
            "observedGeneration": 1, "readyReplicas": 3, "replicas": 3, "updateRevision": &*revision.key.name,
            "updatedReplicas": 3})
    );
}

#[test]
fn a_pod_that_never_gets_ready_stops_the_ordered_but_not_the_parallel() {
    let never = |policy: &str| {
        let template = json!({"metadata": {"labels": {"app": "web"}, "annotations": {"sim/ready": "never"}},
            "spec": {"containers": [{"name": "c", "image": "img:1"}]}});
        web(3, json!({"podManagementPolicy": policy, "template": template}))
    };
    let mut ordered = control_plane();
    create::<StatefulSet>(&mut ordered, never("OrderedReady"));
    play(&mut ordered);
    assert_eq!(names(&ordered), ["web-0"]);
    let mut parallel = control_plane();
    create::<StatefulSet>(&mut parallel, never("Parallel"));
    play(&mut parallel);
    assert_eq!(names(&parallel), ["web-0", "web-1", "web-2"]);
    assert_eq!(status(&parallel)["updatedReplicas"], 3);
}

#[test]
fn it_shrinks_from_the_highest_ordinal_and_grows_again_from_where_it_was() {
    let mut cluster = control_plane();
    create::<StatefulSet>(&mut cluster, web(4, json!({"ordinals": {"start": 2}})));
    play(&mut cluster);
    assert_eq!(names(&cluster), ["web-2", "web-3", "web-4", "web-5"]);
    patch::<StatefulSet>(&mut cluster, "web", json!({"spec": {"replicas": 2}})).unwrap();
    settle(&mut cluster);
    let order = ["5", "4"].map(|n| format!("SuccessfulDelete Delete Pod web-{n} in StatefulSet web successful"));
    assert_eq!(deletions(&cluster), order);
    patch::<StatefulSet>(&mut cluster, "web", json!({"spec": {"replicas": 3}})).unwrap();
    play(&mut cluster);
    assert_eq!(names(&cluster), ["web-2", "web-3", "web-4"]);
}

#[test]
fn an_update_goes_down_to_the_partition_and_a_put_back_template_has_the_newest_revision() {
    let mut cluster = control_plane();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    create::<StatefulSet>(&mut cluster, web(3, json!({"updateStrategy": strategy})));
    play(&mut cluster);
    use_image(&mut cluster, "img:2", true);
    play(&mut cluster);
    assert_eq!(images(&cluster), ["img:1", "img:1", "img:2"]);
    let half = status(&cluster);
    assert_eq!((&half["currentReplicas"], &half["updatedReplicas"]), (&json!(2), &json!(1)));
    assert_ne!(half["currentRevision"], half["updateRevision"]);
    patch::<StatefulSet>(&mut cluster, "web", json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}))
        .unwrap();
    play(&mut cluster);
    assert_eq!(images(&cluster), ["img:2"; 3]);
    let whole = status(&cluster);
    assert_eq!((&whole["currentReplicas"], &whole["currentRevision"]), (&json!(3), &half["updateRevision"]));
    let order = ["2", "1", "0"].map(|n| format!("SuccessfulDelete Delete Pod web-{n} in StatefulSet web successful"));
    assert_eq!(deletions(&cluster), order);

    use_image(&mut cluster, "img:1", true);
    play(&mut cluster);
    let mut numbers: Vec<_> = cluster.list::<ControllerRevision>("default").map(revisions::number).collect();
    numbers.sort();
    assert_eq!(numbers, [2, 3], "the first revision has become the third");
    assert_eq!(status(&cluster)["updateRevision"], half["currentRevision"]);
}

#[test]
fn a_broken_update_stays_stuck_when_its_template_is_put_back_until_somebody_deletes_the_pod() {
    let mut cluster = control_plane();
    create::<StatefulSet>(&mut cluster, web(2, json!({})));
    play(&mut cluster);
    use_image(&mut cluster, "broken", false);
    play(&mut cluster);
    assert_eq!(images(&cluster), ["img:1", "broken"]);
    use_image(&mut cluster, "img:1", true);
    play(&mut cluster);
    assert_eq!(images(&cluster), ["img:1", "broken"]);
    delete::<Pod>(&mut cluster, "web-1").unwrap();
    play(&mut cluster);
    assert_eq!(images(&cluster), ["img:1", "img:1"]);
}

#[test]
fn on_delete_changes_a_pod_only_when_it_is_made_anew() {
    let mut cluster = control_plane();
    create::<StatefulSet>(&mut cluster, web(2, json!({"updateStrategy": {"type": "OnDelete"}})));
    play(&mut cluster);
    use_image(&mut cluster, "img:2", true);
    play(&mut cluster);
    assert_eq!(images(&cluster), ["img:1", "img:1"]);
    delete::<Pod>(&mut cluster, "web-0").unwrap();
    play(&mut cluster);
    assert_eq!(images(&cluster), ["img:2", "img:1"]);
    delete::<Pod>(&mut cluster, "web-1").unwrap();
    play(&mut cluster);
    let after = status(&cluster);
    assert_eq!((&after["updatedReplicas"], &after["currentReplicas"]), (&json!(2), &json!(null)));
    assert_ne!(after["currentRevision"], after["updateRevision"], "only a rolling update is ever complete");
}

#[test]
fn a_pod_that_has_ended_is_made_anew_and_one_that_is_too_young_holds_the_next_back() {
    let mut cluster = control_plane();
    create::<StatefulSet>(&mut cluster, web(2, json!({"minReadySeconds": 3600})));
    play_kubelets(&mut cluster);
    assert_eq!(names(&cluster), ["web-0"]);
    assert_eq!((&status(&cluster)["readyReplicas"], &status(&cluster)["availableReplicas"]), (&json!(1), &json!(0)));
    patch::<StatefulSet>(&mut cluster, "web", json!({"spec": {"minReadySeconds": 0}})).unwrap();
    play(&mut cluster);
    assert_eq!(names(&cluster), ["web-0", "web-1"]);

    let mut ended = cluster.get::<Pod>("default", "web-0").unwrap().clone();
    let before = ended.uid().to_owned();
    ended.revision = 0;
    ended.status_mut::<Pod>().phase = Some("Succeeded".into());
    cluster.request(crate::api::request::Request::update_status(&user(), ended)).unwrap();
    play(&mut cluster);
    assert_ne!(cluster.get::<Pod>("default", "web-0").unwrap().uid(), before);
}

#[test]
fn claims_go_with_the_pod_or_the_set_as_the_policy_says() {
    let mut cluster = control_plane();
    let policy = json!({"whenScaled": "Delete", "whenDeleted": "Delete"});
    create::<StatefulSet>(&mut cluster, web(2, with_claim(policy)));
    play(&mut cluster);
    let told = events(&cluster, "web");
    assert_eq!(told[0], "SuccessfulCreate Create Claim data-web-0 Pod web-0 in StatefulSet web success");
    let claim = cluster.get::<PersistentVolumeClaim>("default", "data-web-1").unwrap();
    assert_eq!(json!(claim.metadata().labels), json!({"app": "web", "kind": "d"}));
    assert_eq!(claim.controller().map(|owner| owner.kind.as_str()), Some("StatefulSet"));
    let pod = cluster.get::<Pod>("default", "web-1").unwrap().to_json();
    assert_eq!(
        pod["spec"]["volumes"][0],
        json!({"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}})
    );

    patch::<StatefulSet>(&mut cluster, "web", json!({"spec": {"replicas": 1}})).unwrap();
    play(&mut cluster);
    let claims = |cluster: &Cluster| -> Vec<String> {
        cluster.list::<PersistentVolumeClaim>("default").map(|claim| claim.key.name.to_string()).collect()
    };
    assert_eq!(claims(&cluster), ["data-web-0"]);
    delete::<StatefulSet>(&mut cluster, "web").unwrap();
    play(&mut cluster);
    assert_eq!(claims(&cluster), [""; 0]);
}

#[test]
fn a_claim_on_its_way_out_is_waited_for() {
    let mut cluster = control_plane();
    create::<PersistentVolumeClaim>(
        &mut cluster,
        json!({"metadata": {"name": "data-web-0", "finalizers": ["x.io/hold"]},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    delete::<PersistentVolumeClaim>(&mut cluster, "data-web-0").unwrap();
    settle(&mut cluster);
    create::<StatefulSet>(&mut cluster, web(1, with_claim(json!({}))));
    settle(&mut cluster);
    assert_eq!(
        events(&cluster, "web"),
        ["FailedCreate Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted"]
    );
    patch::<PersistentVolumeClaim>(&mut cluster, "data-web-0", json!({"metadata": {"finalizers": null}})).unwrap();
    play(&mut cluster);
    assert_eq!(names(&cluster), ["web-0"]);
    assert!(!cluster.get::<PersistentVolumeClaim>("default", "data-web-0").unwrap().is_terminating());
}

#[test]
fn a_refused_pod_is_told_and_the_history_keeps_its_limit() {
    let mut cluster = control_plane();
    create::<StatefulSet>(&mut cluster, web(1, json!({"revisionHistoryLimit": 1})));
    for image in ["img:2", "img:3", "img:4"] {
        play(&mut cluster);
        use_image(&mut cluster, image, true);
    }
    play(&mut cluster);
    assert_eq!(cluster.list::<ControllerRevision>("default").count(), 2);

    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}});
    create::<k8s_openapi::api::core::v1::ResourceQuota>(&mut cluster, quota);
    settle(&mut cluster);
    patch::<StatefulSet>(&mut cluster, "web", json!({"spec": {"replicas": 2}})).unwrap();
    cluster.advance(std::time::Duration::from_secs(1), |_| true);
    let refused =
        "FailedCreate Create Pod web-1 in StatefulSet web failed error: pods \"web-1\" is forbidden: exceeded quota: q";
    assert!(events(&cluster, "web").iter().any(|told| told.starts_with(refused)));
    assert_eq!(status(&cluster)["observedGeneration"], 5);
}
