//! What containers find in their volumes and in their variables.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};

use super::*;

const SLEEPS: [&str; 2] = ["sleep", "infinity"];

fn config(cluster: &mut Cluster, data: Value) {
    create::<ConfigMap>(cluster, json!({"metadata": {"name": "config", "namespace": "default"}, "data": data}));
}

fn patch_config(cluster: &mut Cluster, data: Value) {
    let key = Key::new("default", "config");
    let body = json!({"data": data});
    cluster.request(Request::patch(&learner(), KindRef::of::<ConfigMap>(), key, PatchType::Merge, body)).unwrap();
}

/// Runs a pod that sleeps and has these volumes, mounted so.
fn run_with(cluster: &mut Cluster, volumes: Value, mounts: Value) {
    run(cluster, json!({"volumes": volumes}), json!({"image": "busybox", "command": SLEEPS, "volumeMounts": mounts}));
    settle(cluster);
}

#[test]
fn a_config_map_is_a_folder_of_files_that_follow_it() {
    let mut cluster = cluster();
    config(&mut cluster, json!({"a": "1", "b": "2"}));
    let volumes = json!([{"name": "v", "configMap": {"name": "config", "defaultMode": 256}}]);
    let mounts = json!([
        {"name": "v", "mountPath": "/etc/config"},
        {"name": "v", "mountPath": "/etc/one", "subPath": "a"},
    ]);
    run_with(&mut cluster, volumes, mounts);
    assert_eq!(output(&mut cluster, "ls /etc/config; cat /etc/config/a /etc/one"), "a\nb\n11");
    assert!(output(&mut cluster, "ls -l /etc/config").contains(" a -> ..data/a\n"));
    assert_eq!(output(&mut cluster, "stat -L -c %a /etc/config/a"), "400\n");
    let refused = output(&mut cluster, "echo x > /etc/config/a");
    assert_eq!(refused, "sh: can't create /etc/config/a: Read-only file system\n");
    patch_config(&mut cluster, json!({"a": "new", "b": null, "c": "3"}));
    advance(&mut cluster, 20);
    assert_eq!(output(&mut cluster, "cat /etc/config/a"), "1", "the kubelet has not looked yet");
    advance(&mut cluster, 80);
    assert_eq!(output(&mut cluster, "ls /etc/config; cat /etc/config/a /etc/one"), "a\nc\nnew1");
}

#[test]
fn a_pod_waits_for_what_its_volumes_are_made_of() {
    let mut cluster = cluster();
    let volumes = json!([{"name": "v", "configMap": {"name": "config", "items": [{"key": "k", "path": "sub/k"}]}}]);
    run_with(&mut cluster, volumes, json!([{"name": "v", "mountPath": "/v"}]));
    assert_eq!(status(&cluster)["state"]["waiting"]["reason"], "ContainerCreating");
    let set_up = |what: &str| ("FailedMount".to_owned(), format!("MountVolume.SetUp failed for volume \"v\" : {what}"));
    assert_eq!(events(&cluster)[0], set_up("configmap \"config\" not found"));
    config(&mut cluster, json!({"other": "1"}));
    advance(&mut cluster, 20);
    assert_eq!(events(&cluster)[1], set_up("references non-existent config key: k"));
    patch_config(&mut cluster, json!({"k": "here"}));
    advance(&mut cluster, 120);
    assert_eq!(output(&mut cluster, "cat /v/sub/k"), "here");
}

#[test]
fn the_pod_itself_can_be_read_in_a_volume() {
    let mut cluster = cluster();
    let items = json!([
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "web", "resource": "limits.cpu", "divisor": "1m"}},
    ]);
    let projected = json!([{"name": "v", "projected": {"sources": [{"downwardAPI": {"items": items}}]}}]);
    run_with(&mut cluster, projected, json!([{"name": "v", "mountPath": "/pod"}]));
    assert_eq!(output(&mut cluster, "cat /pod/labels /pod/cpu"), "8000");
    let labels = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
    let key = Key::new("default", "web");
    cluster.request(Request::patch(&learner(), KindRef::of::<Pod>(), key, PatchType::Merge, labels)).unwrap();
    advance(&mut cluster, 2);
    assert_eq!(output(&mut cluster, "cat /pod/labels"), "app=\"web\"\ntier=\"front\"");
}

