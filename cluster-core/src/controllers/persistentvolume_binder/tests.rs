use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};

use crate::Cluster;
use crate::api::object::Object;
use crate::controllers::testing::*;

fn volume(cluster: &mut Cluster, name: &str, size: &str, more: Value) {
    let mut spec = json!({"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "disks",
        "hostPath": {"path": "/tmp/d"}});
    extend(&mut spec, more);
    create::<PersistentVolume>(cluster, json!({"metadata": {"name": name, "labels": {"tier": name}}, "spec": spec}));
}

fn claim(cluster: &mut Cluster, name: &str, size: &str, more: Value) {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "disks",
        "resources": {"requests": {"storage": size}}});
    extend(&mut spec, more);
    create::<PersistentVolumeClaim>(cluster, json!({"metadata": {"name": name}, "spec": spec}));
}

fn class(cluster: &mut Cluster, provisioner: &str, mode: &str) {
    let class = json!({"metadata": {"name": "disks"}, "provisioner": provisioner, "volumeBindingMode": mode});
    create::<StorageClass>(cluster, class);
}

fn extend(spec: &mut Value, more: Value) {
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
}

/// Phase and volume of a claim.
fn claimed(cluster: &Cluster, name: &str) -> (String, String) {
    let claim = cluster.get::<PersistentVolumeClaim>("default", name).unwrap();
    let phase = claim.status::<PersistentVolumeClaim>().phase.clone();
    (phase.unwrap_or_default(), claim.spec::<PersistentVolumeClaim>().volume_name.clone().unwrap_or_default())
}

fn phase(cluster: &Cluster, name: &str) -> String {
    let volume = cluster.get::<PersistentVolume>("", name).unwrap();
    volume.status::<PersistentVolume>().phase.clone().unwrap_or_default()
}

fn bound(volume: &str) -> (String, String) {
    ("Bound".into(), volume.into())
}

fn pending() -> (String, String) {
    ("Pending".into(), String::new())
}

#[test]
fn a_claim_gets_the_smallest_volume_that_is_large_enough_and_releases_it_when_it_goes() {
    let mut cluster = control_plane();
    for (name, size) in [("one", "1Gi"), ("ten", "10Gi"), ("five", "5Gi")] {
        volume(&mut cluster, name, size, json!({}));
    }
    settle(&mut cluster);
    assert_eq!(phase(&cluster, "five"), "Available");
    claim(&mut cluster, "c", "3Gi", json!({}));
    settle(&mut cluster);
    assert_eq!(claimed(&cluster, "c"), bound("five"));
    let made = cluster.get::<PersistentVolumeClaim>("default", "c").unwrap().to_json();
    assert_eq!(
        made["status"],
        json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "5Gi"}, "phase": "Bound"})
    );
    let yes = json!({"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"});
    assert_eq!(made["metadata"]["annotations"], yes);
    let five = cluster.get::<PersistentVolume>("", "five").unwrap().to_json();
    assert_eq!(five["spec"]["claimRef"]["uid"], made["metadata"]["uid"]);
    assert_eq!([phase(&cluster, "five"), phase(&cluster, "one")], ["Bound", "Available"]);

    delete::<PersistentVolumeClaim>(&mut cluster, "c").unwrap();
    settle(&mut cluster);
    assert_eq!(phase(&cluster, "five"), "Released");
    claim(&mut cluster, "c", "3Gi", json!({}));
    settle(&mut cluster);
    assert_eq!(claimed(&cluster, "c"), bound("ten"), "a released volume is not given to anybody");
}

#[test]
fn class_selector_modes_and_reservations_decide() {
    let mut cluster = control_plane();
    volume(&mut cluster, "a", "1Gi", json!({"volumeMode": "Block"}));
    volume(&mut cluster, "b", "1Gi", json!({"storageClassName": "tapes"}));
    volume(&mut cluster, "c", "1Gi", json!({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}));
    volume(&mut cluster, "d", "1Gi", json!({"claimRef": {"namespace": "default", "name": "reserved"}}));
    settle(&mut cluster);
    claim(&mut cluster, "many", "1Gi", json!({"accessModes": ["ReadWriteMany"]}));
    claim(&mut cluster, "selecting", "1Gi", json!({"selector": {"matchLabels": {"tier": "b"}}}));
    claim(&mut cluster, "raw", "1Gi", json!({"volumeMode": "Block"}));
    claim(&mut cluster, "tape", "1Gi", json!({"storageClassName": "tapes"}));
    claim(&mut cluster, "any", "1Gi", json!({}));
    claim(&mut cluster, "reserved", "1Gi", json!({}));
    settle(&mut cluster);
    assert_eq!([claimed(&cluster, "many"), claimed(&cluster, "selecting")], [pending(), pending()]);
    let found = ["raw", "tape", "any", "reserved"].map(|name| claimed(&cluster, name));
    assert_eq!(found, ["a", "b", "c", "d"].map(bound));
    let reserved = cluster.get::<PersistentVolume>("", "d").unwrap();
    assert_eq!(reserved.annotation("pv.kubernetes.io/bound-by-controller"), None, "a user had bound it");
    assert_eq!(events(&cluster, "many"), ["ProvisioningFailed storageclass.storage.k8s.io \"disks\" not found"]);
}

