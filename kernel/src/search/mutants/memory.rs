//! What only the process knows is lost with it.

use std::sync::Mutex;

use kernetes_controller::{Duration, Key, Object, Plan, Time, View, Watches, child_of, json};

use super::kit::{Case, EXAMPLE, Loop, config_map, pool, pool_with_config_maps, the_pool, volume};
use super::stale::pool_with_volumes;
use crate::grading::words::Words;
use crate::search::scenario::{Act, Edit, Scenario, Scene};

fn resized<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let want = json!({"size": pool.spec()["size"]});
    let child = |name: &str| view.get(EXAMPLE, "Volume", &Key::new("default", name));
    let create = |plan: &mut Plan, name: &str| {
        plan.create(child_of(&pool, volume(name, want.clone())), "there is none");
    };
    let resize = |plan: &mut Plan| match child("claim") {
        None => create(plan, "claim"),
        Some(claim) if claim.spec() != &want => {
            plan.patch(&claim, json!({"spec": want}), "another size");
        }
        Some(_) => {}
    };
    if RIGHT || child("claim").is_none() {
        resize(&mut plan);
    }
    match child("set") {
        None => create(&mut plan, "set"),
        // A set is of one size for ever.
        Some(set) if set.spec() != &want => {
            plan.delete(&set, "another size");
            if !RIGHT {
                resize(&mut plan);
            }
            create(&mut plan, "set");
        }
        Some(_) => {}
    }
    plan
}

fn both_resized(scene: &Scene<'_>) -> Result<(), Words> {
    let Some(pool) = scene.get(EXAMPLE, "Pool", "web") else { return Ok(()) };
    for name in ["set", "claim"] {
        let size = scene.get(EXAMPLE, "Volume", name).map(|volume| volume.spec()["size"].clone());
        if size.as_ref() != Some(&pool.spec()["size"]) {
            return Err(Words::same(format!("{name}: {size:?}")));
        }
    }
    Ok(())
}

/// Whether the claim is to be resized is read off the set, which a crash has left deleted.
pub fn half_resized() -> Case {
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({"size": 10}))],
            edits: vec![Edit::new("grow to 15", Act::Patch(pool("web", json!({"size": 15}))))],
            met: both_resized,
            ..Scenario::new("a set and its claim")
        },
        right: vec![Loop::new(pool_with_volumes, resized::<true>)],
        wrong: vec![Loop::new(pool_with_volumes, resized::<false>)],
        breaks: "stable",
    }
}

static MADE: Mutex<bool> = Mutex::new(false);

fn phased<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let mut made = MADE.lock().expect("nobody panicked");
    let is_made =
        if RIGHT { !view.owned("v1", "ConfigMap", &pool).is_empty() } else { std::mem::replace(&mut *made, true) };
    if !is_made {
        plan.create(child_of(&pool, config_map(pool.name(), json!({}))), "there is none");
    }
    plan
}

/// What has been done is kept in memory. A crash would lose it, but the search need not wait for one: the same view gives
/// another plan.
pub fn phase_in_memory() -> Case {
    *MADE.lock().expect("nobody panicked") = false;
    Case {
        scenario: Scenario { start: vec![pool("web", json!({}))], ..Scenario::new("a phase") },
        right: vec![Loop::new(pool_with_config_maps, phased::<true>)],
        wrong: vec![Loop::new(pool_with_config_maps, phased::<false>)],
        breaks: "replay",
    }
}

const TTL: Duration = Duration::from_secs(300);

fn expiring<const RIGHT: bool>(key: &Key, view: &View, now: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let created = pool.meta()["creationTimestamp"].as_str().and_then(Time::parse).unwrap_or(now);
    let deadline = created + TTL;
    let there = view.owned("v1", "ConfigMap", &pool).pop();
    if now >= deadline {
        if let Some(child) = there {
            plan.delete(&child, "its time is over");
        }
        return plan;
    }
    let is_new = there.is_none();
    if is_new {
        plan.create(child_of(&pool, config_map(pool.name(), json!({}))), "there is none");
    }
    if RIGHT || is_new { plan.requeue_after(deadline - now) } else { plan }
}

fn expired(scene: &Scene<'_>) -> Result<(), Words> {
    let is_over = |pool: &kernetes_controller::Value| {
        let created = pool.meta()["creationTimestamp"].as_str().and_then(Time::parse);
        created.is_some_and(|created| scene.now() >= created + TTL)
    };
    match scene.list(EXAMPLE, "Pool").iter().any(is_over) && scene.get("v1", "ConfigMap", "web").is_some() {
        true => Err(Words::same("the ConfigMap is still there")),
        false => Ok(()),
    }
}

/// The deadline is only in a timer, which a restart loses.
pub fn deadline_in_a_timer() -> Case {
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({}))],
            met: expired,
            horizon: 2 * TTL,
            ..Scenario::new("a time to live")
        },
        right: vec![Loop::new(pool_with_config_maps as fn() -> Watches, expiring::<true>)],
        wrong: vec![Loop::new(pool_with_config_maps, expiring::<false>)],
        breaks: "stable",
    }
}
