use kernetes_controller::*;

/// Says what there should be, and takes away whatever has another name.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Pool").owns("v1", "Pod")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(pool) = view.get("example.com/v1", "Pool", key).filter(|pool| !pool.deleting()) else { return plan };
        let wanted = pool.spec()["replicas"].as_u64().unwrap_or(1) as usize;
        let names: Vec<String> = (0..wanted).map(|index| format!("pool-{}-{index}", pool.name())).collect();
        let pods = view.owned("v1", "Pod", &pool);
        for pod in pods.iter().filter(|pod| !names.iter().any(|name| name == pod.name())) {
            plan.delete_unchanged(pod, "nobody wishes for it");
        }
        for name in names.iter().filter(|name| !pods.iter().any(|pod| pod.name() == name.as_str())) {
            let spec = json!({"containers": [{"name": "web", "image": "httpd"}]});
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
            plan.apply(child_of(&pool, pod), "it is wished for");
        }
        plan
    }
}
