//! Names of children.

use kernetes_controller::{Key, Object, Plan, Time, View, child_of, json};

use super::kit::{Case, EXAMPLE, Loop, config_map, pool, pool_with_config_maps, the_pool};
use crate::grading::words::Words;
use crate::search::scenario::{Act, Edit, Scenario, Scene};

/// One ConfigMap for each Pool.
fn one_each(scene: &Scene<'_>) -> Result<(), Words> {
    let children = scene.list("v1", "ConfigMap");
    for pool in scene.list(EXAMPLE, "Pool") {
        let count = children.iter().filter(|child| child.owned_by(&pool)).count();
        if count != 1 {
            return Err(Words::same(format!("Pool {} has {count} ConfigMaps", pool.name())));
        }
    }
    Ok(())
}

fn scenario() -> Scenario {
    Scenario { start: vec![pool("web", json!({}))], met: one_each, ..Scenario::new("one child") }
}

fn named_or_drawn<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    if view.owned("v1", "ConfigMap", &pool).is_empty() {
        let mut child = child_of(&pool, config_map(pool.name(), json!({})));
        if !RIGHT {
            child["metadata"].as_object_mut().expect("metadata").remove("name");
            child["metadata"]["generateName"] = json!(format!("{}-", pool.name()));
        }
        plan.create(child, "there is none");
    }
    plan
}

/// A name that is drawn: looked at again before the cache has caught up, there are two.
pub fn random_name() -> Case {
    Case {
        scenario: Scenario {
            edits: vec![Edit::new("label the pool", Act::Patch(pool("web", json!({"size": 2}))))],
            ..scenario()
        },
        right: vec![Loop::new(pool_with_config_maps, named_or_drawn::<true>)],
        wrong: vec![Loop::new(pool_with_config_maps, named_or_drawn::<false>)],
        breaks: "stable",
    }
}

/// The answer to a create is lost, and it is sent again.
pub fn lost_answer() -> Case {
    Case { scenario: scenario(), ..random_name() }
}

fn careful<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let child = child_of(&pool, config_map("settings", json!({"of": pool.name()})));
    match view.get("v1", "ConfigMap", &Key::new("default", "settings")) {
        None => {
            plan.create(child, "there is none");
        }
        Some(there) if there.owned_by(&pool) && there["data"] == child["data"] => {}
        Some(there) if RIGHT && !there.owned_by(&pool) => {}
        Some(_) => {
            plan.apply(child, "it is not as it should be");
        }
    }
    plan
}

/// A child of that name exists already, and is somebody else's.
pub fn foreign_child() -> Case {
    Case {
        scenario: Scenario {
            start: vec![config_map("settings", json!({"of": "somebody"})), pool("web", json!({}))],
            ..Scenario::new("a foreign child")
        },
        right: vec![Loop::new(watch_all, careful::<true>)],
        wrong: vec![Loop::new(watch_all, careful::<false>)],
        breaks: "others-untouched",
    }
}

fn watch_all() -> kernetes_controller::Watches {
    pool_with_config_maps().also("v1", "ConfigMap")
}

fn shortened<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let sum: u32 = pool.name().bytes().fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let name = if RIGHT { format!("{}-{sum:x}", &pool.name()[..8]) } else { pool.name()[..8].to_owned() };
    let there = view.owned("v1", "ConfigMap", &pool);
    if there.is_empty() {
        plan.apply(child_of(&pool, config_map(&name, json!({"of": pool.name()}))), "there is none");
    }
    plan
}

/// Two long names with the same beginning.
pub fn shared_prefix() -> Case {
    Case {
        scenario: Scenario {
            start: vec![pool("customer-one", json!({})), pool("customer-two", json!({}))],
            ..scenario()
        },
        right: vec![Loop::new(pool_with_config_maps, shortened::<true>)],
        wrong: vec![Loop::new(pool_with_config_maps, shortened::<false>)],
        breaks: "others-untouched",
    }
}
