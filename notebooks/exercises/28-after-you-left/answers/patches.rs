use kernetes_controller::*;

const CLOUD: &str = "cloud.example.com/v1";
const FINALIZER: &str = "example.com/database";

pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Shop").also(CLOUD, "Database")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(shop) = view.get("example.com/v1", "Shop", key) else { return plan };
        let metadata = json!({"name": format!("shop-{}", shop.uid())});
        let database =
            json!({"apiVersion": CLOUD, "kind": "Database", "metadata": metadata, "spec": {"shop": shop.uid()}});
        // Refused if somebody has written the Shop since.
        let finalizers = |list: Value| json!({"metadata": {"finalizers": list, "resourceVersion": shop["metadata"]["resourceVersion"]}});
        if shop.deleting() {
            if shop.has_finalizer(FINALIZER) {
                plan.delete_by_name(&database, "its Shop goes");
                plan.patch(&shop, finalizers(Value::Null), "its Database is gone");
            }
        } else if !shop.has_finalizer(FINALIZER) {
            plan.patch(&shop, finalizers(json!([FINALIZER])), "it will have a Database");
        } else if view.get(CLOUD, "Database", &database.key()).is_none() {
            // Refused if this is an old view of the Shop.
            plan.update_status(&shop, json!({"database": "ordered"}), "it gets a Database");
            plan.create(database, "it has none");
        }
        plan
    }
}