#[test]
fn a_group_gets_an_empty_folder_and_a_read_only_root_stays_as_it_is() {
    let mut cluster = cluster();
    let spec = json!({"securityContext": {"fsGroup": 2000}, "volumes": [{"name": "v", "emptyDir": {}}]});
    let container = json!({
        "image": "busybox", "command": SLEEPS, "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "securityContext": {"readOnlyRootFilesystem": true},
    });
    run(&mut cluster, spec, container);
    settle(&mut cluster);
    assert_eq!(output(&mut cluster, "echo x > /y"), "sh: can't create /y: Read-only file system\n");
    assert_eq!(output(&mut cluster, "echo x > /v/y; stat -c '%A %g' /v/y"), "-rw-r--r-- 2000\n");
}

#[test]
fn what_lies_on_the_machine_outlives_the_pod() {
    let mut cluster = cluster();
    add_account(&mut cluster);
    let volumes = json!([{"name": "v", "hostPath": {"path": "/srv/data", "type": "DirectoryOrCreate"}}]);
    let mounts = json!([{"name": "v", "mountPath": "/data", "subPath": "deep"}]);
    run_with(&mut cluster, volumes.clone(), mounts.clone());
    output(&mut cluster, "echo kept > /data/x");
    delete(&mut cluster);
    advance(&mut cluster, 40);
    run_with(&mut cluster, volumes, mounts);
    assert_eq!(output(&mut cluster, "cat /data/x"), "kept\n");
    delete(&mut cluster);
    advance(&mut cluster, 40);
    let volumes = json!([{"name": "v", "hostPath": {"path": "/nowhere", "type": "Directory"}}]);
    run_with(&mut cluster, volumes, json!([]));
    let last = events(&cluster).pop().unwrap().1;
    assert!(last.ends_with(": hostPath type check failed: /nowhere is not a directory"), "{last}");
}

#[test]
fn variables_come_from_everywhere() {
    let mut cluster = cluster();
    config(&mut cluster, json!({"level": "debug"}));
    create::<Secret>(
        &mut cluster,
        json!({"metadata": {"name": "s", "namespace": "default"}, "stringData": {"pw": "x"}}),
    );
    let service = json!({"clusterIP": "10.96.7.7", "ports": [{"port": 80, "name": "http"}]});
    create::<Service>(&mut cluster, json!({"metadata": {"name": "my-db", "namespace": "default"}, "spec": service}));
    let container = json!({
        "image": "busybox", "command": SLEEPS,
        "resources": {"limits": {"memory": "64Mi"}},
        "envFrom": [{"prefix": "LOG_", "configMapRef": {"name": "config"}}],
        "env": [
            {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "s", "key": "pw"}}},
            {"name": "URL", "value": "http://$(MY_DB_SERVICE_HOST)/$(PW)/$(NONE)"},
            {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
    });
    run(&mut cluster, json!({}), container);
    settle(&mut cluster);
    let said =
        output(&mut cluster, "echo $LOG_level $URL $MEMORY $NODE $MY_DB_SERVICE_PORT_HTTP $KUBERNETES_SERVICE_HOST");
    assert_eq!(said, "debug http://10.96.7.7/x/$(NONE) 64 node-1 80 10.96.0.1\n");
}

#[test]
fn every_container_knows_its_name_and_its_hosts() {
    let mut cluster = cluster();
    run(&mut cluster, json!({"hostname": "db-0", "subdomain": "db"}), json!({"image": "nginx"}));
    settle(&mut cluster);
    assert_eq!(output(&mut cluster, "hostname; cat /etc/hostname"), "db-0\ndb-0\n");
    assert!(output(&mut cluster, "cat /etc/hosts").contains("10.244.1.2\tdb-0.db.default.svc.cluster.local\tdb-0\n"));
    assert!(output(&mut cluster, "cat /etc/resolv.conf").starts_with("search default.svc.cluster.local "));
}

