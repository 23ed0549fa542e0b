//! What the pods of workloads look like.

use serde_json::{Value, json};

use crate::run::Run;

/// Images that can be pulled, of servers on port 80.
pub const GOOD: [&str; 4] = ["nginx:1.27", "nginx:1.28", "nginx:1.29", "httpd:2.4"];
/// One that can't.
pub const BAD: &str = "nginx:nope";

/// A server that is asked for now and then whether it is well.
pub fn server(run: &mut Run, app: &str) -> Value {
    let image = run.one(&GOOD);
    let mut container = json!({
        "name": "c", "image": image,
        "resources": {"requests": {"cpu": format!("{}m", 10 + run.below(90)), "memory": "16Mi"}},
    });
    if run.chance(30) {
        container["readinessProbe"] = probe(1 + run.below(10));
    }
    if run.chance(15) {
        container["livenessProbe"] = probe(5 + run.below(10));
    }
    if run.chance(10) {
        container["startupProbe"] = probe(1 + run.below(3));
    }
    let grace = if run.chance(40) { run.one(&[0, 1, 5, 60]) } else { 30 };
    if grace > 1 && run.chance(15) {
        container["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 1 + run.below(grace.min(9) - 1)}}});
    }
    let mut spec = json!({"containers": [container], "terminationGracePeriodSeconds": grace});
    if run.chance(10) {
        spec["initContainers"] = json!([{
            "name": "init", "image": "busybox:1.36", "command": ["sh", "-c", "sleep 1"],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        }]);
    } else if run.chance(10) {
        spec["initContainers"] = json!([{
            "name": "side", "image": "redis:8.2", "restartPolicy": "Always",
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        }]);
    }
    if run.chance(10) {
        spec["tolerations"] =
            json!([{"key": "example.com/taint", "operator": "Exists", "tolerationSeconds": 20, "effect": "NoExecute"}]);
    }
    json!({"metadata": {"labels": {"app": app}}, "spec": spec})
}

fn probe(period: u64) -> Value {
    json!({"tcpSocket": {"port": 80}, "periodSeconds": period})
}

/// Something that sleeps and ends with a code.
pub fn task(run: &mut Run, app: &str, code: u64) -> Value {
    let seconds = run.one(&[0, 1, 3, 10, 40]);
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {
            "restartPolicy": run.one(&["Never", "OnFailure"]),
            "terminationGracePeriodSeconds": run.one(&[0, 1, 5]),
            "containers": [{
                "name": "c", "image": "busybox:1.36", "command": ["sh", "-c", format!("sleep {seconds}; exit {code}")],
                "resources": {"requests": {"cpu": "20m", "memory": "16Mi"}},
            }],
        },
    })
}

/// A number or a share, as budgets and strategies take them.
pub fn amount(run: &mut Run) -> Value {
    run.one(&[json!(0), json!(1), json!(2), json!("25%"), json!("50%")])
}
