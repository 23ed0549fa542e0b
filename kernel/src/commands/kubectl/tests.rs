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

/// The transcript with marks for what depends on draws of the seed: addresses, generated names, ids, ages, durations,
/// sizes of images; and with what their widths decide, the runs of spaces.
fn marked(transcript: String) -> String {
    const MARKS: &[(&str, &str)] = &[
        (r"\b10(\.\d+){3}", "<ip>"),
        (r"sha256:[0-9a-f]{12,}|containerd://[0-9a-f]{12,}", "<id>"),
        (r"\bweb-[0-9a-z]{8,10}(-[0-9a-z]{5})?\b", "web-<hash>"),
        (r"(pod-template-hash=)[0-9a-z]+", "${1}<hash>"),
        (r"\b2026-01-01T\S+", "<time>"),
        (r"Thu, 01 Jan 2026 \S+ \+0000", "<time>"),
        (r"in \S+s \(\S+s including waiting\)\. Image size: \d+ bytes", "in <duration>"),
        (r"(?m)(^|  )\d+(ms|s|m|m\d+s)(  |$)", "${1}<age>${3}"),
        (r"(\S) {2,}", "$1  "),
        (r"-{4,}", "----"),
        (r"\bnode-\d\b", "<node>"),
    ];
    MARKS.iter().fold(transcript, |text, (pattern, mark)| {
        let pattern = regex::Regex::new(pattern).expect("the pattern stands above");
        pattern.replace_all(&text, *mark).into_owned()
    })
}

#[test]
fn a_request_by_its_path_is_answered_as_the_server_answers_it() {
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"note"},"data":{"text":"one"}}"#;
    let stale = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"note","resourceVersion":"1"},"data":{"text":"two"}}"#;
    let maps = "/api/v1/namespaces/default/configmaps";
    let told = transcript(
        &[("map.json", map), ("stale.json", stale)],
        &[
            &format!("create --raw {maps} -f map.json"),
            &format!("replace --raw {maps}/note -f stale.json"),
            "replace -f map.json --validate=ignore",
            &format!("get --raw '{maps}?watch=1&fieldSelector=metadata.name%3Dnote&timeoutSeconds=1'"),
            &format!("delete --raw {maps}/note"),
            &format!("get --raw {maps}/note"),
            "get --raw api",
            "get pods --raw /api/v1/pods",
        ],
    );
    let lines: Vec<&str> = told.lines().filter(|line| !line.starts_with("$ ")).collect();
    assert!(lines[0].contains(r#""data":{"text":"one"}"#), "{told}");
    assert!(
        lines[1].starts_with("! Error from server (Conflict): Operation cannot be fulfilled on configmaps"),
        "{told}"
    );
    assert!(told.contains(r#""type":"ADDED""#), "{told}");
    assert!(told.contains(r#""status":"Success""#), "{told}");
    assert!(told.contains("! Error from server (NotFound): configmaps \"note\" not found"), "{told}");
    assert!(told.contains("! error: --raw must be a valid URL path"), "{told}");
    assert!(told.contains("! error: arguments may not be passed when --raw is specified"), "{told}");
}

#[test]
fn a_watch_tells_what_happens_until_nothing_does() {
    let told = transcript(
        &[],
        &[
            "create deployment web --image=nginx",
            "get pods --watch --no-headers",
            "get deployments web --watch-only --output-watch-events",
            "get pods -w --output-watch-events -o name",
            "get pods,svc -w",
        ],
    );
    let (_, watch) = told.split_once("--no-headers\n").unwrap();
    let rows = watch.lines().take_while(|line| !line.starts_with('$'));
    let states: Vec<&str> = rows.filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(states.first(), Some(&"Pending"), "{told}");
    assert_eq!(states.last(), Some(&"Running"), "{told}");
    assert!(states.contains(&"ContainerCreating"), "{told}");
    assert!(told.contains("--watch-only --output-watch-events\n$"), "{told}");
    assert!(told.contains("-o name\npod/web-"), "{told}");
    assert!(told.contains("! error: you may only specify a single resource type\n"), "{told}");
}

/// Compares a transcript with the one that is kept.
macro_rules! check {
    ($transcript:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(marked($transcript)) });
    };
}

#[test]
fn wrong_use_is_told_as_kubectl_tells_it() {
    check!(transcript(
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
            "get cm -o yml",
            "-n default get pods",
        ]
    ));
}

#[test]
fn create_get_scale_delete() {
    check!(transcript(
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
    check!(transcript(
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

#[test]
fn a_rollout_from_start_to_undo() {
    check!(transcript(
        &[],
        &[
            "create deployment web --image=nginx:1.27 --replicas=2 --port=80",
            "rollout status deployment/web",
            "rollout status deployment/web",
            "get deploy,rs,pods --no-headers",
            "set image deployment/web nginx=nginx:1.28",
            "set image deployment/web nginx=nginx:1.28",
            "set image deployment/web other=nginx",
            "annotate deployment/web kubernetes.io/change-cause=second",
            "rollout status deployment/web",
            "rollout history deployment/web",
            "rollout undo deployment/web",
            "rollout status deployment/web",
            "rollout history deployment/web",
            "rollout history deployment/web --revision=2",
            "rollout undo deployment/web --to-revision=9",
            "rollout pause deployment/web",
            "rollout pause deployment/web",
            "rollout restart deployment/web",
            "rollout resume deployment/web",
            "rollout restart deployment/web",
            "rollout status deployment/web --timeout=60s",
            "rollout satus deployment/web",
            "expose deployment web",
            "expose deployment web",
            "get svc web -o jsonpath='{.spec.ports[0].targetPort} {.spec.selector}'",
            "describe deployment web",
            "describe svc web",
            "delete deployment web",
        ]
    ));
}

#[test]
fn pods_are_run_labelled_waited_for_and_described() {
    check!(transcript(
        &[],
        &[
            "run a --image=nginx --labels=app=a,tier=front",
            "run a --image=nginx",
            "wait --for=condition=Ready pod/a --timeout=30s",
            "wait --for=jsonpath='{.status.phase}'=Running pod/a",
            "get pod a --show-labels",
            "get pod a -o wide",
            "label pod a tier=back",
            "label pod a tier=back --overwrite",
            "label pod a tier-",
            "label pod a tier-",
            "label pod a",
            "label pod a --list",
            "annotate pod a note='hello world'",
            "patch pod a -p '{\"metadata\":{\"labels\":{\"x\":\"y\"}}}'",
            "patch pod a -p '{\"metadata\":{\"labels\":{\"x\":\"y\"}}}'",
            "patch pod a --type=odd -p '{}'",
            "describe pod a",
            "describe pod nothing",
            "events --for pod/a",
            "get events --field-selector involvedObject.name=a",
            "run once --image=busybox --restart=Never --dry-run=client -o yaml -- sleep 10",
            "delete pod a --wait=false",
            "wait --for=delete pod/a --timeout=60s",
            "get pods",
            "wait --for=color pod/never",
        ]
    ));
}

#[test]
fn nodes_are_closed_tainted_and_drained() {
    check!(transcript(
        &[],
        &[
            "get nodes",
            "cordon node-1",
            "cordon node-1",
            "get node node-1",
            "uncordon node-1",
            "taint node node-1 dedicated=gpu:NoSchedule",
            "taint node node-1 dedicated=cpu:NoSchedule",
            "taint node node-1 dedicated:NoSchedule-",
            "taint node node-1 dedicated-",
            "taint node node-1 a=b:Never",
            "drain node-2",
            "drain",
            "describe node node-1",
            "describe ns default",
            "api-resources --api-group=apps",
            "version",
        ]
    ));
}
