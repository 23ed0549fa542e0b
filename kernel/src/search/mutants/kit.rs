//! What the cases share: kinds, a cluster that serves them, and how a controller is written down.

use std::sync::LazyLock;

use cluster_core::api::kind::KindRef;
use cluster_core::{Cluster, Config};
use kernetes_controller::{Controller, Key, Plan, Time, Value, View, Watches, json};

use crate::rust_cells::native;
use crate::search::scenario::{Act, Scenario, object};
use crate::search::{Bounds, OnRefusal, Report, Subject, Task, search};

pub const EXAMPLE: &str = "example.com/v1";
pub const CLOUD: &str = "cloud.example.com/v1";
pub const GARBAGE_COLLECTOR: &[&str] = &["garbage-collector-controller"];

/// A controller: what it watches and how it reconciles.
#[derive(Clone, Copy)]
pub struct Loop {
    pub name: &'static str,
    pub watches: fn() -> Watches,
    pub reconcile: fn(&Key, &View, Time) -> Plan,
    pub on_refusal: OnRefusal,
}

impl Loop {
    pub fn new(watches: fn() -> Watches, reconcile: fn(&Key, &View, Time) -> Plan) -> Loop {
        Loop { name: "pool-controller", watches, reconcile, on_refusal: OnRefusal::LookAgain }
    }
}

impl Loop {
    pub fn named(self, name: &'static str) -> Loop {
        Loop { name, ..self }
    }
}

impl Controller for Loop {
    fn watches(&self) -> Watches {
        (self.watches)()
    }

    fn reconcile(&self, key: &Key, view: &View, now: Time) -> Plan {
        (self.reconcile)(key, view, now)
    }
}

/// A scenario, controllers that are right, controllers of which one is wrong, and what those break.
pub struct Case {
    pub scenario: Scenario,
    pub right: Vec<Loop>,
    pub wrong: Vec<Loop>,
    pub breaks: &'static str,
}

impl Case {
    pub fn task(&self, right: bool) -> Task {
        let loops = if right { &self.right } else { &self.wrong };
        let kinds: Vec<KindRef> = CLUSTER.kinds().cloned().collect();
        let subjects = loops.iter().map(|one| {
            let controller = native(one.name, *one, kinds.iter()).expect("its kinds are served");
            Subject { on_refusal: one.on_refusal, ..Subject::new(controller) }
        });
        Task::new(&CLUSTER, self.scenario.clone(), subjects.collect()).expect("the scenario can begin")
    }

    pub fn search(&self, right: bool) -> Report {
        let bounds = Bounds { steps_max: 20_000, states_max: 1_000, walks: 20, ..Bounds::default() };
        search(&self.task(right), &bounds)
    }
}

/// Pools and Volumes in namespaces, Databases in a cloud that knows no owners.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let mut cluster = Cluster::new(Config { nodes: 0, ..Config::default() });
    for (group, kind, plural, scope) in [
        ("example.com", "Pool", "pools", "Namespaced"),
        ("example.com", "Volume", "volumes", "Namespaced"),
        ("cloud.example.com", "Database", "databases", "Cluster"),
    ] {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }});
        let definition = json!({"spec": {
            "group": group, "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}],
        }});
        let definition =
            object("apiextensions.k8s.io/v1", "CustomResourceDefinition", &format!("{plural}.{group}"), definition);
        let request = Act::Create(definition).request(&cluster).expect("a known kind").expect("a request");
        cluster.request(request).expect("a valid definition");
    }
    cluster.settle(std::time::Duration::from_secs(60), |_| true);
    cluster
});

pub fn pool(name: &str, spec: Value) -> Value {
    object(EXAMPLE, "Pool", name, json!({"spec": spec}))
}

pub fn config_map(name: &str, data: Value) -> Value {
    object("v1", "ConfigMap", name, json!({"data": data}))
}

pub fn volume(name: &str, spec: Value) -> Value {
    object(EXAMPLE, "Volume", name, json!({"spec": spec}))
}

pub fn database(name: &str, spec: Value) -> Value {
    json!({"apiVersion": CLOUD, "kind": "Database", "metadata": {"name": name}, "spec": spec})
}

pub fn the_pool(view: &View, key: &Key) -> Option<Value> {
    view.get(EXAMPLE, "Pool", key)
}

pub fn pool_with_config_maps() -> Watches {
    Watches::of(EXAMPLE, "Pool").owns("v1", "ConfigMap")
}