#[test]
fn a_claim_by_name_waits_for_that_volume_or_says_what_is_wrong_with_it() {
    let mut cluster = control_plane();
    claim(&mut cluster, "c", "1Gi", json!({"volumeName": "v"}));
    claim(&mut cluster, "large", "9Gi", json!({"volumeName": "w"}));
    settle(&mut cluster);
    volume(&mut cluster, "v", "1Gi", json!({}));
    volume(&mut cluster, "w", "1Gi", json!({}));
    settle(&mut cluster);
    assert_eq!(claimed(&cluster, "c"), bound("v"));
    assert_eq!(claimed(&cluster, "large").0, "Pending");
    assert_eq!(
        events(&cluster, "large"),
        ["VolumeMismatch Cannot bind to requested volume \"w\": requested PV is too small"]
    );
    claim(&mut cluster, "late", "1Gi", json!({"volumeName": "v"}));
    settle(&mut cluster);
    assert_eq!(events(&cluster, "late"), ["FailedBinding volume \"v\" already bound to a different claim."]);
}

#[test]
fn what_no_volume_fits_waits_and_says_for_what() {
    let mut cluster = control_plane();
    claim(&mut cluster, "none", "1Gi", json!({"storageClassName": ""}));
    settle(&mut cluster);
    let message = "FailedBinding no persistent volumes available for this claim and no storage class is set";
    assert_eq!(events(&cluster, "none"), [message]);
    claim(&mut cluster, "c", "1Gi", json!({}));
    settle(&mut cluster);
    class(&mut cluster, "example.com/disks", "Immediate");
    settle(&mut cluster);
    let made = cluster.get::<PersistentVolumeClaim>("default", "c").unwrap();
    assert_eq!(made.annotation("volume.kubernetes.io/storage-provisioner"), Some("example.com/disks"));
    let told = events(&cluster, "c");
    assert!(told[1].starts_with(
        "ExternalProvisioning Waiting for a volume to be created either by the external provisioner 'example.com/disks' or"
    ));
    volume(&mut cluster, "v", "1Gi", json!({}));
    settle(&mut cluster);
    assert_eq!(claimed(&cluster, "c"), bound("v"), "a volume made by hand is as good");
}

#[test]
fn a_class_that_waits_leaves_the_choice_to_the_scheduler() {
    let mut cluster = control_plane();
    class(&mut cluster, "kubernetes.io/no-provisioner", "WaitForFirstConsumer");
    volume(&mut cluster, "v", "1Gi", json!({}));
    claim(&mut cluster, "c", "1Gi", json!({}));
    settle(&mut cluster);
    assert_eq!(events(&cluster, "c"), ["WaitForFirstConsumer waiting for first consumer to be created before binding"]);
    let uid = cluster.get::<PersistentVolumeClaim>("default", "c").unwrap().uid().to_owned();
    let owner =
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "c", "uid": uid});
    patch::<PersistentVolume>(&mut cluster, "v", json!({"spec": {"claimRef": owner}})).unwrap();
    settle(&mut cluster);
    assert_eq!(claimed(&cluster, "c"), bound("v"));
    assert_eq!(phase(&cluster, "v"), "Bound");
}

#[test]
fn the_reclaim_policy_says_what_becomes_of_the_volume() {
    let mut cluster = control_plane();
    let policy =
        |policy: &str, path: &str| json!({"persistentVolumeReclaimPolicy": policy, "hostPath": {"path": path}});
    volume(&mut cluster, "deleted", "1Gi", policy("Delete", "/tmp/d"));
    volume(&mut cluster, "undeletable", "2Gi", policy("Delete", "/data"));
    volume(&mut cluster, "recycled", "3Gi", policy("Recycle", "/data"));
    for (name, size) in [("a", "1Gi"), ("b", "2Gi"), ("c", "3Gi")] {
        claim(&mut cluster, name, size, json!({}));
        settle(&mut cluster);
    }
    for name in ["a", "b", "c"] {
        delete::<PersistentVolumeClaim>(&mut cluster, name).unwrap();
    }
    settle(&mut cluster);
    assert!(cluster.get::<PersistentVolume>("", "deleted").is_none());
    let failed = cluster.get::<PersistentVolume>("", "undeletable").unwrap().status::<PersistentVolume>();
    assert_eq!(failed.phase.as_deref(), Some("Failed"));
    let message = "host_path deleter only supports /tmp/.+ but received provided /data";
    assert_eq!(failed.message.as_deref(), Some(message));
    assert_eq!(events(&cluster, "undeletable"), [format!("VolumeFailedDelete {message}")]);
    let recycled = cluster.get::<PersistentVolume>("", "recycled").unwrap();
    assert_eq!(
        (phase(&cluster, "recycled").as_str(), &recycled.spec::<PersistentVolume>().claim_ref),
        ("Available", &None)
    );
}

#[test]
fn a_claim_whose_volume_is_gone_is_lost() {
    let mut cluster = control_plane();
    volume(&mut cluster, "v", "1Gi", json!({}));
    settle(&mut cluster);
    claim(&mut cluster, "c", "1Gi", json!({}));
    settle(&mut cluster);
    delete::<PersistentVolume>(&mut cluster, "v").unwrap();
    settle(&mut cluster);
    assert!(cluster.get::<PersistentVolume>("", "v").is_some_and(Object::is_terminating), "a claim has it");
    patch::<PersistentVolume>(&mut cluster, "v", json!({"metadata": {"finalizers": null}})).unwrap();
    settle(&mut cluster);
    assert_eq!(claimed(&cluster, "c").0, "Lost");
    assert_eq!(
        events(&cluster, "c"),
        ["ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!"]
    );
}
