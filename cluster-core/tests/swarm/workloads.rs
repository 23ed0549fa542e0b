//! What users wish: one row a kind of wish.

use serde_json::{Value, json};

use crate::manifests::{amount, server, task};
use crate::run::{Act, Run};

/// Every kind of wish.
pub const ALL: &[Act] = &[
    Act { name: "deployment", act: deployment },
    Act { name: "replica set", act: replica_set },
    Act { name: "replication controller", act: replication_controller },
    Act { name: "stateful set", act: stateful_set },
    Act { name: "daemon set", act: daemon_set },
    Act { name: "job", act: job },
    Act { name: "failing job", act: failing_job },
    Act { name: "cron job", act: cron_job },
    Act { name: "bare pod", act: bare_pod },
    Act { name: "service", act: service },
    Act { name: "budget", act: budget },
    Act { name: "claim", act: claim },
    Act { name: "static volume", act: static_volume },
    Act { name: "quota", act: quota },
    Act { name: "config map", act: config_map },
    Act { name: "network policy", act: network_policy },
    Act { name: "custom resource", act: custom_resource },
];

/// What a cluster has before anything happens to it.
pub fn prepare(run: &mut Run) {
    run.create("Namespace", "", json!({"metadata": {"name": "team"}}));
    let class = json!({
        "metadata": {"name": "local-path"}, "provisioner": "rancher.io/local-path", "volumeBindingMode": "WaitForFirstConsumer",
    });
    run.create("StorageClass", "", class);
    run.actions.push(format!("{} begins with {} nodes", run.now(), run.cluster.machines().count()));
}

/// Creates something with a new name in some namespace.
fn create(run: &mut Run, kind: &str, prefix: &str, body: impl FnOnce(&mut Run, &str) -> Value) -> Option<String> {
    let (namespace, name) = (run.namespace(), run.name(prefix));
    let mut body = body(run, &name);
    body["metadata"]["name"] = json!(name);
    Some(run.create(kind, namespace, body))
}

fn selector(app: &str) -> Value {
    json!({"matchLabels": {"app": app}})
}

fn deployment(run: &mut Run) -> Option<String> {
    create(run, "Deployment", "web", |run, name| {
        json!({"spec": {
            "replicas": run.below(5), "selector": selector(name), "template": server(run, name),
            "strategy": strategy(run), "minReadySeconds": run.one(&[0, 0, 0, 3]),
            "revisionHistoryLimit": run.one(&[0, 1, 10]),
        }})
    })
}

/// How a Deployment goes from one template to the next.
pub fn strategy(run: &mut Run) -> Value {
    if run.chance(25) {
        return json!({"type": "Recreate", "rollingUpdate": null});
    }
    let (surge, mut unavailable) = (amount(run), amount(run));
    if surge == json!(0) && unavailable == json!(0) {
        unavailable = json!(1);
    }
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
}

fn replica_set(run: &mut Run) -> Option<String> {
    create(
        run,
        "ReplicaSet",
        "set",
        |run, name| json!({"spec": {"replicas": run.below(5), "selector": selector(name), "template": server(run, name)}}),
    )
}

fn replication_controller(run: &mut Run) -> Option<String> {
    create(
        run,
        "ReplicationController",
        "rc",
        |run, name| json!({"spec": {"replicas": run.below(4), "selector": {"app": name}, "template": server(run, name)}}),
    )
}

fn stateful_set(run: &mut Run) -> Option<String> {
    create(run, "StatefulSet", "db", |run, name| {
        let mut spec = json!({
            "replicas": run.below(4), "serviceName": name, "selector": selector(name), "template": server(run, name),
            "podManagementPolicy": run.one(&["OrderedReady", "Parallel"]), "updateStrategy": ordered_strategy(run),
            "minReadySeconds": run.one(&[0, 0, 2]),
        });
        if run.chance(50) {
            spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim_spec()}]);
            spec["persistentVolumeClaimRetentionPolicy"] = json!({
                "whenDeleted": run.one(&["Retain", "Delete"]), "whenScaled": run.one(&["Retain", "Delete"]),
            });
        }
        json!({"spec": spec})
    })
}

