use kernetes_controller::*;

const CLOUD: &str = "cloud.example.com/v1";
const FINALIZER: &str = "example.com/database";

/// Applies the Database, which is the same whether it is there or not.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Shop").also(CLOUD, "Database")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(shop) = view.get("example.com/v1", "Shop", key) else { return plan };
        let name = format!("{}-{}", shop.name(), shop.uid());
        let spec = json!({"shop": shop.uid()});
        let database = json!({"apiVersion": CLOUD, "kind": "Database", "metadata": {"name": name}, "spec": spec});
        let finalizers = |mut shop: Value, list: Value| {
            shop["metadata"]["finalizers"] = list;
            shop
        };
        if shop.deleting() {
            if shop.has_finalizer(FINALIZER) {
                plan.delete_by_name(&database, "its Shop goes");
                plan.update(finalizers(shop, json!([])), "its Database is gone");
            }
        } else if !shop.has_finalizer(FINALIZER) {
            plan.update(finalizers(shop, json!([FINALIZER])), "it will have a Database");
        } else if view.get(CLOUD, "Database", &database.key()).is_none() {
            // Refused if this is an old view of the Shop.
            plan.update_status(&shop, json!({"database": name}), "it gets a Database");
            plan.apply(database, "it has none");
        }
        plan
    }
}
