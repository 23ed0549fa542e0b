use kernetes_controller::*;

/// Knows its Pods by a label, and says to nobody whose they are.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Pool").also("v1", "Pod")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(pool) = view.get("example.com/v1", "Pool", key).filter(|pool| !pool.deleting()) else { return plan };
        let wanted = pool.spec()["replicas"].as_u64().unwrap_or(1) as usize;
        let mut pods = view.list_in("v1", "Pod", pool.namespace());
        pods.retain(|pod| pod.label("pool") == Some(pool.name()));
        for name in (0..wanted).map(|index| format!("{}-{index}", pool.name())) {
            if !pods.iter().any(|pod| pod.name() == name) {
                let metadata = json!({"name": name, "namespace": pool.namespace(), "labels": {"pool": pool.name()}});
                let spec = json!({"containers": [{"name": "web", "image": "nginx"}]});
                let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
                plan.create(pod, "too few Pods");
            }
        }
        for pod in pods.iter().skip(wanted) {
            plan.delete(pod, "too many Pods");
        }
        plan
    }
}
