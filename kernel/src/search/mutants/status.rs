//! What a status says, and how often.

use std::time::Duration;

use kernetes_controller::{Key, Object, Plan, Time, Value, View, child_of, json};

use super::kit::{Case, EXAMPLE, Loop, config_map, pool, pool_with_config_maps, the_pool};
use crate::search::scenario::{Act, Edit, Scenario, Scene};

fn checked<const RIGHT: bool>(key: &Key, view: &View, now: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key) else { return plan };
    if !RIGHT || pool.status()["checked"].is_null() {
        plan.update_status(&pool, json!({"checked": now.to_string()}), "it was looked at");
    }
    plan
}

/// A status with the moment of the last look: each look makes another one.
pub fn fresh_timestamp() -> Case {
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({}))],
            horizon: Duration::from_secs(60),
            ..Scenario::new("a moment in the status")
        },
        right: vec![Loop::new(pool_with_config_maps, checked::<true>)],
        wrong: vec![Loop::new(pool_with_config_maps, checked::<false>)],
        breaks: "no-hot-loop",
    }
}

fn listed<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let there = view.owned("v1", "ConfigMap", &pool).pop();
    let mut members = ["a", "b", "c"];
    // The order of a map without one: it seems to be drawn anew each time.
    let version: u64 =
        there.as_ref().and_then(|child| child["metadata"]["resourceVersion"].as_str()?.parse().ok()).unwrap_or(0);
    members.rotate_left((version % 3) as usize);
    if RIGHT {
        members.sort_unstable();
    }
    let members = members.join(",");
    if there.is_none_or(|child| child["data"]["members"] != members) {
        plan.apply(child_of(&pool, config_map(pool.name(), json!({"members": members}))), "the members differ");
    }
    plan
}

/// A list without an order, compared as if it had one.
pub fn unordered_list() -> Case {
    Case {
        scenario: Scenario { start: vec![pool("web", json!({}))], ..Scenario::new("a list of members") },
        right: vec![Loop::new(pool_with_config_maps, listed::<true>)],
        wrong: vec![Loop::new(pool_with_config_maps, listed::<false>)],
        breaks: "quiescent",
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Tells {
    /// What is so, of the generation that was looked at.
    Truth,
    /// Something only if `Ready` changes.
    Changes,
    /// What will be so.
    Plans,
}

fn reported(key: &Key, view: &View, tells: Tells) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let there = view.owned("v1", "ConfigMap", &pool).pop();
    let wanted = config_map(pool.name(), json!({"size": pool.spec()["size"].to_string()}));
    let is_as_wished = there.as_ref().is_some_and(|child| child["data"] == wanted["data"]);
    let is_ready = if tells == Tells::Truth { is_as_wished } else { there.is_some() };
    let ready = if is_ready { "True" } else { "False" };
    let status = json!({"observedGeneration": pool.generation(), "conditions": [{"type": "Ready", "status": ready}]});
    let apply = |plan: &mut Plan| {
        if !is_as_wished {
            plan.apply(child_of(&pool, wanted.clone()), "it is not as wished");
        }
    };
    if tells != Tells::Plans {
        apply(&mut plan);
    }
    let is_news = match tells {
        Tells::Changes => pool.condition("Ready") != Some(ready),
        Tells::Truth | Tells::Plans => pool.status() != &status,
    };
    if is_news {
        plan.update_status(&pool, status, "the status has changed");
    }
    if tells == Tells::Plans {
        apply(&mut plan);
    }
    plan
}

fn is_ready(scene: &Scene<'_>, pool: &Value) -> bool {
    let child = scene.get("v1", "ConfigMap", pool.name());
    child.is_some_and(|child| child["data"]["size"].as_str() == Some(&pool.spec()["size"].to_string()))
}

fn resized() -> Scenario {
    Scenario {
        start: vec![pool("web", json!({"size": 1}))],
        edits: vec![Edit::new("size 2", Act::Patch(pool("web", json!({"size": 2}))))],
        ready: Some(is_ready),
        ..Scenario::new("a status with a generation")
    }
}

/// The status is written only when `Ready` changes, so that it never speaks of the new generation.
pub fn stuck_generation() -> Case {
    Case {
        scenario: Scenario { ready: Some(|_, _| true), ..resized() },
        right: vec![Loop::new(pool_with_config_maps, |key, view, _| reported(key, view, Tells::Truth))],
        wrong: vec![Loop::new(pool_with_config_maps, |key, view, _| reported(key, view, Tells::Changes))],
        breaks: "observed-generation",
    }
}

/// The new generation is called ready before it is.
pub fn wrong_generation() -> Case {
    Case {
        scenario: resized(),
        right: vec![Loop::new(pool_with_config_maps, |key, view, _| reported(key, view, Tells::Truth))],
        wrong: vec![Loop::new(pool_with_config_maps, |key, view, _| reported(key, view, Tells::Plans))],
        breaks: "honest-status",
    }
}

fn refusing<const RIGHT: bool>(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key) else { return plan };
    if pool.spec()["size"].as_i64().is_some_and(|size| size >= 0) {
        return plan;
    }
    let status = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "InvalidSize"}]});
    match RIGHT {
        true if pool.status() == &status => plan,
        true => {
            plan.update_status(&pool, status, "that is no size");
            plan
        }
        false => plan.requeue_after(Duration::from_millis(10)),
    }
}

/// What can't be done is tried again and again, past the backoff of the queue.
pub fn past_the_limiter() -> Case {
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({"size": -1}))],
            horizon: Duration::from_secs(60),
            ..Scenario::new("a spec that can't be met")
        },
        right: vec![Loop::new(|| kernetes_controller::Watches::of(EXAMPLE, "Pool"), refusing::<true>)],
        wrong: vec![Loop::new(|| kernetes_controller::Watches::of(EXAMPLE, "Pool"), refusing::<false>)],
        breaks: "no-hot-loop",
    }
}
