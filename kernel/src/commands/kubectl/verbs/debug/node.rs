//! `kubectl debug node/NAME`: a pod on a node that sees its files and processes.
//! <https://kubernetes.io/docs/tasks/debug/debug-cluster/kubectl-node-debug/>

use cluster_core::api::kind::KindRef;
use cluster_core::api::request::Options;
use cluster_core::random::safe_encode;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::super::super::failure::Outcome;
use super::super::super::resources::Item;
use super::super::super::verb::Call;
use super::Wish;
use super::container::debug_container;

pub fn debug(call: &mut Call<'_, '_>, node: &Item, wish: &Wish) -> Outcome {
    let container_name = call.parsed.text("container").unwrap_or("debugger").to_owned();
    let name = format!("node-debugger-{}-{}", node.name, suffix(call));
    if !call.parsed.switch("quiet") {
        call.line(format!("Creating debugging pod {name} with container {container_name} on node {}.", node.name));
    }
    let mut container = json!({"name": container_name, "terminationMessagePolicy": "File"});
    debug_container(call, wish, &mut container)?;
    let mut spec = json!({
        "containers": [container], "nodeName": node.name, "restartPolicy": "Never",
        "tolerations": [{"operator": "Exists"}],
    });
    wish.profile.of_node(&mut spec);
    let metadata = json!({"name": name, "labels": {"app.kubernetes.io/managed-by": "kubectl-debug"}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    let namespace = call.namespace.clone();
    call.create(KindRef::of::<Pod>(), &namespace, pod, Options::default()).map(drop)
}

/// Five letters, of the moment by the clock that ages are counted by.
fn suffix(call: &Call<'_, '_>) -> String {
    safe_encode(&format!("{:05}", call.context.api.now().as_micros() / 100 % 100_000))
}
