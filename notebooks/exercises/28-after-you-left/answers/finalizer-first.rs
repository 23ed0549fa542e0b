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
        let Some(mut shop) = view.get("example.com/v1", "Shop", key) else { return plan };
        let name = format!("{}-{}", shop.name(), shop.uid());
        let database = view.get(CLOUD, "Database", &Key::new("", name.as_str()));
        match (shop.deleting(), shop.has_finalizer(FINALIZER), database) {
            (true, true, _) => {
                // By its name: the cache may not have heard of it yet. That it is not there is no failure.
                plan.delete_by_name(
                    &json!({"apiVersion": CLOUD, "kind": "Database", "metadata": {"name": name}}),
                    "its Shop goes",
                );
                shop["metadata"]["finalizers"] = json!([]);
                plan.update(shop, "its Database is gone");
            }
            (false, false, _) => {
                shop["metadata"]["finalizers"] = json!([FINALIZER]);
                plan.update(shop, "it will have a Database");
            }
            (false, true, None) => {
                // Refused if this is an old view of the Shop.
                plan.update_status(&shop, json!({"database": "ordered"}), "it gets a Database");
                let spec = json!({"shop": shop.uid()});
                let database =
                    json!({"apiVersion": CLOUD, "kind": "Database", "metadata": {"name": name}, "spec": spec});
                plan.create(database, "it has none");
            }
            _ => {}
        }
        plan
    }
}
