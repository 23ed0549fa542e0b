//! Old views.

use cluster_core::api::request::Propagation;
use kernetes_controller::{Key, Object, Plan, Time, View, Watches, child_of, json};

use super::deletion::{FINALIZER, with_finalizers};
use super::kit::{Case, EXAMPLE, GARBAGE_COLLECTOR, Loop, config_map, pool, pool_with_config_maps, the_pool, volume};
use crate::grading::words::Words;
use crate::search::scenario::{Act, Edit, Scenario, Scene};

pub fn pool_with_volumes() -> Watches {
    Watches::of(EXAMPLE, "Pool").owns(EXAMPLE, "Volume")
}

fn volume_until_deleted<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key) else { return plan };
    let volume_there = match RIGHT {
        true => view.owned(EXAMPLE, "Volume", &pool).pop(),
        false => view.get(EXAMPLE, "Volume", &Key::new("default", pool.name())),
    };
    match (pool.deleting(), pool.has_finalizer(FINALIZER), volume_there) {
        (true, true, Some(volume)) if RIGHT => {
            plan.delete(&volume, "its pool goes");
        }
        (true, true, Some(volume)) => {
            plan.delete_by_name(&volume, "its pool goes");
        }
        (true, true, None) => {
            plan.update(with_finalizers(&pool, &[]), "all is cleaned up");
        }
        (false, false, _) => {
            plan.update(with_finalizers(&pool, &[FINALIZER]), "there will be something to clean up");
        }
        (false, true, None) => {
            plan.create(child_of(&pool, volume(pool.name(), json!({}))), "there is none");
        }
        _ => {}
    }
    plan
}

/// A pool was deleted and made anew; a restart sees it on its way out, and deletes the volume of the new one.
pub fn recreated_owner() -> Case {
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({}))],
            edits: vec![
                Edit::new("delete the pool", Act::Delete(pool("web", json!({})), Propagation::Background)),
                Edit::new("create it again", Act::Create(pool("web", json!({})))),
            ],
            // A volume that its controller never heard of is left to the garbage collector.
            loops: GARBAGE_COLLECTOR,
            // If it is created again too early, it exists, and then it is gone.
            confluent: false,
            ..Scenario::new("a pool that is made anew")
        },
        right: vec![Loop::new(pool_with_volumes, volume_until_deleted::<true>)],
        wrong: vec![Loop::new(pool_with_volumes, volume_until_deleted::<false>)],
        breaks: "guarded-deletes",
    }
}

fn sized<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let size = pool.spec()["size"].as_u64().unwrap_or(1) as usize;
    let there = view.owned("v1", "ConfigMap", &pool);
    for name in (0..size).map(|index| format!("{}-{index}", pool.name())) {
        if !there.iter().any(|child| child.name() == name) {
            plan.create(child_of(&pool, config_map(&name, json!({}))), "too few");
        }
    }
    for child in there.iter().skip(size) {
        match RIGHT {
            true => plan.delete(child, "too many"),
            false => plan.delete_by_name(child, "too many"),
        };
    }
    plan
}

fn as_many_as_wished(scene: &Scene<'_>) -> Result<(), Words> {
    let children = scene.list("v1", "ConfigMap");
    for pool in scene.list(EXAMPLE, "Pool") {
        let (want, have) =
            (pool.spec()["size"].as_u64().unwrap_or(1), children.iter().filter(|child| child.owned_by(&pool)).count());
        if want != have as u64 {
            return Err(Words::same(format!("Pool {}: {have} of {want} ConfigMaps", pool.name())));
        }
    }
    Ok(())
}

/// Scaled down and up again; a restart sees it scaled down, and deletes the new child.
pub fn down_and_up() -> Case {
    let scale = |name, size| Edit::new(name, Act::Patch(pool("web", json!({"size": size}))));
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({"size": 2}))],
            edits: vec![scale("scale to 1", 1), scale("scale to 2", 2)],
            met: as_many_as_wished,
            ..Scenario::new("down and up")
        },
        right: vec![Loop::new(pool_with_config_maps, sized::<true>)],
        wrong: vec![Loop::new(pool_with_config_maps, sized::<false>)],
        breaks: "guarded-deletes",
    }
}

fn grown<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let want = pool.spec()["size"].as_u64().unwrap_or(1);
    match view.owned(EXAMPLE, "Volume", &pool).first() {
        None => {
            plan.create(child_of(&pool, volume(pool.name(), json!({"size": want}))), "there is none");
        }
        Some(volume) => {
            let have = volume.spec()["size"].as_u64().unwrap_or(0);
            if if RIGHT { want > have } else { want != have } {
                plan.patch(volume, json!({"spec": {"size": want}}), "the pool has another size");
            }
        }
    }
    plan
}

/// Looks at the last writes, as a shrunk volume looks like any other.
fn never_shrinks(scene: &Scene<'_>) -> Result<(), Words> {
    for (_, write) in scene.0.trace().writes().rev().take(3).filter(|(_, write)| &*write.kind.kind == "Volume") {
        let size = |object: &Option<cluster_core::api::object::Object>| {
            object.as_ref().and_then(|object| object.to_json()["spec"]["size"].as_u64())
        };
        if let (Some(before), Some(after)) = (size(&write.before), size(&write.after))
            && after < before
        {
            return Err(Words::new(
                format!("Volumeが{before}から{after}に縮んだ"),
                format!("a Volume shrank from {before} to {after}"),
            ));
        }
    }
    Ok(())
}

/// A restart sees the old size, and shrinks the volume.
pub fn grow_only() -> Case {
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({"size": 10}))],
            edits: vec![Edit::new("grow to 15", Act::Patch(pool("web", json!({"size": 15}))))],
            safe: never_shrinks,
            ..Scenario::new("a volume that grows")
        },
        right: vec![Loop::new(pool_with_volumes, grown::<true>)],
        wrong: vec![Loop::new(pool_with_volumes, grown::<false>)],
        breaks: "safety",
    }
}

fn largest<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let size = pool.spec()["size"].as_u64().unwrap_or(1);
    let there = view.owned("v1", "ConfigMap", &pool);
    let known = there.first().and_then(|child| child["data"]["size"].as_str()?.parse().ok()).unwrap_or(0);
    let size = if RIGHT { size } else { size.max(known) };
    if there.is_empty() || known != size {
        plan.apply(child_of(&pool, config_map(pool.name(), json!({"size": size.to_string()}))), "another size");
    }
    plan
}

/// 1, 3, 2: whoever does not hear of the 3 ends otherwise.
pub fn unobserved() -> Case {
    let scale = |name, size| Edit::new(name, Act::Patch(pool("web", json!({"size": size}))));
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({"size": 1}))],
            edits: vec![scale("size 3", 3), scale("size 2", 2)],
            ..Scenario::new("a size in between")
        },
        right: vec![Loop::new(pool_with_config_maps, largest::<true>)],
        wrong: vec![Loop::new(pool_with_config_maps, largest::<false>)],
        breaks: "confluent",
    }
}
