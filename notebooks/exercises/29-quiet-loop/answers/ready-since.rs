use kernetes_controller::*;

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
        let text = &greeting.spec()["text"];
        let child = view.owned("v1", "ConfigMap", &greeting).pop();
        match &child {
            None => {
                let metadata = json!({"name": greeting.name()});
                let child =
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}});
                plan.create(child_of(&greeting, child), "there is none");
            }
            Some(child) if &child["data"]["text"] != text => {
                plan.patch(child, json!({"data": {"text": text}}), "it says something else");
            }
            Some(_) => {}
        }
        let is_so = child.is_some_and(|child| &child["data"]["text"] == text);
        let ready = if is_so { "True" } else { "False" };
        let is_news = greeting.condition("Ready") != Some(ready);
        let observed = &greeting.status()["observedGeneration"];
        if is_news || *observed != greeting.generation() {
            // The moment is that of the change.
            let known = greeting.status()["conditions"][0]["lastTransitionTime"].clone();
            let since = if is_news { json!(now.to_string()) } else { known };
            let conditions = json!([{"type": "Ready", "status": ready, "lastTransitionTime": since}]);
            let status = json!({"observedGeneration": greeting.generation(), "conditions": conditions});
            plan.update_status(&greeting, status, "the status has changed");
        }
        plan
    }
}
