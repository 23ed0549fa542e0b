use kernetes_controller::*;

pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Pool").owns("v1", "Pod")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(pool) = view.get("example.com/v1", "Pool", key).filter(|pool| !pool.deleting()) else { return plan };
        let wanted = pool.spec()["replicas"].as_u64().unwrap_or(1) as usize;
        let pods: Vec<Value> = view.owned("v1", "Pod", &pool).into_iter().filter(|pod| !pod.deleting()).collect();
        for _ in pods.len()..wanted {
            let spec = json!({"containers": [{"name": "web", "image": "nginx"}]});
            let metadata = json!({"generateName": format!("{}-", pool.name())});
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
            plan.create(child_of(&pool, pod), "too few Pods");
        }
        for pod in pods.iter().skip(wanted) {
            plan.delete(pod, "too many Pods");
        }
        plan
    }
}
