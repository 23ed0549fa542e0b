//! `secret`: Secrets that follow a vault. One entry changes, another is sealed; one Secret is somebody else's.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernetes_controller::Object as _;
use serde_json::json;

use crate::grading::words::Words;
use crate::search::scenario::{Act, Edit, Scenario, Scene, object};

const EXAMPLE: &str = "example.com/v1";
const VAULT: &str = "vault.example.com/v1";

pub fn scenario() -> Scenario {
    let entry = |name: &str, spec: serde_json::Value| json!({"apiVersion": VAULT, "kind": "Entry", "metadata": {"name": name}, "spec": spec});
    let wish = |name: &str, entry: &str| {
        object(EXAMPLE, "ExternalSecret", name, json!({"spec": {"entry": entry, "secretName": name}}))
    };
    let foreign = object("v1", "Secret", "taken", json!({"stringData": {"value": "somebody's"}}));
    Scenario {
        start: vec![
            entry("password", json!({"value": "one"})),
            entry("token", json!({"value": "xyz"})),
            foreign,
            wish("db", "password"),
            wish("mail", "token"),
            wish("taken", "password"),
        ],
        edits: vec![
            Edit::new(
                ("値がtwoになる", "the value becomes two"),
                Act::Patch(entry("password", json!({"value": "two"}))),
            ),
            Edit::new(
                ("tokenが封じられる", "token is sealed"),
                Act::Patch(entry("token", json!({"value": null, "sealed": true}))),
            ),
        ],
        met,
        safe,
        runs_a_minute_max: 16,
        horizon: std::time::Duration::from_secs(120),
        // What is sealed says nothing: who has not asked before has nothing.
        confluent: false,
        ..Scenario::new("secret")
    }
}

fn value(scene: &Scene<'_>, name: &str) -> Option<String> {
    let secret = scene.get("v1", "Secret", name)?;
    let bytes = STANDARD.decode(secret["data"]["value"].as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}

fn met(scene: &Scene<'_>) -> Result<(), Words> {
    let wanted = |name: &str| {
        let entry = scene.0.kind(VAULT, "Entry").and_then(|_| scene.get(VAULT, "Entry", name))?;
        entry.spec()["value"].as_str().map(str::to_owned)
    };
    for (name, wanted) in [("db", wanted("password")), ("mail", wanted("token"))] {
        let Some(wanted) = wanted else { continue };
        match value(scene, name) {
            Some(found) if found == wanted => {}
            Some(found) => {
                return Err(Words::new(
                    format!("保管庫の値は {wanted} なのに、Secret {name} は {found}"),
                    format!("the vault says {wanted}, and Secret {name} {found}"),
                ));
            }
            None => {
                return Err(Words::new(
                    format!("保管庫の値は {wanted} なのに、Secret {name} にはない"),
                    format!("the vault says {wanted}, and Secret {name} has no value"),
                ));
            }
        }
    }
    for (name, is_expected) in
        [("db", wanted("password").is_some()), ("mail", wanted("token").is_some()), ("taken", false)]
    {
        let Some(wish) = scene.get(EXAMPLE, "ExternalSecret", name) else { continue };
        let ready = wish.condition("Ready").unwrap_or("-");
        if (ready == "True") != is_expected || ready == "-" {
            return Err(Words::new(
                format!("ExternalSecret {name} のReadyが {ready} になっている"),
                format!("ExternalSecret {name} says Ready {ready}"),
            ));
        }
    }
    Ok(())
}

/// The last good value is kept.
fn safe(scene: &Scene<'_>) -> Result<(), Words> {
    let lost = scene.0.trace().writes().next_back().is_some_and(|(_, write)| {
        let has_value = |object: &Option<cluster_core::api::object::Object>| {
            object.as_ref().is_some_and(|object| object.to_json()["data"]["value"].is_string())
        };
        &*write.kind.kind == "Secret" && has_value(&write.before) && !has_value(&write.after)
    });
    if lost { Err(Words::new("最後の正しい値が失われた", "the last good value is lost")) } else { Ok(()) }
}
