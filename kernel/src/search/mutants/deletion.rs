//! Deletion, and what is outside of the cluster.

use cluster_core::api::request::Propagation;
use kernetes_controller::{Key, Object, Plan, Time, Value, View, Watches, child_of, json};

use super::kit::{
    CLOUD, Case, EXAMPLE, GARBAGE_COLLECTOR, Loop, config_map, database, pool, pool_with_config_maps, the_pool,
};
use crate::search::scenario::{Act, Edit, Scenario};

pub const FINALIZER: &str = "example.com/clean-up";
pub const DATABASES: fn() -> Watches = || Watches::of(EXAMPLE, "Pool").also(CLOUD, "Database");

/// Whatever its name, a pool has a database of its own: the name holds the uid.
pub fn database_of(pool: &Value) -> String {
    format!("{}-{}", pool.name(), pool.uid())
}

fn its_database(view: &View, pool: &Value) -> Option<Value> {
    view.get(CLOUD, "Database", &Key::new("", database_of(pool)))
}

pub fn with_finalizers(object: &Value, finalizers: &[&str]) -> Value {
    let mut object = object.clone();
    object["metadata"]["finalizers"] = json!(finalizers);
    object
}

/// The pool is written first: an old view of it is refused then, and its finalizer holds it until there is a database.
fn create_database(plan: &mut Plan, pool: &Value) {
    plan.update_status(pool, json!({"database": "ordered"}), "a database is about to be made");
    plan.create(database(&database_of(pool), json!({})), "there is none");
}

/// The finalizer first, then the database; at the end the database first, then the finalizer. What is deleted at the end is
/// named, not looked for: the cache may not have heard of it yet.
pub fn clean_up(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key) else { return plan };
    match (pool.deleting(), pool.has_finalizer(FINALIZER)) {
        (true, true) => {
            plan.delete_by_name(&database(&database_of(&pool), json!({})), "its pool goes");
            plan.update(with_finalizers(&pool, &[]), "all is cleaned up");
        }
        (true, false) => {}
        (false, false) => {
            plan.update(with_finalizers(&pool, &[FINALIZER]), "there will be something to clean up");
        }
        (false, true) => {
            if its_database(view, &pool).is_none() {
                create_database(&mut plan, &pool);
            }
        }
    }
    plan
}

fn deleted_pool() -> Scenario {
    Scenario {
        start: vec![pool("web", json!({}))],
        edits: vec![Edit::new("delete the pool", Act::Delete(pool("web", json!({})), Propagation::Background))],
        external: &["Database"],
        ..Scenario::new("a pool with a database")
    }
}

fn goes_on(key: &Key, view: &View, now: Time) -> Plan {
    let mut plan = clean_up(key, view, now);
    if let Some(pool) = the_pool(view, key).filter(|pool| pool.deleting() && its_database(view, pool).is_none()) {
        plan.create(database(&database_of(&pool), json!({})), "there is none");
    }
    plan
}

/// The finalizer is taken away, and the reconcile goes on.
pub fn goes_on_after_finalizer() -> Case {
    Case {
        scenario: deleted_pool(),
        right: vec![Loop::new(DATABASES, clean_up)],
        wrong: vec![Loop::new(DATABASES, goes_on)],
        breaks: "deletion",
    }
}

fn child<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key) else { return plan };
    if RIGHT && pool.deleting() {
        return plan;
    }
    if view.owned("v1", "ConfigMap", &pool).is_empty() {
        plan.create(child_of(&pool, config_map(pool.name(), json!({}))), "there is none");
    }
    plan
}

/// Children go first, and are made again and again.
pub fn foreground() -> Case {
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({}))],
            edits: vec![Edit::new(
                "delete the pool and its children first",
                Act::Delete(pool("web", json!({})), Propagation::Foreground),
            )],
            loops: GARBAGE_COLLECTOR,
            ..Scenario::new("foreground deletion")
        },
        right: vec![Loop::new(pool_with_config_maps, child::<true>)],
        wrong: vec![Loop::new(pool_with_config_maps, child::<false>)],
        breaks: "deletion",
    }
}

fn waits_for_it(key: &Key, view: &View, now: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key) else { return plan };
    match (pool.deleting(), its_database(view, &pool)) {
        (true, Some(database)) if pool.has_finalizer(FINALIZER) => {
            plan.delete(&database, "its pool goes");
            plan.update(with_finalizers(&pool, &[]), "all is cleaned up");
        }
        (true, _) => {}
        (false, _) => plan = clean_up(key, view, now),
    }
    plan
}

/// What was never made, or is gone already, is waited for.
pub fn never_created() -> Case {
    Case {
        scenario: deleted_pool(),
        right: vec![Loop::new(DATABASES, clean_up)],
        wrong: vec![Loop::new(DATABASES, waits_for_it)],
        breaks: "lets-go",
    }
}

fn on_delete_event(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let name = format!("{}-{}", key.namespace, key.name);
    let database = view.get(CLOUD, "Database", &Key::new("", name.as_str()));
    match (the_pool(view, key), database) {
        (Some(_), None) => {
            plan.create(super::kit::database(&name, json!({})), "there is none");
        }
        (None, Some(database)) => {
            plan.delete(&database, "its pool has gone");
        }
        _ => {}
    }
    plan
}

/// Without a finalizer, a deletion while the controller is down is never heard of.
pub fn deleted_while_down() -> Case {
    Case {
        scenario: deleted_pool(),
        right: vec![Loop::new(DATABASES, clean_up)],
        wrong: vec![Loop::new(DATABASES, on_delete_event)],
        breaks: "no-orphan",
    }
}
