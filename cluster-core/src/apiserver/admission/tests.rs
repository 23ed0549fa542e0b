use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, ServiceAccount};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};

use crate::api::Key;
use crate::api::kind::Resource;
use crate::api::object::Object;
use crate::api::request::{PatchType, Request, Response};
use crate::api::status::Status;
use crate::{Cluster, Config};

fn cluster() -> Cluster {
    let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
    cluster.settle(Duration::from_secs(60), |_| true);
    cluster
}

fn create<K: Resource>(cluster: &mut Cluster, manifest: Value) -> Result<Value, Status> {
    create_warned::<K>(cluster, manifest).map(|(object, _)| object)
}

fn create_warned<K: Resource>(cluster: &mut Cluster, manifest: Value) -> Result<(Value, Vec<String>), Status> {
    let mut object = Object::from_json(K::kind(), manifest).expect("a right manifest");
    if K::kind().namespaced && object.key.namespace.is_empty() {
        object.rename(Key::new("default", object.key.name.clone()));
    }
    cluster.request(Request::create(&"kubectl".into(), object)).map(told)
}

fn told(response: Response) -> (Value, Vec<String>) {
    match response {
        Response::Object(answer) => (answer.object.to_json(), answer.warnings.to_vec()),
        Response::List(_) => panic!("one object"),
    }
}

fn label(cluster: &mut Cluster, namespace: &str, labels: Value) -> Result<Vec<String>, Status> {
    let body = json!({"metadata": {"labels": labels}});
    let request = Request::patch(&"kubectl".into(), Namespace::kind(), Key::cluster(namespace), PatchType::Merge, body);
    cluster.request(request).map(|response| told(response).1)
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    pod
}

#[test]
fn nothing_comes_into_a_namespace_that_is_missing_or_ends() {
    let mut cluster = cluster();
    let mut lost = pod("a", json!({}));
    lost["metadata"]["namespace"] = "nowhere".into();
    let refused = create::<Pod>(&mut cluster, lost).unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (404, "namespaces \"nowhere\" not found"));
    let delete = Request::delete(&"kubectl".into(), Namespace::kind(), Key::cluster("kube-system"));
    let refused = cluster.request(delete).unwrap_err();
    assert_eq!(refused.message, "namespaces \"kube-system\" is forbidden: this namespace may not be deleted");
}

