//! Completion and help at a cursor, in a cluster of 10,000 pods on 1,000 nodes.

use serde_json::{Map, Value};

use super::{milliseconds, percentile, pods, timed};
use crate::session::Session;
use crate::settings::Settings;

const RUNS: usize = 40;

const CELLS: &[&str] = &[
    "kube",
    "kubectl get po",
    "kubectl get pods web-",
    "kubectl logs web-",
    "kubectl describe deployment/we",
    "kubectl get pods -n kube-",
    "%plot pods deployment/w",
    "%kill pod/we",
    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: w",
    "apiVersion: v1\nkind: Pod\nspec:\n  nodeName: node-",
    "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: ngi",
];

const INSPECTED: &[&str] = &[
    "kubectl get pods",
    "kubectl describe deployment/web",
    "%plot pods deployment/web",
    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web",
    "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: nginx",
];

pub fn run() -> Result<Map<String, Value>, String> {
    let (cluster, _) = pods::cluster(1000, 10_000)?;
    let mut session = Session::with(Settings { nodes: 0, ..Settings::default() });
    session.cluster = cluster;
    let (mut completed, mut inspected) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        for code in CELLS {
            completed.push(timed(|| session.complete(code, code.len())).1);
        }
        for code in INSPECTED {
            inspected.push(timed(|| session.inspect(code, code.len())).1);
        }
    }
    Ok(Map::from_iter([
        ("complete_p50_ms".into(), milliseconds(percentile(completed.clone(), 50))),
        ("complete_p99_ms".into(), milliseconds(percentile(completed, 99))),
        ("inspect_p50_ms".into(), milliseconds(percentile(inspected.clone(), 50))),
        ("inspect_p99_ms".into(), milliseconds(percentile(inspected, 99))),
    ]))
}
