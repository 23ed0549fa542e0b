use kernetes_controller::*;

/// The condition says, too, of which generation it speaks.
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
        let child =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": greeting.name()}, "data": data});
        let generation = greeting.generation();
        let (ready, reason) = if is_so { ("True", "Said") } else { ("False", "Saying") };
        let condition = json!({"type": "Ready", "status": ready, "reason": reason, "observedGeneration": generation});
        let status = json!({"observedGeneration": generation, "conditions": [condition]});
        if greeting.status() != &status {
            plan.update_status(&greeting, status, "the status has changed");
        }
        if !is_so {
            plan.apply(child_of(&greeting, child), "it says something else");
        }
        plan
    }
}
