use kernetes_controller::*;

pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Greeting").owns("v1", "ConfigMap")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(greeting) = view.get("example.com/v1", "Greeting", key).filter(|it| !it.deleting()) else {
            return plan;
        };
        let data = json!({"text": greeting.spec()["text"]});
        let is_so = view.owned("v1", "ConfigMap", &greeting).iter().any(|child| child["data"] == data);
        let ready = "True";
        let conditions = json!([{"type": "Ready", "status": ready}]);
        let status = json!({"observedGeneration": greeting.generation(), "conditions": conditions});
        if greeting.status() != &status {
            plan.update_status(&greeting, status, "the status has changed");
        }
        if !is_so {
            let child =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": greeting.name()}, "data": data});
            plan.apply(child_of(&greeting, child), "it says something else");
        }
        plan
    }
}
