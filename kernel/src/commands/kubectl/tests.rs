//! What a person sees.

use cluster_core::{Cluster, Config};

use super::Kubectl;
use crate::commands::files::Memory;
use crate::commands::{Context, Program, Stream};

/// Runs command lines one after the other on a cluster of their own, and returns the transcript.
fn transcript(files: &[(&str, &str)], lines: &[&str]) -> String {
    let mut cluster = Cluster::new(Config::default());
    let mut files = Memory(files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect());
    let mut text = String::new();
    for line in lines {
        let words = shlex::split(line).expect("a test's line is well quoted");
        let mut context = Context::new(&mut cluster, &mut files);
        let code = Kubectl.run(&words, &mut context);
        text.push_str(&format!("$ kubectl {line}\n"));
        for (stream, written) in context.take_written() {
            for written in written.lines() {
                text.push_str(if stream == Stream::Stderr { "! " } else { "" });
                text.push_str(written);
                text.push('\n');
            }
        }
        if code != 0 {
            text.push_str(&format!("[exit {code}]\n"));
        }
    }
    text
}

#[test]
fn wrong_use_is_told_as_kubectl_tells_it() {
    insta::assert_snapshot!(transcript(
        &[],
        &[
            "gte pods",
            "frobnicate",
            "get",
            "create deploymnt web --image=nginx",
            "scale",
            "apply pod.yaml",
            "get pods --outptu=wide",
            "get pods -o",
            "get podz",
            "delete",
            "delete pod",
            "get cm one -o yml",
            "-n default get pods",
        ]
    ));
}

#[test]
fn create_get_scale_delete() {
    insta::assert_snapshot!(transcript(
        &[],
        &[
            "create configmap settings --from-literal=a=1 --from-literal=b='x y'",
            "create cm settings --from-literal=a=1",
            "get cm settings",
            "get cm settings -o jsonpath='{.data}'",
            "get cm settings missing -o name",
            "create deployment web --image=nginx:1.27 --replicas=2 --port=80",
            "get deploy,cm",
            "scale deployment web --replicas=3",
            "scale --current-replicas=5 --replicas=1 deployment/web",
            "get deploy web -o custom-columns=N:.metadata.name,R:.spec.replicas,L:.metadata.labels",
            "create deploy api --image=httpd --replicas=3 --port=8080 --dry-run=client -o yaml",
            "get ns --no-headers",
            "delete cm settings",
            "delete cm settings",
            "get cm",
            "create service clusterip web --tcp=80:8080",
            "get svc web -o wide",
            "create secret generic lits --from-literal=user=admin -o yaml --dry-run=client",
        ]
    ));
}

#[test]
fn apply_makes_changes_and_takes_back_what_it_made() {
    let first = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: '1'\n  b: '2'\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  selector:\n    matchLabels:\n      app: web\n  template:\n    metadata:\n      labels:\n        app: web\n    spec:\n      containers:\n      - name: web\n        image: nginx\n";
    let second = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  b: '2'\n";
    insta::assert_snapshot!(transcript(
        &[("all.yaml", first), ("cm.yaml", second)],
        &[
            "apply -f all.yaml --dry-run=client",
            "apply -f all.yaml",
            "apply -f all.yaml",
            "apply -f cm.yaml",
            "get cm settings -o jsonpath='{.data}'",
            "apply -f missing.yaml",
            "delete -f all.yaml --wait=false",
        ]
    ));
}
