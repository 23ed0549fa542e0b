use kernetes_controller::*;

const CLOUD: &str = "cloud.example.com/v1";

/// Cleans up when it hears that a Shop has gone.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Shop").also(CLOUD, "Database")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let name = format!("{}-{}", key.namespace, key.name);
        let database = view.get(CLOUD, "Database", &Key::new("", name.as_str()));
        match (view.get("example.com/v1", "Shop", key), database) {
            (Some(shop), None) => {
                let spec = json!({"shop": shop.uid()});
                let database =
                    json!({"apiVersion": CLOUD, "kind": "Database", "metadata": {"name": name}, "spec": spec});
                plan.create(database, "it has none");
            }
            (None, Some(database)) => {
                plan.delete(&database, "its Shop has gone");
            }
            _ => {}
        }
        plan
    }
}