/// How a StatefulSet goes from one template to the next.
pub fn ordered_strategy(run: &mut Run) -> Value {
    match run.below(4) {
        0 => json!({"type": "OnDelete", "rollingUpdate": null}),
        1 => json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1 + run.below(2)}}),
        _ => json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
    }
}

fn claim_spec() -> Value {
    json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "local-path",
        "resources": {"requests": {"storage": "1Gi"}},
    })
}

fn daemon_set(run: &mut Run) -> Option<String> {
    create(run, "DaemonSet", "agent", |run, name| {
        let strategy = match run.below(3) {
            0 => json!({"type": "OnDelete"}),
            1 => json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
            _ => json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}),
        };
        json!({"spec": {"selector": selector(name), "template": server(run, name), "updateStrategy": strategy}})
    })
}

fn job(run: &mut Run) -> Option<String> {
    create(run, "Job", "job", |run, name| {
        let mut spec = json!({
            "completions": 1 + run.below(4), "parallelism": 1 + run.below(3), "backoffLimit": 6,
            "template": task(run, name, 0),
        });
        if run.chance(40) {
            spec["completionMode"] = json!("Indexed");
        }
        if run.chance(20) {
            spec["suspend"] = json!(true);
        }
        if run.chance(20) {
            spec["ttlSecondsAfterFinished"] = json!(run.below(100));
        }
        if run.chance(15) {
            spec["activeDeadlineSeconds"] = json!(1 + run.below(60));
        }
        if run.chance(20) {
            spec["podReplacementPolicy"] = json!("Failed");
        }
        json!({"spec": spec})
    })
}

fn failing_job(run: &mut Run) -> Option<String> {
    create(run, "Job", "fails", |run, name| {
        let mut template = task(run, name, 1);
        let mut spec =
            json!({"completions": 1 + run.below(2), "parallelism": 1 + run.below(2), "backoffLimit": run.below(3)});
        if run.chance(30) {
            template["spec"]["restartPolicy"] = json!("Never");
            spec["podFailurePolicy"] = json!({"rules": [{
                "action": run.one(&["FailJob", "Count"]), "onExitCodes": {"operator": "In", "values": [1]},
            }]});
        } else if run.chance(30) {
            template["spec"]["restartPolicy"] = json!("Never");
            spec["completionMode"] = json!("Indexed");
            spec["backoffLimitPerIndex"] = json!(run.below(2));
            spec.as_object_mut().expect("an object").remove("backoffLimit");
        }
        spec["template"] = template;
        json!({"spec": spec})
    })
}

fn cron_job(run: &mut Run) -> Option<String> {
    create(run, "CronJob", "tick", |run, name| {
        json!({"spec": {
            "schedule": run.one(&["* * * * *", "*/3 * * * *"]),
            "concurrencyPolicy": run.one(&["Allow", "Forbid", "Replace"]),
            "successfulJobsHistoryLimit": run.below(3), "failedJobsHistoryLimit": run.below(2),
            "jobTemplate": {"spec": {"template": task(run, name, 0), "backoffLimit": 6}},
        }})
    })
}

fn bare_pod(run: &mut Run) -> Option<String> {
    create(run, "Pod", "pod", |run, name| if run.chance(50) { server(run, name) } else { task(run, name, 0) })
}

/// The label of some workload that is there, and its namespace.
fn an_app(run: &mut Run) -> Option<(String, String)> {
    let kinds = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Pod", "ReplicationController"];
    let of = run.pick_object(&kinds)?;
    let app = of.label("app").map_or_else(|| of.key.name.to_string(), str::to_owned);
    Some((of.key.namespace.to_string(), app))
}

fn service(run: &mut Run) -> Option<String> {
    let (namespace, app) = an_app(run)?;
    let name = run.name("svc");
    let mut spec = json!({"selector": {"app": app}, "ports": [{"port": 80}]});
    match run.below(4) {
        0 => spec["type"] = json!("NodePort"),
        1 => spec["clusterIP"] = json!("None"),
        _ => {}
    }
    if run.chance(20) {
        spec["publishNotReadyAddresses"] = json!(true);
    }
    Some(run.create("Service", &namespace, json!({"metadata": {"name": name}, "spec": spec})))
}

