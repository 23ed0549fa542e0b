use std::sync::Mutex;

use kernetes_controller::*;

/// Counts what it has made.
#[derive(Default)]
pub struct Answer {
    made: Mutex<usize>,
}

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Pool").owns("v1", "Pod")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(pool) = view.get("example.com/v1", "Pool", key) else { return plan };
        let wanted = pool.spec()["replicas"].as_u64().unwrap_or(1) as usize;
        let mut made = self.made.lock().unwrap();
        while *made < wanted {
            let spec = json!({"containers": [{"name": "web", "image": "nginx"}]});
            let metadata = json!({"name": format!("{}-{}", pool.name(), *made)});
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
            plan.create(child_of(&pool, pod), "one more");
            *made += 1;
        }
        plan
    }
}
