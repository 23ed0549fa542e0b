use kernetes_controller::*;

const CLOUD: &str = "cloud.example.com/v1";
const FINALIZER: &str = "example.com/database";

/// Has a finalizer, but does not ask whether the Shop is still there before it orders.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Shop").also(CLOUD, "Database")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(mut shop) = view.get("example.com/v1", "Shop", key) else { return plan };
        let name = format!("{}-{}", shop.name(), shop.uid());
        let spec = json!({"shop": shop.uid()});
        let database = json!({"apiVersion": CLOUD, "kind": "Database", "metadata": {"name": name}, "spec": spec});
        match (shop.deleting(), shop.has_finalizer(FINALIZER)) {
            (true, true) => {
                plan.delete_by_name(&database, "its Shop goes");
                shop["metadata"]["finalizers"] = json!([]);
                plan.update(shop, "its Database is gone");
            }
            (false, false) => {
                shop["metadata"]["finalizers"] = json!([FINALIZER]);
                plan.update(shop, "it will have a Database");
            }
            (false, true) if view.get(CLOUD, "Database", &database.key()).is_none() => {
                plan.create(database, "it has none");
            }
            _ => {}
        }
        plan
    }
}