#[test]
fn a_pod_finds_a_token_of_its_account() {
    let mut cluster = cluster();
    let made = create::<Pod>(&mut cluster, pod("a", json!({}))).unwrap();
    let volume = &made["spec"]["volumes"][0];
    let mount = &made["spec"]["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["name"], volume["name"]);
    assert_eq!(mount["mountPath"], "/var/run/secrets/kubernetes.io/serviceaccount");
    assert_eq!(volume["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"], 3607);
    assert_eq!(made["spec"]["serviceAccountName"], "default");

    let account = json!({"metadata": {"name": "bot"}, "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "pull"}]});
    create::<ServiceAccount>(&mut cluster, account).unwrap();
    let made = create::<Pod>(&mut cluster, pod("b", json!({"serviceAccountName": "bot"}))).unwrap();
    assert_eq!(made["spec"]["imagePullSecrets"], json!([{"name": "pull"}]));
    assert_eq!(made["spec"].get("volumes"), None);

    let refused = create::<Pod>(&mut cluster, pod("c", json!({"serviceAccountName": "nobody"}))).unwrap_err();
    assert_eq!(
        refused.message,
        "pods \"c\" is forbidden: error looking up service account default/nobody: serviceaccount \"nobody\" not found"
    );
}

#[test]
fn replicas_share_their_admitted_spec_until_an_account_changes() {
    let mut cluster = cluster();
    let one = Object::from_json(Pod::kind(), pod("a", json!({}))).unwrap();
    let send = |cluster: &mut Cluster, name: &str| {
        let mut replica = one.clone();
        replica.rename(Key::new("default", name));
        cluster.request(Request::create(&"kubectl".into(), replica)).unwrap().object().unwrap()
    };
    let (a, b) = (send(&mut cluster, "a"), send(&mut cluster, "b"));
    assert!(std::sync::Arc::ptr_eq(a.spec_part(), b.spec_part()));
    let body = json!({"automountServiceAccountToken": false});
    let key = Key::new("default", "default");
    cluster.request(Request::patch(&"kubectl".into(), ServiceAccount::kind(), key, PatchType::Merge, body)).unwrap();
    assert_eq!(send(&mut cluster, "c").spec::<Pod>().volumes, None);
}

#[test]
fn a_limit_range_fills_in_and_bounds() {
    let mut cluster = cluster();
    let limits = json!([
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "min": {"cpu": "50m"},
            "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "10"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
    ]);
    create::<LimitRange>(&mut cluster, json!({"metadata": {"name": "l"}, "spec": {"limits": limits}})).unwrap();
    let made = create::<Pod>(&mut cluster, pod("a", json!({}))).unwrap();
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let with =
        |resources: Value| pod("b", json!({"containers": [{"name": "c", "image": "i", "resources": resources}]}));
    for (resources, detail) in [
        (json!({"limits": {"cpu": "2"}}), "maximum cpu usage per Container is 1, but limit is 2"),
        (
            json!({"requests": {"cpu": "10m"}, "limits": {"cpu": "100m"}}),
            "minimum cpu usage per Container is 50m, but request is 10m",
        ),
        (
            json!({"requests": {"cpu": "50m"}, "limits": {"cpu": "1"}}),
            "cpu max limit to request ratio per Container is 10, but provided ratio is 20.000000",
        ),
    ] {
        let refused = create::<Pod>(&mut cluster, with(resources)).unwrap_err();
        assert_eq!(refused.message, format!("pods \"b\" is forbidden: {detail}"));
    }
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "500Mi"}}});
    let claim = json!({"metadata": {"name": "v"}, "spec": spec});
    let refused = create::<PersistentVolumeClaim>(&mut cluster, claim).unwrap_err();
    assert!(refused.message.ends_with("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"));
}

#[test]
fn the_name_of_a_class_becomes_a_priority() {
    let mut cluster = cluster();
    let class = json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"});
    create::<PriorityClass>(&mut cluster, class).unwrap();
    let made = create::<Pod>(&mut cluster, pod("a", json!({"priorityClassName": "high"}))).unwrap();
    assert_eq!((&made["spec"]["priority"], &made["spec"]["preemptionPolicy"]), (&json!(1000), &json!("Never")));
    let made = create::<Pod>(&mut cluster, pod("b", json!({}))).unwrap();
    assert_eq!(made["spec"]["priority"], 0);
    for (spec, detail) in [
        (json!({"priorityClassName": "none"}), "no PriorityClass with name none was found"),
        (
            json!({"priority": 7}),
            "the integer value of priority (7) must not be provided in pod spec; priority admission controller computed \
             0 from the given PriorityClass name",
        ),
    ] {
        let refused = create::<Pod>(&mut cluster, pod("c", spec)).unwrap_err();
        assert_eq!(refused.message, format!("pods \"c\" is forbidden: {detail}"));
    }
}

