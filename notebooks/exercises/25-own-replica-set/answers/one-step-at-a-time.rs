use kernetes_controller::*;

/// Takes one step; what it has done wakes it for the next.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Pool").owns("v1", "Pod")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(pool) = view.get("example.com/v1", "Pool", key).filter(|pool| !pool.deleting()) else { return plan };
        let wanted = pool.spec()["replicas"].as_u64().unwrap_or(1) as usize;
        let mut names: Vec<String> = view.owned("v1", "Pod", &pool).iter().map(|pod| pod.name().to_owned()).collect();
        names.sort();
        if names.len() < wanted {
            let free = (0..).map(|index| format!("{}-{index}", pool.name())).find(|name| !names.contains(name));
            let metadata = json!({"name": free, "labels": {"pool": pool.name()}});
            let spec = json!({"containers": [{"name": "web", "image": "nginx"}]});
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
            plan.create(child_of(&pool, pod), "one too few");
        } else if names.len() > wanted {
            let last = view.owned("v1", "Pod", &pool).into_iter().max_by_key(|pod| pod.name().to_owned());
            plan.delete(&last.expect("there are some"), "one too many");
        }
        plan
    }
}
