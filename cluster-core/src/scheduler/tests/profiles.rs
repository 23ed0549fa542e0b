//! Profiles, as a KubeSchedulerConfiguration brings them.

use super::*;

fn configured(profiles: Value) -> Cluster {
    let mut cluster = cluster();
    for name in ["a", "b", "c"] {
        node(&mut cluster, name, "10", json!({}));
    }
    settle(&mut cluster);
    cluster.configure_scheduler(&json!({"profiles": profiles})).unwrap();
    cluster
}

fn place(cluster: &Cluster, name: &str) -> String {
    cluster.get::<Pod>("default", name).unwrap().spec::<Pod>().node_name.clone().unwrap_or_default()
}

fn for_packer(cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu, "memory": "100Mi"}});
    json!({"schedulerName": "packer", "containers": [{"name": "c", "image": "i:1", "resources": resources}]})
}

#[test]
fn a_profile_packs_and_another_one_spreads() {
    let args = json!({"scoringStrategy": {"type": "MostAllocated"}});
    let packer = json!({"schedulerName": "packer", "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
        "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}, {"name": "PodTopologySpread"}]}}});
    let mut cluster = configured(json!([packer, {}]));
    for name in ["p1", "p2", "p3"] {
        pod(&mut cluster, name, json!({}), for_packer("1"));
    }
    settle(&mut cluster);
    assert!(!place(&cluster, "p1").is_empty());
    assert_eq!(place(&cluster, "p1"), place(&cluster, "p2"));
    assert_eq!(place(&cluster, "p1"), place(&cluster, "p3"));
    let verdict = cluster.scheduler().verdict(&Key::new("default", "p2")).unwrap();
    let NodeVerdict::Passed { points, .. } = &verdict.nodes[0].1 else { panic!("every node passes") };
    assert!(points.iter().all(|(plugin, _)| *plugin != "NodeResourcesBalancedAllocation"), "{points:?}");
    let told = cluster.list::<EventObject>("default").map(Object::to_json);
    assert!(told.into_iter().any(|event| event["reportingComponent"] == "packer"));
    pod(&mut cluster, "q", json!({}), requesting("1"));
    settle(&mut cluster);
    assert_ne!(place(&cluster, "q"), place(&cluster, "p1"));
}

#[test]
fn pods_of_no_profile_wait_and_defaults_come_back() {
    let mut cluster = configured(json!([{"schedulerName": "packer"}]));
    pod(&mut cluster, "p", json!({}), requesting("1"));
    settle(&mut cluster);
    assert_eq!(place(&cluster, "p"), "");
    cluster.configure_scheduler(&json!({})).unwrap();
    settle(&mut cluster);
    assert_ne!(place(&cluster, "p"), "");
}

#[test]
fn a_profile_adds_an_affinity_and_turns_filters_off() {
    let terms = json!([{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z-b"]}]}]);
    let added = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    let config = json!([{"name": "NodeAffinity", "args": {"addedAffinity": added}}]);
    let mut cluster = configured(json!([
        {"schedulerName": "packer", "pluginConfig": config, "plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}},
    ]));
    pod(&mut cluster, "p", json!({}), for_packer("100"));
    settle(&mut cluster);
    assert_eq!(place(&cluster, "p"), "b");
    let verdict = cluster.scheduler().verdict(&Key::new("default", "p")).unwrap();
    let refused = |(_, node): &(Name, NodeVerdict)| match node {
        NodeVerdict::Rejected { reasons, .. } => Some(reasons.join(", ")),
        NodeVerdict::Passed { .. } => None,
    };
    let told = "node(s) didn't match scheduler-enforced node affinity";
    assert_eq!(verdict.nodes.iter().filter_map(refused).collect::<Vec<_>>(), [told, told]);
}

#[test]
fn large_clusters_are_searched_zone_by_zone() {
    let mut cluster = cluster();
    for number in 0..120 {
        let zone = if number < 60 { "x" } else { "y" };
        let capacity = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        let name = format!("n{number:03}");
        let labels = json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone});
        let status = json!({"capacity": capacity, "allocatable": capacity});
        create::<Node>(&mut cluster, json!({"metadata": {"name": name, "labels": labels}, "status": status}));
    }
    pod(&mut cluster, "p", json!({}), requesting("1"));
    settle(&mut cluster);
    let verdict = cluster.scheduler().verdict(&Key::new("default", "p")).unwrap();
    let first: Vec<&str> = verdict.nodes.iter().take(4).map(|(name, _)| &**name).collect();
    assert_eq!((first, verdict.nodes.len()), (vec!["n000", "n060", "n001", "n061"], 100));
}
