use kernetes_controller::*;

const CLOUD: &str = "cloud.example.com/v1";

/// Leaves the clean-up to the garbage collector, which knows nothing of a cloud.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Shop").also(CLOUD, "Database")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(shop) = view.get("example.com/v1", "Shop", key) else { return plan };
        let name = format!("{}-{}", shop.name(), shop.uid());
        if !shop.deleting() && view.get(CLOUD, "Database", &Key::new("", name.as_str())).is_none() {
            let spec = json!({"shop": shop.uid()});
            let database = json!({"apiVersion": CLOUD, "kind": "Database", "metadata": {"name": name}, "spec": spec});
            let mut database = child_of(&shop, database);
            database["metadata"]["namespace"] = Value::Null;
            plan.create(database, "it has none");
        }
        plan
    }
}