fn budget(run: &mut Run) -> Option<String> {
    let (namespace, app) = an_app(run)?;
    let name = run.name("pdb");
    let mut spec = json!({"selector": selector(&app)});
    let field = run.one(&["minAvailable", "maxUnavailable"]);
    spec[field] = amount(run);
    if run.chance(30) {
        spec["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
    }
    Some(run.create("PodDisruptionBudget", &namespace, json!({"metadata": {"name": name}, "spec": spec})))
}

/// A claim, and mostly a pod that uses it.
fn claim(run: &mut Run) -> Option<String> {
    let (namespace, name) = (run.namespace(), run.name("claim"));
    let spec = claim_spec();
    let mut told = run.create("PersistentVolumeClaim", namespace, json!({"metadata": {"name": name}, "spec": spec}));
    if run.chance(75) {
        let user = run.name("uses");
        let mut pod = server(run, &user);
        pod["metadata"]["name"] = json!(user);
        pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]);
        told = format!("{told}; {}", run.create("Pod", namespace, pod));
    }
    Some(told)
}

/// A volume made by hand, and mostly a claim that it fits.
fn static_volume(run: &mut Run) -> Option<String> {
    let (namespace, name) = (run.namespace(), run.name("disk"));
    let volume = json!({"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand",
        "hostPath": {"path": "/data"}, "persistentVolumeReclaimPolicy": run.one(&["Retain", "Recycle"]),
    }});
    let mut told = run.create("PersistentVolume", "", volume);
    if run.chance(75) {
        let spec = json!({
            "accessModes": ["ReadWriteOnce"], "storageClassName": "by-hand", "resources": {"requests": {"storage": "1Gi"}},
        });
        let claim = json!({"metadata": {"name": name}, "spec": spec});
        told = format!("{told}; {}", run.create("PersistentVolumeClaim", namespace, claim));
    }
    Some(told)
}

fn quota(run: &mut Run) -> Option<String> {
    let name = run.name("quota");
    let mut hard = json!({"pods": (2 + run.below(12)).to_string(), "count/configmaps": (1 + run.below(5)).to_string()});
    for (resource, amount) in
        [("requests.cpu", "600m"), ("services", "3"), ("persistentvolumeclaims", "4"), ("count/jobs.batch", "5")]
    {
        if run.chance(40) {
            hard[resource] = json!(amount);
        }
    }
    Some(run.create("ResourceQuota", "team", json!({"metadata": {"name": name}, "spec": {"hard": hard}})))
}

/// One that stands alone, or that something else owns.
fn config_map(run: &mut Run) -> Option<String> {
    let owner = run.pick_object(&["ConfigMap", "Deployment", "Job", "Service", "StatefulSet", "Pod"]);
    let owner = owner.filter(|_| run.chance(70));
    let namespace = owner.as_ref().map_or_else(|| run.namespace().to_owned(), |owner| owner.key.namespace.to_string());
    let mut metadata = json!({"name": run.name("map")});
    if let Some(owner) = owner {
        let mut reference = json!({
            "apiVersion": owner.kind.api_version(), "kind": &*owner.kind.kind, "name": &*owner.key.name, "uid": owner.uid(),
        });
        if run.chance(50) {
            reference["blockOwnerDeletion"] = json!(true);
        }
        metadata["ownerReferences"] = json!([reference]);
    }
    Some(run.create("ConfigMap", &namespace, json!({"metadata": metadata, "data": {"k": "v"}})))
}

fn network_policy(run: &mut Run) -> Option<String> {
    let (namespace, app) = an_app(run)?;
    let name = run.name("policy");
    let spec = json!({"podSelector": selector(&app), "policyTypes": ["Ingress"]});
    Some(run.create("NetworkPolicy", &namespace, json!({"metadata": {"name": name}, "spec": spec})))
}

/// A kind of the user's own, and objects of it.
fn custom_resource(run: &mut Run) -> Option<String> {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let known = run.cluster.kind("example.com/v1", "Widget").is_some();
    if !known {
        let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        }});
        return Some(run.create("CustomResourceDefinition", "", definition));
    }
    create(run, "Widget", "widget", |run, _| json!({"spec": {"size": run.below(9)}}))
}
