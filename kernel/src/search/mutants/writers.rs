//! Several who write to one thing, and writes that fail.

use kernetes_controller::{Key, Object, Plan, Time, View, Watches, child_of, json};

use super::kit::{Case, EXAMPLE, Loop, config_map, pool, pool_with_config_maps, the_pool, volume};
use crate::grading::words::Words;
use crate::search::OnRefusal;
use crate::search::scenario::{Act, Edit, Scenario, Scene};

#[derive(Clone, Copy, PartialEq)]
enum Put {
    Patch,
    Blind,
    Guarded,
}

fn labelled(key: &Key, view: &View, put: Put) -> Plan {
    let mut plan = Plan::new();
    let Some(pool) = the_pool(view, key).filter(|pool| !pool.deleting()) else { return plan };
    let size = pool.spec()["size"].to_string();
    match view.owned("v1", "ConfigMap", &pool).pop() {
        None => {
            plan.create(child_of(&pool, config_map(pool.name(), json!({"size": size}))), "there is none");
        }
        Some(child) if child["data"]["size"] == size => {}
        Some(child) if put == Put::Patch => {
            plan.patch(&child, json!({"data": {"size": size}}), "another size");
        }
        Some(mut child) => {
            child["data"]["size"] = json!(size);
            if put == Put::Blind {
                child["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
            }
            plan.update(child, "another size");
        }
    }
    plan
}

fn size_is_told(scene: &Scene<'_>) -> Result<(), Words> {
    let Some(pool) = scene.get(EXAMPLE, "Pool", "web") else { return Ok(()) };
    let told = scene.get("v1", "ConfigMap", "web").map(|child| child["data"]["size"].clone());
    if told == Some(json!(pool.spec()["size"].to_string())) {
        Ok(())
    } else {
        Err(Words::same(format!("size: {told:?}")))
    }
}

fn a_note_beside() -> Scenario {
    Scenario {
        start: vec![pool("web", json!({"size": 1}))],
        edits: vec![
            Edit::new("somebody adds a note", Act::Patch(config_map("web", json!({"note": "mine"})))),
            Edit::new("size 2", Act::Patch(pool("web", json!({"size": 2})))),
        ],
        met: size_is_told,
        ..Scenario::new("a note beside")
    }
}

/// A PUT of what was seen a while ago, without its resourceVersion, takes back what others wrote.
pub fn blind_puts() -> Case {
    Case {
        // A note on what is not there yet is lost for everybody.
        scenario: Scenario {
            start: vec![pool("web", json!({"size": 1}))],
            safe: note_stays,
            confluent: false,
            ..a_note_beside()
        },
        right: vec![Loop::new(pool_with_config_maps, |key, view, _| labelled(key, view, Put::Patch))],
        wrong: vec![Loop::new(pool_with_config_maps, |key, view, _| labelled(key, view, Put::Blind))],
        breaks: "safety",
    }
}

/// Once written, the note is not taken away.
fn note_stays(scene: &Scene<'_>) -> Result<(), Words> {
    let note = |object: &Option<cluster_core::api::object::Object>| {
        object.as_ref().is_some_and(|object| object.to_json()["data"]["note"] == "mine")
    };
    let mut last = scene.0.trace().writes().rev().take(2).filter(|(_, write)| &*write.kind.kind == "ConfigMap");
    match last.any(|(_, write)| note(&write.before) && !note(&write.after)) {
        true => Err(Words::new("他の人のメモが消えた", "somebody's note is lost")),
        false => Ok(()),
    }
}

/// A refused PUT is sent again as it was.
pub fn sent_again() -> Case {
    let guarded = Loop::new(pool_with_config_maps, |key, view, _| labelled(key, view, Put::Guarded));
    Case {
        scenario: Scenario { confluent: false, ..a_note_beside() },
        right: vec![guarded],
        wrong: vec![Loop { on_refusal: OnRefusal::SendAgain, ..guarded }],
        breaks: "no-hot-loop",
    }
}

fn watch_config_maps() -> Watches {
    Watches::of(EXAMPLE, "Pool").also("v1", "ConfigMap")
}

fn sets(view: &View, field: &str, value: &str) -> Plan {
    let mut plan = Plan::new();
    if let Some(shared) =
        view.get("v1", "ConfigMap", &Key::new("default", "shared")).filter(|shared| shared["data"][field] != value)
    {
        plan.patch(&shared, json!({"data": {field: value}}), "it has another value");
    }
    plan
}

/// Two controllers want one field to be different things.
pub fn two_owners_of_a_field() -> Case {
    let a = Loop::new(watch_config_maps, |_, view, _| sets(view, "mode", "a")).named("a-controller");
    let b = Loop::new(watch_config_maps, |_, view, _| sets(view, "other", "b")).named("b-controller");
    let same = Loop::new(watch_config_maps, |_, view, _| sets(view, "mode", "b")).named("b-controller");
    Case {
        scenario: Scenario {
            start: vec![config_map("shared", json!({})), pool("web", json!({}))],
            shared: &["ConfigMap"],
            ..Scenario::new("a shared ConfigMap")
        },
        right: vec![a, b],
        wrong: vec![a, same],
        breaks: "quiescent",
    }
}

fn follow_flag(key: &Key, view: &View, turn: bool) -> Plan {
    let mut plan = Plan::new();
    let (Some(pool), Some(volume)) = (the_pool(view, key), view.get(EXAMPLE, "Volume", key)) else { return plan };
    let flag = volume.status()["flag"].as_bool().unwrap_or(false);
    let flag = if turn { !flag } else { flag };
    if pool.status()["flag"] != flag {
        plan.update_status(&pool, json!({"flag": flag}), "the volume has changed");
    }
    plan
}

fn copy_flag(key: &Key, view: &View, _: Time) -> Plan {
    let mut plan = Plan::new();
    let (Some(pool), Some(volume)) = (view.get(EXAMPLE, "Pool", key), view.get(EXAMPLE, "Volume", key)) else {
        return plan;
    };
    let flag = pool.status()["flag"].as_bool().unwrap_or(false);
    if volume.status()["flag"].as_bool().unwrap_or(false) != flag {
        plan.update_status(&volume, json!({"flag": flag}), "the pool has changed");
    }
    plan
}

/// Two controllers answer to each other's status, for ever.
pub fn ping_pong() -> Case {
    let pools = || Watches::of(EXAMPLE, "Pool").also(EXAMPLE, "Volume");
    let volumes =
        Loop::new(|| Watches::of(EXAMPLE, "Volume").also(EXAMPLE, "Pool"), copy_flag).named("volume-controller");
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({})), volume("web", json!({}))],
            ..Scenario::new("two statuses")
        },
        right: vec![Loop::new(pools, |key, view, _| follow_flag(key, view, false)), volumes],
        wrong: vec![Loop::new(pools, |key, view, _| follow_flag(key, view, true)), volumes],
        breaks: "quiescent",
    }
}

/// A create fails, and nobody is told.
pub fn error_dropped() -> Case {
    let right = Loop::new(pool_with_config_maps, |key, view, _| labelled(key, view, Put::Patch));
    Case {
        scenario: Scenario {
            start: vec![pool("web", json!({"size": 1}))],
            met: size_is_told,
            ..Scenario::new("a create that fails")
        },
        right: vec![right],
        wrong: vec![Loop { on_refusal: OnRefusal::Ignore, ..right }],
        breaks: "stable",
    }
}
