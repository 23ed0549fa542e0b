//! `clean-up`: a database outside of the cluster for each Shop. A Shop is deleted, one before it has got its database.

use cluster_core::api::request::Propagation;
use kernetes_controller::Object as _;
use serde_json::{Value, json};

use crate::grading::words::Words;
use crate::search::scenario::{Act, Edit, Scenario, Scene, object};

const EXAMPLE: &str = "example.com/v1";
const CLOUD: &str = "cloud.example.com/v1";

pub fn scenario() -> Scenario {
    let shop = |name: &str| object(EXAMPLE, "Shop", name, json!({"spec": {}}));
    Scenario {
        start: vec![shop("a")],
        edits: vec![
            Edit::new(("Shop b を作る", "create Shop b"), Act::Create(shop("b"))),
            Edit::new(("Shop b を消す", "delete Shop b"), Act::Delete(shop("b"), Propagation::Background)),
        ],
        met,
        external: &["Database"],
        // If it is deleted too early, it is not there yet, and then it stays.
        confluent: false,
        ..Scenario::new("clean-up")
    }
}

fn met(scene: &Scene<'_>) -> Result<(), Words> {
    let databases = scene.list(CLOUD, "Database");
    for shop in scene.list(EXAMPLE, "Shop").iter().filter(|shop| !shop.deleting()) {
        let is_its = |database: &&Value| database.spec()["shop"] == shop.uid();
        let count = databases.iter().filter(is_its).count();
        if count != 1 {
            let name = shop.name();
            return Err(Words::new(
                format!("Shop {name} のDatabaseが{count}個ある"),
                format!("Shop {name} has {count} Databases"),
            ));
        }
    }
    Ok(())
}
