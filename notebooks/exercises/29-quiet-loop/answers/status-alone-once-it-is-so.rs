use kernetes_controller::*;

/// Writes the ConfigMap, or else the status: never both at once.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Greeting").owns("v1", "ConfigMap")
    }

    fn reconcile(&self, key: &Key, view: &View, now: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(greeting) = view.get("example.com/v1", "Greeting", key).filter(|it| !it.deleting()) else {
            return plan;
        };
        let data = json!({"text": greeting.spec()["text"]});
        let is_so = view.owned("v1", "ConfigMap", &greeting).iter().any(|child| child["data"] == data);
        let child =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": greeting.name()}, "data": data});
        if !is_so {
            plan.apply(child_of(&greeting, child), "it says something else");
            return plan;
        }
        let mut status = greeting.status().clone();
        status["observedGeneration"] = json!(greeting.generation());
        set_condition(&mut status, "Ready", true, "Said", "the ConfigMap says it", now);
        if greeting.status() != &status {
            plan.update_status(&greeting, status, "the status has changed");
        }
        plan
    }
}
