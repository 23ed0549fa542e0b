//! Who owns what.

use kernetes_controller::{Key, Object, Plan, Time, Value, View, Watches, child_of, json};

use super::deletion::{DATABASES, clean_up, database_of};
use super::kit::{
    CLOUD, Case, EXAMPLE, GARBAGE_COLLECTOR, Loop, config_map, database, pool, pool_with_config_maps, the_pool,
};
use crate::grading::words::Words;
use crate::search::scenario::{Act, Edit, Scenario, Scene};
use cluster_core::api::request::Propagation;

fn has_its_child(scene: &Scene<'_>) -> Result<(), Words> {
    match scene.get("v1", "ConfigMap", "web") {
        Some(_) => Ok(()),
        None => Err(Words::same("there is no ConfigMap web")),
    }
}

fn owned_child(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    if view.owned("v1", "ConfigMap", &pool).is_empty() {
        plan.create(child_of(&pool, config_map(pool.name(), json!({}))), "there is none");
    }
    plan
}

fn remembered_child(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    if pool.status()["created"] != true {
        plan.apply(config_map(pool.name(), json!({})), "there is none");
        plan.update_status(&pool, json!({"created": true}), "it was made");
    }
    plan
}

/// A child that nobody owns or watches: it is made once, and never again.
pub fn unwatched_child() -> Case {
    let child = config_map("web", json!({}));
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({}))],
            edits: vec![Edit::disturbance("delete the child", Act::Delete(child, Propagation::Background))],
            met: has_its_child,
            ..Scenario::new("a child that is deleted")
        },
        right: vec![Loop::new(pool_with_config_maps, owned_child)],
        wrong: vec![Loop::new(|| Watches::of(EXAMPLE, "Pool"), remembered_child)],
        breaks: "level-triggered",
    }
}

fn owner_of_other_scope(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    if view.get(CLOUD, "Database", &Key::new("", database_of(&pool))).is_none() {
        let mut child = database(&database_of(&pool), json!({}));
        let owner =
            json!({"apiVersion": EXAMPLE, "kind": "Pool", "name": pool.name(), "uid": pool.uid(), "controller": true});
        child["metadata"]["ownerReferences"] = json!([owner]);
        plan.create(child, "there is none");
    }
    plan
}

/// An owner in a namespace is no owner for what lies outside of it: the garbage collector finds none there, and the two
/// go on for ever.
pub fn cluster_scoped_child() -> Case {
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({}))],
            edits: vec![Edit::new("delete the pool", Act::Delete(pool("web", json!({})), Propagation::Background))],
            loops: GARBAGE_COLLECTOR,
            ..Scenario::new("a child outside of the namespace")
        },
        right: vec![Loop::new(DATABASES, clean_up)],
        wrong: vec![Loop::new(DATABASES, owner_of_other_scope)],
        breaks: "no-orphan",
    }
}

fn scaled<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let size = pool.spec()["size"].as_u64().unwrap_or(1) as usize;
    for index in 0..size {
        let name = format!("{}-{index}", pool.name());
        if view.get("v1", "ConfigMap", &Key::new("default", name.as_str())).is_none() {
            plan.create(child_of(&pool, config_map(&name, json!({}))), "too few");
        }
    }
    for child in view.owned("v1", "ConfigMap", &pool).iter().skip(size) {
        match RIGHT {
            true => plan.delete_unchanged(child, "too many"),
            false => plan.delete(child, "too many"),
        };
    }
    plan
}

/// A child is set free, and a controller that has not heard of it deletes it.
pub fn set_free() -> Case {
    let free = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-0", "namespace": "default", "ownerReferences": null}});
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({"size": 1}))],
            edits: vec![
                Edit::disturbance("set the child free", Act::Patch(free)),
                Edit::new("scale to 0", Act::Patch(pool("web", json!({"size": 0})))),
            ],
            // If it is set free too early, it is not there yet, and then it is never free.
            confluent: false,
            ..Scenario::new("a child that is set free")
        },
        right: vec![Loop::new(watch_config_maps, scaled::<true>)],
        wrong: vec![Loop::new(watch_config_maps, scaled::<false>)],
        breaks: "others-untouched",
    }
}

fn watch_config_maps() -> Watches {
    pool_with_config_maps().also("v1", "ConfigMap")
}

fn adopting<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key) else { return plan };
    if RIGHT && pool.deleting() {
        return plan;
    }
    for child in view.list_in("v1", "ConfigMap", "default") {
        if child.label("pool") == Some(pool.name()) && child.meta()["ownerReferences"].is_null() {
            let owners = child_of(&pool, json!({}))["metadata"]["ownerReferences"].clone();
            plan.patch(&child, json!({"metadata": {"ownerReferences": owners}}), "it has the pool's label");
        }
    }
    plan
}

/// An owner that is being deleted, and shall leave its children behind, takes them into care again.
pub fn adopted_again() -> Case {
    let mut child = config_map("found", json!({}));
    child["metadata"]["labels"] = json!({"pool": "web"});
    Case {
        scenario: Scenario {
            start: vec![child, pool("web", json!({}))],
            edits: vec![Edit::new(
                "delete the pool, not its children",
                Act::Delete(pool("web", json!({})), Propagation::Orphan),
            )],
            loops: GARBAGE_COLLECTOR,
            adopts: true,
            // Between the look at the owner and the write to the child the owner can always be deleted.
            confluent: false,
            ..Scenario::new("a child that is found")
        },
        right: vec![Loop::new(watch_config_maps, adopting::<true>)],
        wrong: vec![Loop::new(watch_config_maps, adopting::<false>)],
        breaks: "deletion",
    }
}

fn counted<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let size = pool.spec()["size"].as_u64().unwrap_or(1) as usize;
    let there: Vec<Value> = match RIGHT {
        true => view.owned("v1", "ConfigMap", &pool),
        false => view.list("v1", "ConfigMap").into_iter().filter(|child| child.label("app") == Some("web")).collect(),
    };
    for index in there.len()..size {
        let mut child = child_of(&pool, config_map(&format!("{}-{index}", pool.name()), json!({})));
        child["metadata"]["labels"] = json!({"app": "web"});
        plan.create(child, "too few");
    }
    for child in there.iter().skip(size) {
        plan.delete(child, "too many");
    }
    plan
}

/// Two pools whose children have the same label.
pub fn overlapping_selectors() -> Case {
    Case {
        scenario: Scenario {
            start: vec![pool("a", json!({"size": 2})), pool("b", json!({"size": 1}))],
            ..Scenario::new("the same labels")
        },
        right: vec![Loop::new(watch_config_maps, counted::<true>)],
        wrong: vec![Loop::new(watch_config_maps, counted::<false>)],
        breaks: "others-untouched",
    }
}
