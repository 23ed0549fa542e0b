use kernetes_controller::*;

/// Counts from nought, and up to and with the number that is wished for.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Pool").owns("v1", "Pod")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(pool) = view.get("example.com/v1", "Pool", key).filter(|pool| !pool.deleting()) else { return plan };
        let wanted = pool.spec()["replicas"].as_u64().unwrap_or(1) as usize;
        let pods = view.owned("v1", "Pod", &pool);
        for name in (0..=wanted).map(|index| format!("{}-{index}", pool.name())) {
            if !pods.iter().any(|pod| pod.name() == name) {
                let spec = json!({"containers": [{"name": "web", "image": "nginx"}]});
                let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
                plan.create(child_of(&pool, pod), "too few Pods");
            }
        }
        for pod in pods.iter().skip(wanted + 1) {
            plan.delete(pod, "too many Pods");
        }
        plan
    }
}