#[test]
fn a_container_reads_what_its_pod_asks_of_the_kernel() {
    let mut cluster = cluster();
    let context = json!({"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]});
    run(&mut cluster, json!({"securityContext": context}), json!({"image": "busybox", "command": SLEEPS}));
    settle(&mut cluster);
    let shown =
        output(&mut cluster, "sysctl kernel.shm_rmid_forced; cat /proc/sys/kernel/shm_rmid_forced; sysctl -n net.x");
    assert_eq!(shown, "kernel.shm_rmid_forced = 1\n1\nsysctl: error: 'net.x' is an unknown key\n");
}

#[test]
fn a_web_server_shows_the_pages_of_a_config_map() {
    let mut cluster = cluster();
    config(&mut cluster, json!({"index.html": "hello\n"}));
    let volumes = json!([{"name": "v", "configMap": {"name": "config"}}]);
    let mounts = json!([{"name": "v", "mountPath": "/usr/share/nginx/html"}]);
    run(&mut cluster, json!({"volumes": volumes}), json!({"image": "nginx", "volumeMounts": mounts}));
    settle(&mut cluster);
    assert_eq!(cluster.ask_port(&Key::new("default", "web"), 80, "/").map(|answer| answer.body).unwrap(), "hello\n");
}

#[test]
fn a_web_server_shows_a_page_that_was_put_into_its_container() {
    let mut cluster = cluster();
    run(&mut cluster, json!({}), json!({"image": "nginx"}));
    settle(&mut cluster);
    let ask = |path: &str| cluster.ask_port(&Key::new("default", "web"), 80, path).unwrap();
    assert!(ask("/healthz").status == 404 && ask("/").body.contains("nginx"));
    output(&mut cluster, "echo fine > /usr/share/nginx/html/healthz; echo hello > /usr/share/nginx/html/index.html");
    let ask = |path: &str| cluster.ask_port(&Key::new("default", "web"), 80, path).unwrap();
    assert_eq!((ask("/healthz").body.as_str(), ask("/").body.as_str()), ("fine\n", "hello\n"));
}

#[test]
fn a_file_server_lists_its_folders() {
    let mut cluster = cluster();
    run(
        &mut cluster,
        json!({}),
        json!({"image": "registry.k8s.io/e2e-test-images/agnhost:2.63", "args": ["test-webserver"]}),
    );
    settle(&mut cluster);
    let ask =
        |path: &str| cluster.ask_port(&Key::new("default", "web"), 80, path).map(|answer| (answer.status, answer.body));
    let (status, page) = ask("/").unwrap();
    assert_eq!(status, 200);
    assert!(page.contains("<a href=\"localhost.crt\">localhost.crt</a>\n<a href=\"tmp/\">tmp/</a>\n"), "{page}");
    assert_eq!(ask("/none/").unwrap().0, 404);
}

#[test]
fn a_readiness_probe_fails_while_the_file_that_it_asks_for_is_elsewhere() {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 80}, "periodSeconds": 1, "failureThreshold": 1});
    for (image, args, folder, name) in [
        ("nginx", json!([]), "/usr/share/nginx/html/", "index.html"),
        ("httpd", json!([]), "/usr/local/apache2/htdocs/", "index.html"),
        ("registry.k8s.io/e2e-test-images/agnhost:2.63", json!(["test-webserver"]), "/", "localhost.crt"),
    ] {
        let mut cluster = cluster();
        let readiness = probe(&format!("/{name}"));
        run(&mut cluster, json!({}), json!({"image": image, "args": args, "readinessProbe": readiness}));
        settle(&mut cluster);
        assert_eq!(condition(&cluster, "Ready"), "True", "{image}");
        let moved = output(&mut cluster, &format!("mv -v {folder}{name} /tmp/"));
        assert_eq!(moved, format!("'{folder}{name}' -> '/tmp/{name}'\n"));
        advance(&mut cluster, 5);
        assert_eq!(condition(&cluster, "Ready"), "False", "{image}");
        output(&mut cluster, &format!("mv -v /tmp/{name} {folder}"));
        advance(&mut cluster, 5);
        assert_eq!(condition(&cluster, "Ready"), "True", "{image}");
    }
}

#[test]
fn a_sub_path_that_leads_out_of_its_volume_holds_a_container_back() {
    let mut cluster = cluster();
    let of_annotation = json!({"fieldRef": {"fieldPath": "metadata.annotations['folder']"}});
    run(
        &mut cluster,
        json!({"volumes": [{"name": "data", "emptyDir": {}}]}),
        json!({"image": "busybox", "command": ["sleep", "999"], "env": [{"name": "FOLDER", "valueFrom": of_annotation}],
            "volumeMounts": [{"name": "data", "mountPath": "/data", "subPathExpr": "$(FOLDER)/logs"}]}),
    );
    settle(&mut cluster);
    let waiting = &status(&cluster)["state"]["waiting"];
    assert_eq!(waiting["reason"], "CreateContainerConfigError");
    assert_eq!(waiting["message"], "error SubPath `/logs` must not be an absolute path");
}