#[test]
fn a_runtime_class_adds_what_it_costs_and_where_it_is() {
    let mut cluster = cluster();
    let class = json!({"metadata": {"name": "kata"}, "handler": "kata", "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"runtime": "kata"}}});
    create::<RuntimeClass>(&mut cluster, class).unwrap();
    let made = create::<Pod>(&mut cluster, pod("a", json!({"runtimeClassName": "kata"}))).unwrap();
    assert_eq!(made["spec"]["overhead"], json!({"cpu": "250m"}));
    assert_eq!(made["spec"]["nodeSelector"], json!({"runtime": "kata"}));
    let elsewhere = json!({"runtimeClassName": "kata", "nodeSelector": {"runtime": "other"}});
    let refused = create::<Pod>(&mut cluster, pod("b", elsewhere)).unwrap_err();
    assert!(refused.message.ends_with(
        "conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; pod.spec.nodeSelector[runtime] = other"
    ));
    let refused = create::<Pod>(&mut cluster, pod("b", json!({"runtimeClassName": "runc"}))).unwrap_err();
    assert_eq!(refused.message, "pods \"b\" is forbidden: pod rejected: RuntimeClass \"runc\" not found");
}

#[test]
fn a_claim_gets_the_default_class_and_is_protected() {
    let mut cluster = cluster();
    let default = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    let class = json!({"metadata": {"name": "fast", "annotations": default}, "provisioner": "csi.example.com"});
    create::<StorageClass>(&mut cluster, class).unwrap();
    let claim = |name: &str, class: Value| {
        let requests = json!({"requests": {"storage": "1Gi"}});
        let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": requests});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let made = create::<PersistentVolumeClaim>(&mut cluster, claim("a", Value::Null)).unwrap();
    assert_eq!(made["spec"]["storageClassName"], "fast");
    assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    let made = create::<PersistentVolumeClaim>(&mut cluster, claim("b", json!(""))).unwrap();
    assert_eq!(made["spec"]["storageClassName"], "");
}

#[test]
fn a_new_node_takes_no_pods_yet() {
    let mut cluster = cluster();
    let made = create::<Node>(&mut cluster, json!({"metadata": {"name": "n"}})).unwrap();
    assert_eq!(made["spec"]["taints"], json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]));
}

#[test]
fn a_restricted_namespace_tells_all_that_is_wrong_with_a_pod() {
    let mut cluster = cluster();
    let plain = create::<Pod>(&mut cluster, pod("before", json!({})));
    assert!(plain.is_ok());
    let warnings = label(&mut cluster, "default", json!({"pod-security.kubernetes.io/enforce": "restricted"})).unwrap();
    assert_eq!(
        warnings,
        [
            "existing pods in namespace \"default\" violate the new PodSecurity enforce level \"restricted:latest\"",
            "before: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
        ]
    );
    let bad = json!({
        "hostNetwork": true, "hostPID": true, "volumes": [{"name": "h", "hostPath": {"path": "/"}}],
        "automountServiceAccountToken": false,
        "containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}],
                "securityContext": {"privileged": true, "runAsUser": 0}},
            {"name": "d", "image": "i"},
        ],
    });
    let refused = create::<Pod>(&mut cluster, pod("a", bad)).unwrap_err();
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        "pods \"a\" is forbidden: violates PodSecurity \"restricted:latest\": host namespaces (hostNetwork=true, \
         hostPID=true), hostPort (container \"c\" uses hostPort 80), privileged (container \"c\" must not set \
         securityContext.privileged=true), allowPrivilegeEscalation != false (containers \"c\", \"d\" must set \
         securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers \"c\", \"d\" must set \
         securityContext.capabilities.drop=[\"ALL\"]), restricted volume types (volume \"h\" uses restricted volume \
         type \"hostPath\"), runAsNonRoot != true (pod or containers \"c\", \"d\" must set \
         securityContext.runAsNonRoot=true), runAsUser=0 (container \"c\" must not set runAsUser=0), seccompProfile \
         (pod or containers \"c\", \"d\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\")"
    );
    let hardened = json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "image": "i",
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}],
    });
    let (_, warnings) = create_warned::<Pod>(&mut cluster, pod("fine", hardened)).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let (_, warnings) = create_warned::<Deployment>(&mut cluster, deployment).unwrap();
    assert!(warnings[0].starts_with("would violate PodSecurity \"restricted:latest\": allowPrivilegeEscalation"));
    let refused = label(&mut cluster, "default", json!({"pod-security.kubernetes.io/warn": "strict"})).unwrap_err();
    assert_eq!(
        refused.message,
        "Namespace \"default\" is invalid: metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"strict\": \
         must be one of privileged, baseline, restricted"
    );
}
