//! Requests that no client should send: every one is answered, and a refusal changes nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use cluster_core::random::Random;
use cluster_core::{Cluster, Config};
use serde_json::{Map, Value, json};

use super::handle::{Gateway, handle};
use super::live::Live;

const REQUESTS: usize = 100_000;
/// Nothing that this cluster is asked takes so long.
const ANSWER_MAX: Duration = Duration::from_secs(60);

const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "BREW"];
const MEDIA_TYPES: [&str; 9] = [
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
];
const PARAMETERS: [&str; 16] = [
    "watch=1&timeoutSeconds=1",
    "limit=2",
    "limit=-9223372036854775808",
    "continue=e30",
    "resourceVersion=18446744073709551616",
    "resourceVersion=3&resourceVersionMatch=Exact",
    "labelSelector=a%20in%20(b",
    "labelSelector=%00%ff",
    "fieldSelector=spec.nodeName%3D",
    "fieldManager=f&force=true",
    "fieldManager=%F0%9F%90%99",
    "dryRun=All",
    "fieldValidation=Strict",
    "propagationPolicy=Foreground",
    "gracePeriodSeconds=-1",
    "sendInitialEvents=true&watch=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1",
];
const NAMES: [&str; 10] =
    ["a", "default", "kube-system", "node-1", "A b", "..", "%2e%2e%2f", "%ff%fe", "x.example.com", ""];
const SUBRESOURCES: [&str; 9] =
    ["status", "scale", "binding", "eviction", "finalize", "token", "log", "exec", "nothing"];

struct Fuzzer {
    random: Random,
    /// Group, version and name of each resource.
    resources: Vec<(String, String, String)>,
}

