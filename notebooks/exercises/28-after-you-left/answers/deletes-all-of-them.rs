use kernetes_controller::*;

const CLOUD: &str = "cloud.example.com/v1";
const FINALIZER: &str = "example.com/database";

/// Deletes whatever Databases it sees of the Shop, and the one that it might not see, too.
pub struct Answer;

impl Controller for Answer {
    fn watches(&self) -> Watches {
        Watches::of("example.com/v1", "Shop").also(CLOUD, "Database")
    }

    fn reconcile(&self, key: &Key, view: &View, _: Time) -> Plan {
        let mut plan = Plan::new();
        let Some(mut shop) = view.get("example.com/v1", "Shop", key) else { return plan };
        let database = json!({"apiVersion": CLOUD, "kind": "Database", "metadata": {"name": shop.uid()},
            "spec": {"shop": shop.uid(), "size": "small"}});
        let own: Vec<Value> =
            view.list(CLOUD, "Database").into_iter().filter(|one| one.spec()["shop"] == shop.uid()).collect();
        match (shop.deleting(), shop.has_finalizer(FINALIZER)) {
            (true, true) => {
                for other in own.iter().filter(|one| one.name() != database.name()) {
                    plan.delete(other, "its Shop goes");
                }
                plan.delete_by_name(&database, "its Shop goes");
                shop["metadata"]["finalizers"] = json!([]);
                plan.update(shop, "none is left");
            }
            (false, false) => {
                shop["metadata"]["finalizers"] = json!([FINALIZER]);
                plan.update(shop, "it will have a Database");
            }
            (false, true) if own.is_empty() => {
                // Refused if this is an old view of the Shop.
                plan.update_status(&shop, json!({"database": database.name()}), "it gets a Database");
                plan.create(database, "it has none");
            }
            _ => {}
        }
        plan
    }
}