impl Fuzzer {
    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.random.below(all.len() as u64) as usize]
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    fn request(&mut self) -> Request<Body> {
        let (method, media_type, uri) = (*self.one_of(&METHODS), *self.one_of(&MEDIA_TYPES), self.uri());
        let body = if matches!(method, "GET" | "HEAD") && !self.chance(10) { Vec::new() } else { self.body() };
        let mut request = Request::builder().method(method).uri(uri).header("Authorization", "Bearer t");
        if !media_type.is_empty() {
            request = request.header("Content-Type", media_type);
        }
        if self.chance(8) {
            request = request.header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io, application/json");
        }
        request.body(Body::from(body)).unwrap_or_default()
    }

    fn uri(&mut self) -> String {
        let resources = self.resources.clone();
        let (group, version, resource) = self.one_of(&resources).clone();
        let mut path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if !self.chance(4) {
            path.push_str(&format!("/namespaces/{}", self.one_of(&NAMES)));
        }
        path.push('/');
        path.push_str(&resource);
        for place in 0..self.random.below(4) {
            path.push('/');
            let part: &&str = self.one_of(if place == 1 { SUBRESOURCES.as_slice() } else { NAMES.as_slice() });
            path.push_str(part);
        }
        if self.chance(20) {
            path = path.replacen('/', "//", 2);
        }
        let path = path.replace(' ', "%20");
        match self.random.below(3) {
            0 => format!("{path}?{}", self.one_of(&PARAMETERS)),
            1 => format!("{path}?{}&{}", self.one_of(&PARAMETERS), self.one_of(&PARAMETERS)),
            _ => path,
        }
    }

    fn body(&mut self) -> Vec<u8> {
        let value = if self.chance(12) { self.value(0) } else { self.manifest() };
        let mut bytes = match self.random.below(20) {
            0 => return [b"[".repeat(50_000), b"]".repeat(50_000)].concat(),
            1 => json!([{"op": "replace", "path": "/spec", "value": value}]).to_string().into_bytes(),
            _ => value.to_string().into_bytes(),
        };
        if self.chance(6) && !bytes.is_empty() {
            let at = self.random.below(bytes.len() as u64) as usize;
            match self.random.below(3) {
                0 => bytes.truncate(at),
                1 => bytes[at] = self.random.below(256) as u8,
                _ => bytes.splice(at..at, [0xff, 0xfe, 0x00]).for_each(drop),
            }
        }
        bytes
    }

    /// An object that might be right, with a few of its parts replaced.
    fn manifest(&mut self) -> Value {
        let pod = json!({"containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1", "memory": "64Mi"}}, "env": [{"name": "A", "value": "b"}]}]});
        let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod});
        let selector = json!({"matchLabels": {"app": "a"}});
        let spec = match self.random.below(5) {
            0 => pod,
            1 => json!({"replicas": 2, "selector": selector, "template": template}),
            2 => json!({"selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": "http"}]}),
            3 => json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}}),
            _ => json!({"group": "x.example.com", "names": {"plural": "as", "kind": "A"}, "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}),
        };
        let name = *self.one_of(&NAMES);
        let mut object = json!({"metadata": {"name": name, "labels": {"app": "a"}, "finalizers": ["example.com/hold"]},
            "spec": spec, "data": {"k": "v"}});
        for _ in 0..self.random.below(4) {
            self.spoil(&mut object);
        }
        object
    }

    /// Replaces, removes or adds something somewhere.
    fn spoil(&mut self, value: &mut Value) {
        let children = match value {
            Value::Object(fields) => fields.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        if children == 0 || self.chance(5) {
            *value = self.value(0);
            return;
        }
        let at = self.random.below(children as u64) as usize;
        match value {
            Value::Object(fields) => {
                let key = fields.keys().nth(at).cloned().unwrap_or_default();
                match self.random.below(6) {
                    0 => drop(fields.remove(&key)),
                    1 => drop(fields.insert("unknown".into(), self.value(0))),
                    _ => self.spoil(fields.entry(key).or_insert(Value::Null)),
                }
            }
            Value::Array(items) => match self.random.below(4) {
                0 => items.push(items[at].clone()),
                _ => self.spoil(&mut items[at]),
            },
            _ => {}
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.random.below(if depth > 3 { 8 } else { 10 }) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(i64::MIN),
            3 => json!(u64::MAX),
            4 => json!(1e308),
            5 => json!("x".repeat(self.random.below(2000) as usize)),
            6 => json!("\u{0}\u{202e}\u{1f419}"),
            7 => json!(-1),
            8 => (0..self.random.below(4)).map(|_| self.value(depth + 1)).collect(),
            _ => {
                let keys = ["spec", "name", "", "$patch", "f:spec", "items", "metadata", "apiVersion"];
                let field = |fuzzer: &mut Fuzzer| (String::from(*fuzzer.one_of(&keys)), fuzzer.value(depth + 1));
                let fields: Map<String, Value> = (0..self.random.below(4)).map(|_| field(self)).collect();
                Value::Object(fields)
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_requests_are_answered_and_change_nothing() {
    let without = ["kube-controller-manager", "kube-scheduler"].map(str::to_owned).to_vec();
    let cluster = Cluster::new(Config { nodes: 0, without, ..Config::default() });
    let resource = |kind: &cluster_core::api::kind::KindRef| {
        (kind.group.to_string(), kind.version.to_string(), kind.resource.to_string())
    };
    let resources = cluster.kinds().map(resource).collect();
    let live = Live::start(cluster, 1.0).unwrap();
    let gateway = Arc::new(Gateway::new(live.clone(), "t".into()));
    let mut fuzzer = Fuzzer { random: Random::new(1), resources };
    let mut watches = Vec::new();
    let (mut granted, mut refused) = (0, 0);
    for count in 0..REQUESTS {
        let request = fuzzer.request();
        let asked = format!("request {count}: {} {}", request.method(), request.uri());
        let before = live.ask(|cluster| cluster.revision()).await.unwrap();
        let answer = tokio::time::timeout(ANSWER_MAX, handle(gateway.clone(), request)).await;
        let answer = answer.unwrap_or_else(|_| panic!("{asked} hangs"));
        let after =
            live.ask(|cluster| cluster.revision()).await.unwrap_or_else(|_| panic!("{asked} ended the cluster"));
        let code = answer.status();
        if code.is_success() {
            granted += 1;
            // Watches stay open beside what comes after them.
            watches.push(answer.into_body());
            if watches.len() > 50 {
                watches.clear();
            }
            continue;
        }
        refused += 1;
        assert_ne!(code, StatusCode::SERVICE_UNAVAILABLE, "{asked}");
        assert_eq!(before, after, "{asked}: a refusal ({code}) that changes something");
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let text = String::from_utf8_lossy(&body);
        assert!(!text.contains("panic"), "{asked}: {text}");
    }
    assert!(granted > REQUESTS / 100 && refused > REQUESTS / 10, "{granted} granted, {refused} refused");
}
